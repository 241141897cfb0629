"""What certifying gives: the rule by which items are predicted or deferred, and its promise."""

import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import check_choice
from credalearn._formats import percent
from credalearn.errors import CredalError
from credalearn.guarantees.shortfall import Shortfall
from credalearn.guarantees.truths import HAVING, TRUTHS, Truth
from credalearn.metrics.ranking import as_scores

CertifyMethod = Literal["sgr", "learn-then-test", "conformal-risk-control"]
RuleMethod = Literal[CertifyMethod, "capacity"]
Bound = Literal["binomial", "hoeffding-bentkus", "exchangeability"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """Predict where the score is at most the threshold, defer above; with what that promises.

    Made by :func:`~credalearn.certify` and :func:`~credalearn.guarantees.by_capacity`.

    Args:
        method: How the threshold was chosen.
        against: What the predictions are wrong against.
        threshold: Largest score that is predicted; None: everything is deferred.
        num_items: How many calibration items there were that can be right or wrong.
        kept: How many of them the rule predicts.
        errors: How many of those are wrong, or the sum of the shares that disagree.
        max_error: What was to be certified; None for a capacity.
        confidence: Of the promise, or of the interval for a capacity; None for conformal risk
            control, which has none.
        bound: What was compared with max_error, so that it is at most that: an upper bound on the
            error among the kept; for conformal risk control on the expected share of items that
            are kept and wrong. The promise is max_error; the bound shows the margin. None where
            nothing is certified.
        bound_by: The inequality the bound, or a capacity's interval, comes from.
        interval: For a capacity, the two ends of the interval for the error; otherwise None.
        shortfall: Why nothing could be certified and what it would take, or None.
        left_out: Further calibration items, without a truth to be right or wrong against.
        left_out_kept: How many of those the rule predicts.
        group: What several items may share, such as their patient; None where nothing is known.
        num_groups: How many groups the ``num_items`` are of; None without a group.
        one_a_group: Whether the calibration items were drawn at random, one of each group, so that
            the promise is about such items.

    Raises:
        CredalError: If the fields contradict each other.

    Example:
        >>> rule = Guarantee(
        ...     method="sgr", against="gold", threshold=0.25, num_items=400, kept=300, errors=9.0,
        ...     max_error=0.1, confidence=0.95, bound=0.0717, bound_by="binomial",
        ... )
        >>> rule.coverage, rule.error, rule.decide([0.1, 0.4]).tolist()
        (0.75, 0.03, ['predict', 'defer'])
        >>> print(rule.statement)
        With 95 % confidence, at most 10 % of the items it predicts are wrong against the gold
        labels, for items drawn like the 400 calibration items.
    """

    method: RuleMethod
    against: Truth
    threshold: float | None
    num_items: int
    kept: int
    errors: float
    max_error: float | None
    confidence: float | None
    bound: float | None
    bound_by: Bound
    interval: tuple[float, float] | None = None
    shortfall: Shortfall | None = None
    left_out: int = 0
    left_out_kept: int = 0
    group: str | None = None
    num_groups: int | None = None
    one_a_group: bool = False

    def __post_init__(self) -> None:
        check_choice(self.method, get_args(RuleMethod), name="method")
        check_choice(self.against, get_args(Truth), name="against")
        check_choice(self.bound_by, get_args(Bound), name="bound_by")
        capacity = self.method == "capacity"
        for name in ("threshold", "max_error", "confidence", "bound"):
            value = getattr(self, name)
            self._check(value is None or _is_number(value), f"{name} must be a number or None")
        for name in ("num_items", "kept", "left_out", "left_out_kept"):
            whole = type(getattr(self, name)) is int
            self._check(whole, f"{name} must be a whole number")
        self._check(_is_number(self.errors), "errors must be a number")
        self._check(self.num_items >= 1, "num_items must be 1 or more")
        self._check(0 <= self.kept <= self.num_items, "kept must lie in 0..num_items")
        left_out = 0 <= self.left_out_kept <= self.left_out
        self._check(left_out, "left_out_kept must lie in 0..left_out")
        # Shares add up with rounding errors.
        self._check(0 <= self.errors <= self.kept + 1e-6, "errors must lie in 0..kept")
        self._check((self.threshold is None) == (self.kept == 0), "no threshold: nothing is kept")
        self._check((self.max_error is None) == capacity, "only a capacity has no max_error")
        conformal = self.method == "conformal-risk-control"
        self._check((self.confidence is None) == conformal, "only this method has no confidence")
        self._check(self.group is None or type(self.group) is str, "group must be a name or None")
        named, counted = self.group is not None, self.num_groups is not None
        self._check(named == counted, "group and num_groups belong together")
        if self.num_groups is not None:
            whole = type(self.num_groups) is int and 1 <= self.num_groups <= self.num_items
            self._check(whole, "num_groups must be a whole number in 1..num_items")
        self._check(type(self.one_a_group) is bool, "one_a_group must be true or false")
        drawn = not self.one_a_group or self.num_groups == self.num_items
        self._check(drawn, "one_a_group: there must be as many groups as items")
        short = self.threshold is None and not capacity
        self._check((self.shortfall is not None) == short, "a shortfall says why nothing is kept")
        if self.bound is not None and self.max_error is not None:
            self._check(self.bound <= self.max_error, "the bound must not exceed max_error")

    @property
    def certified(self) -> bool:
        """Whether the rule keeps items and promises something about them."""
        return self.method != "capacity" and self.threshold is not None

    @property
    def coverage(self) -> float:
        """Share of the calibration items that are predicted, those left out among them."""
        return (self.kept + self.left_out_kept) / (self.num_items + self.left_out)

    @property
    def error(self) -> float | None:
        """Share of the predicted calibration items that are wrong; None where none is predicted."""
        return self.errors / self.kept if self.kept else None

    @property
    def statement(self) -> str:
        """What is promised, about what, or that nothing is; and what groups do to it."""
        return f"{self._promise} {self.about_groups}".rstrip()

    @property
    def about_groups(self) -> str:
        """What it means that the items are of groups, in a sentence; empty where they are not."""
        if self.group is None or self.num_groups is None or not self.kept:
            return ""
        items = f"The {self.num_items:,} calibration items are"
        if self.one_a_group:
            return (
                f"{items} one of each group ({self.group!r}): this is about one item, drawn at "
                "random, of each new group; over all items, where large groups weigh more, the "
                "error may be larger."
            )
        what = "interval" if self.method == "capacity" else "promise"
        if self.num_groups == self.num_items:  # as where one of each has a gold label
            return (
                f"{items} one of each group ({self.group!r}): the {what} is about items that are "
                "chosen from their groups as these were."
            )
        groups = "1 group" if self.num_groups == 1 else f"{self.num_groups:,} groups"
        return (
            f"{items} of {groups} ({self.group!r}), and items of one group are alike: with few "
            f"large groups the {what}, which takes items as independent, is less sure than stated."
        )

    @property
    def _promise(self) -> str:
        truth = TRUTHS[self.against]
        drawn = f"for items drawn like the {self.num_items:,} calibration items"
        if self.left_out:
            drawn = (
                f"for items with {HAVING[self.against]}, drawn like the {self.num_items:,} "
                f"calibration items that have one; the {self.left_out:,} without took no part"
            )
        if self.method == "capacity":
            return self._capacity_statement(truth)
        if self.threshold is None or self.max_error is None:
            return f"Nothing is promised and every item is deferred: {self.shortfall}"
        if self.confidence is None:
            return (
                f"On average over calibration sets, at most {percent(self.max_error)} of all items "
                f"are both predicted and wrong against {truth}, {drawn}; among the predicted items "
                "alone the error may be larger, and no confidence is stated."
            )
        return (
            f"With {percent(self.confidence)} confidence, at most {percent(self.max_error)} of the "
            f"items it predicts are wrong against {truth}, {drawn}."
        )

    def keeps(self, score: ArrayLike) -> np.ndarray:
        """Whether each item is predicted, shape (N,), bool.

        Raises:
            CredalError: If a score is NaN, or the scores are not one number an item.
        """
        if np.shape(score) == (0,):  # the last, empty batch of a stream
            return np.zeros(0, dtype=bool)
        # In float64: a float32 score would round the threshold to itself and keep too much.
        scores = as_scores(score, name="score").astype(np.float64)
        if self.threshold is None:
            return np.zeros(len(scores), dtype=bool)
        kept: np.ndarray = scores <= self.threshold
        return kept

    def decide(self, score: ArrayLike) -> np.ndarray:
        """``"predict"`` or ``"defer"`` for each item, shape (N,); errors as for :meth:`keeps`."""
        return np.where(self.keeps(score), "predict", "defer")

    def to_json(self) -> str:
        """The rule as JSON, with coverage, error and statement beside its fields for readers."""
        told = {
            name: getattr(self, name) for name in ("certified", "coverage", "error", "statement")
        }
        return json.dumps(asdict(self) | told, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The rule that :meth:`to_json` wrote.

        Raises:
            CredalError: If the text is no rule.
        """
        try:
            content: Any = json.loads(text)
            given = {each.name: content[each.name] for each in fields(cls)}
            if given["interval"] is not None:
                given["interval"] = tuple(map(float, given["interval"]))
            if given["shortfall"] is not None:
                given["shortfall"] = Shortfall(**given["shortfall"])
            return cls(**given)
        except (TypeError, KeyError, ValueError) as error:
            reason = (
                f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
            )
            raise CredalError(
                f"this is no decision rule: {reason}. To fix: certify again."
            ) from error

    def _capacity_statement(self, truth: str) -> str:
        deferred = self.num_items - self.kept
        which = f" with {HAVING[self.against]}" if self.left_out else ""
        start = (
            f"No error is promised: {deferred:,} of {self.num_items:,} calibration items{which} "
        )
        start += "are "
        if self.error is None or self.interval is None or self.confidence is None:
            return f"{start}deferred."
        low, high = map(percent, self.interval)
        return (
            f"{start}deferred, and of the {self.kept:,} predicted {percent(self.error)} are wrong "
            f"against {truth} ({percent(self.confidence)} interval {low} to {high})."
        )

    def _check(self, ok: bool, rule: str) -> None:
        if not ok:
            raise CredalError(f"{rule}; got {self!r}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
