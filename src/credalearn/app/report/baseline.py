"""What keeps a certified error from being mistaken for a useful model. Imports no torch."""

from dataclasses import dataclass
from typing import Any, cast

import polars as pl
from scipy.special import betainc

from credalearn._formats import enumerated, listed, many, percent
from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees import CertifyMethod, Guarantee, certify
from credalearn.guarantees._truths import TRUTHS

_MOST_CLASSES = 6  # whose recall a line names


@dataclass(frozen=True, slots=True)
class Baseline:
    """The most frequent class as a rival, and what the kept items leave out."""

    name: str  # the most frequent class
    accuracy: float | None  # on the test items, judged as the guarantee is; None without any
    accuracy_kept: float | None  # and on the kept ones
    certified: bool  # whether answering it everywhere would have been certified, too
    # Of each class: its kept test items, those called so, their share, and if any item is.
    recalls: tuple[dict[str, Any], ...]
    truth: str  # what is taken for the true class, in words

    @property
    def cautions(self) -> list[str]:
        """Why the verdict is amber, not green; empty where it is green."""
        silent = [each for each in self.recalls if not each["predicted"]]
        cautions = []
        if silent:
            missed = sum(each["items"] for each in silent)
            names = listed([each["name"] for each in silent], 3)
            cautions.append(
                f"never predicted: {names}"
                + (f", missing {many(missed, 'kept test item')}" if missed else "")
            )
        if self.certified:
            cautions.append(
                f"always answering {self.name!r} would have been certified too, without deferring"
            )
        return cautions

    @property
    def lines(self) -> list[str]:
        """The recalls in one line; then why the verdict is amber, if it is."""
        shares = [
            f"{each['name']} {percent(each['recall'])} of {each['items']:,}"
            for each in self.recalls[:_MOST_CLASSES]
        ]
        lines = [f"Recall among the kept test items: {enumerated(shares)}."] if shares else []
        if self.cautions:
            lines.append(f"Caution: {'; and '.join(self.cautions)}.")
        return lines


def baseline(run: Run, guarantee: Guarantee) -> Baseline | None:
    """The baseline of a run with a certified threshold; None where no item has a truth."""
    known = run.held_out(score=guarantee.score).filter(pl.col("truth").is_not_null())
    learned = run.items.filter(pl.col("truth").is_not_null(), pl.col("split") != "test")["truth"]
    if known.is_empty() or learned.is_empty():
        return None
    times = learned.value_counts(sort=True)
    name = min(times.filter(pl.col("count") == times["count"].max())["truth"])
    kept = guarantee.keeps(known["score"].to_numpy(), known["label"].to_list())
    wrong, votes = pl.col("truth") != name, pl.sum_horizontal("^n:.*$")
    known = known.with_columns(kept=kept)
    if guarantee.against == "a random annotator":
        known, wrong = known.filter(votes > 0), 1 - pl.col(f"n:{name}") / votes
    known = known.with_columns(wrong=wrong)
    calibration, test = (known.filter(split=each) for each in ("calibration", "test"))
    held = test.filter("kept")
    called = set(known.filter("kept")["label"])
    occurring = set(known["truth"])
    recalls = []
    for each in (name for name in run.classes if name in occurring):
        own = held.filter(truth=each)["label"]
        found = int((own == each).sum())
        recall = found / len(own) if len(own) else None
        counts = {"items": len(own), "found": found, "recall": recall}
        recalls.append({"name": each, **counts, "predicted": each in called})
    judged = (each["wrong"].to_numpy() for each in (test, held))
    accuracy, kept_accuracy = (1 - float(each.mean()) if len(each) else None for each in judged)
    passes = _would_pass(calibration, name, guarantee)
    return Baseline(name, accuracy, kept_accuracy, passes, tuple(recalls), TRUTHS[run.truth])


def above_promise(found: Guarantee, wrong: float, judged: int) -> str:
    """Whether chance explains more wrong test items than promised; empty if there are not more."""
    limit = found.max_error
    if limit is None or not found.confidence or found.against == "a random annotator":
        return ""  # there is no such promise, or its errors are shares
    if wrong <= limit * judged:
        return ""
    chance = float(betainc(wrong, judged - wrong + 1, limit))  # of so many or more, binomial
    rare = "fewer than 0.1 %" if chance < 0.001 else percent(chance, digits=2)
    alone = "" if found.num_groups in (None, found.num_items) else "for independent items, "
    return (
        f"On the test items {percent(wrong / judged)} are wrong, more than the promised "
        f"{percent(limit)}; {alone}chance alone gives that much in {rare} of cases."
    )


def _would_pass(calibration: pl.DataFrame, name: str, guarantee: Guarantee) -> bool:
    """Whether a model that always answers this class would have been certified on all items."""
    if calibration.is_empty():
        return False
    try:
        return certify(
            [0.0] * len(calibration),
            calibration["wrong"].to_numpy(),
            max_error=guarantee.max_error,
            confidence=guarantee.confidence or 0.95,
            method=cast(CertifyMethod, guarantee.method),
            groups=calibration["group"].to_list() if calibration["group"].count() else None,
            predicted=[name] * len(calibration),
            truth=calibration["truth"].to_list(),
            promises=guarantee.promises,
        ).certified
    except CredalError:  # a promise about a class that is never called
        return False
