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
from credalearn_experiments.set_worth import images, networks, statements, widths
from credalearn_experiments.set_worth.networks import LINEAR, METRICS
from credalearn_experiments.set_worth.widths import BOUNDS, DEFAULT, DISTILLED, HULL
from credalearn_experiments.studies import Studies, score_table, value_of

STUDIES: Studies = {
    "statements": (statements.statement_scores, statements.CELLS),
    "statements on images": (statements.network_statement_scores, statements.CELLS),
    "mixing": (networks.mixing_scores, networks.MIXED_DATA),
    "smoothing": (networks.smoothing_scores, networks.SMOOTHINGS),
    "widths": (widths.width_scores, widths.WIDTH_CELLS),
    "few votes": (widths.few_votes_scores, widths.CALIBRATIONS),
    "images": (images.image_scores, images.IMAGE_CELLS),
    "from scratch": (images.scratch_scores, images.IMAGE_CELLS),
}
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
    f"set_width_90_{kind}": Column(name, "lower", percent=False, digits=3)
    for kind, name in (
        ("plain", "width"),
        ("stretched", "width, stretched by f"),
        ("formula", "center ± f·√(p(1 − p))"),
        ("scaled", "best of three scales"),
    )
}
_RECORDED = {
    "accuracy": Column("accuracy"),
    "auarc_top_probability": Column("AUARC"),
    "ece": Column("ECE", "lower"),
    "ece_tempered": Column("ECE, tempered", "lower"),
}


def cutmix_tables(records: Sequence[Record]) -> Iterator[Table]:
    """ResNet-18 with CutMix: one network and five, and the widths of their sets."""
    title, runs = "ResNet-18 with CutMix, CIFAR-10H", runs_of(records, "cifar10h-cutmix")
    people = Column("cross-entropy to new people", "lower", percent=False, digits=3)
    yield method_table(title, runs, {**_RECORDED, "human_cross_entropy": people})
    yield method_table(f"{title}: sets that cover 90 % of new people's votes", runs, _CUTMIX_WIDTHS)


def images_table(records: Sequence[Record]) -> Table:
    """POCC less softmax on images, from the records of the reproduction."""
    rows: dict[str, dict[str, Value]] = {}
    for kind, setting in _IMAGES.items():
        runs = runs_of(records, setting)
        for name in ("pocc", "pocc-center"):
            for metric, column in _RECORDED.items():
                gap = Difference.paired(runs.get(name, {}), runs["softmax"], metric)
                if gap is not None:
                    row = rows.setdefault(f"{kind}, {name} ({seeds(gap.seeds)})", {})
                    row[column.name] = gap.value
    title = "On images, under one recipe: POCC less softmax, ± the standard error"
    columns = [replace(column, marked=False) for column in _RECORDED.values()]
    return Table(title, columns, rows, corner="labels, method")


def _tables() -> Iterator[tuple[str, str, Sequence[Column], Iterable[str], str | None]]:
    """Study, title, columns, learners or pairs, and the metric where columns are cells."""
    said, mixed, pairs = statements.STATED, networks.MIXED, "paired differences"
    yield "images", "Images", METRICS, images.IMAGE_LEARNERS, None
    yield "images", f"Images: {pairs}", METRICS, _IMAGE_PAIRS, None
    yield "from scratch", "From scratch", METRICS, images.SCRATCH, None
    yield "from scratch", f"From scratch: {pairs}", METRICS, _SCRATCH_PAIRS, None
    width, coverage = _widths("width"), Column("coverage", marked=False)
    title = "Images: sets that cover 90 % of votes"
    yield "images", title, [*width, coverage], images.IMAGE_SETS, None
    yield "images", "Images: differences in width", width, _IMAGE_SET_PAIRS, None
    for study in ("statements", "statements on images"):
        title, mean = study.capitalize(), "mean over nine cells"
        yield study, f"{title}: {mean}", METRICS, said, None
        yield study, f"{title}: {pairs}, {mean}", METRICS, statements.PAIRS, None
    mean = "mean over three data sets"
    yield "mixing", f"Mixed items: {mean}", METRICS, mixed, None
    yield "mixing", f"Mixed items: {pairs}, {mean}", METRICS, _MIXED_PAIRS, None
    cells = [Column(cell) for cell in statements.CELLS]
    yield "statements", "Statements: accuracy", cells, said, "accuracy"
    cells = [Column(cell) for cell in networks.MIXED_DATA]
    for metric in ("accuracy", "AUARC"):
        yield "mixing", f"Mixed items: {metric}", cells, mixed, metric
        yield "mixing", f"Mixed items: {pairs} in {metric}", cells, _MIXED_PAIRS, metric
    cells = [Column(cell, digits=2) for cell in networks.SMOOTHINGS]
    yield "smoothing", "Smoothed labels: AUARC", cells, networks.SMOOTHED, "AUARC"
    yield "smoothing", f"Smoothed labels: {pairs} in AUARC", cells, _SMOOTHED_PAIRS, "AUARC"
    cells, title = _widths(*widths.WIDTH_CELLS), "Mean width of sets that cover 90 % of votes"
    yield "widths", title, cells, widths.WIDTH_LEARNERS, "width"
    yield "widths", f"Widths: {pairs}", cells, _WIDTH_PAIRS, "width"
    cells, shapes = _widths(*widths.CALIBRATIONS), widths.SHAPES
    yield "few votes", "Few votes: mean width", cells, shapes, "width"
    cells = [Column(cell, marked=False) for cell in widths.CALIBRATIONS]
    yield "few votes", "Few votes: items whose other votes are covered", cells, shapes, "coverage"


def _widths(*names: str) -> list[Column]:
    return [Column(name, better="lower", percent=False, digits=3) for name in names]


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
        "statements": value_of(of["statements"], statements.PAIRS[0], "AUARC"),
        "votes, network": value_of(of["mixing"], pair, "AUARC", "CIFAR-10H, all votes"),
        "radiologists, network": value_of(of["mixing"], pair, "AUARC", "LIDC"),
    } | {
        f"{cell}, network": value_of(of["smoothing"], smoothed, "AUARC", cell)
        for cell in ("smoothing 0.1", "smoothing 0.2")
    }
    narrower = {
        pair.split(" less ")[1]: value_of(of["widths"], pair, "width")
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
