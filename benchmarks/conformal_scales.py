"""How large widened sets are at equal coverage: by scale, by distance, by method.

Prints the two tables of docs/concepts/sets.md from ``experiments/results/conformal_scales.csv``.
With ``--measure`` that file is made again, in a few minutes: the methods are trained on lung
nodules, which come with the package, and on CIFAR-10H's features, from ``--data`` or
``CREDALEARN_DATA``. Predictions for items outside the training set are split in half at random,
500 times, to calibrate and to measure.

The default scale was chosen by the widths of about 200 variants (33 formulas, up to six floors) on
the items that are used for training here: the nodules of the second half of the patients and the
4,000 images that the task holds out. The other items are measured.

Shapes: N items, K classes.
"""

import argparse
import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn._files import whole_file
from credalearn.app.nodules import load_nodules
from credalearn.conformal._calibration import FLOOR, SCALES, box_distance, total_variation
from credalearn_experiments.data import DataFolders, load_task

RESULTS = Path(__file__).parents[1] / "experiments" / "results" / "conformal_scales.csv"
COVERAGES = (0.9, 0.95)
SPLITS = 500
WIDTHS = 50  # of these splits: the mean width of 3,000 sets hardly varies, their coverage does
DIAMETERS = 5  # likewise; a diameter takes 512 ways to split ten classes in two
METHODS = (
    *("softmax", "pocc", "pocc-center", "pocc-ensemble", "deep-ensemble", "mc-dropout"),
    *("decalibration", "laplace-bridge", "dappr", "edl"),
)

Scale = Callable[[cl.CredalPredictions], Tensor]
Loaded = tuple[dict[str, cl.CredalPredictions], np.ndarray]


def _entropy(pred: cl.CredalPredictions) -> Tensor:
    return cl.entropy(pred.probs)[:, None] / math.log2(pred.probs.shape[1]) + FLOOR


def _variance(pred: cl.CredalPredictions) -> Tensor:
    return pred.probs * (1 - pred.probs) + FLOOR


def _width(pred: cl.CredalPredictions) -> Tensor:
    return pred.upper - pred.lower + FLOOR


def _floor(floor: float) -> Scale:
    """The relative variance with another floor."""
    return lambda pred: SCALES["relative-variance"](pred.probs) - FLOOR + floor


def _of_probs(scale: Callable[[Tensor], Tensor]) -> Scale:
    return lambda pred: scale(pred.probs)


