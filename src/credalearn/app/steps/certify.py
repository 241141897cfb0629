"""``certify``: choose which items to predict and which to defer, with a guarantee.

Imports torch only where sets are widened.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from credalearn._formats import many, percent
from credalearn._options import check_options, option
from credalearn.app.run import Run
from credalearn.conformal import Distance, Scale
from credalearn.errors import CredalError
from credalearn.guarantees import CertifyMethod, Guarantee, by_capacity
from credalearn.guarantees import certify as certify_scores
from credalearn.guarantees.truths import HAVING, LACKING, Truth

if TYPE_CHECKING:
    from credalearn.app.steps.set_coverage import WidenedSets

_MAX_ERROR = 0.10
_WIDENING = ("box", "relative-variance")  # the defaults of distance and scale


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifyOptions:
    """Options of ``certify``, in Python and on the command line."""

    max_error: float | None = option(
        None,
        "Largest error rate among predicted items.",
        above=0,
        below=1,
        show_default="0.10, unless another target is given",
    )
    capacity: float | None = option(
        None,
        "Share of items that reviewers can take, such as 0.25; no error is promised.",
        least=0,
        most=1,
    )
    confidence: float = option(0.95, "Confidence level of the guarantee.", above=0, below=1)
    method: CertifyMethod = option("sgr", "How the error is certified.")
    against: Literal["truth", "annotator"] = option(
        "truth", "Compare predictions with the run's truth, or with a random annotator."
    )
    one_per_group: bool = option(
        False, "Calibrate on one random item per group; groups are independent, their items not."
    )
    set_coverage: float | None = option(
        None,
        "Widen sets to contain the vote shares of this share of new items, such as 0.90.",
        above=0,
        below=1,
    )
    distance: Distance = option("box", "Widen sets by class (box), or in total variation.")
    scale: Scale = option("relative-variance", "Unit in which the sets of an item are widened.")

    def __post_init__(self) -> None:
        check_options(self)
        if self.max_error is not None and self.capacity is not None:
            raise CredalError(
                "max_error and capacity exclude each other: each sets the threshold. To fix: pass "
                "one of them."
            )
        if self.capacity is not None and self.method != "sgr":
            raise CredalError("a capacity certifies no error, so it has no method.")
        if self.set_coverage is None and (self.distance, self.scale) != _WIDENING:
            raise CredalError(
                "distance and scale say how sets are widened. To fix: pass set_coverage=0.90 too."
            )
        if self.one_per_group and self.target is None:
            raise CredalError("one_per_group needs max_error. To fix: pass max_error=0.10.")

    @property
    def target(self) -> float | None:
        """The error rate to certify; None where a capacity or only sets are asked for."""
        if self.max_error is None and self.capacity is None and self.set_coverage is None:
            return _MAX_ERROR
        return self.max_error


@dataclass(frozen=True, slots=True)
class HeldOutCheck:
    """What a guarantee's rule does on the test items, which had no part in it."""

    items: int  # number of test items
    kept: int  # how many of them are predicted
    judged: int  # how many test items can be right or wrong
    judged_kept: int  # how many of those are predicted
    errors: float  # how many of these are wrong, or the sum of the shares that disagree

    def sentence(self, guarantee: Guarantee) -> str:
        """What the test items show, in one sentence."""
        each = " (one per group)" if guarantee.one_per_group else ""
        share = percent(self.kept / self.items) if self.kept else "none"
        told = f"It predicts {share} of {many(self.items, 'test item')}{each}"
        if not self.judged_kept:
            return f"{told}."
        having = f" with {HAVING[guarantee.against]}" if self.judged < self.items else ""
        error = percent(self.errors / self.judged_kept)
        return f"{told}; {error} of the predicted ones{having} are wrong."


@dataclass(frozen=True, slots=True)
class Certificate:
    """What ``certify`` found and wrote."""

    run: Run  # the run with its new guarantee or sets
    guarantee: Guarantee | None = None  # None if not asked for
    check: HeldOutCheck | None = None  # how it does on the test items; None without a guarantee
    sets: "WidenedSets | None" = None  # by how much sets are widened; None if not asked for

    @property
    def lines(self) -> list[str]:
        """What to tell the user, in at most eight lines."""
        told, found = [], self.guarantee
        if found is not None and self.check is not None:
            if found.threshold is not None:
                told.append(
                    f"Keep {percent(found.coverage)} and defer {percent(1 - found.coverage)} of "
                    f"{many(found.num_items + found.left_out, 'calibration item')} (those with a "
                    f"score above {found.threshold:.4g})"
                )
            told.append(found.sentence())
            if found.certified and (found.num_groups or found.num_items) < found.num_items:
                told.append(
                    "To avoid assuming that items are independent, certify with --one-per-group."
                )
            told.append(self.check.sentence(found))
        if self.sets is not None:
            told += self.sets.lines
        path, without = self.run.path, " --no-decision" if self.run.guarantee is None else ""
        next_step = f"credalearn predict {path} DATA -o decisions.csv{without}"
        return [*told, f"Next: {next_step}; credalearn report {path}"]


