"""Tables and the figure of what a set is worth, from the stored scores."""

from collections.abc import Iterable, Iterator, Sequence
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
from credalearn_experiments.set_worth.images import (
    ENSEMBLE,
    IMAGE_LEARNERS,
    IMAGE_SETS,
    POCC_SET,
    SCRATCH,
    STATED_IMAGES,
)
from credalearn_experiments.set_worth.networks import (
    LINEAR,
    MIXED,
    MIXED_DATA,
    SMOOTHED,
    SMOOTHINGS,
)
from credalearn_experiments.set_worth.scores import METRICS
from credalearn_experiments.set_worth.statements import CELLS, PAIRS, STATED
from credalearn_experiments.set_worth.widths import (
    BOUNDS,
    DEFAULT,
    DISTILLED,
    HULL,
    SOFTMAX,
    WIDTH_CELLS,
    WIDTH_LEARNERS,
)

_MIXED_PAIRS = (
    *(f"POCC with center head{mix} less softmax{mix}" for mix in ("", ", mixup", ", CutMix")),
    "softmax, CutMix less softmax",
    f"POCC with center head, CutMix less {LINEAR}",
)
_SMOOTHED_PAIRS = ("POCC less softmax", "POCC with center head less softmax", f"{LINEAR} less POCC")
_IMAGE_PAIRS = (
    *_MIXED_PAIRS[:3],
    *(f"softmax, {mix} less softmax" for mix in ("mixup", "CutMix")),
    f"softmax less {LINEAR}",
    f"{DISTILLED} less {ENSEMBLE}",
    f"{DISTILLED} less softmax",
)
_SCRATCH_PAIRS = (
    *(f"POCC with center head, {mix} less softmax, {mix}" for mix in ("crop-flip", "cutmix")),
    "POCC with center head, crop-flip less POCC with center head, none",
    *(
        f"POCC with center head, {mix} less POCC with center head, crop-flip"
        for mix in ("mixup", "cutmix")
    ),
)
_IMAGE_SET_PAIRS = (
    *(f"{BOUNDS} less {name}" for name in IMAGE_SETS if name != BOUNDS),
    f"{POCC_SET} less {HULL}",
    f"{POCC_SET} less {DEFAULT}",
)
_WIDTH = Column("width", better="lower", percent=False, digits=3)
_WIDTH_PAIRS = tuple(f"{BOUNDS} less {name}" for name in WIDTH_LEARNERS if name != BOUNDS)


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
    gaps = both.group_by("seed").agg(pl.col("gap").mean()).sort("seed")["gap"].to_numpy()
    if len(gaps) < 2:
        return None
    error = gaps.std(ddof=1) / len(gaps) ** 0.5
    return float(gaps.mean()), float(student.ppf(0.975, len(gaps) - 1) * error)


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


def _table(
    title: str,
    scores: pl.DataFrame,
    columns: Sequence[Column],
    names: Iterable[str],
    metric: str | None = None,
) -> Table:
    """Learners, or pairs "one less another"; columns are data, or metrics if none is named."""
    names = tuple(names)
    pairs = any(" less " in name for name in names)
    columns = [replace(each, marked=each.marked and not pairs) for each in columns]

    def value(name: str, column: str) -> Value:
        data, asked = (None, column) if metric is None else (column, metric)
        if pairs:
            return difference(scores, data, name, asked)
        own = scores.filter(pl.col("learner") == name, pl.col("metric") == asked)
        own = own if data is None else own.filter(pl.col("data") == data)
        values = own.group_by("seed").agg(pl.col("value").mean()).sort("seed")["value"].to_numpy()
        return (float(values.mean()), float(values.std())) if len(values) else None

    rows = {name: {each.name: value(name, each.name) for each in columns} for name in names}
    return Table(title, columns, rows, corner="learner")


