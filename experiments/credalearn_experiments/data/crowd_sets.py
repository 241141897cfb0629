"""Crowd data sets for comparing learners: items with few votes, judged by many or by majorities.

Shapes: N items, D features, K classes.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from torch import Tensor

from credalearn._tensors import read_tensors
from credalearn.app.nodules import load_nodules
from credalearn.labels import from_statements, from_votes
from credalearn.nets import build_network
from credalearn.sets import CredalSet
from credalearn_experiments.data.cifar import (
    CIFAR10_CLASSES,
    cifar10n_votes,
    read_cifar10,
    read_cifar10h,
)
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.teachers import teacher_features

Rows = np.ndarray
Votes = tuple[np.ndarray, np.ndarray, np.ndarray]  # item, annotator and class of each vote


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CrowdSet:
    """Items split into training, calibration and test, for one seed."""

    features: Callable[[Rows, Rows], tuple[Any, Any]]  # of training and of other items
    counts: np.ndarray  # votes that training sees, shape (N, K)
    judged: np.ndarray  # votes that predictions are compared with, shape (N, K)
    truth: np.ndarray  # the right class, −1 for none, shape (N,)
    split: Sequence[Rows]  # rows of training, calibration and test
    groups: np.ndarray | None = None
    named: Votes | None = None  # votes by annotators with names
    words: Callable[[Rows, Rows], tuple[Any, Any]] | None = None  # dense features, for networks
    max_error: float = 0.05  # of the certificate

    @property
    def train(self) -> Rows:
        """Rows that are trained on."""
        return self.split[0]

    @property
    def others(self) -> Rows:
        """Rows of calibration, then of test."""
        return np.concatenate(self.split[1:])

    @property
    def inputs(self) -> tuple[Any, Any]:
        """Features of the training items and of the others."""
        return self.features(self.train, self.others)

    @property
    def labels(self) -> CredalSet:
        """What the votes say of the training items."""
        return from_votes(self.counts[self.train])

    @property
    def train_groups(self) -> np.ndarray | None:
        """Groups of the training items, if there are groups."""
        return None if self.groups is None else self.groups[self.train]

    @property
    def answers(self) -> tuple[Tensor, Tensor]:
        """The right classes (N,) and the shares of the votes (N, K) of the other items."""
        judged = self.judged[self.others]
        shares = torch.from_numpy(judged / judged.sum(1, keepdims=True))
        return torch.from_numpy(self.truth[self.others]), shares


def _dense(X: np.ndarray) -> Callable[[Rows, Rows], tuple[Any, Any]]:
    return lambda train, others: (X[train], X[others])


def lidc(folders: DataFolders, random_state: int) -> CrowdSet:  # noqa: ARG001
    """Lung nodules, three or four radiologists each; three of five patients are trained on."""
    nodules = load_nodules()
    counts = nodules.votes.astype(float)
    patients = np.random.default_rng(random_state).permutation(np.unique(nodules.patients))
    parts = np.split(patients, [-(-len(patients) * 3 // 5), -(-len(patients) * 4 // 5)])
    return CrowdSet(
        features=_dense(nodules.features.astype(float)),
        counts=counts,
        judged=counts,
        truth=np.where(nodules.has_majority, nodules.majority, -1),
        split=[np.flatnonzero(np.isin(nodules.patients, part)) for part in parts],
        groups=nodules.patients,
        max_error=0.2,
    )


def cifar10h(num_votes: int | None, folders: DataFolders, random_state: int) -> CrowdSet:
    """CIFAR-10H as 64 features, with so many votes for training, judged by all votes."""
    X, judged = voted_features(folders)
    random = np.random.default_rng(random_state)
    split = np.split(random.permutation(len(X)), [3000, 4500])
    counts = judged.astype(float)
    if num_votes is not None:
        draw = random.multivariate_hypergeometric
        counts = np.array([draw(each, num_votes) for each in judged], dtype=float)
    return _on_features(X, counts, judged, split)


def cifar10n(folders: DataFolders, random_state: int) -> CrowdSet:
    """CIFAR-10N, three votes on each of 10,000 images that its network has not seen."""
    X, votes = network_features("data_batch_5", folders), cifar10n_votes(folders)[-10_000:].numpy()
    split = np.split(np.random.default_rng(random_state).permutation(len(X)), [3000, 4500])
    return _on_features(X, votes.astype(float), votes, split)


def cifar10s(folders: DataFolders, random_state: int) -> CrowdSet:
    """CIFAR-10S: six or seven people's top classes, judged by CIFAR-10H's votes on other images."""
    X, judged = voted_features(folders)
    stated = read_cifar10s("human_soft_labels_data", folders)
    counts = np.zeros(judged.shape)
    for image, people in stated.items():
        for person in people:
            counts[int(image), CIFAR10_CLASSES.index(person["Most Probable Class"].lower())] += 1
    random = np.random.default_rng(random_state)
    has = counts.sum(1) > 0
    train = random.permutation(np.flatnonzero(has))[:800]
    calibration, test = np.split(random.permutation(np.flatnonzero(~has)), [1500])
    return _on_features(X, counts, judged, [train, calibration, test])


def read_cifar10s(name: str, folders: DataFolders) -> dict[str, list[Any]]:
    """What a file of CIFAR-10S has for each image, by its number among CIFAR-10's test images."""
    return _read_json(f"cifar10s/{name}", "CIFAR-10S", folders)


