"""``certify``: choose which items to predict and which to defer, with a guarantee.

Imports torch only where sets are widened.
"""

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from credalearn._formats import aligned, listed, many, number, percent, shown
from credalearn.app.facts import Printed, Request
from credalearn.app.report.baseline import Baseline, above_promise, baseline
from credalearn.app.report.rule_check import HeldOutCheck, check_rule, item_arrays, judged_by
from credalearn.app.run import OUT_OF_FOLD, Run
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.errors import CredalError
from credalearn.guarantees import DeferralScore, Guarantee, ScoredItems, by_capacity
from credalearn.guarantees import certify as certify_scores
from credalearn.guarantees._truths import LACKING, TRUTHS, Truth
from credalearn.guarantees.guarantee import SCORE_WORDS

if TYPE_CHECKING:
    from credalearn.app.steps.set_coverage import WidenedSets

_BY_NAME = ("sgr", "conformal-risk-control")  # which take no reference items


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Printed):
    """What ``certify`` found and wrote."""

    run: Run  # the run with its new guarantee or sets
    guarantee: Guarantee | None = None  # None if not asked for
    check: HeldOutCheck | None = None  # how it does on the test items; None without a guarantee
    baseline: Baseline | None = None  # the most frequent class as a rival; None likewise
    sets: "WidenedSets | None" = None  # by how much sets are widened; None if not asked for
    replaced: Guarantee | None = None  # another rule, which the run had before

    @property
    def lines(self) -> list[str]:
        """What the command prints, in at most eight lines, the rows of a table among them."""
        lines, found, notes = [], self.guarantee, self.run.warnings
        if found is not None and self.check is not None:
            lines = self._table(found, self.check)
            notes.append(found.sentence())
            notes.append(above_promise(found, self.check.errors, self.check.judged_kept)[0])
            if self.replaced is not None:
                share = percent(self.replaced.coverage)
                notes.append(f"This replaces the earlier rule, which kept {share} of these items.")
            if found.threshold is not None:
                limit = f"a score above {number(found.threshold)}"
                if found.class_thresholds:
                    limit = f"a score above the threshold of their class ({_by_class(found)})"
                assert found.score is not None
                whose = f", by {self.run.facts.imported}" if self.run.facts.imported else ""
                whose = ", chosen on out-of-fold items" if _has_folds(self.run) else whose
                score = f"the score is {SCORE_WORDS[found.score]}{whose}"
                notes.append(f"Items with {limit} are deferred; {score}.")
        lines += [" ".join(filter(None, notes))] if notes else []
        tested = [] if self.baseline is None else list(self.baseline.lines)
        if self.check is not None and self.check.outcomes:
            tested.insert(0, self.check.outcomes)
        lines += [" ".join(tested)] if tested else []
        if self.sets is not None:
            lines.append(" ".join(self.sets.lines))
        path, without = self.run.path, " --no-decision" if self.run.guarantee is None else ""
        next_step = f"credalearn predict {path} DATA -o decisions.csv{without}"
        return [*lines, f"Next: {next_step}; credalearn report {path}"]

    def _table(self, found: Guarantee, check: HeldOutCheck) -> list[str]:
        """What is kept and wrong, on calibration and test items and by the most frequent class."""
        calibration = many(found.num_items + found.left_out, "calibration item")
        rows = [
            (calibration, found.coverage, found.error),
            (many(check.items, "test item"), check.coverage, check.error),
        ]
        if self.baseline is not None and self.baseline.accuracy is not None:
            name = f"always {shown(self.baseline.name)}, test items"
            rows.append((name, 1.0, 1 - self.baseline.accuracy))
        head = (f"Compared with {TRUTHS[found.against]}", "kept", "wrong")
        shares = [(name, *(percent(x, decimals=1) for x in each)) for name, *each in rows]
        return aligned([head, *shares])

    @property
    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        found, sets = self.guarantee, self.sets
        inflation = {} if sets is None else json.loads(sets.inflation.to_json())
        return {
            "run": self.run.path,
            "guarantee": None if found is None else json.loads(found.to_json()),
            "test": self.check,
            "baseline": self.baseline,
            "sets": None if sets is None else inflation | sets.facts,
            "assumptions": self.assumptions,
        }

    @property
    def assumptions(self) -> list[str]:
        """What the guarantee and the sets assume, for ``--explain``."""
        found, notes = self.guarantee, []
        if found is not None and found.certified:
            exact = "where the error does not fall as more items are kept."
            if found.method in _BY_NAME:
                how = f"Thresholds are the calibration scores: exact without ties, {exact}"
            elif _has_folds(self.run):
                fixed = "are fixed by out-of-fold predictions"
                how = f"Thresholds, start and order of the tests {fixed}."
            else:
                how = "Thresholds are quantiles of the calibration scores, and their number fixes "
                how += f"the start of the tests: exact {exact}"
            spent = percent(sum(each.risk for each in self.run.requests))
            notes = [
                "Groups are independent and drawn like new groups; items of a group need not be. "
                "Small and large groups count equally."
                if found.by_group
                else "Items are independent and drawn like new items.",
                f"Right and wrong are judged by {TRUTHS[found.against]}; people can be wrong "
                "together.",
                how,
                f"{many(len(self.run.requests), 'request')} on these items used {spent} of risk "
                "in total. Do not choose further targets by looking at the errors of these items.",
            ]
        return notes + (self.sets.assumptions if self.sets is not None else [])


