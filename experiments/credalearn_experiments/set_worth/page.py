"""Tables and the figure of what a set is worth, from the stored scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.stats import t as student

from credalearn._formats import percent
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import Difference
from credalearn_experiments.results.seeds import runs_of, seeds
from credalearn_experiments.results.style import COLORS, GRAY, save_figure
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.set_worth import STUDIES
from credalearn_experiments.set_worth.few_votes import CALIBRATIONS, SHAPES
from credalearn_experiments.set_worth.networks import (
    LINEAR,
    MIXED,
    MIXED_DATA,
    SMOOTHED,
    SMOOTHINGS,
)
from credalearn_experiments.set_worth.scores import METRICS
from credalearn_experiments.set_worth.statements import CELLS, PAIRS, STATED
from credalearn_experiments.set_worth.widths import BOUNDS, WIDTH_CELLS, WIDTH_LEARNERS

_MIXED_PAIRS = (
    *(f"POCC with center head{mix} less softmax{mix}" for mix in ("", ", mixup", ", CutMix")),
    "softmax, CutMix less softmax",
    f"POCC with center head, CutMix less {LINEAR}",
)


def _values(scores: pl.DataFrame, data: str | None, learner: str, metric: str) -> np.ndarray:
    """One value per seed; the mean over all data if none is named."""
    own = scores.filter(pl.col("learner") == learner, pl.col("metric") == metric)
    own = own if data is None else own.filter(pl.col("data") == data)
    return own.group_by("seed").agg(pl.col("value").mean()).sort("seed")["value"].to_numpy()


def _spread(values: np.ndarray) -> Value:
    """Mean and standard deviation."""
    return (float(values.mean()), float(values.std())) if len(values) else None


def difference(scores: pl.DataFrame, data: str | None, pair: str, metric: str) -> Value:
    """Of "one less another", paired by seed and data: its mean ± 95 % (Student's t over seeds)."""
    one, other = (
        scores.filter(
            pl.col("learner") == name,
            pl.col("metric") == metric,
            pl.lit(True) if data is None else pl.col("data") == data,
        )
        for name in pair.split(" less ")
    )
    both = one.join(other, on=["data", "seed"]).with_columns(
        gap=pl.col("value") - pl.col("value_right")
    )
    gaps = both.group_by("seed").agg(pl.col("gap").mean())["gap"].to_numpy()
    if len(gaps) < 2:
        return None
    error = gaps.std(ddof=1) / len(gaps) ** 0.5
    return float(gaps.mean()), float(student.ppf(0.975, len(gaps) - 1) * error)


_SMOOTHED_PAIRS = ("POCC less softmax", "POCC with center head less softmax", f"{LINEAR} less POCC")
_IMAGES = {
    "votes, five warm-up epochs": "cifar10h-warm",
    "teacher, T = 1": "cifar10-teacher-resnet20-1",
    "teacher, T = 2.5": "cifar10-teacher-resnet20-2.5",
    "smoothing 0.05": "cifar10-smooth-0.05",
    "smoothing 0.1": "cifar10-smooth-0.1",
    "smoothing 0.2": "cifar10-smooth-0.2",
}


def images_table(records: Sequence[Record]) -> Table:
    """POCC less softmax on images, from the records of the reproduction."""
    columns = {
        "accuracy": Column("accuracy", marked=False),
        "auarc_top_probability": Column("AUARC", marked=False),
        "ece": Column("ECE", marked=False),
        "ece_tempered": Column("ECE, tempered", marked=False),
    }
    rows: dict[str, dict[str, Value]] = {}
    for kind, setting in _IMAGES.items():
        runs = runs_of(records, setting)
        for name in ("pocc", "pocc-center"):
            gaps = {
                column.name: Difference.paired(runs.get(name, {}), runs["softmax"], metric)
                for metric, column in columns.items()
            }
            known = {column: gap.value for column, gap in gaps.items() if gap is not None}
            if known:
                count = len(runs[name].keys() & runs["softmax"].keys())
                rows[f"{kind}, {name} ({seeds(count)})"] = known
    title = "On images, under one recipe: POCC less softmax, ± the standard error"
    return Table(title, list(columns.values()), rows, corner="labels, method")


def set_worth_page(scores: pl.DataFrame, records: Sequence[Record] = ()) -> Iterator[Table | str]:
    """One table per question, and paired differences to the precise rivals."""
    if records:
        yield images_table(records)
    said, mixed, smooth, wide, few = (scores.filter(pl.col("study") == name) for name in STUDIES)

    def table(
        title: str, columns: Sequence[Column], names: Iterable[str], value: Callable[..., Value]
    ) -> Table:
        rows = {name: {c.name: value(name, c.name) for c in columns} for name in names}
        return Table(title, columns, rows, corner="learner")

    def lower(names: Iterable[str]) -> list[Column]:
        return [Column(name, better="lower", percent=False, digits=3) for name in names]

    def unmarked(columns: Iterable[Column]) -> list[Column]:
        return [replace(each, marked=False) for each in columns]

    for name, found, learners, pairs in (
        ("Statements: mean over nine cells", said, tuple(STATED), PAIRS),
        ("Mixed items: mean over three data sets", mixed, tuple(MIXED), _MIXED_PAIRS),
    ):
        yield table(
            *(name, METRICS, learners),
            lambda name, metric, found=found: _spread(_values(found, None, name, metric)),
        )
        yield table(
            *(name.replace(": ", ": paired differences, "), unmarked(METRICS), pairs),
            lambda pair, metric, found=found: difference(found, None, pair, metric),
        )
    yield table(
        *("Statements: accuracy", [Column(cell) for cell in CELLS], STATED),
        lambda name, cell: _spread(_values(said, cell, name, "accuracy")),
    )
    data = [Column(cell) for cell in MIXED_DATA]
    for metric in ("accuracy", "AUARC"):
        yield table(
            *(f"Mixed items: {metric}", data, tuple(MIXED)),
            lambda name, cell, metric=metric: _spread(_values(mixed, cell, name, metric)),
        )
        yield table(
            *(f"Mixed items: paired differences in {metric}", unmarked(data), _MIXED_PAIRS),
            lambda pair, cell, metric=metric: difference(mixed, cell, pair, metric),
        )
    yield table(
        *("Smoothed labels: AUARC", [Column(cell, digits=2) for cell in SMOOTHINGS], SMOOTHED),
        lambda name, cell: _spread(_values(smooth, cell, name, "AUARC")),
    )
    both = [Column(cell, digits=2, marked=False) for cell in SMOOTHINGS]
    yield table(
        *("Smoothed labels: paired differences in AUARC", both, _SMOOTHED_PAIRS),
        lambda pair, cell: difference(smooth, cell, pair, "AUARC"),
    )
    yield table(
        *("Mean width of sets that cover 90 % of votes", lower(WIDTH_CELLS), WIDTH_LEARNERS),
        lambda name, cell: _spread(_values(wide, cell, name, "width")),
    )
    rivals, cells = WIDTH_LEARNERS[1:], unmarked(lower(WIDTH_CELLS))
    yield table(
        *("Width of learned bounds less that of each rival", cells, rivals),
        lambda name, cell: difference(wide, cell, f"{BOUNDS} less {name}", "width"),
    )
    yield table(
        *("Few votes: mean width", lower(CALIBRATIONS), SHAPES),
        lambda name, cell: _spread(_values(few, cell, name, "width")),
    )
    parts = [Column(cell, marked=False) for cell in CALIBRATIONS]
    yield table(
        *("Few votes: items whose other votes are covered", parts, SHAPES),
        lambda name, cell: _spread(_values(few, cell, name, "coverage")),
    )
    covered = wide.filter(pl.col("metric") == "coverage").group_by("data", "learner")
    shares = covered.agg(pl.col("value").mean())["value"].to_numpy()
    if len(shares):
        yield f"Widths cover {percent(shares.min())} to {percent(shares.max())}, mean over seeds."
    for name in STUDIES:
        own = scores.filter(pl.col("study") == name).group_by("data")
        counts = own.agg(pl.col("seed").n_unique())["seed"].to_list() or [0]
        yield (
            f"{name.capitalize()}: {seeds(min(counts))}; mean ± standard deviation; "
            "differences ± 95 %."
        )


def set_worth_figure(scores: pl.DataFrame, path: Path) -> None:
    """Two panels: POCC less its precise rival, and learned bounds less other sets."""
    said, mixed, smooth, wide, _ = (scores.filter(pl.col("study") == name) for name in STUDIES)
    pair, smoothed = _MIXED_PAIRS[0], _SMOOTHED_PAIRS[0]
    deferral = {
        "statements": difference(said, None, PAIRS[0], "AUARC"),
        "votes, network": difference(mixed, "CIFAR-10H, all votes", pair, "AUARC"),
        "radiologists, network": difference(mixed, "LIDC", pair, "AUARC"),
        "smoothing 0.1, network": difference(smooth, "smoothing 0.1", smoothed, "AUARC"),
        "smoothing 0.2, network": difference(smooth, "smoothing 0.2", smoothed, "AUARC"),
    }
    widths = {
        name: difference(wide, None, f"{BOUNDS} less {name}", "width")
        for name in WIDTH_LEARNERS[1:]
        if name != WIDTH_LEARNERS[2]  # of networks alone
    }

    def draw(figure: Figure) -> None:
        panels = (
            ("Deferral (AUARC): POCC less softmax", "percentage points", 100, deferral),
            ("Width: learned bounds less other sets", "mean width", 1, widths),
        )
        for place, (axes, (title, unit, factor, found)) in enumerate(
            zip(figure.subplots(1, 2), panels, strict=True)
        ):
            known = {name: np.array(value) * factor for name, value in found.items() if value}
            for row, (mean, error) in enumerate(known.values()):
                axes.errorbar(mean, row, xerr=error, fmt="o", color=COLORS[place])
            axes.axvline(0, color=GRAY, linewidth=1)
            axes.set_yticks(range(len(known)), list(known))
            axes.set_ylim(len(known) - 0.4, -0.6)
            axes.set(title=title, xlabel=f"{unit}, ± 95 %")

    save_figure(draw, path, width=11, height=2.8)
