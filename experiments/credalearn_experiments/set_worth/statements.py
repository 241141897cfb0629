"""Statements: CIFAR-10S on features of two networks, judged by people's votes on other images.

Shapes: N items, K classes.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

import credalearn as cl
from credalearn_experiments.data.cifar import CIFAR10_CLASSES
from credalearn_experiments.data.crowd_sets import (
    network_features,
    read_cifar10s,
    stated_sets,
    voted_features,
)
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.kinds import scores_of
from credalearn_experiments.set_worth.widths import selected_path
from credalearn_experiments.studies import Score

CELLS = {
    f"{people} {'person' if people == 1 else 'people'}, {images:,} images": (people, images)
    for people in (1, 2, 6)
    for images in (100, 300, 1000)
}
STATED = {
    "softmax, top classes": ("top", (2,)),
    "softmax, authors' soft labels": ("soft", (2,)),
    "softmax, centers of statements": ("stated", (2,)),
    "POCC, statements": ("stated", (0, 1)),
    "POCC, statements, center head": ("stated", (0, 1, 2)),
    "POCC, relaxed soft labels": ("soft", (0, 1)),
    "POCC, relaxed soft labels, center head": ("soft", (0, 1, 2)),
}
PAIRS = (
    "POCC, statements less softmax, centers of statements",
    "POCC, statements less softmax, authors' soft labels",
    "POCC, relaxed soft labels less softmax, authors' soft labels",
    "POCC, relaxed soft labels, center head less softmax, authors' soft labels",
)


def statement_scores(
    cell: str, random_state: int, folders: DataFolders, *, own: bool = False
) -> Iterator[Score]:
    """Every label and method on one draw of images and people; features public or of our own."""
    num_people, num_images = CELLS[cell]
    public, judged = voted_features(folders)
    X = network_features("test_batch", folders) if own else public
    stated = read_cifar10s("human_soft_labels_data", folders)
    authors = read_cifar10s("cifar10s_t2clamp_redist10", folders)
    names, images = list(stated), np.array([int(name) for name in stated])
    random = np.random.default_rng(random_state)
    chosen = random.permutation(len(images))[:num_images]
    who = [random.permutation(len(stated[names[place]]))[:num_people] for place in chosen]
    drawn = [(names[place], rows) for place, rows in zip(chosen, who, strict=True)]
    people = [[stated[name][each] for each in rows] for name, rows in drawn]
    said = [[each["Most Probable Class"].lower() for each in some] for some in people]
    labels = {
        "top": cl.from_votes([[tops.count(name) for name in CIFAR10_CLASSES] for tops in said]),
        "soft": cl.relax(np.stack([np.array(authors[name])[rows].mean(0) for name, rows in drawn])),
        "stated": stated_sets(people),
    }
    test = np.setdiff1d(np.arange(len(X)), images)
    votes = torch.from_numpy(judged[test] / judged[test].sum(1, keepdims=True))
    right = torch.from_numpy(judged[test].argmax(1))
    train, new = X[images[chosen]], torch.from_numpy(X[test])
    heads = {name: _heads(train, sets, new, random_state) for name, sets in labels.items()}
    for learner, (name, places) in STATED.items():
        probs = heads[name][:, places].mean(1)
        yield from scores_of(learner, probs, right, votes)


def _heads(train: np.ndarray, labels: cl.CredalSet, new: Tensor, random_state: int) -> Tensor:
    """Probabilities (N, 3, K) of a pessimist, an optimist and a center with a selected penalty."""
    items, path = selected_path(train, labels, None, random_state)
    problem, soft = items.problem(items.inputs), items.labels.reference
    center = problem.fit(lambda _: soft, path.penalty, path.centers[0])
    network = problem.network(problem.fit_credal(items.labels, path.penalty, center))
    with torch.no_grad():
        return network(new.float()).double().softmax(2)
