"""``credalearn inspect --rules``: which label rules hold for annotators they have not seen."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
import polars as pl

from credalearn._formats import aligned, percent, shown
from credalearn.app.annotations.table import Annotations, check_unweighted
from credalearn.errors import CredalError
from credalearn.labels import VOTE_RULES
from credalearn.theory import (
    Half,
    RuleCoverage,
    coverage_of_rules,
    halves_of_annotators,
    halves_of_counts,
)

_CONFIDENCE = 0.95  # of the sets, and of the rules that take one
_HARDLY = 0.05  # share of a rule's sets that votes could reject: with less they say nothing
_HALF = 0.5  # with more they say enough to recommend the rule
_HEAD = ("rule", "diameter", "agree %", "testable %", "top %", "held-out top %", "fails by")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleComparison:
    """How every label rule did on held-out votes."""

    rules: tuple[RuleCoverage, ...]
    building: float  # median of the votes per item that labels are built from
    held_out: float  # median of the held-out votes per item
    by_annotator: bool  # whether annotators were split, or the votes of each item
    splits: int  # number of random splits into building and held-out votes

    def fails(self, rule: RuleCoverage) -> str:
        """What contradicts a rule: ``"agree"``, ``"bound"``, ``"both"`` or nothing."""
        agrees, holds = rule.agrees(_CONFIDENCE), rule.bound_holds
        if agrees and holds:
            return ""
        return "agree" if holds else "bound" if agrees else "both"

    @property
    def best(self) -> RuleCoverage | None:
        """The rule with the smallest sets among those that nothing contradicts."""
        holding = [each for each in self.rules if not self.fails(each)]
        return min(holding, key=lambda each: each.diameter) if holding else None

    def table(self) -> pl.DataFrame:
        """One row per rule; shares lie between 0 and 1."""
        rows = [asdict(each) | {"fails": self.fails(each) or None} for each in self.rules]
        finite = pl.col("votes_needed").replace(float("inf"), None)
        return pl.DataFrame(rows, schema_overrides={"fails": pl.String}).with_columns(finite)

    def lines(self) -> list[str]:
        """The table as text, and one line of advice."""
        what = "annotators" if self.by_annotator else "the votes of each item"
        return [
            f"{self.splits} splits of {what}; votes per item: {self.building:g} to build "
            f"a label and {self.held_out:g} to test it",
            *aligned([_HEAD, *(self._cells(each) for each in self.rules)]),
            self.advice(),
        ]

    def advice(self) -> str:
        """Which rule to use, or why these votes cannot tell."""
        best = self.best
        if best is None:
            near = max(self.rules, key=lambda each: each.agree)
            return (
                f"Held-out votes refute every rule; {near.rule} comes closest, with "
                f"{percent(near.agree)} of its sets in agreement. Collect more votes per item."
            )
        few = f"the held-out votes could reject only {percent(best.testable)} of its sets"
        if best.testable < _HARDLY:
            needed = f"{best.votes_needed:.0f} held-out votes per item could reject half of them"
            needed = needed if isfinite(best.votes_needed) else "its sets exclude too little"
            return (
                f"Too few votes to choose a rule: {best.rule} is not refuted, but {few}; {needed}."
            )
        care = "" if best.testable >= _HALF else f" Take care: {few}."
        return (
            f"Use {best.rule}: the smallest sets (mean diameter {best.diameter:.3f}) of the rules "
            f"that held-out votes do not contradict.{care}"
        )

    def _cells(self, rule: RuleCoverage) -> tuple[str, ...]:
        def share(value: float) -> str:  # the heading has the sign
            return percent(value, decimals=1).removesuffix(" %")

        agree = f"{share(rule.agree)} ± {share(rule.agree_error)}" if rule.testable else "–"
        held_out = f"{share(rule.held_out)} ± {share(rule.gap_error)}"
        cells = (rule.rule, f"{rule.diameter:.3f}", agree, share(rule.testable), share(rule.stated))
        return (*cells, held_out, self.fails(rule) or "–")


def compare_rules(
    annotations: Annotations, *, splits: int = 20, random_state: int = 0
) -> RuleComparison:
    """Build labels from half of the votes by every rule, and test them on the others."""
    path = annotations.source.path
    if annotations.contains == "statements":
        raise CredalError(
            f"{path} contains statements, which are labels already: no rule makes them. To fix: "
            "leave out rules=."
        )
    check_unweighted(annotations, "the test on held-out votes counts people")
    if annotations.kind not in ("votes", "counts"):
        raise CredalError(
            f"label rules are made of votes; {path} contains {annotations.kind}. To fix: pass "
            "votes, or counts of votes."
        )
    counts = annotations.sparse_counts(weighted=False)
    if counts.sum(1).max() < 2:
        raise CredalError(
            f"no item of {path} has two votes, so none can be held out. To fix: have some items "
            "labeled by two people or more."
        )
    if len(annotations.annotators) == 1:
        raise CredalError(
            f"{path} names only {shown(annotations.annotators[0])}, so annotators cannot be split. "
            "To fix: name all annotators, or drop their column."
        )
    asked: dict[str, Any] = {"splits": splits, "random_state": random_state}
    if annotations.annotators:
        halves = halves_of_annotators(
            *(annotations.codes[name] for name in ("item", "annotator", "label")),
            shape=(len(annotations.items), len(annotations.classes)),
            **asked,
        )
    else:
        halves = halves_of_counts(counts.toarray(), **asked)
    building: list[np.ndarray] = []
    held_out: list[np.ndarray] = []

    def counted() -> Iterator[Half]:
        for half in halves:
            building.append(half.building[half.used].sum(1))
            held_out.append(half.held_out[half.used].sum(1))
            yield half

    rules = coverage_of_rules(counted(), rules=tuple(VOTE_RULES), confidence=_CONFIDENCE)
    if not isfinite(rules[0].agree_error):
        raise CredalError(
            f"too few items of {path} have votes on both sides of a split. To "
            "fix: have more items labeled by two people or more, or use more splits."
        )
    return RuleComparison(
        rules=rules,
        building=float(np.median(np.concatenate(building))),
        held_out=float(np.median(np.concatenate(held_out))),
        by_annotator=bool(annotations.annotators),
        splits=splits,
    )
