"""Whether a model and its rule still hold on items that were annotated later."""

from bisect import bisect_left

import numpy as np
import polars as pl
from scipy.stats import fisher_exact

from credalearn._formats import percent
from credalearn.app.items.known import known_items
from credalearn.app.joined.splits import HELD_OUT
from credalearn.app.run import Run
from credalearn.app.steps.certify import judged_by, one_of_each
from credalearn.guarantees import Guarantee
from credalearn.guarantees.bounds import interval
from credalearn.guarantees.truths import HAVING, LACKING, TRUTHS

_LEVEL = 0.05  # of a difference that is not chance, and of a promise that does not hold


def still_holding(old: Run, new: Run) -> list[str]:
    """Lines that hold the new items against a run's accuracy and the promise of its rule.

    Items that the run had already, to calibrate or to test, are left out: its rule was chosen to
    fit them, and its accuracy is theirs.

    Args:
        old: The run whose model it is.
        new: The run on the new items, by :func:`~credalearn.app.steps.recalibrating`.
    """
    every, before = new.predictions, old.predictions
    fresh = every.filter([not seen for seen in _held_out_before(old, new, every)])
    lines = []
    if len(fresh) < len(every):
        lines.append(
            f"{len(every) - len(fresh):,} of the {len(every):,} items are calibration or test "
            f"items of {old.path} too: they say nothing about whether it still holds"
        )
    if len(fresh):
        lines += _accuracy(old, new, fresh, before.filter(split="test"))
        group = new.group
        if (
            old.guarantee is not None
            and old.guarantee.one_per_group
            and group != old.guarantee.group
        ):
            lines.append(
                f"the rule of {old.path} is about one item of each {old.guarantee.group}: to hold "
                f"these items against it, give --group {old.guarantee.group}"
            )
        elif old.guarantee is not None:
            if old.guarantee.one_per_group:
                fresh = one_of_each(new, fresh, old.guarantee.against)
            lines += _rule(old, new, old.guarantee, fresh)
        if group is not None:
            lines.append(f"items of one {group} are alike: of few large groups this is less sure")
    return lines


def _held_out_before(old: Run, new: Run, every: pl.DataFrame) -> list[bool]:
    """Which of the new items the old run calibrated or tested on."""
    held = new.items.select("item", "split", "digest")
    named = every.select("item", "split")
    digests = named.join(held, on=["item", "split"], how="left", maintain_order="left")["digest"]
    return known_items(old, HELD_OUT).among(every["item"], digests)


def _accuracy(old: Run, new: Run, fresh: pl.DataFrame, tested: pl.DataFrame) -> list[str]:
    wrong, wrong_before = (table["wrong"].drop_nulls().to_numpy() for table in (fresh, tested))
    if not len(wrong):
        return [f"accuracy: no new item can be right or wrong, {LACKING[new.truth]}"]
    line = f"accuracy on the {len(wrong):,} new items with {HAVING[new.truth]}: {_right(wrong)}"
    if not len(wrong_before):
        return [line]
    line += f"; on the {len(wrong_before):,} test items of {old.path} {_right(wrong_before)}"
    if new.truth != old.truth:
        return [line, f"the two are not alike: those were judged by {TRUTHS[old.truth]}"]
    less = wrong.mean() > wrong_before.mean()
    if _chance(wrong_before, int(wrong.sum()), len(wrong)):
        return [line, f"the difference may be chance; {_telling(wrong_before, len(wrong))}"]
    return [line, f"the model is right {'less' if less else 'more'} often, more than chance makes"]


def _chance(before: np.ndarray, errors: int, number: int) -> bool:
    """Whether so many errors of a number of items may be chance beside those before, by Fisher."""
    table = [[errors, number - errors], [int(before.sum()), int((~before).sum())]]
    return bool(fisher_exact(table).pvalue > _LEVEL)


