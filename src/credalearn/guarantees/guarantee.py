"""The result of certifying: a predict-or-defer rule, and what it promises."""

import json
from dataclasses import asdict, dataclass
from typing import Literal, Self, final

import numpy as np
from numpy.typing import ArrayLike

from credalearn._formats import about_groups, many, percent
from credalearn._ranks import as_scores
from credalearn.errors import CredalError
from credalearn.guarantees._truths import HAVING, TRUTHS, Truth
from credalearn.guarantees.items import as_name
from credalearn.guarantees.promises import Promise

CertifyMethod = Literal["learn-then-test", "betting", "sgr", "conformal-risk-control"]
DeferralScore = Literal["lower-probability", "top-probability"]

SCORE_WORDS: dict[DeferralScore, str] = {
    "lower-probability": "one minus the lower probability of the label",
    "top-probability": "one minus the probability of the label",
}


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What it would take to certify a target, and what can be certified instead.

    Args:
        items_needed: About how many calibration items, or groups, it would take, if more of them
            had the same scores and error rates; None where no number would do.
        reachable_error: The smallest max_error, in steps of 0.1 %, that these items can certify by
            the same method; None where there is none. To certify it, use new items: trying it on
            the same ones is a second look at them.
        reachable_coverage: The share of items kept there; None likewise.
        groups: Whether ``items_needed`` counts groups.
        if_independent: For groups, the share of items that would be kept if the items of a group
            were independent; None where nothing would be certified, or without groups.
        predicted: The class that all of this is about, for a threshold per class.
        items: The number of calibration items predicted as this class; None without a class.
        failing: Of several promises, those that could not be certified alone either.

    Example:
        >>> print(Shortfall(94, 0.31, 0.5))
        It would take about 94 calibration items like these. In place of this target, an error of
        31 % would have been certified with these items, keeping 50 %.
        >>> print(Shortfall(60, None, None, groups=True, if_independent=0.4))
        It would take about 60 groups of calibration items like these. Only if the items of a group
        were independent would the target be certified, keeping 40 %.
    """

    items_needed: int | None
    reachable_error: float | None
    reachable_coverage: float | None
    groups: bool = False
    if_independent: float | None = None
    predicted: str | None = None
    items: int | None = None
    failing: tuple[str, ...] = ()

    def __str__(self) -> str:
        units = "groups of calibration items" if self.groups else "calibration items"
        own = "" if self.predicted is None else f" predicted as {self.predicted!r}"
        units += own
        notes = [
            f"No number of {units} like these would do."
            if self.items_needed is None
            else f"It would take about {self.items_needed:,} {units} like these."
        ]
        if self.items is not None:
            notes[0] = f"{notes[0][:-1]}; there are {self.items:,}."
        if self.failing:
            notes.append(f"Not certified alone either: {', '.join(self.failing)}.")
        if self.reachable_error is not None and self.reachable_coverage is not None:
            notes.append(
                f"In place of this target, an error of {percent(self.reachable_error)} would have "
                f"been certified with these items{own}, keeping {percent(self.reachable_coverage)}."
            )
        if self.if_independent is not None:
            notes.append(
                "Only if the items of a group were independent would the target be certified, "
                f"keeping {percent(self.if_independent)}."
            )
        return " ".join(notes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """Predict items whose score is at most the threshold, defer the others; and what that promises.

    Made by :func:`~credalearn.certify` and :func:`~credalearn.guarantees.by_capacity`.

    Args:
        method: How the threshold was chosen.
        against: What predictions are compared with to call them wrong.
        threshold: Largest score that is predicted; None: every item is deferred.
        num_items: Number of calibration items that can be right or wrong.
        kept: How many of them are predicted.
        errors: How many of those are wrong, or the sum of the shares that disagree.
        max_error: The error rate to certify; None for a capacity, or where only ``promises`` hold.
        confidence: Confidence level of the guarantee, or of a capacity's interval; None for
            conformal risk control, which has none.
        bound: Upper bound that was compared with max_error: on the error among predicted items, or
            for conformal risk control on the expected share of items that are predicted and wrong.
            None where nothing is certified.
        interval: For a capacity, the interval of the error; otherwise None.
        shortfall: What it would take, where nothing could be certified; otherwise None.
        left_out: Further calibration items, which have no truth to be right or wrong against.
        left_out_kept: How many of those are predicted.
        group: Name of what several items may share, such as their patient.
        num_groups: Number of groups that the ``num_items`` come from; None if they have none.
        promises: What is promised besides ``max_error``.
        class_thresholds: Threshold of each predicted class, where each has its own; None: a class
            that is always deferred. ``threshold`` is then the largest.
        expected_threshold: The threshold that reference items led to expect; None without them.
        score: Score that items are deferred by; None where certify was given an array.
        requests: Number of requests on the same items that ``confidence`` pays for.

    Example:
        >>> found = Guarantee(
        ...     method="learn-then-test", against="gold", threshold=0.25, num_items=400, kept=300,
        ...     errors=9.0, max_error=0.1, confidence=0.95, bound=0.0717,
        ... )
        >>> found.coverage, found.error, found.decide([0.1, 0.4]).tolist()
        (0.75, 0.03, ['predict', 'defer'])
        >>> print(found.sentence())
        With 95 % confidence, at most 10 % of the predicted items are wrong compared with the gold
        labels, for new items drawn like the 400 calibration items.
    """

    method: Literal[CertifyMethod, "capacity"]
    against: Truth
    threshold: float | None
    num_items: int
    kept: int
    errors: float
    max_error: float | None
    confidence: float | None
    bound: float | None
    interval: tuple[float, float] | None = None
    shortfall: Shortfall | None = None
    left_out: int = 0
    left_out_kept: int = 0
    group: str | None = None
    num_groups: int | None = None
    promises: tuple[Promise, ...] = ()
    class_thresholds: tuple[tuple[str, float | None], ...] = ()
    expected_threshold: float | None = None
    score: DeferralScore | None = None
    requests: int = 1

    def __post_init__(self) -> None:
        capacity, nothing = self.method == "capacity", self.threshold is None
        limits = [limit for _, limit in self.class_thresholds if limit is not None]
        rules = {
            "0 <= kept <= num_items, and num_items >= 1": 0 <= self.kept <= max(self.num_items, 1),
            "0 <= errors <= kept": 0 <= self.errors <= self.kept + 1e-6,  # sums of shares round
            "0 <= left_out_kept <= left_out": 0 <= self.left_out_kept <= self.left_out,
            "a threshold exactly where items are kept": nothing == (self.kept == 0),
            "max_error or promises, unless it is a capacity": (
                self.max_error is None and not self.promises
            )
            == capacity,
            "no confidence exactly for conformal-risk-control": (self.confidence is None)
            == (self.method == "conformal-risk-control"),
            "a shortfall exactly where nothing is certified": (self.shortfall is None)
            == (capacity or not nothing),
            "bound <= max_error": (self.bound or 0) <= (self.max_error or 1),
            "1 <= num_groups <= num_items": 1 <= (self.num_groups or 1) <= self.num_items,
            "the largest threshold of its classes": not limits or max(limits) == self.threshold,
        }
        for rule, holds in rules.items():
            if not holds:
                raise CredalError(f"a guarantee must have {rule}; got {self!r}.")

    @property
    def certified(self) -> bool:
        """Whether items are predicted and something is promised about them."""
        return self.method != "capacity" and self.threshold is not None

    @property
    def by_group(self) -> bool:
        """Whether the promise is about a random item of a random group."""
        return self.method == "betting"

    @property
    def all_promises(self) -> tuple[Promise, ...]:
        """Everything that is promised at ``confidence``, ``max_error`` included."""
        if self.class_thresholds and self.max_error is not None:
            names = [name for name, limit in self.class_thresholds if limit is not None]
            return tuple(Promise(kind="called", name=name, limit=self.max_error) for name in names)
        first = () if self.max_error is None else (Promise(limit=self.max_error),)
        return (*first, *self.promises)

    @property
    def coverage(self) -> float:
        """Share of the calibration items that are predicted, including those left out."""
        return (self.kept + self.left_out_kept) / (self.num_items + self.left_out)

    @property
    def error(self) -> float | None:
        """Share of the predicted calibration items that are wrong; None if none is predicted."""
        return self.errors / self.kept if self.kept else None

    def keeps(self, score: "ArrayLike", predicted: "ArrayLike | None" = None) -> np.ndarray:
        """Whether each item is predicted, shape (N,), bool.

        ``predicted`` are the predicted classes, shape (N,), which thresholds per class need.
        """
        if np.shape(score) == (0,):  # the last, empty batch of a stream
            return np.zeros(0, dtype=bool)
        # In float64: a float32 score would round the threshold to itself and keep too much.
        scores = as_scores(score, name="score").astype(np.float64)
        if self.threshold is None:
            return np.zeros(len(scores), dtype=bool)
        if not self.class_thresholds:
            return np.asarray(scores <= self.threshold)
        if predicted is None or np.shape(predicted) != scores.shape:
            raise CredalError("thresholds per class need the classes. To fix: pass predicted.")
        limits = dict(self.class_thresholds)
        own = [limits.get(as_name(name)) for name in np.asarray(predicted).tolist()]
        return np.array([t is not None and s <= t for s, t in zip(scores, own, strict=True)])

    def decide(self, score: "ArrayLike", predicted: "ArrayLike | None" = None) -> np.ndarray:
        """``"predict"`` or ``"defer"`` for each item, shape (N,); arguments as for ``keeps``."""
        return np.where(self.keeps(score, predicted), "predict", "defer")

    def sentence(self) -> str:
        """What is promised, about which items, at which confidence; and what groups do to it."""
        count = None if self.by_group or not self.kept else self.num_groups
        if self.method == "capacity":
            groups = about_groups(count, self.num_items, self.group, "interval")
            return f"{self._about_capacity()} {groups}".rstrip()
        if self.shortfall is not None:
            refused = f"Nothing is certified and every item is deferred: {self.refusal()}."
            return f"{refused} {self.shortfall}"
        truth = TRUTHS[self.against]
        if self.confidence is None:
            assert self.max_error is not None
            limit = percent(self.max_error, digits=10)
            promise = (
                f"On average over calibration sets, at most {limit} of all items are both "
                f"predicted and wrong compared with {truth}, {self._drawn()}. Among the predicted "
                "items alone the error may be larger, and no confidence level is stated."
            )
        else:
            parts = [each.sentence(truth) for each in self.all_promises]
            if self.class_thresholds:
                parts = [
                    f"of each class at most {percent(self.max_error, digits=10)} of the predicted "
                    f"items are wrong compared with {truth}"
                ]
            notes = "; and ".join(parts)
            promise = f"With {percent(self.confidence)} confidence, {notes}, {self._drawn()}."
        about = [promise]
        if self.left_out:
            were = "was" if self.left_out == 1 else "were"
            left_out = f"{many(self.left_out, 'calibration item')} without one {were} left out."
            about.append(f"This is about items with {HAVING[self.against]}; {left_out}")
        about.append(about_groups(count, self.num_items, self.group))
        if self.requests > 1:
            about.append(f"The confidence counts all {self.requests} requests on these items.")
        return " ".join(filter(None, about))

    def refusal(self) -> str:
        """What cannot be certified with these items, where nothing is; part of ``sentence``."""
        error = f"an error of at most {percent(self.max_error, digits=10)}"
        number = len(self.promises)
        what = (
            error
            if not number
            else "this promise"
            if len(self.all_promises) == 1
            else "these promises"
        )
        sure = f" with {percent(self.confidence)} confidence" if self.confidence else ""
        having = many(self.num_items, "calibration item")
        if self.shortfall is not None and self.shortfall.groups:
            having += f" of {many(self.num_groups or 0, 'group')}"
            having += f" ({self.group})" if self.group else ""
        return f"{what}{sure} cannot be certified with {having}"

    def to_json(self) -> str:
        """The guarantee as JSON, with coverage, error and sentence for readers of the file."""
        known = {"coverage": self.coverage, "error": self.error, "sentence": self.sentence()}
        return json.dumps(asdict(self) | known, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The guarantee that :meth:`to_json` wrote."""
        import msgspec  # here, so that certifying arrays does not need it

        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            why = CredalError(str(error)).reason
            raise CredalError(f"not a guarantee: {why}. To fix: certify again.") from error

    def _about_capacity(self) -> str:
        deferred = self.num_items - self.kept
        text = f"No error rate is promised: {deferred:,} of {self.num_items:,} calibration items "
        text += f"with {HAVING[self.against]} " if self.left_out else ""
        text += "is deferred" if deferred == 1 else "are deferred"
        if self.error is None or self.interval is None or self.confidence is None:
            return f"{text}."
        low, high = map(percent, self.interval)
        return (
            f"{text}, and {percent(self.error)} of the {self.kept:,} predicted are wrong compared "
            f"with {TRUTHS[self.against]} ({percent(self.confidence)} interval {low} to {high})."
        )

    def _drawn(self) -> str:
        if not self.by_group:
            return f"for new items drawn like the {self.num_items:,} calibration items"
        name = f" ({self.group})" if self.group else ""
        return (
            f"for a random item of a random new group{name}, drawn like the "
            f"{many(self.num_groups or 1, 'group')} of the {self.num_items:,} calibration items"
        )