def certify(run: Run, options: CertifyOptions) -> Certificate:
    """Choose a threshold on the calibration items, or widen the sets, and store the result."""
    check = guarantee = rival = sets = replaced = None
    if options.target is not None or options.promises:
        run, guarantee = _certified(run, options)
    elif options.capacity is not None:
        guarantee = _by_capacity(run, options)
        # It shows an error, which a target that is asked for later has seen.
        if options.asked not in [each.asked for each in run.requests]:
            asked = Request(asked=options.asked, risk=_share(run, options), certified=False)
            run = run.keeping(requests=(*run.requests, asked))
    if guarantee is not None:
        old = run.guarantee
        replaced = old if old is not None and old.sentence() != guarantee.sentence() else None
        run = replace(run, guarantee=guarantee)
        check, rival = check_rule(run, guarantee), baseline(run, guarantee)
        run = run.keeping(guarantee=guarantee)  # whatever becomes of the sets
    if options.set_coverage is not None:
        from credalearn.app.steps.set_coverage import certify_sets

        try:
            sets = certify_sets(run, options)
        except CredalError as error:
            if guarantee is None:
                raise
            raise CredalError(f"The threshold is certified, and kept. But {error}") from error
    if sets is not None:
        run = run.keeping(sets=sets.inflation)
    return Certificate(run, guarantee, check, rival, sets, replaced)


def _calibration(
    run: Run, options: CertifyOptions
) -> tuple[DeferralScore, Truth, pl.DataFrame, pl.DataFrame]:
    """The score to defer by, the truth, and the calibration items with one and without."""
    score = options.score or replace(run, guarantee=None).deferral_score
    truth: Truth = run.truth if options.against == "truth" else "a random annotator"
    every, known = run.held_out("calibration", score=score), judged_by(truth)[1]
    judged = every.filter(known)
    if judged.is_empty():
        lacks_votes = truth == "a random annotator"
        other, needed = ("truth", "votes") if lacks_votes else ("annotator", "gold labels")
        raise CredalError(
            f"no calibration item of {run.path} can be right or wrong: {LACKING[truth]}. To "
            f"fix: {'import' if run.facts.imported else 'train'} with {needed}, or certify with "
            f"against={other!r}."
        )
    return score, truth, judged, every.filter(~known)


def _certified(run: Run, options: CertifyOptions) -> tuple[Run, Guarantee]:
    """The guarantee, and the run that remembers the request; an error if nothing is certified."""
    risk, confidence, known = _risk(run, options)
    score, truth, judged, others = _calibration(run, options)
    for each in options.promises:
        for name in (each.name, *(name for *both, _ in each.costs for name in both)):
            if name is not None and name not in run.classes:
                raise CredalError(
                    f"{run.path} has no class {name!r}; its classes are: {listed(run.classes)}. To "
                    "fix: name one of these."
                )
    column, is_judged = judged_by(truth)
    fold = run.held_out(OUT_OF_FOLD, score=score).filter(is_judged)
    by_name = options.method in _BY_NAME or fold.is_empty()
    found = certify_scores(
        **item_arrays(judged, column),
        max_error=None if options.cost else options.target,
        confidence=1 - risk,
        method=options.method,
        against=truth,
        promises=options.promises,
        per_class=options.per_class,
        reference=None if by_name else ScoredItems(**item_arrays(fold, column)),
    )
    found = replace(
        _with_others(found, others),
        group=run.facts.group,
        score=score,
        confidence=None if found.confidence is None else confidence,
        requests=_number_asked(run) + (not known),
    )
    if not known:
        spent = 0.0 if found.confidence is None else risk
        asked = Request(asked=options.asked, risk=spent, certified=found.shortfall is None)
        run = run.keeping(requests=(*run.requests, asked))
    if found.shortfall is not None:
        raise _too_few(found)
    return run, found


