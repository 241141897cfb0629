"""Widths: sets that cover 90 % of people's votes, on items that nothing else was chosen by.

Few votes: sets calibrated on three votes per item, compared with the votes of everybody else.

Shapes: N items, K classes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import credalearn as cl
from credalearn._folds import Items, make_folds
from credalearn._selection import LinearPath, linear_path
from credalearn._targets import truth_of
from credalearn.conformal import Target
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet, cifar10n
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.guaranteed_sets import GuaranteedSets
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


def guaranteed_sets(data: CrowdSet, votes: np.ndarray) -> GuaranteedSets:
    """Calibration and test items of a data set, and their votes of these (N, K)."""
    observed = torch.from_numpy(votes[data.others])
    return GuaranteedSets.split(observed, np.arange(len(observed)), len(data.split[1]))


def width_scores(cell: str, random_state: int, folders: DataFolders) -> Iterator[Score]:
    """Every contender on one split."""
    name, kind = WIDTH_CELLS[cell]
    data = (CROWD_SETS | {"CIFAR-10N": cifar10n})[name](folders, random_state)
    (X, new), labels, groups = data.inputs, data.labels, data.train_groups
    sets = guaranteed_sets(data, data.counts)

    def fit(method: str, backbone: str = "linear" if kind == "linear" else "mlp") -> Any:
        clf = cl.CredalClassifier(
            method, backbone=backbone, random_state=random_state, device="cpu"
        )
        return clf.fit(X, labels, groups=groups).predict_credal(new, meaning="votes")

    bounds = fit("credal-bounds")
    found = {BOUNDS: bounds, CENTER: sets.spread(bounds.probs), DISTILLED: fit("pocc-distilled")}
    if kind == "linear":
        hull = _fold_hull(data, random_state)
        found[DEFAULT] = fit("auto", "auto")
    else:
        found[SOFTMAX] = sets.spread(fit("softmax").probs)
        hull = fit("deep-ensemble")
    found |= {HULL: hull, WIDE_HULL: sets.wide_hull(hull)}
    yield from sets.scores(found, scaled=[DEFAULT])


def _fold_hull(data: CrowdSet, random_state: int) -> cl.CredalPredictions:
    """The hull of the linear models of the folds, which teach the learned bounds."""
    X, new = data.inputs
    _, path = selected_path(X, data.labels, data.train_groups, random_state)
    softmax = cl.methods.METHODS["softmax"]
    given = torch.from_numpy(new).float() if isinstance(new, np.ndarray) else new
    points = [
        cl.methods.Model(softmax, (problem.network([head]),), {}, 0).predict(given).probs
        for problem, head in zip(path.problems, path.centers, strict=True)
    ]
    return cl.CredalPredictions.from_vertices(torch.stack(points, 1))


def selected_path(
    X: Any, labels: cl.CredalSet, groups: np.ndarray | None, random_state: int
) -> tuple[Items, LinearPath]:
    """The items, and linear models of their folds with a selected penalty."""
    sets = labels.to(dtype=torch.float64)
    inputs = torch.from_numpy(X) if isinstance(X, np.ndarray) else X
    items = Items(inputs, sets, truth_of(sets, None, np.arange(sets.num_classes)))
    folds = make_folds(items.truth, groups, random_state=random_state)
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


def few_votes_scores(cell: str, random_state: int, folders: DataFolders) -> Iterator[Score]:
    """Every shape of set on one split of CIFAR-10H; the balls are conformal credal sets."""
    number, target = CALIBRATIONS[cell]
    data = CROWD_SETS["CIFAR-10H, 3 votes"](
        folders, random_state + 100
    )  # 1 to 3: to write the estimate
    X, new = data.inputs
    clf = cl.CredalClassifier(random_state=random_state, device="cpu")
    boxes = clf.fit(X, data.labels).predict_credal(new, meaning="votes")
    points = cl.CredalPredictions.from_vertices(boxes.probs[:, None])
    three, everyone = (torch.from_numpy(each[data.others]) for each in (data.counts, data.judged))
    count = len(data.split[1])
    observed = (everyone if number is None else three)[:count]
    for shape, options in SHAPES.items():
        sets = boxes if shape.startswith("box") else points
        inflation = sets[:count].inflation(
            observed, target=target, random_state=random_state, **options
        )
        wide = sets[count:].conformalize(inflation)
        covered = sets[count:].covers((everyone - three)[count:], inflation).double().mean()
        yield shape, "width", float((wide.upper - wide.lower).mean())
        yield shape, "coverage", float(covered)
