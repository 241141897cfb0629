"""Widths: sets that cover 90 % of people's votes, on items that nothing else was chosen by.

Shapes: N items, K classes.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn.conformal.calibration import narrowest_scale
from credalearn.methods.taught import STRETCHES, narrowest, stretched
from credalearn_experiments.data.crowd_sets import CROWD_SETS
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.paths import selected_path
from credalearn_experiments.set_worth.scores import Score

BOUNDS, CENTER = "learned bounds", "its center ± f·√(p(1 − p))"
WIDTH_CELLS = {
    f"{data}, {kind}": (data, kind)
    for kind, more in (("linear", ("ConvAbuse", "ArMIS")), ("network", ()))
    for data in ("LIDC", "CIFAR-10H, 3 votes", "CIFAR-10H, all votes", *more)
}
SOFTMAX, DEFAULT = "one softmax ± f·√(p(1 − p))", "default of the package"
HULL, WIDE_HULL = "hull of the teachers", "hull of the teachers, stretched by f"
DISTILLED = "distilled POCC"
WIDTH_LEARNERS = (BOUNDS, CENTER, SOFTMAX, HULL, WIDE_HULL, DISTILLED, DEFAULT)
_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


def width_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Every contender on one split: a third of the calibration items chooses for the rivals."""
    name, kind = WIDTH_CELLS[cell]
    data = CROWD_SETS[name](folders, seed)
    X, new = data.features(data.train, data.others)
    labels = cl.from_votes(data.counts[data.train])
    groups = None if data.groups is None else data.groups[data.train]
    observed = torch.from_numpy(data.counts[data.others])
    count = len(data.split[1])
    parts = np.split(np.arange(len(observed)), [count // 3, count])

    def fit(method: str, backbone: str = "linear" if kind == "linear" else "mlp") -> Any:
        clf = cl.CredalClassifier(method, backbone=backbone, random_state=seed, device="cpu")
        return clf.fit(X, labels, groups=groups).predict_credal(new, meaning="votes")

    def stretched_best(center: Tensor, ends: Tensor, factors: Any = STRETCHES) -> Any:
        """Boxes (N, 2, K) around a center, times the factor that the items to choose by prefer."""
        some = partial(stretched, center[parts[0]], ends[parts[0]])
        return stretched(center, ends, narrowest(some, observed[parts[0]], factors))

    def spread(center: Tensor) -> Any:
        gaps = (center * (1 - center)).clamp(min=0).sqrt()
        return stretched_best(center, torch.stack([center - gaps, center + gaps], 1), _FACTORS)

    bounds = fit("credal-bounds")
    found = {BOUNDS: bounds, CENTER: spread(bounds.probs), DISTILLED: fit("pocc-distilled")}
    if kind == "linear":
        hull = _fold_hull(X, labels, new, groups, seed)
        found[DEFAULT] = fit("auto", "auto")
    else:
        found[SOFTMAX] = spread(fit("softmax").probs)
        hull = fit("deep-ensemble")
    found[HULL] = hull
    found[WIDE_HULL] = stretched_best(hull.probs, torch.stack([hull.lower, hull.upper], 1))
    for learner, boxes in found.items():
        some, calibration, test = (boxes[rows] for rows in parts)
        scale: Any = "none"
        if learner == DEFAULT:
            bounded = (some.lower, some.upper, some.probs)
            scale = narrowest_scale(observed[parts[0]], *bounded, coverage=0.9)
        inflation = calibration.inflation(observed[parts[1]], scale=scale)
        wide = test.conformalize(inflation)
        covered = test.covers(observed[parts[2]], inflation).double().mean()
        yield "widths", cell, learner, seed, "width", float((wide.upper - wide.lower).mean())
        yield "widths", cell, learner, seed, "coverage", float(covered)


def _fold_hull(
    X: Any, labels: cl.CredalSet, new: Any, groups: np.ndarray | None, seed: int
) -> cl.CredalPredictions:
    """The hull of the linear models of the folds, which teach the learned bounds."""
    _, path = selected_path(X, labels, groups, seed)
    softmax = cl.methods.METHODS["softmax"]
    given = torch.from_numpy(new).float() if isinstance(new, np.ndarray) else new
    points = [
        cl.methods.Model(softmax, (problem.network([head]),), {}, 0).predict(given).probs
        for problem, head in zip(path.problems, path.centers, strict=True)
    ]
    return cl.CredalPredictions.from_vertices(torch.stack(points, 1))
