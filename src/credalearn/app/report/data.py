"""All that a page shows, gathered by pure functions before a line of HTML is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from credalearn.app.report.heldout import SCORE_NAMES, HeldOut
from credalearn.app.report.holding import LabelSets, WidenedSets
from credalearn.app.report.shown import Shown, gallery
from credalearn.app.report.verdict import PageRule, Verdict, verdict
from credalearn.app.report.walks import Walk, class_groups, walk
from credalearn.guarantees.truths import TRUTHS


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The annotations in numbers; what is not known is None.

    Args:
        items: Items with votes.
        annotators: People who voted.
        votes: Votes in all.
        votes_an_item: Smallest, median and largest number of votes of an item.
        alpha: Krippendorff's alpha.
        unanimous: Share of the items on which all agree.
        tied: Share of the items without a single most-voted class.
        confused: Pairs of classes that people confuse, and their share of all disagreements.
        left_out: By reason, answers that were read and are not votes.
        no_part: By reason, items that were neither trained on nor held out.
        said: What people gave: votes, or ``bounds`` or ``probabilities`` that they stated.
        class_votes: By class, votes; or the sum of what was stated.
        splits: By split, items.

    Example:
        >>> Disagreement(items=3, class_votes={"cat": 5.0, "dog": 1.0}).alpha is None
        True
    """

    items: int
    annotators: int | None = None
    votes: float | None = None
    votes_an_item: tuple[float, float, float] | None = None
    alpha: float | None = None
    unanimous: float | None = None
    tied: float | None = None
    confused: tuple[tuple[str, str, float], ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    no_part: Mapping[str, int] = field(default_factory=dict)
    said: Literal["votes", "bounds", "probabilities"] = "votes"
    class_votes: Mapping[str, float] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A run beside others.

    Args:
        name: The run.
        method: Its method.
        accuracy: Accuracy on its test items.
        ece: Expected calibration error there.
        auarc: Area under its accuracy–rejection curve, by the score it defers by.
        reached: Largest coverage whose observed error is at most the target; None without target.
        certified: Coverage that its own rule keeps on the test items; None without a rule.
        walk: Its curve.
        widened: Its widened sets; None where it has none.

    Example:
        >>> one = HeldOut(("a",), ("cat", "dog"), np.array([[0.9, 0.1]]), np.array([0]),
        ...               np.array([1]), {"mmi": np.array([0.2])}, np.array([[1.0, 2.0]]))
        >>> taken = walk(one, "mmi", np.array([0]), 1)
        >>> run = Compared("run-1", "pocc", one.accuracy, 0.9, 0.0, None, None, taken)
        >>> run.accuracy, run.walk.error(1)
        (0.0, 1.0)
    """

    name: str
    method: str
    accuracy: float
    ece: float
    auarc: float
    reached: float | None
    certified: float | None
    walk: Walk
    widened: WidenedSets | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Everything on a page.

    Args:
        title: The heading.
        verdict: What is said first.
        rule: The rule, if one was made.
        held_out: The test items.
        walks: The table behind the slider, by score; the score that defers comes first.
        groups: Names of the rows in which deferrals are counted.
        disagreement: The annotations in numbers.
        gallery: The least certain test items.
        labels: The sets that the run learns from, and the risk they leave open.
        widened: Predicted sets that were widened until they hold, if they were.
        widen_command: How they are widened, for who has none yet; empty where they cannot be.
        compared: This run first, then others.
        same_items: Whether the runs compared were tested on the same items.
        group: What items were split by, if anything.
        doubts: What nothing can tell of the items, in lines.
        provenance: Names and values of how the page came about.

    Example:
        >>> one = HeldOut(("a",), ("cat", "dog"), np.array([[0.9, 0.1]]), np.array([0]),
        ...               np.array([1]), {"mmi": np.array([0.2])}, np.array([[1.0, 2.0]]))
        >>> labels = LabelSets("relax", None, "Nobody voted.")
        >>> page = build_page(one, None, Disagreement(1), labels, title="Pets", command="certify")
        >>> page.verdict.state, page.truth, page.kept.tolist()
        ('open', 'the class with most votes', [True])
    """

    title: str
    verdict: Verdict
    rule: PageRule | None
    held_out: HeldOut
    walks: tuple[Walk, ...]
    groups: tuple[str, ...]
    disagreement: Disagreement
    gallery: tuple[Shown, ...]
    labels: LabelSets
    widened: WidenedSets | None
    widen_command: str
    compared: tuple[Compared, ...]
    same_items: bool
    group: str | None
    doubts: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]

    @property
    def truth(self) -> str:
        """Against what an error counts, in words."""
        return TRUTHS[self.held_out.against]

    @property
    def start(self) -> int:
        """Where the slider stands first: at the rule, or at keeping everything without one."""
        if self.rule is None or self.rule.threshold is None:
            return len(self.walks[0].kept) - 1
        return self.walks[0].position(self.rule.threshold)

    @property
    def shaded(self) -> bool:
        """Whether the promise is about the error that the curve shows, so that it can be shaded."""
        rule = self.rule
        return (
            rule is not None
            and rule.certified
            and rule.quantity == "error"
            and rule.truth == self.truth
            and not rule.one_of_each_group
        )

    @property
    def kept(self) -> np.ndarray:
        """Which items the rule keeps; all of them where there is no rule, shape (N,)."""
        score = self.held_out.scores[self.walks[0].score]
        if self.rule is None or self.rule.threshold is None:
            return np.ones(len(score), dtype=bool)
        return score <= self.rule.threshold


