"""Widths: sets that cover 90 % of people's votes, on items that nothing else was chosen by.

Few votes: sets calibrated on three votes per item, compared with the votes of everybody else.

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
from credalearn._folds import Items, make_folds
from credalearn._selection import LinearPath, linear_path
from credalearn._targets import truth_of
from credalearn.conformal import Target
from credalearn.conformal.calibration import narrowest_scale
from credalearn.methods.taught import STRETCHES, narrowest, stretched
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet, cifar10n
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.studies import Score

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
    ) -> Iterator[Score]:
        """One radius is added, to some sets with the best of the scales."""
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
    yield from sets.scores(found, scaled=[DEFAULT])


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


def selected_path(
    X: Any, labels: cl.CredalSet, groups: np.ndarray | None, seed: int
) -> tuple[Items, LinearPath]:
    """The items, and linear models of their folds with a selected penalty."""
    sets = labels.to(dtype=torch.float64)
    inputs = torch.from_numpy(X) if isinstance(X, np.ndarray) else X
    items = Items(inputs, sets, truth_of(sets, None, np.arange(sets.num_classes)))
    folds = make_folds(items.truth, groups, random_state=seed)
    return items, linear_path(items, folds, sets.reference, lambda *_: None)


CALIBRATIONS: dict[str, tuple[int | None, Target]] = {
    "all votes": (None, "votes"),
    "three votes": (3, "votes"),
    "three votes, estimated": (3, "distribution"),
}
SHAPES: dict[str, dict[str, Any]] = {
    "box, scale binomial": {"scale": "binomial"},
    "box, scale relative-variance": {"scale": "relative-variance"},
    "total-variation ball": {"distance": "total-variation", "scale": "none"},
    "Kullback–Leibler ball": {"distance": "kullback-leibler", "scale": "none"},
}


def few_votes_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Every shape of set on one split of CIFAR-10H; the balls are conformal credal sets."""
    number, target = CALIBRATIONS[cell]
    data = CROWD_SETS["CIFAR-10H, 3 votes"](folders, seed + 100)  # 1 to 3: to write the estimate
    X, new = data.features(data.train, data.others)
    clf = cl.CredalClassifier(random_state=seed, device="cpu")
    boxes = clf.fit(X, cl.from_votes(data.counts[data.train])).predict_credal(new, meaning="votes")
    points = cl.CredalPredictions.from_vertices(boxes.probs[:, None])
    three, everyone = (torch.from_numpy(each[data.others]) for each in (data.counts, data.judged))
    count = len(data.split[1])
    observed = (everyone if number is None else three)[:count]
    for shape, options in SHAPES.items():
        sets = boxes if shape.startswith("box") else points
        inflation = sets[:count].inflation(observed, target=target, random_state=seed, **options)
        wide = sets[count:].conformalize(inflation)
        covered = sets[count:].covers((everyone - three)[count:], inflation).double().mean()
        yield shape, "width", float((wide.upper - wide.lower).mean())
        yield shape, "coverage", float(covered)
