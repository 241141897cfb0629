"""``credalearn labels``: which label rules fail on votes that they have not seen.

Shapes: N items, K classes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from credalearn._checks import check_choice, check_option
from credalearn.app.annotations import Annotations, vote_counts
from credalearn.app.annotations.dawid_skene import named_votes, posteriors
from credalearn.app.annotations.places import shown
from credalearn.app.annotations.weights import refuse_weights
from credalearn.app.joined.options import Skill
from credalearn.errors import CredalError
from credalearn.labels import VOTE_RULES, VoteRule
from credalearn.theory import (
    Half,
    RuleCoverage,
    coverage_of_rules,
    halves_of_annotators,
    halves_of_counts,
)

HARDLY = 0.05  # of a rule's sets open to rejection: with less, their agreement says nothing
SCHEMA: dict[str, type[pl.DataType]] = {
    "rule": pl.String,
    "diameter": pl.Float64,
    "agree": pl.Float64,
    "agree_error": pl.Float64,
    "testable": pl.Float64,
    "stated": pl.Float64,
    "held_out": pl.Float64,
    "gap_error": pl.Float64,
    "votes_needed": pl.Float64,
    "items": pl.Int64,
    "fails": pl.String,
}


@dataclass(frozen=True, slots=True)
class Spread:
    """How many votes items have, over all splits.

    Example:
        >>> str(Spread(1, 2.0, 4)), str(Spread(2, 2.0, 2))
        ('2 (1 to 4)', '2')
    """

    fewest: int
    median: float
    most: int

    def __str__(self) -> str:
        if self.fewest == self.most:
            return f"{self.fewest}"
        return f"{self.median:g} ({self.fewest} to {self.most})"


@dataclass(frozen=True, slots=True)
class LabelStudy:
    """How every rule fared.

    Args:
        rules: One a rule, as asked.
        items: How many the file has.
        building: Votes an item that labels are made from.
        held_out: Votes an item that they are held against.
        splits: How often the votes were split.
        people: Whether annotators were split, or the votes of each item.
        confidence: Wanted of the sets.
        skill: Whether votes counted alike, or after a model of the annotators.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> study = study_labels(three_items(), rules=("relax", "idm"), splits=5)
        >>> str(study.building), [each.rule for each in study.rules], study.left_out
        ('1 (1 to 2)', ['relax', 'idm'], 0)
    """

    rules: tuple[RuleCoverage, ...]
    items: int
    building: Spread
    held_out: Spread
    splits: int
    people: bool
    confidence: float
    skill: Skill = "equal"

    @property
    def left_out(self) -> int:
        """Items that never had votes on both sides."""
        return self.items - self.rules[0].items

    def fails(self, found: RuleCoverage) -> str:
        """What speaks against a rule: ``"agree"``, ``"bound"``, ``"both"`` or nothing."""
        agrees, holds = found.agrees(self.confidence), found.bound_holds
        if agrees and holds:
            return ""
        return "agree" if holds else "bound" if agrees else "both"

    @property
    def best(self) -> RuleCoverage | None:
        """The rule of smallest sets among those that nothing speaks against."""
        holding = [each for each in self.rules if not self.fails(each)]
        return min(holding, key=lambda each: each.diameter) if holding else None

    def table(self) -> pl.DataFrame:
        """One row a rule, with the columns of ``SCHEMA``; shares are not in per cent."""
        rows = [
            {name: getattr(each, name) for name in SCHEMA if name != "fails"}
            | {"fails": self.fails(each) or None}
            for each in self.rules
        ]
        finite = pl.col("votes_needed").replace(float("inf"), None)
        return pl.DataFrame(rows, schema=SCHEMA).with_columns(finite)


def study_labels(
    annotations: Annotations,
    *,
    rules: Sequence[VoteRule] = tuple(VOTE_RULES),
    splits: int = 20,
    share: float = 0.5,
    s: float = 1.0,
    confidence: float = 0.95,
    skill: Skill = "equal",
    random_state: int = 0,
    done: Callable[[int], None] | None = None,
) -> LabelStudy:
    """Hold label rules against held-out votes, over repeated splits.

    Where annotators are named they are split, all votes of a person going to one side; elsewhere
    the votes of each item are.

    Args:
        annotations: Votes or counts.
        rules: Names of the rules.
        splits: How often to split, twice or more.
        share: Of the annotators, or of the votes, that build labels.
        s: Strength of the imprecise Dirichlet model.
        confidence: Wanted of the sets, and given to the rules that promise one.
        skill: Whether votes count alike, or as Dawid and Skene's model of the annotators has it,
            fitted to each split's building votes.
        random_state: Of the splits.
        done: Told after each split how many are done.

    Raises:
        CredalError: If these are no votes, have weights, or cannot be split, are to be split once
            alone, or tell nothing: of one item, or where no item returns in a second split.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> study_labels(three_items(), rules=("hull",), splits=3).rules[0].items
        3
    """
    check_choice(skill, get_args(Skill), name="skill")
    _check(annotations)
    check_option(
        splits,
        lambda value: value >= 2,
        name="splits",
        rule="2 or more: one does not tell how much depends on the split",
        remedy="give 20",
    )
    votes = _Counted(_halves(annotations, splits, share, skill, random_state), done)
    rules_found = coverage_of_rules(votes, rules=rules, s=s, confidence=confidence)
    _check_found(rules_found[0], splits, annotations.source.path)
    return LabelStudy(
        rules=rules_found,
        items=len(annotations.items),
        building=votes.spread("building"),
        held_out=votes.spread("held_out"),
        splits=splits,
        people=bool(annotations.annotators),
        confidence=confidence,
        skill=skill,
    )


def _check(annotations: Annotations) -> None:
    path = annotations.source.path
    if annotations.kind not in ("votes", "counts"):
        raise CredalError(
            f"label rules are held against votes; {path} holds {annotations.kind}, of which "
            "nothing can be held out. To fix: give the votes themselves, or how many each class "
            "got."
        )
    refuse_weights(annotations, rule="the test of held-out votes counts people", instead="")
    if vote_counts(annotations).sum(1).max() < 2:
        raise CredalError(
            f"no item of {path} has two votes, so that none can be held out. To fix: have some "
            "items labeled by two people or more."
        )
    if len(annotations.annotators) == 1:  # and others without a name, or no item had two votes
        nameless = int((annotations.codes("annotator") < 0).sum())
        raise CredalError(
            f"{path} names {shown(annotations.annotators[0])} alone and leaves {nameless:,} of "
            f"{len(annotations.table):,} votes without a name, so that people cannot be split. To "
            "fix: name everybody, or drop the column of the names: then the votes of each item are "
            "split."
        )


def _check_found(found: RuleCoverage, splits: int, path: Path) -> None:
    if isfinite(found.agree_error):
        return
    if found.items == 1:
        raise CredalError(
            f"only one item of {path} has votes on both sides of a split, and nothing can be told "
            "of a rule from one item. To fix: have more items labeled by two people or more."
        )
    raise CredalError(
        f"no item of {path} has votes on both sides of more than one split, so that it cannot be "
        f"told how much depends on the split; splits is {splits}. To fix: give --splits "
        f"{max(20, 5 * splits)}."
    )


def _halves(
    annotations: Annotations, splits: int, share: float, skill: Skill, random_state: int
) -> Iterator[Half]:
    if skill == "dawid-skene":
        named_votes(annotations)  # refuses what it cannot work with
    if not annotations.annotators:
        return halves_of_counts(
            vote_counts(annotations), splits=splits, share=share, random_state=random_state
        )
    shape = (len(annotations.items), len(annotations.classes))
    return halves_of_annotators(
        *(annotations.codes(name) for name in ("item", "annotator", "label")),
        shape=shape,
        splits=splits,
        share=share,
        random_state=random_state,
        posterior=partial(posteriors, shape=shape) if skill == "dawid-skene" else None,
    )


class _Counted:
    """The halves as they pass, with how many votes items have in them."""

    def __init__(self, halves: Iterator[Half], done: Callable[[int], None] | None) -> None:
        self.halves, self.done = halves, done
        self.items_with: dict[str, Counter[int]] = {"building": Counter(), "held_out": Counter()}

    def __iter__(self) -> Iterator[Half]:
        for number, half in enumerate(self.halves, 1):
            for name, items_with in self.items_with.items():
                votes = getattr(half, name)[half.used].sum(1).astype(np.int64)
                items_with.update(votes.tolist())
            yield half
            if self.done is not None:
                self.done(number)

    def spread(self, name: str) -> Spread:
        """Fewest, middle and most votes an item, of all splits."""
        votes = sorted(self.items_with[name])
        items = np.cumsum([self.items_with[name][number] for number in votes])
        middle = votes[np.searchsorted(items, items[-1] / 2)]
        return Spread(votes[0], float(middle), votes[-1])