def _telling(before: np.ndarray, number: int) -> str:
    """At which lower accuracy a number of items would have told a difference.

    Example:
        >>> _telling(np.arange(241) < 63, 12), _telling(np.arange(241) < 63, 2)
        ('so many items tell one where accuracy is 41.7 % or less', 'so few items tell none')
    """
    start = int(number * before.mean())
    least = bisect_left(
        range(number + 1), True, lo=start, key=lambda errors: not _chance(before, errors, number)
    )
    if least > number:
        return "so few items tell none"
    return f"so many items tell one where accuracy is {percent(1 - least / number)} or less"


def _right(wrong: np.ndarray) -> str:
    """Share of right labels with the 95 % interval by Clopper and Pearson."""
    ends = interval(
        np.array([(~wrong).sum()]), np.array([len(wrong)]), confidence=1 - _LEVEL, binary=True
    )
    low, high = (percent(float(end[0])) for end in ends)
    return f"{percent(1 - float(wrong.mean()))} (95 % interval {low} to {high})"


def _rule(old: Run, new: Run, rule: Guarantee, fresh: pl.DataFrame) -> list[str]:
    """What the rule does on the new items, and whether that contradicts what it promised."""
    kept = rule.keeps(fresh["score"].to_numpy())
    line = f"the rule of {old.path} keeps {percent(float(kept.mean()))} of the {len(fresh):,} new "
    line += f"items, and kept {percent(rule.coverage)} of those it was calibrated on"
    by_vote = rule.against == "a random annotator"
    if not by_vote and rule.against != new.truth:
        return [line, f"it is about {TRUTHS[rule.against]}, these items have {HAVING[new.truth]}"]
    column, known = judged_by(rule.against)
    judged = fresh.select(known).to_series().to_numpy()
    errors = float(fresh[column].cast(pl.Float64).to_numpy()[kept & judged].sum())
    number = int((kept & judged).sum())
    if not number:
        return [line]
    having = f"with {HAVING[rule.against]}"
    line += f"; of the {number:,} kept {having} {percent(errors / number)} are wrong"
    if rule.max_error is None:
        return [line, "it promises no error"]
    if rule.confidence is None:
        return [line, _average(rule.max_error, errors / int(judged.sum()))]
    return [line, _promise(rule.max_error, errors, number, binary=not by_vote)]


def _average(max_error: float, share: float) -> str:
    """What conformal risk control promises is no property of one rule.

    Example:
        >>> _average(0.1, 0.12)
        'the share kept and wrong is 12 % here; the promise of at most 10 % is an average over
        calibration sets, which one rule can neither keep nor break'
    """
    return (
        f"the share kept and wrong is {percent(share)} here; the promise of at most "
        f"{percent(max_error)} is an average over calibration sets, which one rule can neither "
        "keep nor break"
    )


def _promise(max_error: float, errors: float, number: int, *, binary: bool) -> str:
    """Whether so many errors contradict a promise, by the lower bound at level 5 %.

    Clopper and Pearson's for errors that are 0 or 1, exact.

    Example:
        >>> _promise(0.1, 20, 100, binary=True)
        'its promise of at most 10 % does not hold here: with 95 % confidence the error is above
        13.7 %'
        >>> _promise(0.1, 12, 100, binary=True)
        'the error is 12 % here, above the 10 % of its promise; of 100 items that may be chance'
    """
    two_sided = 1 - 2 * _LEVEL
    low, _ = interval(np.array([errors]), np.array([number]), confidence=two_sided, binary=binary)
    limit = percent(max_error)
    if low[0] > max_error:
        above = percent(float(low[0]))
        return (
            f"its promise of at most {limit} does not hold here: with 95 % confidence the error is "
            f"above {above}"
        )
    if errors > max_error * number:
        share = percent(errors / number)
        return (
            f"the error is {share} here, above the {limit} of its promise; of {number:,} items "
            "that may be chance"
        )
    return f"these items do not contradict its promise of at most {limit}"
