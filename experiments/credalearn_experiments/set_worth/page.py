"""Tables and the figure of what a set is worth, from the stored scores."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from credalearn._formats import percent
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import CONFIDENCE, Difference
from credalearn_experiments.results.seeds import BySeed, runs_of, seeds
from credalearn_experiments.results.style import GRAY, line_of, save_figure
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.results.tables import method_table
from credalearn_experiments.results.votes import holm
from credalearn_experiments.set_worth import images, kinds, statements, widths
from credalearn_experiments.set_worth.kinds import CENTER, CREDAL, KINDS, LINEAR, METRICS, PRECISE
from credalearn_experiments.set_worth.widths import BOUNDS, DISTILLED
from credalearn_experiments.studies import Studies, by_seed, score_table, value_of

STUDIES: Studies = {
    "kinds": (kinds.kind_scores, KINDS),
    "statements": (statements.statement_scores, statements.CELLS),
    "statements on images": (partial(statements.statement_scores, own=True), statements.CELLS),
    "widths": (widths.width_scores, widths.WIDTH_CELLS),
    "few votes": (widths.few_votes_scores, widths.CALIBRATIONS),
    "images": (images.image_scores, images.IMAGE_CELLS),
    "from scratch": (images.scratch_scores, images.IMAGE_CELLS),
}
_WIDTH = Column("width", "lower", percent=False, digits=3)
# What the summary compares, and the factor and the unit of its differences in the figure.
_SUMMARY = {
    METRICS[0]: (100, "points"),
    METRICS[1]: (100, "points"),
    METRICS[3]: (100, "points"),
    METRICS[5]: (1, "nats"),
    _WIDTH: (1, "mean width"),
}
# Compared for each kind of labels, next to the best learner of each family.
_SAME_MODEL = {
    "one network": (CENTER, "softmax"),
    "the default": ("default learner, sets", "default learner, centers"),
}
_MIXED_PAIRS = tuple(f"{CENTER}{mix} less softmax{mix}" for mix in kinds.MIXES)
_IMAGE_PAIRS = (
    *_MIXED_PAIRS,
    *(f"softmax, {mix} less softmax" for mix in ("mixup", "CutMix")),
    f"softmax less {LINEAR}",
    f"{DISTILLED} less {images.ENSEMBLE}",
    f"{DISTILLED} less softmax",
)
_SCRATCH_PAIRS = (
    *(f"{CENTER}, {mix} less softmax, {mix}" for mix in ("crop-flip", "mixup", "cutmix")),
    f"{CENTER}, crop-flip less {CENTER}, none",
    *(f"{CENTER}, {mix} less {CENTER}, crop-flip" for mix in ("mixup", "cutmix")),
)
_WIDTH_PAIRS = tuple(f"{BOUNDS} less {name}" for name in widths.WIDTH_LEARNERS if name != BOUNDS)
# Stored runs on a GPU in which calibration errors after one temperature were measured.
_NETWORKS = {
    "votes, CutMix, 130 epochs": "cifar10h-cutmix",
    "votes, CutMix, 260 epochs": "cifar10h-long",
    "three votes, CutMix, 130 epochs": "cifar10n",
}
_RECORDS = _NETWORKS | {
    "teacher, T = 1": "cifar10-teacher-resnet20-1",
    "smoothing 0.2": "cifar10-smooth-0.2",
}
_RECORDED = {
    "accuracy": Column("accuracy"),
    "auarc_top_probability": Column("AUARC"),
    "ece": Column("ECE", "lower"),
    "ece_tempered": Column("ECE, tempered", "lower"),
    "human_cross_entropy": Column("cross-entropy to new people", "lower", percent=False, digits=3),
}
_SETS = {
    "plain": "as predicted",
    "stretched": "stretched by f",
    "formula": "center ± f·√(p(1 − p))",
    "scaled": "best of three scales",
}
# What is compared: a method and a kind of its sets, less another.
_LEARNED, _TAUGHT = ("credal-bounds", "stretched"), ("pocc-distilled", "formula")
_ONE, _FIVE = ("softmax", "formula"), ("deep-ensemble", "plain")
_PAIRS = (
    (_LEARNED, _ONE),
    (_LEARNED, ("credal-bounds", "formula")),
    (_LEARNED, _FIVE),
    (_LEARNED, ("deep-ensemble", "stretched")),
    (_TAUGHT, _ONE),
    (_TAUGHT, _FIVE),
    (_FIVE, _ONE),
)


def network_tables(records: Sequence[Record], setting: str, title: str) -> Iterator[Table]:
    """One network and five: how good they are, and the widths of their sets."""
    runs = runs_of(records, setting)
    yield method_table(title, runs, _RECORDED)
    widths_of = {f"set_width_90_{kind}": _widths(name)[0] for kind, name in _SETS.items()}
    yield method_table(f"{title}: width of sets that cover 90 % of new votes", runs, widths_of)
    rows: dict[str, dict[str, Value]] = {}
    for (ours, kind), (theirs, other) in _PAIRS:
        one, two = runs.get(ours, {}), runs.get(theirs, {})
        pairs = {metric: (metric, metric) for metric in _RECORDED if ours != theirs}
        pairs["width"] = f"set_width_90_{kind}", f"set_width_90_{other}"
        for metric, both in pairs.items():
            if gap := Difference.paired(one, two, *both):
                name = f"{ours}, {_SETS[kind]}, less {theirs}, {_SETS[other]} ({seeds(gap.seeds)})"
                column = _RECORDED.get(metric, _WIDTH)
                rows.setdefault(name, {})[column.name] = gap.mean, gap.margin
    columns = [replace(column, marked=False) for column in (*_RECORDED.values(), _WIDTH)]
    yield Table(f"{title}: differences, ± 95 %", columns, rows)


def recipe_tables(records: Sequence[Record]) -> Iterator[Table]:
    """POCC less softmax under one recipe, and twice the epochs less once, from stored runs."""
    runs = {kind: runs_of(records, setting) for kind, setting in _RECORDS.items()}
    pairs = {
        f"{kind}, {name}": (found.get(name, {}), found["softmax"])
        for kind, found in runs.items()
        for name in ("pocc", "pocc-center")
    }
    yield _differences("Images, under one recipe: POCC less softmax, ± 95 %", pairs)
    short, long, *_ = runs.values()
    epochs = {name: (found, short[name]) for name, found in long.items()}
    yield _differences("Images: votes, CutMix, 260 less 130 epochs, ± 95 %", epochs)


def _differences(title: str, pairs: Mapping[str, tuple[BySeed, BySeed]]) -> Table:
    rows: dict[str, dict[str, Value]] = {}
    for name, (own, others) in pairs.items():
        for metric, column in _RECORDED.items():
            if gap := Difference.paired(own, others, metric):
                row = rows.setdefault(f"{name} ({seeds(gap.seeds)})", {})
                row[column.name] = gap.mean, gap.margin
    columns = [replace(column, marked=False) for column in _RECORDED.values()]
    return Table(title, columns, rows)


def _tables(
    scores: pl.DataFrame,
) -> Iterator[tuple[str, str, Sequence[Column], Iterable[str], str | None]]:
    """Study, title, columns, learners or pairs, and the metric where columns are cells."""
    said, pairs = statements.STATED, "paired differences"
    yield "images", "Images: trained weights", METRICS, images.IMAGE_LEARNERS, None
    yield "images", f"Images: trained weights, {pairs}", METRICS, _IMAGE_PAIRS, None
    yield "from scratch", "Images: from scratch", METRICS, images.SCRATCH, None
    yield "from scratch", f"Images: from scratch, {pairs}", METRICS, _SCRATCH_PAIRS, None
    for study in ("statements", "statements on images"):
        title, mean = study.capitalize(), "mean over nine cells"
        yield study, f"{title}: {mean}", METRICS, said, None
        yield study, f"{title}: {pairs}, {mean}", METRICS, statements.PAIRS, None
    cells = [Column(cell) for cell in statements.CELLS]
    yield "statements", "Statements: accuracy", cells, said, "accuracy"
    for metric in METRICS:
        cells = [replace(metric, name=cell) for cell in KINDS]
        yield "kinds", f"Kinds: {metric.name}", cells, PRECISE | CREDAL, metric.name
    yield "kinds", "Kinds: width", _widths(*KINDS), PRECISE | CREDAL, "width"
    covered = scores.filter(study="widths", metric="coverage").group_by("data", "learner")
    shares = [0.9, *covered.agg(pl.col("value").mean())["value"]]
    reached = f"{percent(min(shares))} to {percent(max(shares))}"
    title = f"Mean width of sets that cover 90 % of votes, on new items {reached}"
    cells = _widths(*widths.WIDTH_CELLS)
    yield "widths", title, cells, widths.WIDTH_LEARNERS, "width"
    yield "widths", f"Mean width: {pairs}", cells, _WIDTH_PAIRS, "width"
    cells, shapes = _widths(*widths.CALIBRATIONS), widths.SHAPES
    yield "few votes", "Few votes: mean width", cells, shapes, "width"
    cells = [Column(cell, marked=False) for cell in widths.CALIBRATIONS]
    yield "few votes", "Few votes: items whose other votes are covered", cells, shapes, "coverage"


def _widths(*names: str) -> list[Column]:
    return [Column(name, better="lower", percent=False, digits=3) for name in names]


def best_pair(scores: pl.DataFrame, kind: str) -> tuple[str, str] | None:
    """The learner with sets and the precise one that are closest to people's votes, tempered.

    Of each family the best mean over seeds, chosen after looking.
    """
    own = scores.filter(data=kind, metric=METRICS[5].name)
    means = dict(own.group_by("learner").agg(pl.col("value").mean()).iter_rows())
    families: tuple[Collection[str], ...] = (CREDAL, PRECISE)
    found = [[each for each in family if each in means] for family in families]
    if not all(found):
        return None
    credal, precise = (min(some, key=means.__getitem__) for some in found)
    return credal, precise


def kinds_table(scores: pl.DataFrame) -> Table:
    """For each kind of labels the best learner without sets, the best with them, the differences.

    A star: below 5 % after Holm's correction over all differences of the table.
    """
    rows: dict[str, dict[str, Value]] = {}
    gaps: dict[tuple[str, Column], Difference] = {}
    for kind in KINDS:
        pair = best_pair(scores, kind)
        for name in reversed(pair or ()):
            rows[f"{kind}: {name}"] = {
                column.name: value_of(scores, name, column.name, kind) for column in _SUMMARY
            }
        for shown, names in {"best less best": pair, **_SAME_MODEL}.items():
            for column in _SUMMARY:
                values = by_seed(scores, " less ".join(names or ("", "")), column.name, kind)
                if len(values):
                    rows.setdefault(f"{kind}: {shown}", {})
                    gaps[f"{kind}: {shown}", column] = Difference.of(values)
    tested = {f"{row}, {column.name}": gap.p_value for (row, column), gap in gaps.items()}
    adjusted = holm({name: p for name, p in tested.items() if p is not None})
    for (row, column), gap in gaps.items():
        star = "\\*" * (adjusted.get(f"{row}, {column.name}", 1) < 1 - CONFIDENCE)
        margin = "" if gap.margin is None else f" ± {column.number(gap.margin)}"
        rows[row][column.name] = f"{column.number(gap.mean)}{margin}{star}"
    columns = [replace(column, marked=False) for column in _SUMMARY]
    return Table("What a set is worth, by kind of labels", columns, rows, corner="labels: learner")


def set_worth_page(scores: pl.DataFrame, records: Sequence[Record] = ()) -> Iterator[Table | str]:
    """A summary, one table per question, and paired differences to the precise rivals."""
    yield kinds_table(scores.filter(study="kinds"))
    if records:
        yield from recipe_tables(records)
        for kind, setting in _NETWORKS.items():
            yield from network_tables(records, setting, f"Images: {kind}")
    for study, title, columns, names, metric in _tables(scores):
        own = scores.filter(study=study)
        counts = own.group_by("data").agg(pl.col("seed").n_unique())["seed"].to_list() or [0]
        table = score_table(title, own, columns, names, metric)
        yield replace(table, corner=f"learner ({seeds(min(counts))})")
    yield "Learners: mean ± standard deviation over seeds; differences: mean ± 95 %."


def set_worth_figure(scores: pl.DataFrame, path: Path) -> None:
    """For each kind of labels, learners with sets less learners without, one panel per metric."""
    own = scores.filter(study="kinds")
    pairs = {name: dict.fromkeys(KINDS, pair) for name, pair in _SAME_MODEL.items()}
    pairs["the best of each"] = {kind: best_pair(own, kind) or ("", "") for kind in KINDS}

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(_SUMMARY), sharey=True)
        for axes, (column, (factor, unit)) in zip(panels, _SUMMARY.items(), strict=True):
            for place, (label, of_kind) in enumerate(pairs.items()):
                found = [
                    value_of(own, " less ".join(pair), column.name, kind)
                    for kind, pair in of_kind.items()
                ]
                gaps = [each if isinstance(each, tuple) else (np.nan, np.nan) for each in found]
                mean, margin = factor * np.array(gaps, dtype=float).T
                rows = np.arange(len(KINDS)) + 0.22 * (place - 1)
                line = line_of(place) | {"linestyle": "none"}
                axes.errorbar(mean, rows, xerr=margin, label=label, **line)
            axes.axvline(0, color=GRAY, linewidth=1)
            axes.locator_params(axis="x", nbins=4)
            better = "↑↓"[column.better == "lower"]
            axes.set(title=f"{column.name} {better}", xlabel=f"{unit}, ± 95 %")
        panels[0].set_yticks(range(len(KINDS)), list(KINDS))
        panels[0].set_ylim(len(KINDS) - 0.5, -0.5)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3)

    save_figure(draw, path, width=13, height=4)