def stated_sets(people: Sequence[Sequence[Mapping[str, Any]]]) -> CredalSet:
    """The statements of CIFAR-10S's people about each image as sets."""
    rows = [(item, each) for item, some in enumerate(people) for each in some]

    def named(field: str) -> list[str | None]:
        names = [each[field].lower() for _, each in rows]
        return [None if name == "no" else name for name in names]

    def percents(field: str) -> list[float]:
        return [np.nan if each[field] is None else each[field] for _, each in rows]

    return from_statements(
        named("Most Probable Class"),
        percents("Most Probable Class Prob"),
        named("Second Most Probable Class"),
        percents("Second Most Probable Class Prob"),
        [[name.lower() for name in each["Impossible Class(es)"]] for _, each in rows],
        classes=CIFAR10_CLASSES,
        items=[item for item, _ in rows],
    )


def _read_json(name: str, source: str, folders: DataFolders) -> dict[str, Any]:
    get = f"put {name}.json.gz, a file of {source}, into the data folder"
    with gzip.open(folders.find(f"{name}.json.gz", what=source, get=get), "rt") as file:
        return json.load(file)


def lewidi(name: str, max_error: float, folders: DataFolders, random_state: int) -> CrowdSet:
    """A text set of LeWiDi 2023, all official parts pooled and split at random, 60:20:20."""
    texts, counts, named = _lewidi(name, folders)
    rows = np.random.default_rng(random_state).permutation(len(texts))

    def features(maker: Any, train: Rows, others: Rows) -> tuple[Any, Any]:
        known, new = ([texts[row] for row in part] for part in (train, others))
        return maker.fit_transform(known), maker.transform(new)

    both = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
    )
    few = make_pipeline(
        TfidfVectorizer(max_features=1000, sublinear_tf=True),
        FunctionTransformer(lambda X: X.toarray(), accept_sparse=True),
    )
    tied = (counts == counts.max(1, keepdims=True)).sum(1) > 1
    return CrowdSet(
        features=partial(features, both),
        words=partial(features, few),
        counts=counts,
        judged=counts,
        truth=np.where(tied, -1, counts.argmax(1)),
        split=np.split(rows, [len(rows) * 3 // 5, len(rows) * 4 // 5]),
        named=named,
        max_error=max_error,
    )


def _on_features(
    X: np.ndarray, counts: np.ndarray, judged: np.ndarray, split: Sequence[Rows]
) -> CrowdSet:
    return CrowdSet(
        features=_dense(X),
        counts=counts,
        judged=judged.astype(float),
        truth=judged.argmax(1),
        split=split,
    )


@cache
def voted_features(folders: DataFolders) -> tuple[np.ndarray, np.ndarray]:
    """Features of all 10,000 images, and their votes; computing them takes longer than a fit."""
    images, _, counts = read_cifar10h(folders)
    return teacher_features(images, folders).double().numpy(), counts.numpy()


@cache
def network_features(batch: str, folders: DataFolders) -> np.ndarray:
    """The 512 features of a batch of CIFAR-10 by a network of our own, shape (10000, 512).

    The network of setting ``cifar10n-network``: it learned from three people's votes on four of the
    training batches, and has seen neither ``data_batch_5``, nor the test images, nor a true class.
    """
    name = "networks/cifar10n-resnet18.safetensors"
    get = (
        "credalearn-experiments run cifar10n-network, and copy model.safetensors of "
        f"store/cifar10n-network/softmax/seed-1 to {name} in the data folder"
    )
    path = folders.find(name, what="the network of cifar10n-network", get=get)
    images, _ = read_cifar10(batch, folders)
    network = build_network("resnet18", images[:2], num_heads=1, num_classes=10).eval()
    network.load_state_dict(read_tensors(path, fix=get)[0])
    with torch.no_grad():
        features = [network.features(some) for some in torch.split(images, 500)]
    return torch.cat(features).double().numpy()


def _lewidi(name: str, folders: DataFolders) -> tuple[list[str], np.ndarray, Votes]:
    """Texts, votes (N, 2) and who voted for what; ConvAbuse's −3 to −1 are abusive, 0 and 1 not."""
    texts: list[str] = []
    votes: list[tuple[int, str, int]] = []
    for part in ("train", "dev", "test"):
        records = _read_json(f"lewidi/{name}_{part}", f"{name} of LeWiDi 2023", folders)
        for record in records.values():
            people, answers = (record[key].split(",") for key in ("annotators", "annotations"))
            for person, answer in zip(people, answers, strict=True):
                label = int(answer) < 0 if name == "ConvAbuse" else int(answer) == 1
                votes.append((len(texts), person, int(label)))
            texts.append(record["text"])
    item, person, labels = (np.array(each) for each in zip(*votes, strict=True))
    counts = np.zeros((len(texts), 2))
    np.add.at(counts, (item, labels), 1)
    return texts, counts, (item, np.unique(person, return_inverse=True)[1], labels)


CROWD_SETS: dict[str, Callable[[DataFolders, int], CrowdSet]] = {
    "LIDC": lidc,
    "CIFAR-10H, 1 vote": partial(cifar10h, 1),
    "CIFAR-10H, 3 votes": partial(cifar10h, 3),
    "CIFAR-10H, 10 votes": partial(cifar10h, 10),
    "CIFAR-10H, all votes": partial(cifar10h, None),
    "CIFAR-10S": cifar10s,
    "ConvAbuse": partial(lewidi, "ConvAbuse", 0.05),
    "ArMIS": partial(lewidi, "ArMIS", 0.2),
}
"""Makers of data sets, by name; each takes the data folders and a seed."""
