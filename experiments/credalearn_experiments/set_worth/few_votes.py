"""Few votes: sets calibrated on three votes per item, compared with the votes of everybody else."""

from collections.abc import Iterator
from typing import Any

import torch

import credalearn as cl
from credalearn.conformal import Target
from credalearn_experiments.data.crowd_sets import CROWD_SETS
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.scores import Score

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
        yield "few votes", cell, shape, seed, "width", float((wide.upper - wide.lower).mean())
        yield "few votes", cell, shape, seed, "coverage", float(covered)