def certify(run: Run, options: CertifyOptions) -> Certificate:
    """Choose a threshold on the run's calibration items, or widen its sets, and store the result.

    Items are deferred by 1 − lower probability of the predicted class. ``guarantee.json`` and
    ``sets.json`` are each written whole, after all that was asked for has succeeded.
    """
    sets = check = guarantee = None
    if options.set_coverage is not None:
        from credalearn.app.steps.set_coverage import certify_sets

        sets = certify_sets(
            run, options.set_coverage, distance=options.distance, scale=options.scale
        )
    if options.target is not None or options.capacity is not None:
        guarantee, check = _certify_scores(run, options)
        run = run.with_guarantee(guarantee)
    if sets is not None:
        run = run.with_sets(sets.inflation)
    return Certificate(run, guarantee, check, sets)


def judged_by(truth: Truth) -> tuple[str, pl.Expr]:
    """The column of a run's predictions that says how wrong each is, and where it is known."""
    column = "disagreement" if truth == "a random annotator" else "wrong"
    return column, pl.col(column).cast(pl.Float64).is_finite().fill_null(False)


def one_of_each(table: pl.DataFrame, truth: Truth) -> pl.DataFrame:
    """One row of each group, drawn at random but always the same: another draw is another look.

    A group is useful if any of its rows can be right or wrong, so the draw is from those if any.
    """
    order = np.random.default_rng(0).permutation(len(table))
    known_first = table[order].sort(judged_by(truth)[1], descending=True, maintain_order=True)
    return known_first.unique("group", keep="first", maintain_order=True)


def _certify_scores(run: Run, options: CertifyOptions) -> tuple[Guarantee, HeldOutCheck]:
    truth: Truth = run.truth if options.against == "truth" else "a random annotator"
    column, known = judged_by(truth)
    every, tested = map(run.held_out, ("calibration", "test"))
    if options.one_per_group:
        if run.group is None:
            raise CredalError(
                f"one_per_group: the items of {run.path} have no groups. To fix: train with "
                "--group COLUMN, or leave it out."
            )
        every, tested = (one_of_each(table, truth) for table in (every, tested))
    calibration, judged = every.filter(known), tested.filter(known)
    if not len(calibration):
        remedy = "annotator" if options.against == "truth" else "truth"
        raise CredalError(
            f"no calibration item of {run.path} can be right or wrong: {LACKING[truth]}. To fix: "
            f"train with --gold COLUMN, or certify with --against {remedy}."
        )
    found = replace(
        _threshold(every, calibration, column, truth, options),
        left_out=len(every) - len(calibration),
        group=run.group,
        one_per_group=options.one_per_group,
    )
    left_out_kept = found.keeps(every.filter(~known)["score"].to_numpy()).sum()
    found = replace(found, left_out_kept=int(left_out_kept))
    if found.shortfall is not None:
        raise _too_few(found)
    kept = found.keeps(judged["score"].to_numpy())
    return found, HeldOutCheck(
        items=len(tested),
        kept=int(found.keeps(tested["score"].to_numpy()).sum()),
        judged=len(judged),
        judged_kept=int(kept.sum()),
        errors=float(judged[column].to_numpy()[kept].sum()),
    )


def _threshold(
    every: pl.DataFrame,
    calibration: pl.DataFrame,
    column: str,
    truth: Truth,
    options: CertifyOptions,
) -> Guarantee:
    """The guarantee by the items that can be right or wrong, for a target or a capacity."""
    score, wrong = calibration["score"].to_numpy(), calibration[column].to_numpy()
    groups = calibration["group"].to_list() if calibration["group"].count() else None
    sure = options.confidence
    if options.target is not None:
        return certify_scores(
            score,
            wrong,
            max_error=options.target,
            confidence=sure,
            method=options.method,
            against=truth,
            groups=groups,
        )
    assert options.capacity is not None
    # Reviewers also get the items that can be neither right nor wrong.
    scores = every["score"].to_numpy()
    nothing_wrong = np.zeros(len(scores), bool)
    threshold = by_capacity(scores, nothing_wrong, defer=float(options.capacity)).threshold
    deferred = len(score) if threshold is None else int((score > threshold).sum())
    found = by_capacity(score, wrong, defer=deferred, confidence=sure, against=truth, groups=groups)
    return replace(found, threshold=threshold if found.kept else None)


def _too_few(found: Guarantee) -> CredalError:
    """The error to raise where the target cannot be certified: what it takes, what to do."""
    assert found.shortfall is not None
    sure = f" with {percent(found.confidence)} confidence" if found.confidence else ""
    more = f"items of more groups ({found.group})" if found.group is not None else "more items"
    fixes = [f"annotate {more} and recalibrate"] if found.shortfall.items_needed else []
    fixes += ["raise max_error"] if found.shortfall.reachable_error else []
    return CredalError(
        f"an error of at most {percent(found.max_error)}{sure} cannot be certified with "
        f"{many(found.num_items, 'calibration item')}; nothing was changed. {found.shortfall} "
        f"To fix: {', or '.join(fixes) or 'train a better model'}."
    )
