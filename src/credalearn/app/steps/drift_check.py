"""Whether a model's accuracy and guarantee still hold on items that were annotated later."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaincinv
from scipy.stats import fisher_exact, ttest_ind

from credalearn._formats import many, number, percent
from credalearn.app.item_stream import known_items
from credalearn.app.report.rule_check import item_arrays, judged_by
from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee, Promise, ScoredItems
from credalearn.guarantees._betting import betting_p_value
from credalearn.guarantees._bounds import interval
from credalearn.guarantees._sequence import GroupEvidence, evidence
from credalearn.guarantees._truths import HAVING, LACKING, TRUTHS

_LEVEL = 0.05  # significance level of both tests
_MANY, _OFTEN = 50, 0.2  # where a fifth is kept, 50 new items are not all deferred by chance
_POWER = 0.8  # probability with which a drop counts as noticed
_DRAWS = 200  # to find it for groups
_NOTICED = "would be noticed in 8 of 10 cases"
_KEPT, _DEFERRED = 0.0, 1.0  # scores that say what the old threshold decided


@dataclass(frozen=True, slots=True)
class Drift:
    """What new items say about a run."""

    lines: list[str]  # accuracy and guarantee, each compared with what the run stated
    facts: dict[str, Any]  # the same as numbers
    outdated: str | None = None  # why the run no longer holds; None if nothing shows it


def drift_check(old: Run, new: Run) -> Drift:
    """Compare new items with a run's accuracy and with its guarantee."""
    fresh = new.held_out(score=old.deferral_score)
    seen = known_items(old, "calibration", "test")(fresh["item"], fresh["digest"])
    fresh = fresh.filter([not each for each in seen])
    facts: dict[str, Any] = {"items": len(fresh)}
    if fresh.is_empty():
        line = f"All items are calibration or test items of {old.path}: nothing to compare."
        return Drift([line], facts)
    lines = _accuracy(old, new, fresh, facts)
    lines += [] if old.guarantee is None else _guarantee(new, old.guarantee, fresh, facts)
    units = fresh["item" if new.facts.group is None else "group"].n_unique()
    usual = 0 if old.guarantee is None else old.guarantee.coverage
    if units >= _MANY and usual >= _OFTEN and not facts["predicted"]:
        lines[-1] += f" If {old.path} chose these items, they are no sample: add them to training "
        lines[-1] += "(credalearn train … --merge) and recalibrate on others. If not, train again."
        return Drift(lines, facts)  # without a mark: where all is deferred, no promise is broken
    broken = any(each["broken"] for each in facts.get("promises", ()))
    if not (broken or facts.get("accuracy_dropped")):
        return Drift(lines, facts)
    why = "its guarantee does not hold" if broken else "accuracy dropped significantly"
    about = f"for {many(len(fresh), 'newer item')}; use {new.path}, which is calibrated on them."
    return Drift(lines, facts, f"{why} {about}")


def _accuracy(old: Run, new: Run, fresh: pl.DataFrame, facts: dict[str, Any]) -> list[str]:
    """Lines about the accuracy; adds it to the facts, and whether it dropped significantly."""
    tested = old.held_out("test")
    before = tested["wrong"].drop_nulls().to_numpy()
    wrong = fresh["wrong"].drop_nulls().to_numpy()
    facts["judged"] = len(wrong)
    if not len(wrong):
        return [f"Accuracy: no new item can be right or wrong, {LACKING[new.truth]}."]
    facts["accuracy"], *facts["accuracy_interval"] = found = _right(wrong, new)
    line = f"Accuracy on {many(len(wrong), 'new item')} with {HAVING[new.truth]}: {_words(found)}"
    if not len(before):
        return [f"{line}."]
    facts["judged_before"] = len(before)
    facts["accuracy_before"], *facts["accuracy_before_interval"] = found = _right(before, old)
    line += f"; on {many(len(before), 'test item')} of {old.path}: {_words(found)}."
    if new.truth != old.truth:
        return [line, f"Not comparable: the test items were compared with {TRUTHS[old.truth]}."]
    if old.facts.group and new.facts.group:
        return [line, _accuracy_by_group(tested, fresh, facts)]
    facts["detectable_accuracy"] = detectable = _detectable(before, len(wrong))
    by_chance = _may_be_chance(before, int(wrong.sum()), len(wrong))
    facts["accuracy_dropped"] = bool(not by_chance and wrong.mean() > before.mean())
    power = "too few items to detect a difference"
    if detectable is not None:
        power = f"with {many(len(wrong), 'item')}, a drop to {percent(detectable)} {_NOTICED}"
    if by_chance:
        return [line, f"The difference may be chance; {power}."]
    change = "dropped" if facts["accuracy_dropped"] else "rose"
    return [line, f"Accuracy {change} significantly (Fisher's exact test, level 5 %); {power}."]


def _accuracy_by_group(tested: pl.DataFrame, fresh: pl.DataFrame, facts: dict[str, Any]) -> str:
    """Whether groups are right less often than before; items of a group are not independent."""
    errors = [
        table.drop_nulls("wrong").group_by("group").agg(pl.col("wrong").mean())["wrong"].to_numpy()
        for table in (tested, fresh)
    ]
    test = f"Welch's test on {len(errors[0]):,} and {many(len(errors[1]), 'new group')}, level 5 %"
    chance = True
    if min(map(len, errors)) > 1:
        p_value = ttest_ind(*errors, equal_var=False).pvalue
        chance = not p_value <= _LEVEL  # NaN where no group differs from another
    facts["accuracy_dropped"] = bool(not chance and errors[1].mean() > errors[0].mean())
    if chance:
        return f"The difference may be chance ({test})."
    change = "dropped" if facts["accuracy_dropped"] else "rose"
    return f"Accuracy {change} significantly ({test})."