def _number_asked(run: Run) -> int:
    """Number of requests that the calibration items have answered."""
    stored = run.guarantee
    return max(len(run.requests), stored.requests if stored and stored.certified else 0)


def _share(run: Run, options: CertifyOptions) -> float:
    """The risk of the next request: half of the one before. A forged count may have any digits."""
    return (1 - options.confidence) * 0.5 ** min(_number_asked(run), 99)


def _risk(run: Run, options: CertifyOptions) -> tuple[float, float, bool]:
    """What the request may spend, the confidence it then has, and whether it was made before."""
    risk, stored, asked = 1 - options.confidence, run.guarantee, _number_asked(run)
    spent = sum(each.risk for each in run.requests)
    if stored is not None and stored.certified and stored.confidence is not None:
        spent = max(spent, 1 - stored.confidence)
    same = [each for each in run.requests if each.asked == options.asked]
    if not asked:
        return risk, options.confidence, False
    risk = same[0].risk or risk if same else _share(run, options)
    left = 1 - (spent or risk) if same else 1 - spent - risk
    if not same and (not options.again or options.method == "conformal-risk-control"):
        new = "recalibrate on new items"
        again = f"{new}, or pass again=True: the confidence is then {percent(left)}"
        raise CredalError(
            f"{_answered(run)}; a target chosen after looking at the result is not guaranteed. To "
            f"fix: {new if options.method == 'conformal-risk-control' else again}."
        )
    if left <= 0:
        raise CredalError(
            f"{many(asked, 'request has', 'requests have')} used up the risk of {run.path}. To "
            "fix: recalibrate on new items."
        )
    return risk, left, bool(same)


def _answered(run: Run) -> str:
    """Which items have answered which requests, for a message."""
    stored, asked = run.guarantee, [each.words for each in run.requests]
    if not asked and stored is not None:
        limit = stored.max_error
        asked = ["other promises" if limit is None else f"--max-error {limit:g}"]
    count = "a request" if len(asked) == 1 else f"{len(asked)} requests"
    items, last = f"calibration items of {run.path}", [each.asked for each in run.requests[-1:]]
    start = f"the {items}"
    if last and "shared_items" in last[0]:
        start = f"{last[0]['shared_items']:,} of the {run.facts.splits['calibration']:,} {items} "
        start += f"also calibrated {last[0]['run']}, and"
    return f"{start} have already answered {count} ({'; '.join(asked)})"


def _by_capacity(run: Run, options: CertifyOptions) -> Guarantee:
    """A threshold by the scores alone; reviewers also get items that cannot be right or wrong."""
    assert options.capacity is not None
    score, truth, judged, others = _calibration(run, options)
    scores = pl.concat([judged["score"], others["score"]]).to_numpy()
    threshold = by_capacity(scores, scores < 0, defer=float(options.capacity)).threshold
    known = item_arrays(judged, judged_by(truth)[0])
    deferred = known["score"] > (-math.inf if threshold is None else threshold)
    found = by_capacity(
        *(known["score"], known["wrong"]),
        defer=int(deferred.sum()),
        confidence=options.confidence,
        against=truth,
        groups=known["groups"],
    )
    found = _with_others(replace(found, threshold=threshold if found.kept else None), others)
    return replace(found, group=run.facts.group, score=score)


def _with_others(found: Guarantee, others: pl.DataFrame) -> Guarantee:
    """The guarantee with the number of items that cannot be right or wrong."""
    kept = found.keeps(others["score"].to_numpy(), others["label"].to_list())
    return replace(found, left_out=len(kept), left_out_kept=int(kept.sum()))


def _by_class(found: Guarantee) -> str:
    named = found.class_thresholds
    return ", ".join(f"{shown(k)} {'none kept' if x is None else number(x)}" for k, x in named)


def _has_folds(run: Run) -> bool:
    return run.predictions.filter(split=OUT_OF_FOLD)["wrong"].count() > 0


def _too_few(found: Guarantee) -> CredalError:
    """The error to raise where the target cannot be certified: what it takes, what to do."""
    short = found.shortfall
    assert short is not None
    more = f"items of more groups ({found.group})" if found.group is not None else "more items"
    fixes = [f"annotate {more} and recalibrate" if short.items_needed else "train a better model"]
    if short.reachable_error:
        fixes.append("ask for more error than that with again=True, which tests at half the risk")
    return CredalError(
        f"{found.refusal()}; no guarantee was changed. {short} To fix: {', or '.join(fixes)}."
    )
