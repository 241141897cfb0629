"""Whether a model's accuracy and guarantee still hold on items that were annotated later."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import betaincinv
from scipy.stats import fisher_exact

from credalearn._formats import many, percent
from credalearn.app.known_items import KnownItems
from credalearn.app.run import Run
from credalearn.app.steps.certify import judged_by
from credalearn.guarantees import Guarantee
from credalearn.guarantees.betting import betting_p_value, growth
from credalearn.guarantees.bounds import interval
from credalearn.guarantees.truths import HAVING, LACKING, TRUTHS

_LEVEL = 0.05  # significance level of both tests
_POWER = 0.8  # probability with which a drop counts as noticed


@dataclass(frozen=True, slots=True)
class Drift:
    """What new items say about a run."""

    lines: list[str]  # accuracy and guarantee, each compared with what the run stated
    outdated: str | None = None  # why the run no longer holds; None if nothing shows it


def drift_check(old: Run, new: Run) -> Drift:
    """Compare new items with a run's accuracy and with its guarantee.

    Calibration and test items of the old run are left out: its threshold was chosen on them, and
    its accuracy is theirs.
    """
    fresh = new.held_out(score=old.deferral_score)
    seen = KnownItems(old, ("calibration", "test")).among(fresh["item"], fresh["digest"])
    fresh = fresh.filter([not each for each in seen])
    if fresh.is_empty():
        return Drift(
            [f"All items are calibration or test items of {old.path}: nothing to compare."]
        )
    lines, dropped = _accuracy(old, new, fresh)
    broken = False
    if old.guarantee is not None:
        more, broken = _guarantee(new, old.guarantee, fresh)
        lines += more
    if not (dropped or broken):
        return Drift(lines)
    why = "its guarantee does not hold" if broken else "accuracy dropped significantly"
    return Drift(
        lines, f"{why} for the {len(fresh):,} newer items of {new.path}; use a run on newer items."
    )


def _accuracy(old: Run, new: Run, fresh: pl.DataFrame) -> tuple[list[str], bool]:
    """Lines about the accuracy, and whether it dropped significantly."""
    before = old.predictions.filter(split="test")["wrong"].drop_nulls().to_numpy()
    wrong = fresh["wrong"].drop_nulls().to_numpy()
    if not len(wrong):
        return [f"Accuracy: no new item can be right or wrong, {LACKING[new.truth]}."], False
    line = f"Accuracy on {len(wrong):,} new items with {HAVING[new.truth]}: {_share_right(wrong)}"
    if not len(before):
        return [f"{line}."], False
    line += f"; on the {len(before):,} test items of {old.path}: {_share_right(before)}."
    if new.truth != old.truth:
        told = f"Not comparable: the test items were compared with {TRUTHS[old.truth]}."
        return [line, told], False
    power = _detectable(before, len(wrong))
    if _may_be_chance(before, int(wrong.sum()), len(wrong)):
        return [line, f"The difference may be chance; {power}."], False
    dropped = bool(wrong.mean() > before.mean())
    change = "dropped" if dropped else "rose"
    told = f"Accuracy {change} significantly (Fisher's exact test, level 5 %); {power}."
    return [line, told], dropped


def _may_be_chance(before: np.ndarray, errors: int, number: int) -> bool:
    table = [[errors, number - errors], [int(before.sum()), int((~before).sum())]]
    return bool(fisher_exact(table).pvalue > _LEVEL)


def _detectable(before: np.ndarray, number: int) -> str:
    """The accuracy to which a drop would have been noticed in 8 of 10 cases."""
    start = int(number * before.mean())
    errors = range(number + 1)
    least = bisect_left(errors, True, lo=start, key=lambda e: not _may_be_chance(before, e, number))
    if least > number:
        return "too few items to detect a difference"
    noticed = 1 - _noticed(least, number)
    return f"with {number:,} items, a drop to {percent(noticed)} would be noticed in 8 of 10 cases"


def _noticed(least: int, number: int) -> float:
    """The error rate at which ``least`` errors or more among ``number`` have probability 0.8."""
    return float(betaincinv(least, number - least + 1, _POWER))


def _share_right(wrong: np.ndarray) -> str:
    """Share of correct labels with its 95 % interval (Clopper and Pearson)."""
    right, number = np.array([(~wrong).sum()]), np.array([len(wrong)])
    ends = interval(right, number, confidence=1 - _LEVEL, binary=True)
    low, high = (percent(float(end[0])) for end in ends)
    return f"{percent(1 - float(wrong.mean()))} (95 % interval {low} to {high})"


def _guarantee(new: Run, guarantee: Guarantee, fresh: pl.DataFrame) -> tuple[list[str], bool]:
    """How the old threshold does on the new items, and whether that contradicts its guarantee."""
    kept = guarantee.keeps(fresh["score"].to_numpy(), fresh["label"].to_list())
    line = f"The old threshold predicts {percent(float(kept.mean()))} of {len(fresh):,} new items "
    line += f"({percent(guarantee.coverage)} of its calibration items)"
    by_vote = guarantee.against == "a random annotator"
    if not by_vote and guarantee.against != new.truth:
        return [f"{line}; its guarantee is about {TRUTHS[guarantee.against]}."], False
    column, known = judged_by(guarantee.against)
    judged = fresh.select(known).to_series().to_numpy()
    wrong = np.where(judged, fresh[column].cast(pl.Float64).to_numpy(), 0.0)
    errors, number = float(wrong[kept].sum()), int((kept & judged).sum())
    if not number:
        return [f"{line}."], False
    having = HAVING[guarantee.against]
    line += f"; of the {number:,} predicted with {having}, {percent(errors / number)} are wrong."
    if guarantee.max_error is None:
        return [line], False
    if guarantee.confidence is None:
        share, limit = percent(errors / int(judged.sum())), percent(guarantee.max_error)
        average = f"the {limit} are an average over calibration sets, which one set cannot violate"
        return [line, f"{share} of the new items are predicted and wrong; {average}."], False
    if guarantee.by_group and fresh["group"].count():
        told, broken = _group_verdict(
            guarantee.max_error, fresh.filter(judged), kept[judged], column
        )
    else:
        told, broken = _verdict(guarantee.max_error, errors, number, binary=not by_vote)
    return [line, told], broken


def _verdict(max_error: float, errors: float, number: int, *, binary: bool) -> tuple[str, bool]:
    """Whether the errors contradict the guarantee, by a lower bound at level 5 %; and the power."""
    counts = np.arange(number + 1.0)
    two_sided = 1 - 2 * _LEVEL
    low, _ = interval(counts, np.full_like(counts, number), confidence=two_sided, binary=binary)
    limit, least = percent(max_error), int((low <= max_error).sum())
    power = f"{number:,} items are too few to contradict it"
    if least <= number:
        power = f"an error of {percent(_noticed(least, number))} would be noticed in 8 of 10 cases"
    now, _ = interval(np.array([errors]), np.array([number]), confidence=two_sided, binary=binary)
    if now[0] > max_error:
        above = percent(float(now[0]))
        told = f"Above the guaranteed {limit}: with 95 % confidence the error is above {above}"
        return f"{told}; {power}.", True
    if errors > max_error * number:
        told = f"Above the guaranteed {limit}, but with {number:,} items this may be chance"
        return f"{told}; {power}.", False
    return f"This does not contradict the guaranteed {limit}; {power}.", False


def _group_verdict(
    max_error: float, judged: pl.DataFrame, kept: np.ndarray, column: str
) -> tuple[str, bool]:
    """The same for a promise about a random item of a random group, by betting."""
    table = judged.select("group", wrong=pl.col(column).cast(pl.Float64)).with_columns(kept=kept)
    shares = table.group_by("group").agg(
        wrong=(pl.col("wrong") * pl.col("kept")).mean(), kept=pl.col("kept").mean()
    )
    order = np.random.default_rng(0).permutation(len(shares))
    sorted_shares = shares.sort("group")[order]
    wrong, share = (sorted_shares[name].to_numpy()[:, None] for name in ("wrong", "kept"))
    # The error is above r exactly where the share of right ones is below 1 − r.
    p = float(betting_p_value(share - wrong, share, 1 - max_error, risk=_LEVEL)[0])
    mean, limit = float(wrong.sum() / share.sum()), percent(max_error)
    groups, error = many(len(shares), "group"), f"{percent(mean)} for a random item of a group"
    if p <= _LEVEL:
        return f"Above the guaranteed {limit}: the error is {error} (betting, level 5 %).", True
    noticed = _noticed_by_groups(wrong, share, max_error)
    power = f"with {groups}, an error of {percent(noticed)} would be noticed"
    if noticed >= 1:
        power = f"{groups} are too few to contradict it"
    if mean > max_error:
        return f"Above the guaranteed {limit} ({error}), but this may be chance; {power}.", False
    return f"This does not contradict the guaranteed {limit} ({error}); {power}.", False


def _noticed_by_groups(wrong: np.ndarray, kept: np.ndarray, max_error: float) -> float:
    """About the error at which so many groups with the same shares kept would contradict it."""
    number = len(kept)
    for step in range(int(100 * max_error) + 1, 100):
        rate = np.broadcast_to(kept * step / 100, wrong.shape)
        if number * growth(kept - rate, kept, 1 - max_error)[0] >= -np.log(_LEVEL):
            return step / 100
    return 1.0
