"""``credalearn certify``: a run's calibration items into a predict-or-defer rule."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from credalearn._formats import percent
from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees import CertifyMethod, Guarantee, by_capacity, certify
from credalearn.guarantees.truths import HAVING, LACKING, Truth

Against = Literal["truth", "annotator"]


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""The rule, and how it does on the test items, which had no part in it.

    Args:
        rule: By which items are predicted or deferred.
        test_items: How many test items there are.
        test_kept: How many of them the rule predicts.
        judged: How many test items have a truth to be wrong against.
        judged_kept: How many of them the rule predicts.
        errors: How many of those are wrong, or the sum of the shares that disagree.

    Example:
        >>> from credalearn import certify
        >>> rule = certify([0.1] * 300, [False] * 300, max_error=0.1)
        >>> print("\n".join(Certificate(rule, 100, 80, 90, 75, 3.0).lines))
        keep 100 % and defer 0 % of the 300 calibration items (score above 0.1)
        With 95 % confidence, at most 10 % of the predicted items are wrong compared with the class
        with the most votes, for new items drawn like the 300 calibration items.
        On 100 test items it predicts 80 %; on the 90 with a single most-voted class 83.3 %, with an
        error of 4 %.
    """

    rule: Guarantee
    test_items: int
    test_kept: int
    judged: int
    judged_kept: int
    errors: float

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        told, rule = [], self.rule
        if rule.left_out:
            told.append(f"left out: {rule.left_out:,} calibration items, {LACKING[rule.against]}")
        if rule.threshold is not None:
            of_judged = f"; of the {rule.num_items:,} with {HAVING[rule.against]} it keeps "
            of_judged += percent(rule.kept / rule.num_items)
            told.append(
                f"keep {percent(rule.coverage)} and defer {percent(1 - rule.coverage)} of the "
                f"{rule.num_items + rule.left_out:,} calibration items (score above "
                f"{rule.threshold:.4g}){of_judged if rule.left_out else ''}"
            )
        told.append(rule.sentence())
        if rule.certified and rule.num_groups is not None and rule.num_groups < rule.num_items:
            told.append("for a promise that does not take them so: certify with --one-a-group")
        return (*told, self.test_line)

    @property
    def test_line(self) -> str:
        """What the rule does on the test items, in a sentence."""
        each = ", one of each group," if self.rule.one_per_group else ""
        if not self.test_kept:
            return f"On {self.test_items:,} test items{each} it predicts none."
        start = f"On {self.test_items:,} test items{each} it predicts "
        start += percent(self.test_kept / self.test_items)
        if not self.judged_kept:
            return f"{start}, none of them with {HAVING[self.rule.against]}."
        if self.judged < self.test_items:
            start += f"; on the {self.judged:,} with {HAVING[self.rule.against]} "
            start += percent(self.judged_kept / self.judged)
        return f"{start}, with an error of {percent(self.errors / self.judged_kept)}."


def certify_run(
    run: Run,
    *,
    max_error: float | None = None,
    capacity: float | None = None,
    confidence: float = 0.95,
    method: CertifyMethod | None = None,
    against: Against = "truth",
    one_a_group: bool = False,
) -> Certificate:
    """Choose the threshold on a run's calibration items and keep the rule in ``guarantee.json``.

    Items are deferred by 1 − lower probability of the predicted class.

    Args:
        run: A finished run.
        max_error: Largest error of what is predicted; or give ``capacity``.
        capacity: Share of the items, in [0, 1], that reviewers can take.
        confidence: Of the promise.
        method: How an error is certified, "sgr" unless given; see :func:`credalearn.certify`.
        against: The run's truth (the class with most votes, or gold labels), or a random annotator:
            then an error is the share of an item's votes that disagree.
        one_a_group: Calibrate on one item of each of the run's groups, drawn at random from those
            of it that can be right or wrong: groups are independent, the items of one are not. The
            promise is then about such items.

    Raises:
        CredalError: If neither or both of max_error and capacity are given, an option is out of
            range, the run has no groups to draw from, there is nothing to calibrate on, or the
            error cannot be certified: then the message says what it would take, and an older rule
            stays.
    """
    _check_wanted(max_error, capacity, method, one_a_group)
    truth: Truth = run.truth if against == "truth" else "a random annotator"
    column, known = judged_by(truth)
    every, tested = (run.predictions.filter(split=name) for name in ("calibration", "test"))
    group = run.group
    if group is not None:
        every = _with_group(run, every)
    if one_a_group:
        if group is None:
            raise CredalError(
                f"--one-a-group: the items of {run.path} are of no groups. To fix: train with "
                "--group COLUMN, or leave it out."
            )
        every, tested = draw_one_a_group(every, known), one_of_each(run, tested, truth)
    calibration, judged = every.filter(known), tested.filter(known)
    if not len(calibration):
        remedy = "give --against annotator" if against == "truth" else "leave --against out"
        raise CredalError(
            f"no calibration item of {run.path} can be right or wrong: {LACKING[truth]}. To fix: "
            f"train with --gold COLUMN, or {remedy}."
        )
    score, wrong = calibration["score"].to_numpy(), calibration[column].to_numpy()
    if capacity is not None:
        scores = every["score"].to_numpy()
        rule = _for_capacity(
            scores, score, wrong, capacity=capacity, confidence=confidence, against=truth
        )
    else:
        assert max_error is not None
        how = method or "sgr"
        rule = certify(
            score, wrong, max_error=max_error, confidence=confidence, method=how, against=truth
        )
    rule = replace(
        rule,
        left_out=len(every) - len(calibration),
        left_out_kept=int(rule.keeps(every.filter(~known)["score"].to_numpy()).sum()),
        group=group,
        num_groups=None if group is None else calibration["group"].n_unique(),
        one_per_group=one_a_group,
    )
    if rule.shortfall is not None:
        raise _short(run, rule)
    run.with_guarantee(rule)
    kept = rule.keeps(judged["score"].to_numpy())
    return Certificate(
        rule,
        test_items=len(tested),
        test_kept=int(rule.keeps(tested["score"].to_numpy()).sum()),
        judged=len(judged),
        judged_kept=int(kept.sum()),
        errors=float(judged[column].to_numpy()[kept].sum()),
    )


