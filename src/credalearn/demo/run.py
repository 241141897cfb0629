"""The demonstration: real disagreement in, sets of distributions and deferrals out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from credalearn.demo.compare import MODELS, RULES, TEST_SHARE, Split, compare
from credalearn.demo.lidc import CLASSES, Nodules, load_nodules
from credalearn.report import draw_rejection, draw_triangle, house_style

_DEFERRED = np.array([0.0, 0.1, 0.2, 0.3, 0.5])
_SHOWN = 60  # segments in the figure: more hide each other


def run_demo(output: Path, *, num_splits: int = 10, epochs: int = 40, seed: int = 0) -> None:
    """Train, compare, print and save: see the ``demo`` command."""
    console = Console(highlight=False)
    nodules = load_nodules()
    _introduce(console, nodules)
    splits = []
    for split in compare(nodules, num_splits=num_splits, epochs=epochs, seed=seed):
        splits.append(split)
        accuracies = (f"{model} {100 * split.accuracy(model):.1f}" for model in MODELS)
        console.print(f"  {len(splits):2d}/{num_splits}  {'   '.join(accuracies)}")
    console.print(_table(splits))
    console.print(
        "Calibration error (ECE), then accuracy of the rest when the least certain 0 to 50 % go "
        "to a human: in %, mean over the splits ± one standard deviation.\n"
    )
    _save(output, splits)
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
        f"{', '.join(CLASSES[:-1])} or {CLASSES[-1]}.\n"
        f"The readers are unanimous on {100 * unanimous:.0f} % and tie on {100 * tied:.0f} %; "
        f"ties have no right answer and are left out of the tests.\n"
        f"Training on {100 * (1 - TEST_SHARE):.0f} % of the patients, testing on the others; "
        "accuracy in %:"
    )


def _table(splits: Sequence[Split]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False)  # fits 80 columns
    table.add_column("deferred by", no_wrap=True)
    table.add_column("ECE", justify="right")
    for share in _DEFERRED:
        table.add_column(f"{100 * share:.0f} %", justify="right")
    for rule, (model, _) in RULES.items():
        kept = np.array([split.kept_accuracy(rule, _DEFERRED) for split in splits])
        errors = np.array([split.ece(model) for split in splits])
        table.add_row(rule, _mean_and_spread(errors), *map(_mean_and_spread, kept.T))
    return table


def _mean_and_spread(values: np.ndarray) -> str:
    return f"{100 * values.mean():.1f}±{100 * values.std():.1f}"


def _save(output: Path, splits: Sequence[Split]) -> None:
    first = splits[0]
    output.mkdir(parents=True, exist_ok=True)
    first.classifiers["POCC"].save(output / "model")
    first.predictions["POCC"].save(output / "predictions.safetensors")
    with house_style():
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = first.predictions["POCC"][:_SHOWN]
        draw_triangle(left, shown, classes=CLASSES, y=first.y[:_SHOWN])
        left.set_title("A segment a nodule, coloured by the readers' majority", pad=24)
        shares = np.linspace(0, 0.8, 81)
        curves = {
            rule: np.array([split.kept_accuracy(rule, shares) for split in splits])
            for rule in RULES
        }
        draw_rejection(right, shares, curves)
        right.set_title("Deferring the least certain nodules")
        figure.savefig(output / "demo.png")
