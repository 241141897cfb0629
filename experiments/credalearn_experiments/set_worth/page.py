"""Tables and the figure of what a set is worth, from the stored scores."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from credalearn._formats import percent
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import Difference
from credalearn_experiments.results.seeds import runs_of, seeds
from credalearn_experiments.results.style import COLORS, GRAY, save_figure
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.results.tables import method_table
from credalearn_experiments.set_worth import STUDIES, images, networks, statements, widths
from credalearn_experiments.set_worth.networks import LINEAR
from credalearn_experiments.set_worth.scores import METRICS
from credalearn_experiments.set_worth.widths import BOUNDS, DEFAULT, DISTILLED, HULL
from credalearn_experiments.studies import difference, score_table

_CENTER = "POCC with center head"
_MIXED_PAIRS = (
    *(f"{_CENTER}{mix} less softmax{mix}" for mix in ("", ", mixup", ", CutMix")),
    "softmax, CutMix less softmax",
    f"{_CENTER}, CutMix less {LINEAR}",
)
_SMOOTHED_PAIRS = ("POCC less softmax", f"{_CENTER} less softmax", f"{LINEAR} less POCC")
_IMAGE_PAIRS = (
    *_MIXED_PAIRS[:3],
    *(f"softmax, {mix} less softmax" for mix in ("mixup", "CutMix")),
    f"softmax less {LINEAR}",
    f"{DISTILLED} less {images.ENSEMBLE}",
    f"{DISTILLED} less softmax",
)
_SCRATCH_PAIRS = (
    *(f"{_CENTER}, {mix} less softmax, {mix}" for mix in ("crop-flip", "mixup", "cutmix")),
    f"{_CENTER}, crop-flip less {_CENTER}, none",
    *(f"{_CENTER}, {mix} less {_CENTER}, crop-flip" for mix in ("mixup", "cutmix")),
)
_IMAGE_SET_PAIRS = (
    *(f"{BOUNDS} less {name}" for name in images.IMAGE_SETS if name != BOUNDS),
    *(f"{images.POCC_SET} less {name}" for name in (HULL, DEFAULT)),
)
_WIDTH_PAIRS = tuple(f"{BOUNDS} less {name}" for name in widths.WIDTH_LEARNERS if name != BOUNDS)
# From the records of the reproduction.
_IMAGES = {
    "votes, five warm-up epochs": "cifar10h-warm",
    "votes, five warm-up epochs, CutMix": "cifar10h-cutmix",
    "teacher, T = 1": "cifar10-teacher-resnet20-1",
    "teacher, T = 2.5": "cifar10-teacher-resnet20-2.5",
    "smoothing 0.05": "cifar10-smooth-0.05",
    "smoothing 0.1": "cifar10-smooth-0.1",
    "smoothing 0.2": "cifar10-smooth-0.2",
}


_CUTMIX_WIDTHS = {
    "set_width_90_plain": Column("width", "lower", percent=False, digits=3),
    "set_width_90_stretched": Column("width, stretched by f", "lower", percent=False, digits=3),
    "set_width_90_formula": Column("center ± f·√(p(1 − p))", "lower", percent=False, digits=3),
    "set_width_90_scaled": Column("best of three scales", "lower", percent=False, digits=3),
}


def cutmix_tables(records: Sequence[Record]) -> Iterator[Table]:
    """ResNet-18 with CutMix: one network and five, and the widths of their sets."""
    title, runs = "ResNet-18 with CutMix, CIFAR-10H", runs_of(records, "cifar10h-cutmix")
    people = Column("cross-entropy to new people", "lower", percent=False, digits=3)
    yield method_table(title, runs, {**_RECORDED, "human_cross_entropy": people})
    yield method_table(f"{title}: sets that cover 90 % of new people's votes", runs, _CUTMIX_WIDTHS)


def images_table(records: Sequence[Record]) -> Table:
    """POCC less softmax on images, from the records of the reproduction."""
    columns = {metric: replace(column, marked=False) for metric, column in _RECORDED.items()}
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


_RECORDED = {
    "accuracy": Column("accuracy"),
    "auarc_top_probability": Column("AUARC"),
    "ece": Column("ECE", "lower"),
    "ece_tempered": Column("ECE, tempered", "lower"),
}


def _columns(cells: Iterable[str], *, width: bool = False, digits: int = 1) -> list[Column]:
    """One column per cell: a share, or the width of a set."""
    if width:
        return [Column(cell, better="lower", percent=False, digits=3) for cell in cells]
    return [Column(cell, digits=digits) for cell in cells]


def _tables() -> Iterator[tuple[str, str, Sequence[Column], Iterable[str], str | None]]:
    """Study, title, columns, learners or pairs, and the metric where columns are cells."""
    for study, learners, pairs in (
        ("images", images.IMAGE_LEARNERS, _IMAGE_PAIRS),
        ("from scratch", images.SCRATCH, _SCRATCH_PAIRS),
    ):
        yield study, study.capitalize(), METRICS, learners, None
        yield study, f"{study.capitalize()}: paired differences", METRICS, pairs, None
    width, coverage = _columns(["width"], width=True), Column("coverage", marked=False)
    title = "Images: sets that cover 90 % of votes"
    yield "images", title, [*width, coverage], images.IMAGE_SETS, None
    yield "images", "Images: differences in width", width, _IMAGE_SET_PAIRS, None
    said, mixed = statements.STATED, networks.MIXED
    for study in ("statements", "statements on images"):
        yield study, f"{study.capitalize()}: mean over nine cells", METRICS, said, None
        title = f"{study.capitalize()}: paired differences, mean over nine cells"
        yield study, title, METRICS, statements.PAIRS, None
    yield "mixing", "Mixed items: mean over three data sets", METRICS, mixed, None
    title = "Mixed items: paired differences, mean over three data sets"
    yield "mixing", title, METRICS, _MIXED_PAIRS, None
    yield "statements", "Statements: accuracy", _columns(statements.CELLS), said, "accuracy"
    data = _columns(networks.MIXED_DATA)
    for metric in ("accuracy", "AUARC"):
        yield "mixing", f"Mixed items: {metric}", data, mixed, metric
        title = f"Mixed items: paired differences in {metric}"
        yield "mixing", title, data, _MIXED_PAIRS, metric
    cells = _columns(networks.SMOOTHINGS, digits=2)
    yield "smoothing", "Smoothed labels: AUARC", cells, networks.SMOOTHED, "AUARC"
    title = "Smoothed labels: paired differences in AUARC"
    yield "smoothing", title, cells, _SMOOTHED_PAIRS, "AUARC"
    cells = _columns(widths.WIDTH_CELLS, width=True)
    title = "Mean width of sets that cover 90 % of votes"
    yield "widths", title, cells, widths.WIDTH_LEARNERS, "width"
    yield "widths", "Widths: paired differences", cells, _WIDTH_PAIRS, "width"
    cells = _columns(widths.CALIBRATIONS, width=True)
    yield "few votes", "Few votes: mean width", cells, widths.SHAPES, "width"
    cells = [Column(cell, marked=False) for cell in widths.CALIBRATIONS]
    title = "Few votes: items whose other votes are covered"
    yield "few votes", title, cells, widths.SHAPES, "coverage"


def set_worth_page(scores: pl.DataFrame, records: Sequence[Record] = ()) -> Iterator[Table | str]:
    """One table per question, and paired differences to the precise rivals."""
    if records:
        yield images_table(records)
        yield from cutmix_tables(records)
    of = {study: scores.filter(study=study) for study in STUDIES}
    for study, title, columns, names, metric in _tables():
        yield score_table(title, of[study], columns, names, metric)
    covered = of["widths"].filter(metric="coverage").group_by("data", "learner")
    shares = covered.agg(pl.col("value").mean())["value"].to_numpy()
    if len(shares):
        yield f"Widths cover {percent(shares.min())} to {percent(shares.max())}, mean over seeds."
    for study, own in of.items():
        counts = own.group_by("data").agg(pl.col("seed").n_unique())["seed"].to_list() or [0]
        count = seeds(min(counts))
        yield f"{study.capitalize()}: {count}; mean ± standard deviation; differences ± 95 %."


def set_worth_figure(scores: pl.DataFrame, path: Path) -> None:
    """Two panels: POCC less its precise rival, and learned bounds less other sets."""
    of = {study: scores.filter(study=study) for study in STUDIES}
    pair, smoothed = _MIXED_PAIRS[0], _SMOOTHED_PAIRS[0]
    deferral = {
        "statements": difference(of["statements"], statements.PAIRS[0], "AUARC"),
        "votes, network": difference(of["mixing"], pair, "AUARC", "CIFAR-10H, all votes"),
        "radiologists, network": difference(of["mixing"], pair, "AUARC", "LIDC"),
    } | {
        f"{cell}, network": difference(of["smoothing"], smoothed, "AUARC", cell)
        for cell in ("smoothing 0.1", "smoothing 0.2")
    }
    narrower = {
        pair.split(" less ")[1]: difference(of["widths"], pair, "width")
        for pair in _WIDTH_PAIRS
        if widths.SOFTMAX not in pair  # of networks alone
    }

    def draw(figure: Figure) -> None:
        panels = (
            ("Deferral (AUARC): POCC less softmax", "percentage points", 100, deferral),
            ("Width: learned bounds less other sets", "mean width", 1, narrower),
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
