"""The model next to simple rivals, and columns that alone nearly determine the class."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn._selection import logistic_regression
from credalearn._targets import truth_of
from credalearn._temperature import log_probs
from credalearn.app.annotations.agreement import majority
from credalearn.app.dataset import Dataset
from credalearn.app.facts import ComparisonFacts
from credalearn.app.features import Features
from credalearn.classifier import CredalClassifier
from credalearn.metrics import accuracy, accuracy_rejection, ece
from credalearn.sets import CredalSet

_DEFERRED = 0.2
_FEWEST = 50  # items, to tell anything
_MOST = 2000  # items that are looked at; a column takes a millisecond
_ACCURACY = 0.95  # votes differ from the label that a column was made from


def one_truth(data: Dataset, rows: np.ndarray, labels: CredalSet) -> Tensor:
    """The right class of these items as a distribution (N, K); tied classes have equal shares."""
    truth = torch.from_numpy(data.truth[rows])
    right = truth_of(labels, None, np.arange(labels.num_classes))
    known = truth >= 0
    right[known] = one_hot(truth[known], labels.num_classes).double()
    return right


def compare(
    data: Dataset, rows: np.ndarray, labels: CredalSet, clf: CredalClassifier, right: Tensor
) -> ComparisonFacts | None:
    """The classifier, logistic regression and the most frequent class; None without a truth."""
    assert data.part is not None
    where: Literal["out of fold", "calibration"] = "calibration"
    judged, shares = np.flatnonzero(data.part == "calibration"), right.mean(0)
    models: dict[str, Tensor] = {}
    if clf.out_of_fold_ is None or clf.folds_ is None:
        models["most frequent class"] = shares.expand(len(judged), -1)
        models["this model"] = clf.predict_credal(data.X[judged]).probs
    else:
        judged, where = rows, "out of fold"
        others = [right[clf.folds_ != fold].mean(0) for fold in range(clf.folds_.max() + 1)]
        models["most frequent class"] = torch.stack(others)[clf.folds_]
        items = clf.fold_items(data.X[rows], labels, right)
        models["logistic regression"] = logistic_regression(items, clf.folds_)
        models["this model"] = clf.out_of_fold_.probs
    source, truth = data.truth_source, torch.from_numpy(data.truth[judged])
    if where == "out of fold" and not (truth >= 0).any():  # gold labels of held-out items alone
        source, truth = "majority", torch.from_numpy(majority(data.counts[judged]))
    known = truth >= 0
    if not known.any():
        return None
    return ComparisonFacts(
        where=where,
        items=int(known.sum()),
        most_frequent=data.annotations.classes[int(shares.argmax())],
        truth=source,
        models={name: _quality(probs[known], truth[known]) for name, probs in models.items()},
    )


def _quality(probs: Tensor, y: Tensor) -> dict[str, float]:
    probs = probs.double()
    curve = accuracy_rejection(probs, y, 1 - probs.amax(1))
    kept = max(1, round((1 - _DEFERRED) * len(y)))
    likelihood = log_probs(probs).gather(1, y[:, None]).mean()
    found: dict[str, Any] = {
        "accuracy": accuracy(probs, y),
        "log_likelihood": likelihood,
        "ece": ece(probs, y),
        "accuracy_kept": curve[kept - 1],
    }
    return {name: round(float(value), 4) for name, value in found.items()}


def find_leaks(X: Features, truth: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Held-out accuracy of the columns from which a small tree alone predicts the class."""
    from sklearn.tree import DecisionTreeClassifier

    rows = np.random.default_rng(0).permutation(np.flatnonzero(truth >= 0))[:_MOST]
    if len(rows) < _FEWEST:
        return {}
    seen, held_out = np.array_split(rows, 2)
    most = np.bincount(truth[held_out]).max() / len(held_out)
    least = max(_ACCURACY, 1 - (1 - most) / 10)
    table = X if isinstance(X, pl.DataFrame) else pl.from_numpy(X, schema=list(names))
    found = {}
    for name, values in zip(names, table.iter_columns(), strict=True):
        # Texts as numbers of their sorted values; all within float32, which trees use.
        values = values.rank("dense") if values.dtype == pl.String else values
        column = np.clip(values.cast(pl.Float64).to_numpy()[:, None], -3e38, 3e38)
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * (int(truth.max()) + 1), random_state=0)
        tree.fit(column[seen], truth[seen])
        accuracy = float(tree.score(column[held_out], truth[held_out]))
        if most < 1 and accuracy >= least:
            found[name] = accuracy
    return found
