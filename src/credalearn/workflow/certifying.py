"""``credalearn certify``: a run's calibration items into a predict-or-defer rule."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from credalearn.decide import DecisionRule, by_capacity, certify
from credalearn.decide.rule import CertifyMethod, Truth
from credalearn.decide.shortfall import percent
from credalearn.errors import CredalError
from credalearn.files import whole_file
from credalearn.workflow.folder import RunFolder

Against = Literal["truth", "annotator"]

_LACKING: dict[Truth, str] = {
    "majority": "their votes tie, so they have no truth",
    "gold": "they have no gold label",
    "a random annotator": "nobody voted on them",
}


@dataclass(frozen=True, slots=True)
class Certificate:
    r"""The rule, and how it does on the test items, which had no part in it.

    Args:
        rule: By which items are predicted or deferred.
        test_items: How many test items have a truth to be wrong against.
        test_kept: How many of them the rule predicts.
        test_errors: How many of those are wrong, or the sum of the shares that disagree.
        left_out: Calibration items without such a truth.
        why_left_out: What they lack.

    Example:
        >>> from credalearn import certify
        >>> rule = certify([0.1] * 300, [False] * 300, max_error=0.1)
        >>> print("\n".join(Certificate(rule, 100, 80, 4.0, 0, "").lines))
        keep 100 % and defer 0 % of the items (score above 0.1)
        With 95 % confidence, at most 10 % of the items it predicts are wrong against the majority
        of the annotators, for items drawn like the 300 calibration items.
        On 100 test items with a truth it predicts 80 % with an error of 5 %.
    """

    rule: DecisionRule
    test_items: int
    test_kept: int
    test_errors: float
    left_out: int
    why_left_out: str

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        told = []
        if self.left_out:
            told.append(f"left out: {self.left_out:,} calibration items, {self.why_left_out}")
        rule = self.rule
        if rule.threshold is not None:
            told.append(
                f"keep {percent(rule.coverage)} and defer {percent(1 - rule.coverage)} of the "
                f"items (score above {rule.threshold:.4g})"
            )
        return (*told, rule.statement, self.test_line)

    @property
    def test_line(self) -> str:
        """What the rule does on the test items, in a sentence."""
        if not self.test_kept:
            return f"On {self.test_items:,} test items with a truth it predicts none."
        share, error = self.test_kept / self.test_items, self.test_errors / self.test_kept
        return (
            f"On {self.test_items:,} test items with a truth it predicts {percent(share)} with an "
            f"error of {percent(error)}."
        )


def certify_run(
    run: RunFolder,
    *,
    max_error: float | None = None,
    capacity: float | None = None,
    confidence: float = 0.95,
    method: CertifyMethod = "sgr",
    against: Against = "truth",
) -> Certificate:
    """Choose the threshold on a run's calibration items and keep the rule in ``rule.json``.

    Items are deferred by 1 − lower probability of the predicted class.

    Args:
        run: A finished run.
        max_error: Largest error of what is predicted; or give ``capacity``.
        capacity: Share of the items, in [0, 1], that reviewers can take.
        confidence: Of the promise.
        method: How; see :func:`credalearn.certify`.
        against: The run's truth (majority or gold labels), or a random annotator: then an error is
            the share of an item's votes that disagree.

    Raises:
        CredalError: If neither or both of max_error and capacity are given, an option is out of
            range, or there is nothing to calibrate on.
    """
    if (max_error is None) == (capacity is None):
        raise CredalError(
            "give one of --max-error and --capacity: what is wanted of the rule. To fix: "
            "--max-error 0.10 for an error of at most 10 %; or neither, and --set-coverage 0.90 "
            "for the predicted sets alone."
        )
    truth: Truth = run.facts["truth"] if against == "truth" else "a random annotator"
    column = "wrong" if against == "truth" else "disagreement"
    table = run.predictions
    usable = table.filter(pl.col(column).cast(pl.Float64).is_finite().fill_null(False))
    calibration, test = (usable.filter(split=name) for name in ("calibration", "test"))
    if not len(calibration):
        remedy = "give --against annotator" if against == "truth" else "leave --against out"
        raise CredalError(
            f"no calibration item of {run.path} can be right or wrong: {_LACKING[truth]}. To fix: "
            f"train with --gold COLUMN, or {remedy}."
        )
    score, wrong = calibration["score"].to_numpy(), calibration[column].to_numpy()
    if capacity is not None:
        _check_share(capacity)
        # Reviewers get the items without a truth too, so these count in what they can take.
        every = table.filter(split="calibration")["score"].to_numpy()
        threshold = by_capacity(every, np.zeros(len(every), bool), defer=float(capacity)).threshold
        deferred = len(score) if threshold is None else int((score > threshold).sum())
        rule = by_capacity(score, wrong, defer=deferred, confidence=confidence, against=truth)
        if rule.threshold is not None:
            rule = replace(rule, threshold=threshold)
    else:
        assert max_error is not None
        rule = certify(
            score, wrong, max_error=max_error, confidence=confidence, method=method, against=truth
        )
    if rule.certified or rule.method == "capacity" or not _has_threshold(run):
        # What cannot be certified does not take the place of a rule that holds.
        keep(run, "rule.json", rule.to_json())
    kept = rule.keeps(test["score"].to_numpy())
    return Certificate(
        rule,
        test_items=len(test),
        test_kept=int(kept.sum()),
        test_errors=float(test[column].to_numpy()[kept].sum()),
        left_out=len(table.filter(split="calibration")) - len(calibration),
        why_left_out=_LACKING[truth],
    )


def _has_threshold(run: RunFolder) -> bool:
    """Whether a rule that predicts something is there already."""
    return run.rule is not None and run.rule.get("threshold") is not None


def _check_share(capacity: float) -> None:
    if not 0 <= capacity <= 1:
        fix = f"write {capacity:g} % as {capacity / 100:g}" if 1 < capacity <= 100 else "give 0.25"
        raise CredalError(
            f"--capacity is a share of the items, in [0, 1]; got {capacity:g}. To fix: {fix}."
        )


def keep(run: RunFolder, name: str, text: str) -> None:
    """Write what was certified into the run's folder, whole or not at all.

    Raises:
        CredalError: If it cannot be written.
    """
    path = run.path / name
    try:
        with whole_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CredalError(
            f"{path} cannot be written: {error.strerror or error}. To fix: free some space, or "
            "copy the run to a folder of your own."
        ) from error
