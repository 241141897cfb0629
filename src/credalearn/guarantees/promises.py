"""What can be promised about the predicted items: a rate that stays at or below a limit."""

from dataclasses import dataclass, replace
from typing import Literal, Self, final, get_args

import numpy as np

from credalearn._checks import check_choice, check_number
from credalearn._formats import enumerated, number, percent
from credalearn.errors import CredalError
from credalearn.guarantees.items import ScoredItems, as_name

PromiseKind = Literal["error", "called", "missed"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One promise about the predicted items.

    Args:
        kind: ``"error"``: of the predicted items, at most ``limit`` are wrong. ``"called"``: of
            those called ``name``, at most ``limit`` are wrong. ``"missed"``: of those that are
            truly ``name``, at most ``limit`` are called something else.
        limit: In (0, 1); with costs, above 0 and below the largest cost.
        name: The class of ``"called"`` and ``"missed"``.
        costs: For ``"error"``, what errors cost: (truth, label, cost) with a cost of 0 or more;
            other errors cost 1. The limit is then about the mean cost of the predicted items.
        kept: Number of predicted calibration items that it is about.
        errors: How many of these are wrong, or their summed shares or costs.
        bound: Upper bound on the rate, at the confidence of the guarantee; None if not certified.

    Example:
        >>> print(Promise(kind="called", name="cat", limit=0.05).sentence("the gold labels"))
        at most 5 % of the predicted items called cat are wrong compared with the gold labels
    """

    kind: PromiseKind = "error"
    limit: float
    name: str | None = None
    costs: tuple[tuple[str, str, float], ...] = ()
    kept: int = 0
    errors: float = 0.0
    bound: float | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, get_args(PromiseKind), name="kind")
        if (self.name is None) != (self.kind == "error"):
            raise CredalError(f"a promise must name a class unless it is about all; got {self!r}.")
        if self.costs and self.kind != "error":
            raise CredalError(f"costs belong to a promise about all items; got {self!r}.")
        if self.name is not None:  # classes are compared as text
            object.__setattr__(self, "name", as_name(self.name))
        if isinstance(self.costs, str) or any(len(each) != 3 for each in self.costs):
            rule = "costs must be triples, such as (('malignant', 'benign', 5),)"
            raise CredalError(f"{rule}; got {self.costs!r}.")
        costs = tuple((as_name(truth), as_name(label), cost) for truth, label, cost in self.costs)
        object.__setattr__(self, "costs", costs)
        for truth, label, cost in costs:
            check_number(cost, name="a cost", least=0)
            if truth == label:
                raise CredalError(f"calling {truth} {label} is no error, and costs nothing.")
            if sum((truth, label) == each[:2] for each in costs) > 1:
                raise CredalError(f"calling {truth} {label} has two costs. To fix: give it one.")
        check_number(self.limit, name="limit", above=0, below=self.largest)

    def __str__(self) -> str:
        if self.costs:
            return f"mean cost at most {number(self.limit)}"
        return f"{self.kind} {self.name or 'of all items'} at most {percent(self.limit, digits=10)}"

    @property
    def largest(self) -> float:
        """The largest cost of an error: 1 without costs."""
        return max([1.0, *(cost for _, _, cost in self.costs)])

    @property
    def rate(self) -> float:
        """The limit as a share of the largest cost, in (0, 1)."""
        return self.limit / self.largest

    def sentence(self, truth: str) -> str:
        """What is promised, as part of a sentence, for errors compared with ``truth``."""
        limit = percent(self.limit, digits=10)
        if self.kind == "missed":
            return (
                f"at most {limit} of the predicted items that are {self.name} by {truth} are "
                "called something else"
            )
        if self.costs:
            notes = [f"calling {a} {b} costs {number(cost)}" for a, b, cost in self.costs]
            return (
                f"the mean cost of the predicted items compared with {truth} is at most "
                f"{number(self.limit)}, where {enumerated([*notes, 'any other error 1'])}"
            )
        called = "" if self.name is None else f" called {self.name}"
        return f"at most {limit} of the predicted items{called} are wrong compared with {truth}"

    def outcome(self) -> str:
        """What ``kept`` and ``errors`` say, for a promise about a class or costs."""
        rate, limit = self.errors / max(self.kept, 1), percent(self.limit, digits=10)
        about = f"that are {self.name}" if self.kind == "missed" else f"called {self.name}"
        if not self.kept:
            return f"there are none{'' if self.costs else f' {about}'}"
        if self.costs:
            return f"the mean cost of {self.kept:,} is {number(rate)} (at most {self.limit:g})"
        what = "are called something else" if self.kind == "missed" else "are wrong"
        return f"{percent(rate, decimals=1)} of {self.kept:,} {about} {what} (at most {limit})"

    def counted(self, items: ScoredItems, kept: np.ndarray) -> Self:
        """The promise with its ``kept`` and ``errors`` among the kept ones of these items."""
        about, losses, _ = self.losses(items)
        errors = float(losses[about & kept].sum() * self.largest)
        return replace(self, kept=int((about & kept).sum()), errors=errors)

    def losses(self, items: ScoredItems) -> tuple[np.ndarray, np.ndarray, bool]:
        """The items it is about (N,), their shares of the largest cost, and if these are 0 or 1."""
        if self.kind == "error" and not self.costs:
            return np.ones(len(items), dtype=bool), items.wrong, items.binary
        if items.predicted is None or items.truth is None:
            raise CredalError(
                "promises about classes need the classes. To fix: pass predicted and truth, to the "
                "reference items too."
            )
        wrong = (items.predicted != items.truth).astype(np.float64)
        if self.kind == "error":
            for truth, label, cost in self.costs:
                wrong[(items.truth == truth) & (items.predicted == label)] = cost
            return np.ones(len(items), dtype=bool), wrong / self.largest, False
        of_class = items.predicted if self.kind == "called" else items.truth
        about: np.ndarray = of_class == self.name
        if not about.any():
            which = "is called" if self.kind == "called" else "is truly"
            raise CredalError(
                f"no item {which} {self.name!r}, so nothing can be promised about that class. To "
                "fix: check its name, or leave the promise out."
            )
        return about, wrong, True
