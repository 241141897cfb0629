r"""Learn then test: a fixed sequence of thresholds, each tested at the whole risk δ.

The sequence goes from few kept items to many and ends at the first test that fails (Bauer, 1991;
Angelopoulos et al., 2021). Its thresholds, its start and its order come from reference items, such
as the out-of-fold predictions of the training items: then each threshold is fixed before the
calibration items are looked at, each test is exact, and the promise holds for every error curve.

Without reference items the thresholds are quantiles of the calibration scores, which takes no
labels, and the start is fixed by their number. Let the error :math:`R(t) = E[w \mid s \le t]`
first reach max_error at t*. Given how many items lie below t*, these err at the rate max_error, and
the first false threshold has at least as many errors as a binomial with that rate: the promise
holds for scores without ties, unless the error falls again where the sequence starts.

SGR and conformal risk control search the calibration scores themselves: the promise of SGR is
proved for a score without ties whose error does not fall as more items are kept.

Shapes: N items, G groups, T thresholds, P promises.
"""

import math
from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from credalearn.guarantees._betting import betting_p_value, growth
from credalearn.guarantees._bounds import least_rate, p_value, upper_bound
from credalearn.guarantees.guarantee import CertifyMethod
from credalearn.guarantees.items import ScoredItems
from credalearn.guarantees.promises import Promise

_STEPS = 200  # thresholds of a sequence: half a percent of the items each
_FIRST_SHARE = 0.2  # of the items, and
_FIRST_ERROR = 0.25  # of max_error: where the first test of a sequence is meant to pass
ALONE = ("sgr", "conformal-risk-control")  # methods that certify max_error alone


@dataclass(frozen=True, slots=True, eq=False)
class ItemEvidence:
    """What independent items say about one promise at each threshold."""

    kept: np.ndarray  # number of kept items that the promise is about, shape (T,)
    errors: np.ndarray  # how many of those are wrong, or the sum of their losses, shape (T,)
    binary: bool  # whether each item is either wrong or right
    number: float  # number of items, kept or not

    def p_values(self, rate: float, risk: float, number: float | None = None) -> np.ndarray:  # noqa: ARG002
        """P-values of "the rate is this or more", shape (T,); with ``number``, of so many items."""
        items = self if number is None else self.grown(number)
        p_values = p_value(items.errors, np.maximum(items.kept, 1), rate, binary=items.binary)
        return np.where(items.kept > 0, p_values, 1.0)

    def grown(self, number: float) -> Self:
        """As if there were so many items with the same scores and rates."""
        factor = number / self.number
        return replace(self, kept=self.kept * factor, errors=self.errors * factor, number=number)

    def bound(self, place: int, risk: float) -> float:
        """The smallest rate whose p-value at a threshold is at most the risk."""
        errors, kept = self.errors[place], self.kept[place]
        return float(upper_bound(errors, kept, level=risk, binary=self.binary))


@dataclass(frozen=True, slots=True, eq=False)
class GroupEvidence:
    """What groups of items say about one promise at each threshold."""

    kept: np.ndarray  # share of each group's items that are kept, of the promise, shape (G, T)
    errors: np.ndarray  # share that is kept and wrong, shape (G, T)

    @property
    def number(self) -> float:
        """Number of groups."""
        return len(self.kept)

    def p_values(self, rate: float, risk: float, number: float | None = None) -> np.ndarray:
        """P-values of "the rate is this or more", shape (T,); about, of so many groups."""
        if number is None:
            return betting_p_value(self.errors, self.kept, rate, risk=risk)
        return np.asarray(np.exp(-number * np.maximum(growth(self.errors, self.kept, rate), 0)))

    def bound(self, place: int, risk: float) -> float:
        """The smallest rate whose p-value at a threshold is at most the risk."""
        here = [each[:, place : place + 1] for each in (self.errors, self.kept)]
        p_values = partial(betting_p_value, *here, risk=risk)
        return float(least_rate(p_values, risk, (1,))[0])


