"""How well label rules agree with votes that they were not made from.

Shapes: N items, K classes, R distinct rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn.labels import VOTE_RULES, VoteRule, from_posterior, from_votes
from credalearn.labels.votes import options_of
from credalearn.sets import CredalSet
from credalearn.theory.consistency import can_reject, consistent, votes_to_reject
from credalearn.theory.halves import Half

_ERRORS = 2.0  # standard errors that a figure may be off before it counts against a rule
_MEANS = ("diameter", "agree", "testable", "stated", "held_out", "gap")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """One label rule compared with held-out votes.

    Means are over items, of each item's mean over the splits that it was part of. Standard errors
    cover the choice of the items and the splits of the votes, not the choice of the annotators;
    they are inf with one item or one split.

    Args:
        rule: Name of the rule.
        items: Number of items with votes on both sides of some split.
        diameter: Mean total-variation diameter of the sets, the imprecision.
        agree: Share of sets with which the held-out votes are consistent.
        agree_error: Its standard error.
        testable: Share of sets that some outcome of the held-out votes could have rejected.
        stated: Mean lower bound of the building votes' top class.
        held_out: Mean share of the held-out votes for that class.
        gap_error: Standard error of ``held_out − stated``.
        votes_needed: Held-out votes that can reject half of the sets; inf where none can.

    Example:
        >>> found = RuleCoverage("relax", 100, 0.1, 0.90, 0.01, 1.0, 0.80, 0.70, 0.02, 3.0)
        >>> found.agrees(0.95), found.bound_holds
        (False, False)
    """

    rule: str
    items: int
    diameter: float
    agree: float
    agree_error: float
    testable: float
    stated: float
    held_out: float
    gap_error: float
    votes_needed: float

    def agrees(self, confidence: float) -> bool:
        """Whether ``agree`` is at least the confidence, within two standard errors."""
        known = isfinite(self.agree_error)
        return known and self.agree + _ERRORS * self.agree_error >= confidence

    @property
    def bound_holds(self) -> bool:
        """Whether ``stated`` is at most ``held_out``, within two standard errors."""
        known = isfinite(self.gap_error)
        # Equal sums of thousands of terms differ by rounding where the error is 0.
        return known and self.stated <= self.held_out + _ERRORS * self.gap_error + 1e-9


def coverage_of_rules(
    halves: Iterable[Half],
    *,
    rules: Sequence[VoteRule] = tuple(VOTE_RULES),
    s: float = 1.0,
    confidence: float = 0.95,
    level: float = 0.05,
) -> tuple[RuleCoverage, ...]:
    """Build sets from one part of the votes by each rule, and compare them with the other part.

    Coverage is at most ``agree`` / (1 − level), and may be far less: a set that misses the true
    distribution by a little is consistent with a few votes. Simulated with ten classes, 25 votes to
    build and 25 held out, ``"idm"`` agrees for 96 % of the items and covers 6 %.

    Args:
        halves: The splits, from :func:`halves_of_annotators` or :func:`halves_of_counts`.
        rules: Names of rules of :func:`credalearn.from_votes`.
        s: Strength of the imprecise Dirichlet model, for the rule that uses it.
        confidence: Confidence of the rules that use it.
        level: Level of the test in :func:`consistent`.

    Example:
        >>> from credalearn.theory import halves_of_counts
        >>> found = coverage_of_rules(halves_of_counts([[4, 0]] * 10), rules=["precise", "idm"])
        >>> [(each.rule, round(each.diameter, 3), each.agree) for each in found]
        [('precise', 0.0, 1.0), ('idm', 0.333, 1.0)]
    """
    if not rules or len(set(rules)) < len(rules):
        raise CredalError(f"rules must be one or more names, each once; got {list(rules)}.")
    for rule in rules:
        check_choice(rule, VOTE_RULES, name="rule")
    found: dict[str, dict[str, _Crossed]] = {}
    needed: dict[str, list[Floats]] = {rule: [] for rule in rules}
    for half in halves:
        if not found:
            size = len(half.building)
            found = {rule: {name: _Crossed(size) for name in _MEANS} for rule in rules}
        rows = half.used
        split = _Split(half, rows)
        for rule in rules:
            options = options_of(rule, s=s, confidence=confidence)
            values = split.compare(rule, level, options)
            needed[rule].append(values.pop("needed"))
            for name, each in values.items():
                found[rule][name].add(rows, each)
    if not found or not found[rules[0]]["agree"].items:
        raise CredalError(
            "no item has votes on both sides of a split. To fix: use items with two or more votes "
            "from two or more annotators."
        )
    return tuple(_summary(rule, found[rule], np.concatenate(needed[rule])) for rule in rules)


class _Crossed:
    r"""Values of items over splits, their mean and its standard error.

    With :math:`m_i` the mean of item i over its :math:`t_i` splits and :math:`e_{is} = x_{is} -
    m_i`, the variance is :math:`\frac1N \operatorname{Var}(m_i) + \frac{\bar t}{\bar t - 1}
    \frac{1}{(\sum_i t_i)^2} \sum_s \sum_{i \neq j} e_{is} e_{js}`: items and splits are two crossed
    random effects (Searle, Casella and McCulloch, 1992).
    """

    def __init__(self, num_items: int) -> None:
        self._sum, self._squares, self._times = (np.zeros(num_items) for _ in range(3))
        self._splits: list[tuple[NDArray[np.bool_], float]] = []

    def add(self, rows: NDArray[np.bool_], values: Floats) -> None:
        """Add one split: which items it has, bool (N,), and the value of each of those."""
        self._sum[rows] += values
        self._squares[rows] += values**2
        self._times[rows] += 1
        self._splits.append((rows, float(values.sum())))

    @property
    def items(self) -> int:
        """Number of items that were part of some split."""
        return int((self._times > 0).sum())

    @property
    def mean(self) -> float:
        """Mean over items of each item's mean."""
        return float(self._means[self._times > 0].mean())

    @property
    def error(self) -> float:
        """Standard error of the mean; inf with one item or one split."""
        seen = self._times > 0
        returns = self._times[seen].mean() if seen.any() else 0.0
        if seen.sum() < 2 or returns <= 1:
            return float("inf")
        means = self._means
        together = sum((total - means[rows].sum()) ** 2 for rows, total in self._splits)
        alone = (self._squares - self._times * means**2).sum()
        shared = returns / (returns - 1) * (together - alone) / self._times.sum() ** 2
        return float(np.sqrt(means[seen].var(ddof=1) / seen.sum() + max(shared, 0.0)))

    @property
    def _means(self) -> Floats:
        means: Floats = self._sum / np.maximum(self._times, 1)
        return means


