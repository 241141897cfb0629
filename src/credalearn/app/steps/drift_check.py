"""Whether a model's accuracy and guarantee still hold on items that were annotated later."""

from bisect import bisect_left

import numpy as np
import polars as pl
from scipy.stats import fisher_exact

from credalearn._formats import percent
from credalearn.app.known_items import KnownItems
from credalearn.app.run import Run
from credalearn.app.steps.certify import judged_by, one_of_each
from credalearn.guarantees import Guarantee
from credalearn.guarantees.bounds import interval
from credalearn.guarantees.truths import HAVING, LACKING, TRUTHS

_LEVEL = 0.05  # significance level of both tests


def drift_check(old: Run, new: Run) -> list[str]:
    """Lines that compare new items with a run's accuracy and with its guarantee.

    Calibration and test items of the old run are left out: its threshold was chosen on them, and
    its accuracy is theirs.
    """
    fresh = new.held_out()
    seen = KnownItems(old, ("calibration", "test")).among(fresh["item"], fresh["digest"])
    fresh = fresh.filter([not each for each in seen])
    if fresh.is_empty():
        return [f"All items are calibration or test items of {old.path}: nothing to compare."]
    lines = _accuracy(old, new, fresh)
    guarantee = old.guarantee
    if guarantee is None:
        return lines
    if guarantee.one_per_group:
        if new.group != guarantee.group:
            fix = f"To check it, pass --group {guarantee.group}."
            return [*lines, f"The guarantee is about one item per {guarantee.group}. {fix}"]
        fresh = one_of_each(fresh, guarantee.against)
    return lines + _guarantee(new, guarantee, fresh)


def _accuracy(old: Run, new: Run, fresh: pl.DataFrame) -> list[str]:
    before = old.predictions.filter(split="test")["wrong"].drop_nulls().to_numpy()
    wrong = fresh["wrong"].drop_nulls().to_numpy()
    if not len(wrong):
        return [f"Accuracy: no new item can be right or wrong, {LACKING[new.truth]}."]
    line = f"Accuracy on {len(wrong):,} new items with {HAVING[new.truth]}: {_share_right(wrong)}"
    if not len(before):
        return [f"{line}."]
    line += f"; on the {len(before):,} test items of {old.path}: {_share_right(before)}."
    if new.truth != old.truth:
        return [line, f"Not comparable: the test items were compared with {TRUTHS[old.truth]}."]
    if _may_be_chance(before, int(wrong.sum()), len(wrong)):
        return [line, f"The difference may be chance; {_detectable(before, len(wrong))}."]
    change = "dropped" if wrong.mean() > before.mean() else "rose"
    return [line, f"Accuracy {change} significantly (Fisher's exact test, level 5 %)."]


def _may_be_chance(before: np.ndarray, errors: int, number: int) -> bool:
    table = [[errors, number - errors], [int(before.sum()), int((~before).sum())]]
    return bool(fisher_exact(table).pvalue > _LEVEL)


def _detectable(before: np.ndarray, number: int) -> str:
    """The accuracy at which this number of items would show a significant drop."""
    start = int(number * before.mean())
    errors = range(number + 1)
    least = bisect_left(errors, True, lo=start, key=lambda e: not _may_be_chance(before, e, number))
    if least > number:
        return "too few items to detect a difference"
    return f"with {number:,} items, {percent(1 - least / number)} or less would be significant"


def _share_right(wrong: np.ndarray) -> str:
    """Share of correct labels with its 95 % interval (Clopper and Pearson)."""
    right, number = np.array([(~wrong).sum()]), np.array([len(wrong)])
    ends = interval(right, number, confidence=1 - _LEVEL, binary=True)
    low, high = (percent(float(end[0])) for end in ends)
    return f"{percent(1 - float(wrong.mean()))} (95 % interval {low} to {high})"


def _guarantee(new: Run, guarantee: Guarantee, fresh: pl.DataFrame) -> list[str]:
    """How the old threshold does on the new items, and whether that contradicts its guarantee."""
    kept = guarantee.keeps(fresh["score"].to_numpy())
    line = f"The old threshold predicts {percent(float(kept.mean()))} of {len(fresh):,} new items "
    line += f"({percent(guarantee.coverage)} of its calibration items)"
    by_vote = guarantee.against == "a random annotator"
    if not by_vote and guarantee.against != new.truth:
        return [f"{line}; its guarantee is about {TRUTHS[guarantee.against]}."]
    column, known = judged_by(guarantee.against)
    judged = fresh.select(known).to_series().to_numpy()
    errors = float(fresh[column].cast(pl.Float64).to_numpy()[kept & judged].sum())
    number = int((kept & judged).sum())
    if not number:
        return [f"{line}."]
    having = HAVING[guarantee.against]
    line += f"; of the {number:,} predicted with {having}, {percent(errors / number)} are wrong."
    if guarantee.max_error is None:
        return [line]
    if guarantee.confidence is None:
        share, limit = percent(errors / int(judged.sum())), percent(guarantee.max_error)
        average = f"the {limit} are an average over calibration sets, which one set cannot violate"
        return [line, f"{share} of the new items are predicted and wrong; {average}."]
    return [line, _verdict(guarantee.max_error, errors, number, binary=not by_vote)]


def _verdict(max_error: float, errors: float, number: int, *, binary: bool) -> str:
    """Whether the errors contradict the guarantee, by a lower bound at level 5 %."""
    two_sided = 1 - 2 * _LEVEL
    low, _ = interval(np.array([errors]), np.array([number]), confidence=two_sided, binary=binary)
    limit = percent(max_error)
    if low[0] > max_error:
        above = percent(float(low[0]))
        return f"Above the guaranteed {limit}: with 95 % confidence the error is above {above}."
    if errors > max_error * number:
        return f"Above the guaranteed {limit}, but with {number:,} items this may be chance."
    return f"This does not contradict the guaranteed {limit}."
