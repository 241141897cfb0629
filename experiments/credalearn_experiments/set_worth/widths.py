"""Widths: sets that cover 90 % of people's votes, on items that nothing else was chosen by.

Shapes: N items, K classes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn.conformal.calibration import narrowest_scale
from credalearn.methods.taught import STRETCHES, narrowest, stretched
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet, cifar10n
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.paths import selected_path
from credalearn_experiments.set_worth.scores import Score

BOUNDS, CENTER = "learned bounds", "its center ± f·√(p(1 − p))"
WIDTH_CELLS = {
    f"{data}, {kind}": (data, kind)
    for kind, more in (("linear", ("ConvAbuse", "ArMIS")), ("network", ()))
    for data in ("LIDC", "CIFAR-10H, 3 votes", "CIFAR-10H, all votes", "CIFAR-10N", *more)
}
SOFTMAX, DEFAULT = "one softmax ± f·√(p(1 − p))", "default of the package"
HULL, WIDE_HULL = "hull of the teachers", "hull of the teachers, stretched by f"
DISTILLED = "distilled POCC"
WIDTH_LEARNERS = (BOUNDS, CENTER, SOFTMAX, HULL, WIDE_HULL, DISTILLED, DEFAULT)
_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Votes on items outside training: a third of the calibration items chooses for the rivals."""

    observed: Tensor  # votes on calibration items, then on test items, shape (N, K)
    parts: Sequence[np.ndarray]  # rows to choose by, to calibrate on and to test on

    @classmethod
    def of(cls, data: CrowdSet) -> Self:
        """Those of a data set."""
        observed, count = torch.from_numpy(data.counts[data.others]), len(data.split[1])
        return cls(observed, np.split(np.arange(len(observed)), [count // 3, count]))

    def stretched(
        self, center: Tensor, ends: Tensor, factors: Sequence[float] = STRETCHES
    ) -> cl.CredalPredictions:
        """Boxes (N, 2, K) around a center, times the factor that the items to choose by prefer."""
        rows = self.parts[0]
        some = partial(stretched, center[rows], ends[rows])
        return stretched(center, ends, narrowest(some, self.observed[rows], factors))

    def spread(self, center: Tensor) -> cl.CredalPredictions:
        """The center ± f·√(p(1 − p))."""
        gaps = (center * (1 - center)).clamp(min=0).sqrt()
        return self.stretched(center, torch.stack([center - gaps, center + gaps], 1), _FACTORS)

    def wide_hull(self, hull: cl.CredalPredictions) -> cl.CredalPredictions:
        """The box around a hull, stretched."""
        return self.stretched(hull.probs, torch.stack([hull.lower, hull.upper], 1))

    def scores(
        self, found: Mapping[str, cl.CredalPredictions], *, scaled: Collection[str]
    ) -> Iterator[tuple[str, str, float]]:
        """Learner, metric and value: one radius is added, to some with the best of the scales."""
        choosing, calibrating, testing = (self.observed[rows] for rows in self.parts)
        for learner, boxes in found.items():
            some, calibration, test = (boxes[rows] for rows in self.parts)
            scale: Any = "none"
            if learner in scaled:
                bounded = (some.lower, some.upper, some.probs)
                scale = narrowest_scale(choosing, *bounded, coverage=0.9)
            inflation = calibration.inflation(calibrating, scale=scale)
            wide = test.conformalize(inflation)
            yield learner, "width", float((wide.upper - wide.lower).mean())
            yield learner, "coverage", float(test.covers(testing, inflation).double().mean())


def width_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Every contender on one split."""
    name, kind = WIDTH_CELLS[cell]
    data = (CROWD_SETS | {"CIFAR-10N": cifar10n})[name](folders, seed)
    X, new = data.features(data.train, data.others)
    labels = cl.from_votes(data.counts[data.train])
    groups = None if data.groups is None else data.groups[data.train]
    sets = Sets.of(data)

    def fit(method: str, backbone: str = "linear" if kind == "linear" else "mlp") -> Any:
        clf = cl.CredalClassifier(method, backbone=backbone, random_state=seed, device="cpu")
        return clf.fit(X, labels, groups=groups).predict_credal(new, meaning="votes")

    bounds = fit("credal-bounds")
    found = {BOUNDS: bounds, CENTER: sets.spread(bounds.probs), DISTILLED: fit("pocc-distilled")}
    if kind == "linear":
        hull = _fold_hull(X, labels, new, groups, seed)
        found[DEFAULT] = fit("auto", "auto")
    else:
        found[SOFTMAX] = sets.spread(fit("softmax").probs)
        hull = fit("deep-ensemble")
    found |= {HULL: hull, WIDE_HULL: sets.wide_hull(hull)}
    for learner, metric, value in sets.scores(found, scaled=[DEFAULT]):
        yield "widths", cell, learner, seed, metric, value


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