class _Split:
    """The items of one split, each distinct row of votes kept once."""

    def __init__(self, half: Half, rows: NDArray[np.bool_]) -> None:
        building, held = half.building[rows], half.held_out[rows]
        self.posterior = None if half.posterior is None else half.posterior[rows]
        source = building
        if self.posterior is not None:
            source = np.hstack([self.posterior, building.sum(1, keepdims=True)])
        # CIFAR-10H's 10,000 images with 26 building votes each make 1,700 distinct rows.
        first, self.place = _distinct(source)
        self.source = source[first]
        _, held_place = _distinct(held)
        pair_first, self.pair = _distinct(np.stack([self.place, held_place], axis=1))
        self.pair_place = self.place[pair_first]
        self.held, self.pair_held = held, held[pair_first]

    def compare(self, rule: VoteRule, level: float, options: dict[str, float]) -> dict[str, Floats]:
        """Each item's values of one rule: its set, and how the held-out votes agree with it."""
        sets = self._sets(rule, options)
        lower, upper = (bound.numpy() for bound in (sets.lower, sets.upper))
        each = np.arange(len(self.place))
        top = sets.reference.argmax(1).numpy()[self.place]
        total = self.held.sum(1)
        pairs = (lower[self.pair_place], upper[self.pair_place])
        agrees = consistent(self.pair_held, *pairs, level=level)
        testable = can_reject(self.pair_held.sum(1), *pairs, level=level)
        stated, share = lower[self.place, top], self.held[each, top] / total
        return {
            "diameter": sets.diameter().numpy()[self.place],
            "agree": agrees.numpy()[self.pair].astype(np.float64),
            "testable": testable.numpy()[self.pair].astype(np.float64),
            "stated": stated,
            "held_out": share,
            "gap": share - stated,
            "needed": votes_to_reject(lower, upper, level=level).numpy()[self.place],
        }

    def _sets(self, rule: VoteRule, options: dict[str, float]) -> CredalSet:
        if self.posterior is None:
            return from_votes(torch.from_numpy(self.source), rule=rule, **options)
        posterior, num_votes = self.source[:, :-1], self.source[:, -1]
        tensors = (torch.from_numpy(np.ascontiguousarray(part)) for part in (posterior, num_votes))
        return from_posterior(*tensors, rule=rule, **options)


def _distinct(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first place of each distinct row, (R,), and which of them each row is, (N,)."""
    base = float(rows.max(initial=0)) + 1
    if base ** rows.shape[1] < 2**53 and (rows == np.round(rows)).all():
        # As the digits of one number they sort thirty times faster than as rows.
        code = rows @ base ** np.arange(rows.shape[1])
        _, first, place = np.unique(code, return_index=True, return_inverse=True)
    else:
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def _summary(rule: str, found: dict[str, _Crossed], needed: Floats) -> RuleCoverage:
    names = ("diameter", "agree", "testable", "stated", "held_out")
    return RuleCoverage(
        rule=rule,
        items=found["agree"].items,
        agree_error=found["agree"].error,
        gap_error=found["gap"].error,
        votes_needed=float(np.median(needed)),
        **{name: found[name].mean for name in names},
    )