def build_page(
    held_out: HeldOut,
    rule: PageRule | None,
    disagreement: Disagreement,
    labels: LabelSets,
    *,
    title: str,
    command: str,
    widened: WidenedSets | None = None,
    widen_command: str = "",
    group: str | None = None,
    doubts: Sequence[str] = (),
    compared: Sequence[Compared] = (),
    same_items: bool = True,
    images: Mapping[str, str] | None = None,
    provenance: Sequence[tuple[str, str]] = (),
) -> Page:
    """Gather a page from the test items, the rule and the annotations.

    Args:
        held_out: The test items.
        rule: The rule, if one was made.
        disagreement: The annotations in numbers.
        labels: The sets that the run learns from, and the risk they leave open.
        title: The heading.
        command: How a rule is made, for who has none yet.
        widened: Predicted sets that were widened until they hold, if they were.
        widen_command: How they are widened, for who has none yet; empty where they cannot be.
        group: What items were split by, if anything.
        doubts: What nothing can tell of the items, in lines.
        compared: This run first, then others.
        same_items: Whether the runs compared were tested on the same items.
        images: By item, a thumbnail as a data URI.
        provenance: Names and values of how the page came about.
    """
    groups, rows = class_groups(held_out)
    first = held_out.deferring
    scores = [first, *(each for each in SCORE_NAMES if each in held_out.scores and each != first)]
    threshold = rule.threshold if rule else None
    walks = tuple(
        walk(held_out, each, rows, len(groups), threshold=threshold if each == first else None)
        for each in scores
    )
    checked = _checked(held_out, rule)
    return Page(
        title=title,
        verdict=verdict(
            rule,
            walk(held_out, first, rows, len(groups), threshold=threshold, only=checked),
            command=command,
            counted=TRUTHS[held_out.against],
            disagreement=_disagreement(held_out, rule, checked),
        ),
        rule=rule,
        held_out=held_out,
        walks=walks,
        groups=groups,
        disagreement=disagreement,
        gallery=gallery(held_out, first, rule, images or {}, widened),
        labels=labels,
        widened=widened,
        widen_command=widen_command,
        compared=tuple(compared),
        same_items=same_items,
        group=group,
        doubts=tuple(doubts),
        provenance=tuple(provenance),
    )


def _checked(held_out: HeldOut, rule: PageRule | None) -> np.ndarray:
    """Which test items the rule's promise is about, shape (N,): all, or one of each group."""
    chosen = set(rule.one_of_each_group if rule else ()) or set(held_out.items)
    return np.array([item in chosen for item in held_out.items])


def _disagreement(held_out: HeldOut, rule: PageRule | None, checked: np.ndarray) -> float | None:
    """Share of the votes on kept items that are for other labels, the mean over the items."""
    if rule is None or rule.threshold is None:
        return None
    total = held_out.votes.sum(1)
    rows = checked & (held_out.scores[held_out.deferring] <= rule.threshold) & (total > 0)
    if not rows.any():
        return None
    agreed = held_out.votes[rows, held_out.label[rows]] / total[rows]
    return float(1 - agreed.mean())
