"""The verdict: what may be promised, in a sentence."""

from dataclasses import dataclass
from typing import Literal

from credalearn.app.report.html import percent, short_percent
from credalearn.app.report.walks import Walk
from credalearn.errors import CredalError

Quantity = Literal["error", "kept-and-wrong", "capacity"]


@dataclass(frozen=True, slots=True)
class PageRule:
    """What ``credalearn certify`` decided, as far as a page shows it.

    Args:
        threshold: Items with a larger score are deferred; None where nothing could be certified.
        quantity: What is promised: the ``error`` of the kept, the expected share of all items that
            is ``kept-and-wrong``, or nothing but a reviewer's ``capacity``.
        method: How the threshold was found, in words.
        max_error: The error that was asked for; None for a capacity.
        confidence: How sure the promise is; None where it is an expectation, or there is none.
        coverage: Share of the calibration items that is kept, those left out among them.
        num_items: Items that the rule was made on.
        left_out: Calibration items without a truth, which the promise is not about.
        truth: Against what an error counts, in words: "the class with most votes".
        having: What an item with a truth has: "a single most-voted class".
        why_not: Why nothing could be certified, in sentences.
        remedy: What it would take, in sentences.
        about_groups: What it means that the items are of groups, in a sentence; empty where they
            are not.
        one_of_each_group: Where the promise is about one item of each group, the test items that it
            is checked on; empty where those are all.

    Raises:
        CredalError: If there is neither a threshold nor a reason.

    Example:
        >>> PageRule(0.4, max_error=0.1, confidence=0.95, coverage=0.75).certified
        True
    """

    threshold: float | None
    quantity: Quantity = "error"
    method: str = "selection with guaranteed risk"
    max_error: float | None = None
    confidence: float | None = None
    coverage: float = 0.0
    num_items: int | None = None
    left_out: int = 0
    truth: str = "the class with most votes"
    having: str = "a single most-voted class"
    why_not: str = ""
    remedy: str = ""
    about_groups: str = ""
    one_of_each_group: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.threshold is None and not self.why_not:
            raise CredalError("a rule must hold a threshold or say why there is none.")
        if self.quantity != "capacity" and self.max_error is None:
            raise CredalError(f"a rule about {self.quantity} must hold the max_error asked for.")

    @property
    def certified(self) -> bool:
        """Whether something is promised."""
        return self.threshold is not None and self.quantity != "capacity"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the page says first.

    Args:
        state: ``certified``, ``refused``, ``capacity`` or ``open``.
        sentence: The verdict.
        notes: What follows it, a sentence or two each.
        command: What to type next, if anything.

    Example:
        >>> Verdict("open", "No rule has been made yet.").command
        ''
    """

    state: Literal["certified", "refused", "capacity", "open"]
    sentence: str
    notes: tuple[str, ...] = ()
    command: str = ""


def verdict(
    rule: PageRule | None,
    walk: Walk,
    *,
    command: str,
    counted: str,
    disagreement: float | None = None,
) -> Verdict:
    """The sentence for a rule, checked on the test items.

    Args:
        rule: The rule; None where none was made.
        walk: The test items that the promise is about, by the rule's score.
        command: How a rule is made.
        counted: Against what the walk counts errors, in words; said where the rule's truth differs.
        disagreement: How much a random annotator disagrees with the labels kept, if it is known.
    """
    if rule is None:
        note = "Until one is, nothing is promised: the slider below shows what was observed."
        return Verdict("open", "No rule has been made yet.", (note,), command)
    if rule.threshold is None:
        asked = short_percent(rule.max_error) if rule.max_error is not None else "–"
        sentence = f"An error of at most {asked}{_sure(rule)} cannot be certified with these data."
        until = "Until then the rule sends every item to a human."
        said = (rule.why_not, rule.remedy, until)
        return Verdict("refused", sentence, tuple(note for note in said if note))
    coverage = round(rule.coverage, 3)
    keep, defer = short_percent(coverage), short_percent(1 - coverage)
    notes: tuple[str, ...] = (_observed(rule, walk, counted),)
    if rule.truth != counted and disagreement is not None:
        share = percent(disagreement)
        notes += (f"A random annotator disagrees with a label that is kept {share} of the time.",)
    if rule.about_groups:
        notes += (rule.about_groups,)
    if rule.quantity == "capacity":
        sentence = f"Defer the least certain {defer} to a human and keep {keep} of the items."
        note = "This fits the reviewers' capacity; no error is promised."
        return Verdict("capacity", sentence, (note, *notes))
    limit = short_percent(rule.max_error or 0.0)
    having = f" with {rule.having}" if rule.left_out else ""
    if rule.left_out:
        notes += (_left_out(rule),)
    start, whole = f"Keep {keep} of the items", "all items"
    if rule.one_of_each_group:
        start = f"Of one item, drawn at random, of each group keep {keep}"
        whole = "such items"
    if rule.quantity == "kept-and-wrong":
        sentence = (
            f"{start}; at most {limit} of {whole}{having} are expected to be kept and wrong. "
            f"{defer} go to a human."
        )
    else:
        among = f" among those{having}," if having else ""
        sentence = f"{start} at an error of at most {limit}{among}{_sure(rule)}; "
        sentence += f"{defer} go to a human."
    return Verdict("certified", sentence, notes)


def _left_out(rule: PageRule) -> str:
    """What the promise is not about."""
    total = (rule.num_items or 0) + rule.left_out
    return (
        f"The promise is about items with {rule.having}. Of the {total:,} calibration items "
        f"{rule.left_out:,} have none and took no part; the share that is kept is of all of them."
    )


def _sure(rule: PageRule) -> str:
    return f" with {short_percent(rule.confidence)} confidence" if rule.confidence else ""


def _observed(rule: PageRule, walk: Walk, counted: str) -> str:
    """What the rule does to items it has not seen."""
    place = walk.position(rule.threshold or 0.0)
    total = int(walk.kept[-1])
    each = ", one of each group," if rule.one_of_each_group else ""
    start = f"Checked on {total:,} test items{each} that neither the model nor the rule has seen: "
    start += "it keeps"
    error = walk.error(place)
    if error is None:
        return f"{start} {percent(walk.coverage(place))}."
    low, high = percent(float(walk.low[place])), percent(float(walk.high[place]))
    against = f" against {counted}" if counted and counted != rule.truth else ""
    judged, kept = int(walk.judged[place]), int(walk.kept[place])
    among = f" among the {judged:,} kept that have a truth" if judged < kept else ""
    text = (
        f"{start} {percent(walk.coverage(place))}, with an observed error of {percent(error)}"
        f"{against}{among} (95 % interval {low} to {high})"
    )
    if rule.quantity == "kept-and-wrong":
        share = int(walk.wrong[place]) / int(walk.judged[-1])
        text += f"; {percent(share)} of all items with a truth are kept and wrong"
    return f"{text}."
