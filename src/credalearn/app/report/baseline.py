"""What keeps a certified error from being mistaken for a useful model. Imports no torch."""

from dataclasses import dataclass
from typing import Any

import polars as pl
from scipy.special import betainc

from credalearn._formats import enumerated, listed, many, percent
from credalearn.app.report.rule_check import item_arrays
from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee, certify
from credalearn.guarantees._truths import TRUTHS

_LEVEL = 0.05  # errors that are rarer by chance contradict a guarantee
_MOST_CLASSES = 6  # whose recall a line names


@dataclass(frozen=True, slots=True)
class Baseline:
    """The most frequent class as a rival, and what the kept items leave out."""

    name: str  # the most frequent class
    accuracy: float | None  # on the test items, judged as the guarantee is; None without any
    accuracy_kept: float | None  # and on the kept ones
    certified: bool  # whether answering it everywhere would have been certified, too
    # Of each class: its kept test items, those called so, their share, and if any kept item is.
    recalls: tuple[dict[str, Any], ...]
    truth: str  # what ``accuracy`` is compared with, in words
    recall_truth: str  # what is taken for the true class in ``recalls``, in words

    @property
    def recalls_by(self) -> str:
        """What the recalls are compared with, where the rest is compared with something else."""
        return "" if self.recall_truth == self.truth else f", compared with {self.recall_truth}"

    @property
    def cautions(self) -> list[str]:
        """Why the verdict is amber, not green; empty where it is green."""
        silent = [each for each in self.recalls if not each["predicted"]]
        cautions = []
        if silent:
            missed = sum(each["items"] for each in silent)
            names = listed([each["name"] for each in silent], 3)
            lost = f", missing {many(missed, 'kept test item')}" if missed else ""
            cautions.append(f"no kept item is called {names}{lost}")
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
        head = f"Recall among the kept test items{self.recalls_by}"
        lines = [f"{head}: {enumerated(shares)}."] if shares else []
        if self.cautions:
            lines.append(f"Caution: {'; and '.join(self.cautions)}.")
        return lines


def baseline(run: Run, guarantee: Guarantee) -> Baseline | None:
    """The baseline of a run with a threshold; None where no item has a truth."""
    every = run.held_out(score=guarantee.score)
    kept = guarantee.keeps(every["score"].to_numpy(), every["label"].to_list())
    every = every.with_columns(kept=kept)
    known = every.filter(pl.col("truth").is_not_null())
    learned = run.items.filter(pl.col("truth").is_not_null(), pl.col("split") != "test")["truth"]
    if known.is_empty() or learned.is_empty():
        return None
    times = learned.value_counts(sort=True)
    name = min(times.filter(pl.col("count") == times["count"].max())["truth"])
    judged = known.with_columns(wrong=pl.col("truth") != name)
    if guarantee.against == "a random annotator":  # tied items have annotators, too
        votes = pl.sum_horizontal("^n:.*$")
        judged = every.filter(votes > 0).with_columns(wrong=1 - pl.col(f"n:{name}") / votes)
    held = known.filter("kept", split="test")
    called = set(every.filter("kept")["label"])
    occurring = set(known["truth"]) if guarantee.kept else set()
    recalls = []
    for each in (name for name in run.classes if name in occurring):
        own = held.filter(truth=each)["label"]
        found = int((own == each).sum())
        recall = found / len(own) if len(own) else None
        counts = {"items": len(own), "found": found, "recall": recall}
        recalls.append({"name": each, **counts, "predicted": each in called})
    tested = judged.filter(split="test")
    errors = (each["wrong"].to_numpy() for each in (tested, tested.filter("kept")))
    accuracy, kept_accuracy = (1 - float(each.mean()) if len(each) else None for each in errors)
    passes = _would_pass(judged.filter(split="calibration"), name, guarantee)
    truths = TRUTHS[guarantee.against], TRUTHS[run.truth]
    return Baseline(name, accuracy, kept_accuracy, passes, tuple(recalls), *truths)


def above_promise(found: Guarantee, wrong: float, judged: int) -> tuple[str, bool]:
    """Whether chance explains more wrong test items than promised, in words, and if it does not."""
    limit = found.max_error
    if limit is None or not found.confidence or found.against == "a random annotator":
        return "", False  # there is no such promise, or its errors are shares
    if wrong <= limit * judged:
        return "", False
    chance = float(betainc(wrong, judged - wrong + 1, limit))  # of so many or more, binomial
    rare = "fewer than 0.1 %" if chance < 0.001 else percent(chance, digits=2)
    alone = "" if found.num_groups in (None, found.num_items) else "for independent items, "
    contradicted = chance < _LEVEL and not alone
    return (
        f"On the test items {percent(wrong / judged, digits=3)} are wrong, more than the promised "
        f"{percent(limit)}; {alone}chance alone gives that much in {rare} of cases"
        f"{', so they contradict the guarantee' if contradicted else ''}."
    ), contradicted


def _would_pass(calibration: pl.DataFrame, name: str, guarantee: Guarantee) -> bool:
    """Whether a model that always answers this class would have been certified on all items."""
    if calibration.is_empty() or guarantee.method == "capacity":
        return False
    answers = calibration.with_columns(score=pl.lit(0.0), label=pl.lit(name))
    try:
        return certify(
            **item_arrays(answers, "wrong"),
            max_error=guarantee.max_error,
            confidence=guarantee.confidence or 0.95,
            method=guarantee.method,
            promises=guarantee.promises,
        ).certified
    except CredalError:  # a promise about a class that is never called
        return False