def set_worth_page(scores: pl.DataFrame, records: Sequence[Record] = ()) -> Iterator[Table | str]:
    """One table per question, and paired differences to the precise rivals."""
    if records:
        yield images_table(records)
    of = {name: scores.filter(pl.col("study") == name) for name in STUDIES}
    said, mixed, smooth, wide, few = (of[name] for name in list(STUDIES)[:5])
    for study, learners, pairs in (
        ("images", IMAGE_LEARNERS, _IMAGE_PAIRS),
        ("from scratch", SCRATCH, _SCRATCH_PAIRS),
        ("statements on images", STATED_IMAGES, PAIRS),
    ):
        title = study.capitalize()
        yield _table(title, of[study], METRICS, learners)
        yield _table(f"{title}: paired differences", of[study], METRICS, pairs)
    title, columns = (
        "Images: sets that cover 90 % of votes",
        (_WIDTH, Column("coverage", marked=False)),
    )
    yield _table(title, of["images"], columns, IMAGE_SETS)
    yield _table("Images: differences in width", of["images"], [_WIDTH], _IMAGE_SET_PAIRS)
    yield _table("Statements: mean over nine cells", said, METRICS, STATED)
    yield _table("Statements: paired differences, mean over nine cells", said, METRICS, PAIRS)
    yield _table("Mixed items: mean over three data sets", mixed, METRICS, MIXED)
    title = "Mixed items: paired differences, mean over three data sets"
    yield _table(title, mixed, METRICS, _MIXED_PAIRS)
    cells = [Column(cell) for cell in CELLS]
    yield _table("Statements: accuracy", said, cells, STATED, "accuracy")
    data = [Column(cell) for cell in MIXED_DATA]
    for metric in ("accuracy", "AUARC"):
        yield _table(f"Mixed items: {metric}", mixed, data, MIXED, metric)
        title = f"Mixed items: paired differences in {metric}"
        yield _table(title, mixed, data, _MIXED_PAIRS, metric)
    cells = [Column(cell, digits=2) for cell in SMOOTHINGS]
    yield _table("Smoothed labels: AUARC", smooth, cells, SMOOTHED, "AUARC")
    title = "Smoothed labels: paired differences in AUARC"
    yield _table(title, smooth, cells, _SMOOTHED_PAIRS, "AUARC")
    cells = [Column(cell, better="lower", percent=False, digits=3) for cell in WIDTH_CELLS]
    title = "Mean width of sets that cover 90 % of votes"
    yield _table(title, wide, cells, WIDTH_LEARNERS, "width")
    yield _table("Widths: paired differences", wide, cells, _WIDTH_PAIRS, "width")
    cells = [Column(cell, better="lower", percent=False, digits=3) for cell in CALIBRATIONS]
    yield _table("Few votes: mean width", few, cells, SHAPES, "width")
    cells = [Column(cell, marked=False) for cell in CALIBRATIONS]
    title = "Few votes: items whose other votes are covered"
    yield _table(title, few, cells, SHAPES, "coverage")
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
    of = {name: scores.filter(pl.col("study") == name) for name in STUDIES}
    said, mixed, smooth, wide = (of[name] for name in list(STUDIES)[:4])
    pair, smoothed = _MIXED_PAIRS[0], _SMOOTHED_PAIRS[0]
    deferral = {
        "statements": difference(said, None, PAIRS[0], "AUARC"),
        "votes, network": difference(mixed, "CIFAR-10H, all votes", pair, "AUARC"),
        "radiologists, network": difference(mixed, "LIDC", pair, "AUARC"),
        "smoothing 0.1, network": difference(smooth, "smoothing 0.1", smoothed, "AUARC"),
        "smoothing 0.2, network": difference(smooth, "smoothing 0.2", smoothed, "AUARC"),
    }
    widths = {
        pair.split(" less ")[1]: difference(wide, None, pair, "width")
        for pair in _WIDTH_PAIRS
        if SOFTMAX not in pair  # of networks alone
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
