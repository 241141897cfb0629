"""The options of ``certify``: what to promise, and how."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from credalearn._checks import check_number
from credalearn._options import check_options, option
from credalearn.conformal import Distance, Scale
from credalearn.errors import CredalError
from credalearn.guarantees import CertifyMethod, DeferralScore, Promise

_MAX_ERROR = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """Options of ``certify``, in Python and on the command line."""

    max_error: float | None = option(
        None,
        "Largest error rate among predicted items; with --cost, largest mean cost.",
        above=0,
        show_default="0.10, unless another target is given",
    )
    called: tuple[str, ...] = option(
        (), "Largest error among items called a class, such as malignant=0.05; may be repeated."
    )
    missed: tuple[str, ...] = option(
        (), "Largest share of a class called otherwise, such as malignant=0.10; may be repeated."
    )
    cost: tuple[str, ...] = option(
        (), "Cost of an error, such as malignant:benign=5 (truth:label), else 1; may be repeated."
    )
    per_class: bool = option(False, "One threshold per predicted class, each with max_error.")
    capacity: float | None = option(
        None,
        "Share of items that reviewers can take, such as 0.25; no error is promised.",
        least=0,
        most=1,
    )
    confidence: float = option(0.95, "Confidence level of the guarantee.", above=0, below=1)
    method: CertifyMethod | None = option(
        None, "How the error is certified.", show_default="learn-then-test; betting with groups"
    )
    score: DeferralScore | None = option(
        None, "Score to defer by.", show_default="the better one on out-of-fold predictions"
    )
    against: Literal["truth", "annotator"] = option(
        "truth", "Compare predictions with the run's truth, or with a random annotator."
    )
    again: bool = option(
        False, "Replace the guarantee by another one, tested at half of the risk that is left."
    )
    set_coverage: float | None = option(
        None,
        "Widen sets to contain the vote shares of this share of new items, such as 0.90.",
        above=0,
        below=1,
    )
    distance: Distance = option("box", "Widen sets by class (box), or to a ball of this distance.")
    scale: Scale | None = option(
        None,
        "Unit in which the sets of an item are widened.",
        show_default="the narrowest on items that do not calibrate, or relative-variance",
    )
    stratum: str | None = option(
        None,
        "Widen sets separately by this column of the inputs; 'label': by predicted class.",
        show_default="by score: items likely kept, and likely deferred",
    )
    table: Path | Any | None = option(
        None, "Table with the column of --stratum.", show_default="the inputs used for training"
    )
    explain: bool = option(False, "Also print what the guarantee assumes.")

    def __post_init__(self) -> None:
        check_options(self)
        if self.capacity is not None and self.target is not None:
            raise CredalError(
                f"Pass max_error={self.target:g} or capacity={self.capacity:g}, not both: "
                "each sets the threshold. To fix: pass one of them."
            )
        if self.capacity is not None and (self.called or self.missed):
            raise CredalError(
                "Pass either a capacity or promises about classes: each sets the threshold."
            )
        if self.per_class and (self.called or self.missed or self.cost or self.target is None):
            raise CredalError(
                "per_class certifies max_error for each predicted class, and nothing else. To fix: "
                "pass max_error=0.10 with it, and leave out capacity=, called=, missed= and cost=."
            )
        if self.capacity is not None and self.method is not None:
            raise CredalError("method must be left out with a capacity, which certifies no error.")
        widening = {name: getattr(self, name) for name in ("scale", "stratum", "table")}
        widening["distance"] = None if self.distance == "box" else self.distance
        for name, given in widening.items():
            if self.set_coverage is None and given is not None:  # a table cannot be compared
                raise CredalError(
                    f"{name} must come with a coverage, as it is about widened sets. To fix: pass "
                    "set_coverage=0.90 too."
                )
        about_classes = self.called or self.missed or self.cost or self.per_class
        if self.against == "annotator" and about_classes:
            raise CredalError(
                "promises about classes and costs are about the true class. To fix: leave out "
                "against=."
            )
        if self.cost and self.target is None:
            raise CredalError(
                "cost must come with a largest mean cost. To fix: pass max_error=0.10 too."
            )
        if self.target is not None and not self.cost:
            check_number(self.target, name="max_error", above=0, below=1)
        assert self.promises is not None

    @property
    def target(self) -> float | None:
        """The error rate to certify; None where a capacity, classes or only sets are asked for."""
        others = (self.capacity, self.set_coverage, self.called or None, self.missed or None)
        if self.max_error is None and all(each is None for each in others):
            return _MAX_ERROR
        return self.max_error

    @property
    def promises(self) -> tuple[Promise, ...]:
        """What to promise besides the error of all items; with costs, instead of it."""
        found = []
        if self.cost and self.target is not None:
            parsed = [_parsed(each, "cost", "malignant:benign=5", 2) for each in self.cost]
            costs = tuple((truth, label, value) for (truth, label), value in parsed)
            largest = max(1.0, *(value for _, value in parsed))
            check_number(self.target, name="max_error", above=0, below=largest)
            found.append(Promise(limit=self.target, costs=costs))
        kinds: tuple[Literal["called", "missed"], ...] = ("called", "missed")
        for kind in kinds:
            for each in getattr(self, kind):
                (name,), limit = _parsed(each, kind, "malignant=0.05", 1)
                check_number(limit, name=kind, above=0, below=1)
                found.append(Promise(kind=kind, name=name, limit=limit))
        return tuple(found)

    @property
    def asked(self) -> dict[str, Any]:
        """What a guarantee depends on: with the same, ``certify`` finds the same."""
        names = ("called", "missed", "cost", "per_class", "confidence", "method", "score")
        fields = {name: getattr(self, name) for name in (*names, "against")}
        fields |= {name: list(each) for name, each in fields.items() if isinstance(each, tuple)}
        asked = {"max_error": self.target, **fields}
        return asked if self.capacity is None else asked | {"capacity": self.capacity}


def _parsed(text: str, name: str, example: str, number: int) -> tuple[list[str], float]:
    """The class names and the value in ``a:b=5`` or ``a=0.05``."""
    before, _, value = text.rpartition("=")
    names = before.split(":") if number > 1 else [before]
    if len(names) != number or not all(names):
        raise CredalError(f"{name} must look like {example}; got {text!r}.")
    try:
        return names, float(value)
    except ValueError:
        raise CredalError(f"{name} must end with a number, such as =0.05; got {text!r}.") from None