# Those of the package, and those that were tried and left out.
KEPT: dict[str, Scale] = {  # "stretched" moves the bounds first and is no scale alone
    name: _of_probs(scale) for name, scale in SCALES.items() if name != "stretched"
}
CANDIDATES: dict[str, Scale] = KEPT | {
    "variance": _variance,
    "entropy": _entropy,
    "width": _width,
    "relative-variance, floor .001": _floor(0.001),
    "relative-variance, floor .1": _floor(0.1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One line of the results; the last four are means over splits and items."""

    data: str
    method: str
    distance: str
    scale: str
    target: float
    covered: float
    width: float  # of a class's interval
    diameter: float  # largest total-variation distance within the set
    predicted: float  # width before


def main() -> None:
    """Measure if asked, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="make the results again")
    asked = parser.parse_args()
    if asked.measure:
        torch.set_num_threads(1)
        write(measured())
    sizes = read()
    print("\n".join([*scale_table(sizes), "", *method_table(sizes)]))


# Measuring


def measured() -> Iterator[Size]:
    """Every data set, number of votes, method, distance and scale."""
    predictions, counts = load_lidc()
    yield from sizes_of("nodules, 3–4 votes", predictions, counts)
    predictions, counts = load_cifar10h(DataFolders.named())
    yield from sizes_of("CIFAR-10H, 51 votes", predictions, counts)
    yield from sizes_of("CIFAR-10H, 3 votes", predictions, thinned(counts, 3))


def load_lidc() -> Loaded:
    """Lung nodules: trained on the second half of the patients."""
    nodules = load_nodules()
    patients = np.random.default_rng(0).permutation(np.unique(nodules.patients))
    train = ~np.isin(nodules.patients, patients[: len(patients) // 2])
    X, votes = nodules.features, nodules.votes
    return trained(X[train], votes[train], X[~train]), votes[~train]


def load_cifar10h(folders: DataFolders) -> Loaded:
    """CIFAR-10's test images as a published network's features: trained on 4,000 of 10,000."""
    task = load_task("cifar10h-features", folders)
    assert task.train_counts is not None
    assert task.voted_inputs is not None
    assert task.voted_counts is not None
    X, counts = task.voted_inputs.numpy(), task.voted_counts.numpy()
    return trained(X, counts, task.train_inputs.numpy()), task.train_counts.numpy()


def trained(X: np.ndarray, votes: np.ndarray, new: np.ndarray) -> dict[str, cl.CredalPredictions]:
    """What each method says of new items; on the paper's labels, so that only methods differ."""
    labels = cl.from_votes(votes, rule="relax")
    return {
        name: cl.CredalClassifier(name, epochs=40, random_state=1)
        .fit(X, labels)
        .predict_credal(new)
        for name in METHODS
    }


def thinned(counts: np.ndarray, num_votes: int) -> np.ndarray:
    """So many of each item's votes, drawn without putting back."""
    rng = np.random.default_rng(0)
    return np.stack([rng.multivariate_hypergeometric(row, num_votes) for row in counts])


def sizes_of(
    data: str, predictions: dict[str, cl.CredalPredictions], counts: np.ndarray
) -> Iterator[Size]:
    """Of one data set, every method, distance and scale."""
    shares = torch.from_numpy(counts / counts.sum(1, keepdims=True))
    for method, pred in predictions.items():
        pred = pred.to(torch.float64)
        point = cl.CredalPredictions.from_probs(pred.probs)
        far = total_variation(shares, pred.probs)
        for name, scale in CANDIDATES.items():
            factor = scale(pred)
            off = box_distance(shares, pred.lower, pred.upper, factor)
            for target in COVERAGES:
                found = size(pred, off, factor, target=target)
                yield Size(data=data, method=method, distance="box", scale=name, **found)
        for name, scale in KEPT.items():
            factor = scale(pred)
            factor = factor.sum(1, keepdim=True) / 2 if factor.shape[1] > 1 else factor
            for target in COVERAGES:
                found = size(point, far / factor[:, 0], factor, target=target, ball=True)
                yield Size(
                    data=data, method=method, distance="total-variation", scale=name, **found
                )
        print(f"{data}: {method}", flush=True)


def size(
    pred: cl.CredalPredictions, off: Tensor, factor: Tensor, *, target: float, ball: bool = False
) -> dict[str, float]:
    """Sets widened by the radius of one half of the items, looked at in the other.

    Args:
        pred: Predicted sets.
        off: Nonconformity of each item, shape (N,).
        factor: Scale of each, shape (N, 1) or (N, K).
        target: Coverage asked for.
        ball: Whether the set is the total-variation ball within the box: its diameter is then at
            most twice its radius.
    """
    shares, widths, diameters = [], [], []
    for split in range(SPLITS):
        order = torch.from_numpy(np.random.default_rng(split).permutation(len(off)))
        old, new = order[: len(off) // 2], order[len(off) // 2 :]
        radius = off[old].kthvalue(math.ceil((len(old) + 1) * target - 1e-9)).values
        shares.append(float((off[new] <= radius).double().mean()))
        if split >= WIDTHS:
            continue
        room = radius * factor[new]
        low, high = (pred.lower[new] - room).clamp(0, 1), (pred.upper[new] + room).clamp(0, 1)
        sets = cl.Intervals(low, torch.maximum(high, low))
        widths.append(float((sets.upper - sets.lower).mean()))
        if split < DIAMETERS:
            across = sets.diameter()
            if ball:
                across = torch.minimum(across, 2 * room[:, 0])
            diameters.append(float(across.mean()))
    return {
        "target": target,
        "covered": float(np.mean(shares)),
        "width": float(np.mean(widths)),
        "diameter": float(np.mean(diameters)),
        "predicted": float((pred.upper - pred.lower).mean()),
    }


# Files and tables


def write(sizes: Iterable[Size]) -> None:
    """Keep the results, whole or not at all."""
    with whole_file(RESULTS) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Size.__slots__)
        for each in sizes:
            values = [getattr(each, name) for name in Size.__slots__]
            writer.writerow([f"{x:.5f}" if isinstance(x, float) else x for x in values])


def read() -> list[Size]:
    """The results as they were kept."""
    with RESULTS.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = ("data", "method", "distance", "scale")
    numbers = [name for name in Size.__slots__ if name not in words]
    return [
        Size(**{n: row[n] for n in words}, **{n: float(row[n]) for n in numbers})  # type: ignore[arg-type]
        for row in rows
    ]


def scale_table(sizes: Sequence[Size]) -> list[str]:
    """Mean width and diameter by distance and scale, over the methods, as Markdown."""
    columns = list(dict.fromkeys((each.data, each.target) for each in sizes))
    head = [f"{data}, {100 * target:.0f} %" for data, target in columns]
    lines = [f"| distance | scale | {' | '.join(head)} |", f"| --- | --- |{' ---: |' * len(head)}"]
    for distance, scale in dict.fromkeys((each.distance, each.scale) for each in sizes):
        cells = []
        for data, target in columns:
            some = [
                each
                for each in sizes
                if (each.distance, each.scale, each.data, each.target)
                == (distance, scale, data, target)
            ]
            width, across = (np.mean([getattr(s, n) for s in some]) for n in ("width", "diameter"))
            cells.append(f"{width:.3f} · {across:.3f}")
        lines.append(f"| {distance} | {scale} | {' | '.join(cells)} |")
    return lines


def method_table(sizes: Sequence[Size]) -> list[str]:
    """Coverage and width by method, of boxes with the default scale, as Markdown."""
    default = next(iter(SCALES))
    sizes = [each for each in sizes if (each.distance, each.scale) == ("box", default)]
    columns = list(dict.fromkeys((each.data, each.target) for each in sizes))
    head = [f"{data}, {100 * target:.0f} %" for data, target in columns]
    lines = [f"| method | {' | '.join(head)} |", f"| --- |{' ---: |' * len(head)}"]
    place = {(each.method, each.data, each.target): each for each in sizes}
    for method in dict.fromkeys(each.method for each in sizes):
        cells = [
            f"{place[method, *column].width:.3f} ({100 * place[method, *column].covered:.1f} %)"
            for column in columns
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
