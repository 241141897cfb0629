"""The demonstration: real disagreement in, sets of distributions and deferrals out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from credalearn._files import check_file
from credalearn.app.nodules import CLASSES, Nodules, load_nodules
from credalearn.metrics import balanced_quality
from credalearn_experiments.drawing import draw_balanced_quality, draw_rejection, draw_triangle
from credalearn_experiments.drawing.style import save_figure
from credalearn_experiments.nodules.compare import (
    BASIC,
    EVERY_METHOD,
    TEST_SHARE,
    Contender,
    Split,
    compare,
)

OTHER = "name another folder with --output"
_DEFERRED = np.array([0.0, 0.1, 0.2, 0.3, 0.5])
_SHOWN = 60  # segments in the figure: more hide each other
_COLUMNS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "auarc": "AUARC",
    "auarc-common": "AUARC, 1 - top p",
}


def run_demo(
    output: Path,
    *,
    methods: Literal["basic", "all"] = "basic",
    num_splits: int = 10,
    epochs: int = 40,
    seed: int = 0,
) -> None:
    """Train, compare, print and save: see the ``demo`` command."""
    # Before any training: a folder that cannot be written must not cost a minute.
    check_file(output / "demo.png", (".png",), other=OTHER)
    # The networks are tiny: on two busy cores, two threads took 132 s where one took 16.
    torch.set_num_threads(1)
    console = Console(highlight=False)
    nodules = load_nodules()
    _introduce(console, nodules)
    contenders = BASIC if methods == "basic" else EVERY_METHOD
    splits = []
    for split in compare(nodules, contenders, num_splits=num_splits, epochs=epochs, seed=seed):
        splits.append(split)
        right = 100 * split.metrics(contenders[0])["accuracy"]
        console.print(f"  {len(splits):2d}/{num_splits}  accuracy of POCC {right:.1f} %")
    table = _deferral_table if methods == "basic" else _method_table
    console.print(table(splits, contenders))
    _save(output, splits, contenders)
    for name, what in (
        ("model", "the first split's POCC: credalearn.load(folder)"),
        ("predictions.safetensors", "its test nodules: CredalPredictions.load(file)"),
        ("demo.png", "the figure"),
    ):
        console.print(f"{output / name}  {what}", soft_wrap=True)


def _introduce(console: Console, nodules: Nodules) -> None:
    unanimous = (nodules.votes.max(1) == nodules.votes.sum(1)).mean()
    tied = (~nodules.has_majority).mean()
    console.print(
        f"Lung nodules of LIDC-IDRI: {len(nodules.votes):,} nodules of "
        f"{len(set(nodules.patients)):,} patients, each rated by three or four radiologists as "
        f"{', '.join(CLASSES[:-1])} or {CLASSES[-1]}; the features are measured on their outlines "
        "or are their other ratings.\n"
        f"The readers are unanimous on {100 * unanimous:.0f} % and tie on {100 * tied:.0f} %; "
        "ties have no right answer and are left out of the tests.\n"
        f"Training on {100 * (1 - TEST_SHARE):.0f} % of the patients, testing on the others:"
    )


def _deferral_table(splits: Sequence[Split], contenders: Sequence[Contender]) -> Table:
    """Calibration, and the accuracy of what is kept when shares are deferred."""
    headings = ["deferred by", "ECE", *(f"{100 * share:.0f} %" for share in _DEFERRED)]
    table = _table(
        headings,
        "ECE of the probabilities, then accuracy of the rest when the least certain 0 to 50 % go "
        "to a human. Softmax defers by its top probability.",
        splits,
    )
    for each in contenders:
        errors = np.array([split.metrics(each)["ece"] for split in splits])
        kept = np.array([split.kept_accuracy(each, _DEFERRED) for split in splits])
        table.add_row(each.name, *map(_mean_and_spread, (errors, *kept.T)))
    return table


def _method_table(splits: Sequence[Split], contenders: Sequence[Contender]) -> Table:
    """Every metric of every method, and the balanced quality score."""
    found = _metrics(splits, contenders)
    quality = balanced_quality(found)
    table = _table(
        ["method", *_COLUMNS.values(), "BQS"],
        "AUARC by each method's own score, and by one for all. BQS: balanced quality of accuracy, "
        "1 - ECE and AUARC.",
        splits,
    )
    for each in contenders:
        values = [np.array(found[each.name][metric]) for metric in _COLUMNS]
        score = np.array(quality[each.name].per_seed)
        table.add_row(each.name, *map(_mean_and_spread, (*values, score)))
    return table


def _metrics(
    splits: Sequence[Split], contenders: Sequence[Contender]
) -> dict[str, dict[str, list[float]]]:
    """By contender and metric, one value a split."""
    return {
        each.name: {
            metric: [split.metrics(each)[metric] for split in splits] for metric in _COLUMNS
        }
        for each in contenders
    }


def _table(headings: Sequence[str], caption: str, splits: Sequence[Split]) -> Table:
    means = "In %, mean ± one standard deviation over the splits. " if len(splits) > 1 else "In %. "
    table = Table(
        box=SIMPLE_HEAD,  # with no padding, fits 80 columns
        padding=0,
        pad_edge=False,
        caption=means + caption,
        caption_justify="left",
    )
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    return table


def _mean_and_spread(values: np.ndarray) -> str:
    spread = f"±{100 * values.std():.1f}" if len(values) > 1 else ""
    return f"{100 * values.mean():.1f}{spread}"


def _save(output: Path, splits: Sequence[Split], contenders: Sequence[Contender]) -> None:
    first, name = splits[0], contenders[0].name
    first.classifiers[name].save(output / "model")
    first.predictions[name].save(output / "predictions.safetensors")

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        shares = np.linspace(0, 0.8, 81)
        curves = {
            each.name: np.array([split.kept_accuracy(each, shares) for split in splits])
            for each in contenders
        }
        draw_rejection(right, shares, curves)
        right.set_title("Deferring the least certain nodules", pad=20)
        if len(contenders) > len(BASIC):
            draw_balanced_quality(left, balanced_quality(_metrics(splits, contenders)))
            left.set_title("Balanced quality of every method", pad=20)
        else:
            pred = first.predictions[name][:_SHOWN]
            draw_triangle(left, pred, classes=CLASSES, y=first.y[:_SHOWN])
            left.set_anchor("N")  # titles at one height
            left.set_title(f"One segment per nodule ({_SHOWN} of the test nodules)", pad=20)

    save_figure(draw, output / "demo.png", width=10, height=4.4)