def _may_be_chance(before: np.ndarray, errors: int, number: int) -> bool:
    table = [[errors, number - errors], [int(before.sum()), int((~before).sum())]]
    return bool(fisher_exact(table).pvalue > _LEVEL)


def _detectable(before: np.ndarray, number: int) -> float | None:
    """The accuracy to which a drop would have been noticed in 8 of 10 cases; None if to none."""
    start = int(number * before.mean())
    errors = range(number + 1)
    least = bisect_left(errors, True, lo=start, key=lambda e: not _may_be_chance(before, e, number))
    return None if least > number else 1 - _noticed(least, number)


def _noticed(least: int, number: int) -> float:
    """The error rate at which ``least`` errors or more among ``number`` have probability 0.8."""
    return float(betaincinv(least, number - least + 1, _POWER))


def _right(wrong: np.ndarray, run: Run) -> list[float]:
    """Share of correct labels; without groups also its 95 % interval (Clopper and Pearson)."""
    share = 1 - float(wrong.mean())
    if run.facts.group is not None:  # items of a group are not independent
        return [share]
    right, number = np.array([(~wrong).sum()]), np.array([len(wrong)])
    low, high = interval(right, number, confidence=1 - _LEVEL, binary=True)
    return [share, float(low[0]), float(high[0])]


def _words(right: list[float]) -> str:
    share, *ends = map(percent, right)
    return f"{share} (95 % interval {' to '.join(ends)})" if ends else share


def _guarantee(
    new: Run, guarantee: Guarantee, fresh: pl.DataFrame, facts: dict[str, Any]
) -> list[str]:
    """How the old threshold does on the new items; adds to the facts what that says of promises."""
    kept = guarantee.keeps(fresh["score"].to_numpy(), fresh["label"].to_list())
    facts |= {"predicted": float(kept.mean()), "predicted_before": guarantee.coverage}
    of_new = many(len(fresh), "new item")
    line = f"The old threshold predicts {percent(facts['predicted'])} of {of_new} "
    line += f"({percent(guarantee.coverage)} of its calibration items)"
    if guarantee.against not in ("a random annotator", new.truth):
        return [f"{line}; its guarantee is about {TRUTHS[guarantee.against]}."]
    column, known = judged_by(guarantee.against)
    judged = fresh.select(known).to_series().to_numpy()
    facts["predicted_judged"] = predicted = int((kept & judged).sum())
    if not predicted:
        return [f"{line}."]
    decided = fresh.with_columns(score=np.where(kept, _KEPT, _DEFERRED)).filter(judged)
    items = ScoredItems(**item_arrays(decided, column))
    facts["error"] = error = float(items.wrong[items.score == _KEPT].mean())
    having = HAVING[guarantee.against]
    line += f"; of the {predicted:,} predicted with {having}, {percent(error)} are wrong."
    if guarantee.method == "capacity":
        return [line]
    if guarantee.confidence is None:
        facts["predicted_and_wrong"] = share = error * predicted / len(items)
        average = "are an average over calibration sets, which one set cannot violate"
        limit = f"the {percent(guarantee.max_error)} {average}"
        return [line, f"{percent(share)} of the new items are predicted and wrong; {limit}."]
    promises = guarantee.all_promises
    by_group = guarantee.by_group and items.groups is not None
    found = [_verdict(each, items, by_group, _LEVEL / len(promises)) for each in promises]
    facts["promises"] = [each for _, each in found]
    return [line, " ".join(note for note, _ in found)]


def _verdict(
    promise: Promise, items: ScoredItems, by_group: bool, level: float
) -> tuple[str, dict[str, Any]]:
    """What the items say about a promise, in words and as facts, with the power of the test."""
    facts = {"about": promise.name, "kind": promise.kind, "limit": promise.limit, "broken": False}
    about = "" if promise.name is None else f"{promise.kind.capitalize()} {promise.name}: "
    try:
        found = evidence(items, promise, np.array([_KEPT]), by_group)
    except CredalError:  # no item is of this class
        return f"{about}no new item to compare.", facts
    kept, errors = found.kept[..., 0], found.errors[..., 0]
    if not kept.sum():
        return f"{about}no new item is predicted.", facts

    def shown(rate: float) -> str:
        return number(rate * promise.largest) if promise.costs else percent(rate, digits=3)

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
        counts = np.full_like(numbers, count)
        low, _ = interval(numbers, counts, confidence=1 - 2 * level, binary=found.binary)
        broken, least = low[-1] > promise.rate, int((low[:-1] <= promise.rate).sum())
        noticed = _noticed(least, count) if least <= count else None
    facts |= {"rate": share * promise.largest, "broken": bool(broken)}
    facts["detectable_rate"] = None if noticed is None else noticed * promise.largest
    power = f"too few to contradict it ({units})"
    if noticed is not None:
        what = "a mean cost" if promise.costs else "an error"
        power = f"with {units}, {what} of {shown(noticed)} {_NOTICED}"
    limit = f"the guaranteed {shown(promise.rate)}{note}"
    said = f"This does not contradict {limit}"
    if broken or share > promise.rate:
        sure = f"at {percent(1 - level)} confidence" if broken else "but this may be chance"
        said = f"Above {limit}, {sure}"
    return f"{about}{said}; {power}.", facts


def _noticed_by_groups(kept: np.ndarray, rate: float, level: float) -> float | None:
    """The error that would contradict the promise in 8 of 10 cases if whole groups are wrong."""
    luck = np.random.default_rng(0).random((len(kept), _DRAWS))
    for step in range(int(100 * rate) + 1, 100):
        p_values = betting_p_value(kept * (luck >= step / 100), kept, 1 - rate, risk=level)
        if (p_values <= level).mean() >= _POWER:
            return step / 100
    return None
