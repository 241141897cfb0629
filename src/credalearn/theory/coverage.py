"""How well label rules agree with votes that they were not made from, over S splits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import torch

from credalearn.errors import CredalError
from credalearn.labels import PROMISING, VOTE_RULES, VoteRule, from_posterior, from_votes
from credalearn.theory.consistency import consistent, votes_to_reject
from credalearn.theory.splits import Floats, Half

_ERRORS = 2.0  # standard errors that a figure may be off before it counts against a rule
_VALUES = ("diameter", "agree", "testable", "stated", "held_out", "gap", "votes_needed")


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
        return self.agree_error < inf and self.agree + _ERRORS * self.agree_error >= confidence

    @property
    def bound_holds(self) -> bool:
        """Whether ``stated`` is at most ``held_out``, within two standard errors."""
        # Equal sums of thousands of terms differ by rounding where the error is 0.
        return (
            self.gap_error < inf and self.stated <= self.held_out + _ERRORS * self.gap_error + 1e-9
        )


def coverage_of_rules(
    halves: Iterable[Half],
    *,
    rules: Sequence[VoteRule] = tuple(VOTE_RULES),
    confidence: float = 0.95,
) -> tuple[RuleCoverage, ...]:
    """Build sets from one part of the votes by each rule, and compare them with the other part.

    Sets and votes are tested by :func:`consistent` at its level of 5 %. Coverage is at most
    ``agree`` / 0.95, and may be far less: a set that misses the true distribution by a little is
    consistent with a few votes. Simulated with ten classes, 25 votes to build and 25 held out,
    ``"idm"`` agrees for 96 % of the items and covers 6 %.

    Args:
        halves: The splits, from :func:`halves_of_annotators` or :func:`halves_of_counts`.
        rules: Names of rules of :func:`credalearn.from_votes`.
        confidence: Confidence of the rules that use it.

    Example:
        >>> from credalearn.theory import halves_of_counts
        >>> found = coverage_of_rules(halves_of_counts([[4, 0]] * 10), rules=["precise", "idm"])
        >>> [(each.rule, round(each.diameter, 3), each.agree) for each in found]
        [('precise', 0.0, 1.0), ('idm', 0.333, 1.0)]
    """
    if not rules or len(set(rules)) < len(rules):
        raise CredalError(f"rules must be one or more names, each once; got {list(rules)}.")
    values_of: dict[str, list[Floats]] = {rule: [] for rule in rules}
    for half in halves:
        # Items with equal votes are compared once.
        parts = [
            part for part in (half.building, half.held_out, half.posterior) if part is not None
        ]
        rows = np.hstack(parts)[half.used]
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        distinct = Half(*(part[half.used][first] for part in parts))
        for rule in rules:
            options = {"confidence": confidence} if rule in PROMISING else {}
            values = np.full((len(half.used), len(_VALUES)), np.nan)
            values[half.used] = _compare(distinct, rule, options)[place.ravel()]
            values_of[rule].append(values)
    if not any(np.isfinite(values).any() for values in values_of[rules[0]]):
        raise CredalError(
            "no item has votes on both sides of a split. To fix: use items with two or more votes "
            "from two or more annotators."
        )
    return tuple(_summary(rule, np.stack(values)) for rule, values in values_of.items())


def _compare(half: Half, rule: VoteRule, options: dict[str, float]) -> Floats:
    """Each item's values of one rule: its set, and how the held-out votes agree with it."""
    building, held = torch.from_numpy(half.building), half.held_out
    if half.posterior is None:
        sets = from_votes(building, rule=rule, **options)
    else:
        soft = torch.from_numpy(np.ascontiguousarray(half.posterior))
        sets = from_posterior(soft, building.sum(1), rule=rule, **options)
    top, rows = sets.reference.argmax(1).numpy(), np.arange(len(held))
    stated, share = sets.lower.numpy()[rows, top], held[rows, top] / held.sum(1)
    votes_needed = votes_to_reject(sets.lower, sets.upper).numpy()
    values = {
        "diameter": sets.diameter(),
        "agree": consistent(held, sets.lower, sets.upper),
        "testable": held.sum(1) >= votes_needed,
        "stated": stated,
        "held_out": share,
        "gap": share - stated,
        "votes_needed": votes_needed,
    }
    return np.stack([np.asarray(values[name], np.float64) for name in _VALUES], axis=1)


def _summary(rule: str, values: Floats) -> RuleCoverage:
    """The figures of one rule, from values of splits, items and ``_VALUES``; NaN if not used."""
    by_name = dict(zip(_VALUES, np.moveaxis(values, 2, 0), strict=True))
    needed = by_name.pop("votes_needed")
    means, errors = {}, {}
    for name, found in by_name.items():
        means[name], errors[name] = _mean_and_error(found)
    del means["gap"]
    return RuleCoverage(
        rule=rule,
        items=int(np.isfinite(by_name["agree"]).any(0).sum()),
        agree_error=errors["agree"],
        gap_error=errors["gap"],
        votes_needed=float(np.median(needed[~np.isnan(needed)])),
        **means,
    )


def _mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean over items of each item's mean over splits, and its standard error; (S, N), some NaN."""
    # Items and splits are two crossed random effects (Searle, Casella and McCulloch, 1992).
    values = values[:, ~np.isnan(values).all(0)]
    means = np.nanmean(values, axis=0)
    times = (~np.isnan(values)).sum()
    often = times / len(means)
    if len(means) < 2 or often <= 1:
        return float(means.mean()), float("inf")
    off = np.nan_to_num(values - means)
    pairs = (off.sum(1) ** 2).sum() - (off**2).sum()
    shared = often / (often - 1) * pairs / times**2
    return float(means.mean()), float(np.sqrt(means.var(ddof=1) / len(means) + max(shared, 0.0)))