Evidence = ItemEvidence | GroupEvidence


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Thresholds to test in turn, and the evidence about each promise at every threshold."""

    method: CertifyMethod
    thresholds: np.ndarray  # ascending, shape (T,)
    shares: np.ndarray  # share of the calibration items that each keeps, shape (T,)
    evidence: tuple[Evidence, ...]  # one per promise, P
    reference: tuple[Evidence, ...] | None  # of the reference items, P; None without
    rates: tuple[float, ...]  # to be certified, P

    @classmethod
    def of(
        cls,
        items: ScoredItems,
        promises: Several[Promise],
        *,
        method: CertifyMethod = "learn-then-test",
        reference: ScoredItems | None = None,
    ) -> Self:
        """The sequence that tests these promises on these items."""
        ordered = np.sort(items.score)
        if method in ALONE:
            thresholds = np.unique(ordered)
        else:
            scores = ordered if reference is None else np.sort(reference.score)
            places = np.ceil(np.arange(1, _STEPS + 1) / _STEPS * len(scores)).astype(int) - 1
            thresholds = np.unique([*scores[places], max(scores[-1], ordered[-1])])

        def evidence_of(some: ScoredItems) -> tuple[Evidence, ...]:
            return tuple(evidence(some, each, thresholds, method == "betting") for each in promises)

        return cls(
            method=method,
            thresholds=thresholds,
            shares=np.searchsorted(ordered, thresholds, side="right") / len(items),
            evidence=evidence_of(items),
            reference=None if reference is None else evidence_of(reference),
            rates=tuple(each.rate for each in promises),
        )

    def p_values(self, risk: float, number: float | None = None) -> np.ndarray:
        """Largest p-value of all promises at each threshold; expected ones for another number."""
        pairs = zip(self.evidence, self.rates, strict=True)
        found = [each.p_values(rate, risk, number) for each, rate in pairs]
        return np.asarray(np.max(found, axis=0))

    def predicted(self, risk: float, number: float | None = None) -> np.ndarray | None:
        """The p-values that the reference items lead to expect, shape (T,); None without."""
        if self.reference is None:
            return None
        whole = replace(self, evidence=self.reference, reference=None)
        return whole.p_values(risk, number or self.evidence[0].number)

    def start(self, risk: float, number: float | None = None) -> int:
        """Index of the first threshold that is tested: where the reference items err least."""
        # Without them, the first that keeps enough items for a few errors, log(1/δ) / kl(r/4, r),
        # but at most half of the items; at least 20 % of them, and as many as pass without an
        # error. (At 300 items, r = 10 % and δ = 5 %: 70. Starting at 29 kept 23 % instead of 44 %
        # in a simulation.) With groups it is the share of each for which G groups are enough.
        predicted = self.predicted(risk, number)
        if predicted is not None:
            return int(predicted.argmin())
        rate, number = min(self.rates), number or self.evidence[0].number
        rarer = _FIRST_ERROR * rate
        if isinstance(self.evidence[0], GroupEvidence):
            flawless = math.expm1(-math.log(risk) / number) * (1 - rate) / rate
            share = max(min(flawless / (1 - _FIRST_ERROR), 0.5), 1.1 * flawless, _FIRST_SHARE)
        else:
            divergence = rarer * math.log(_FIRST_ERROR)
            divergence += (1 - rarer) * math.log((1 - rarer) / (1 - rate))
            bearing_errors = min(-math.log(risk) / divergence, number / 2)
            without_errors = math.log(risk) / math.log1p(-rate)
            share = max(bearing_errors / number, without_errors / number, _FIRST_SHARE)
        return int(np.searchsorted(self.shares, min(share, 1.0) - 1e-12))

    def search(self, risk: float, number: float | None = None) -> int | None:
        """Index of the largest threshold whose test and all tests before it pass."""
        if self.method in ALONE:
            found = self.evidence[0]
            assert isinstance(found, ItemEvidence)
            found = found if number is None else found.grown(number)
            if self.method == "sgr":
                return _sgr(found, self.rates[0], risk)
            # Angelopoulos et al. (2022): (Σw + 1) / (N + 1) <= r; the errors never fall.
            passing = (found.errors + 1) / (found.kept[-1] + 1) <= self.rates[0]
            return int(passing.sum()) - 1 if passing[0] else None
        return _last_passing(self.p_values(risk, number), self.start(risk, number), risk)

    def expected_threshold(self, risk: float) -> float | None:
        """The threshold that the reference items lead to expect; None without them."""
        predicted = self.predicted(risk)
        if predicted is None:
            return None
        place = _last_passing(predicted, int(predicted.argmin()), risk)
        return None if place is None else float(self.thresholds[place])

    def bounds(self, place: int, risk: float) -> list[float]:
        """Upper bound on the rate of each promise at a threshold, at most the rate to certify."""
        pairs = zip(self.evidence, self.rates, strict=True)
        if self.method == "conformal-risk-control":
            return [float((x.errors[place] + 1) / (x.kept[-1] + 1)) for x in self.evidence]
        level = _sgr_level(self.evidence[0].kept, risk) if self.method == "sgr" else risk
        # The search compares p-values; the bound that inverts them may differ in its last bit.
        return [min(each.bound(place, level), rate) for each, rate in pairs]


def _sgr(found: ItemEvidence, max_error: float, risk: float) -> int | None:
    """Geifman and El-Yaniv's SGR (2017): halve the items between what passed and what failed."""
    level = _sgr_level(found.kept, risk)
    passed, failed = 0.0, found.kept[-1]
    best = None
    while passed < failed:
        place = int(np.searchsorted(found.kept, (passed + failed) / 2))
        errors, kept = found.errors[place], found.kept[place]
        if p_value(errors, kept, max_error, binary=found.binary) <= level:
            best, passed = place, found.kept[place]
        else:
            failed = found.kept[place - 1] if place else 0.0
    return best


def _sgr_level(kept: np.ndarray, risk: float) -> float:
    """An equal share of the risk for each of at most ⌈log₂(N + 1)⌉ tests."""
    return risk / round(float(kept[-1])).bit_length()


def _last_passing(p_values: np.ndarray, start: int, risk: float) -> int | None:
    passes = p_values[start:] <= risk
    number = len(passes) if passes.all() else int(passes.argmin())
    return start + number - 1 if number else None


def evidence(
    items: ScoredItems, promise: Promise, thresholds: np.ndarray, by_group: bool
) -> Evidence:
    """What the items say about the promise at each threshold."""
    about, losses, binary = promise.losses(items)
    place = np.searchsorted(thresholds, items.score)  # the first threshold that keeps the item
    inside = place < len(thresholds)  # reference thresholds keep every reference item
    if not by_group or items.groups is None:
        counts = [
            np.bincount(place[inside], weights=each[inside], minlength=len(thresholds)).cumsum()
            for each in (about.astype(np.float64), np.where(about, losses, 0.0))
        ]
        return ItemEvidence(counts[0], counts[1], binary, len(items))
    names, group, sizes = np.unique(items.groups, return_inverse=True, return_counts=True)
    weights = about / sizes[group]
    # An order that knows nothing about the items, so that sorted rows do not favor a bet.
    group = np.random.default_rng(0).permutation(len(names))[group]
    cell, shape = group * len(thresholds) + place, (len(names), len(thresholds))
    kept, errors = (
        np.bincount(cell[inside], weights=each[inside], minlength=math.prod(shape))
        .reshape(shape)
        .cumsum(axis=1)
        for each in (weights, weights * losses)
    )
    return GroupEvidence(kept, errors)