def judged_by(truth: Truth) -> tuple[str, pl.Expr]:
    """The column of a run's predictions that says how wrong each is, and whether it says so.

    Example:
        >>> judged_by("a random annotator")[0]
        'disagreement'
    """
    column = "disagreement" if truth == "a random annotator" else "wrong"
    return column, pl.col(column).cast(pl.Float64).is_finite().fill_null(False)


def one_of_each(run: Run, table: pl.DataFrame, truth: Truth) -> pl.DataFrame:
    """Of these predictions of a run one of each group, as the calibration items are drawn."""
    return draw_one_a_group(_with_group(run, table), judged_by(truth)[1])


def _with_group(run: Run, table: pl.DataFrame) -> pl.DataFrame:
    groups = run.items.select("item", "split", "group")  # trained items may have the same names
    return table.join(groups, on=["item", "split"], how="left", maintain_order="left")


def draw_one_a_group(table: pl.DataFrame, known: pl.Expr) -> pl.DataFrame:
    """One row of each ``group``, drawn at random, always the same: other draws are other looks.

    A group is of use if any of its rows is ``known``, so the draw is from those where it has some.

    Example:
        >>> table = pl.DataFrame({"group": ["a", "a", "b"], "wrong": [None, True, None]})
        >>> draw_one_a_group(table, pl.col("wrong").is_not_null()).sort("group").rows()
        [('a', True), ('b', None)]
    """
    order = np.random.default_rng(0).permutation(len(table))
    known_first = table[order].sort(known, descending=True, maintain_order=True)
    return known_first.unique("group", keep="first", maintain_order=True)


def _check_wanted(
    max_error: float | None,
    capacity: float | None,
    method: CertifyMethod | None,
    one_a_group: bool,
) -> None:
    if max_error is None and capacity is None and one_a_group:
        raise CredalError(
            "--one-a-group is about --max-error; --set-coverage takes all calibration items. To "
            "fix: leave it out, or add --max-error 0.10."
        )
    if (max_error is None) == (capacity is None):
        raise CredalError(
            "give one of --max-error and --capacity: what is wanted of the rule. To fix: "
            "--max-error 0.10 for an error of at most 10 %; or neither, and --set-coverage 0.90 "
            "for the predicted sets alone."
        )
    if capacity is not None and method is not None:
        raise CredalError(
            f"--capacity certifies nothing, so it has no --method {method}. To fix: leave one of "
            "them out."
        )
    if capacity is not None and one_a_group:
        raise CredalError(
            "--capacity is a share of all items, and --one-a-group takes one of each group. To "
            "fix: leave one of them out."
        )
    if capacity is not None and not 0 <= capacity <= 1:
        fix = f"write {capacity:g} % as {capacity / 100:g}" if 1 < capacity <= 100 else "give 0.25"
        if 1 < capacity < float("inf"):
            fix += f"; or, for {int(capacity):,} items of a file, credalearn predict … --defer "
            fix += f"{int(capacity)}"
        raise CredalError(
            f"--capacity is a share of the items, in [0, 1]; got {capacity:g}. To fix: {fix}."
        )


def _for_capacity(
    scores: np.ndarray,
    score: np.ndarray,
    wrong: np.ndarray,
    *,
    capacity: float,
    confidence: float,
    against: Truth,
) -> Guarantee:
    """The rule for this share of all ``scores``: reviewers get the items without a truth too."""
    none = np.zeros(len(scores), bool)
    threshold = by_capacity(scores, none, defer=float(capacity)).threshold
    deferred = len(score) if threshold is None else int((score > threshold).sum())
    rule = by_capacity(score, wrong, defer=deferred, confidence=confidence, against=against)
    return replace(rule, threshold=threshold if rule.kept else None)


def _short(run: Run, rule: Guarantee) -> CredalError:
    """That the error cannot be certified, and what can be done about it."""
    short = rule.shortfall
    assert short is not None
    assert rule.max_error is not None
    sure = f" with {percent(rule.confidence)} confidence" if rule.confidence else ""
    left_out = (
        f" {rule.left_out:,} calibration items were left out: {LACKING[rule.against]}."
        if rule.left_out
        else ""
    )
    stays = " The rule that was there stays." if (run.path / "guarantee.json").exists() else ""
    what = f"items of more groups ({rule.group!r})" if rule.group is not None else "more items"
    fixes = [f"have {what} annotated and recalibrate"] if short.items_needed else []
    fixes += ["give a larger --max-error"] if short.reachable_error else []
    fix = ", or ".join(fixes) or "train a better model"
    return CredalError(
        f"an error of at most {percent(rule.max_error)}{sure} cannot be certified, and nothing was "
        f"written. {short}{left_out}{stays} To fix: {fix}."
    )
