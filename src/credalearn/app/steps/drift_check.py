"""Whether a model's accuracy and guarantee still hold on items that were annotated later."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import betaincinv
from scipy.stats import fisher_exact

from credalearn._formats import many, number, percent
from credalearn.app.item_stream import KnownItems
from credalearn.app.run import Run
from credalearn.app.steps.certify import item_arrays, judged_by
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee, Promise, ScoredItems
from credalearn.guarantees._sequence import GroupEvidence, evidence
from credalearn.guarantees.betting import betting_p_value
from credalearn.guarantees.bounds import interval
from credalearn.guarantees.truths import HAVING, LACKING, TRUTHS

_LEVEL = 0.05  # significance level of both tests
_POWER = 0.8  # probability with which a drop counts as noticed
_DRAWS = 200  # to find it for groups
_KEPT, _DEFERRED = 0.0, 1.0  # scores that say what the old threshold decided


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
        note = f"Not comparable: the test items were compared with {TRUTHS[old.truth]}."
        return [line, note], False
    power = _detectable(before, len(wrong))
    if _may_be_chance(before, int(wrong.sum()), len(wrong)):
        return [line, f"The difference may be chance; {power}."], False
    dropped = bool(wrong.mean() > before.mean())
    change = "dropped" if dropped else "rose"
    note = f"Accuracy {change} significantly (Fisher's exact test, level 5 %); {power}."
    return [line, note], dropped


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
    """How the old threshold does on the new items, and whether that contradicts a promise."""
    kept = guarantee.keeps(fresh["score"].to_numpy(), fresh["label"].to_list())
    line = f"The old threshold predicts {percent(float(kept.mean()))} of {len(fresh):,} new items "
    line += f"({percent(guarantee.coverage)} of its calibration items)"
    if guarantee.against not in ("a random annotator", new.truth):
        return [f"{line}; its guarantee is about {TRUTHS[guarantee.against]}."], False
    column, known = judged_by(guarantee.against)
    judged = fresh.select(known).to_series().to_numpy()
    predicted = int((kept & judged).sum())
    if not predicted:
        return [f"{line}."], False
    decided = fresh.with_columns(score=np.where(kept, _KEPT, _DEFERRED)).filter(judged)
    items = ScoredItems(**item_arrays(decided, column))
    error = float(items.wrong[items.score == _KEPT].mean())
    having = HAVING[guarantee.against]
    line += f"; of the {predicted:,} predicted with {having}, {percent(error)} are wrong."
    if guarantee.method == "capacity":
        return [line], False
    if guarantee.confidence is None:
        share, limit = percent(error * predicted / len(items)), percent(guarantee.max_error)
        average = f"the {limit} are an average over calibration sets, which one set cannot violate"
        return [line, f"{share} of the new items are predicted and wrong; {average}."], False
    promises = guarantee.all_promises
    by_group = guarantee.by_group and items.groups is not None
    found = [_verdict(each, items, by_group, _LEVEL / len(promises)) for each in promises]
    return [line, " ".join(note for note, _ in found)], any(broken for _, broken in found)


def _verdict(
    promise: Promise, items: ScoredItems, by_group: bool, level: float
) -> tuple[str, bool]:
    """What the items say about a promise, with the power of the test; and whether it is broken."""
    about = "" if promise.name is None else f"{promise.kind.capitalize()} {promise.name}: "
    try:
        found = evidence(items, promise, np.array([_KEPT]), by_group)
    except CredalError:  # no item is of this class
        return f"{about}no new item to compare.", False
    kept, errors = found.kept[..., 0], found.errors[..., 0]
    if not kept.sum():
        return f"{about}no new item is predicted.", False

    def shown(rate: float) -> str:
        return number(rate * promise.largest) if promise.costs else percent(rate)

    share = float(errors.sum() / kept.sum())
    if isinstance(found, GroupEvidence):
        units, note = many(len(kept), "group"), f" ({shown(share)} for a random item of a group)"
        # The rate is above r exactly where that of right ones is below 1 − r.
        right = found.kept - found.errors
        broken = betting_p_value(right, found.kept, 1 - promise.rate, risk=level)[0] <= level
        noticed = _noticed_by_groups(found.kept, promise.rate, level)
    else:
        count = int(kept)
        units, note = many(count, "item"), f" ({shown(share)})"
        numbers = np.append(np.arange(count + 1.0), errors)
        low, _ = interval(
            *(numbers, np.full_like(numbers, count)),
            confidence=1 - 2 * level,
            binary=found.binary,
        )
        broken, least = low[-1] > promise.rate, int((low[:-1] <= promise.rate).sum())
        noticed = _noticed(least, count) if least <= count else None
    power = f"too few to contradict it ({units})"
    if noticed is not None:
        power = f"with {units}, {shown(noticed)} would be noticed in 8 of 10 cases"
    limit = f"the guaranteed {shown(promise.rate)}{note}"
    if broken:
        return f"{about}Above {limit}, at {percent(1 - level)} confidence; {power}.", True
    if share > promise.rate:
        return f"{about}Above {limit}, but this may be chance; {power}.", False
    return f"{about}This does not contradict {limit}; {power}.", False


def _noticed_by_groups(kept: np.ndarray, rate: float, level: float) -> float | None:
    """The error that would contradict the promise in 8 of 10 cases if whole groups are wrong."""
    luck = np.random.default_rng(0).random((len(kept), _DRAWS))
    for step in range(int(100 * rate) + 1, 100):
        p_values = betting_p_value(kept * (luck >= step / 100), kept, 1 - rate, risk=level)
        if (p_values <= level).mean() >= _POWER:
            return step / 100
    return None
