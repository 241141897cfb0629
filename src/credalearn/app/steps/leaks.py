"""Columns that alone nearly determine the class: most often they were made from the labels.

Shapes: N items, D features.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from credalearn.app.features import Features

_FEWEST = 50  # items, to tell anything
_MOST = 2000  # items that are looked at; a column takes a millisecond
_ACCURACY = 0.95  # votes differ from the label that a column was made from


def find_leaks(X: Features, truth: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Held-out accuracy of the columns from which a small tree alone predicts the class.

    It must be 95 % or more, with a tenth of the errors of the most frequent class. Half of the
    items (N, D) grow the tree, half are held out; ``truth`` (N,) is −1 for none.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = np.random.default_rng(0).permutation(np.flatnonzero(truth >= 0))[:_MOST]
    if len(rows) < _FEWEST:
        return {}
    seen, held_out = np.array_split(rows, 2)
    most = np.bincount(truth[held_out]).max() / len(held_out)
    least = max(_ACCURACY, 1 - (1 - most) / 10)
    found = {}
    for number, name in enumerate(names):
        column = _numbers(X, number)
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * (int(truth.max()) + 1), random_state=0)
        tree.fit(column[seen], truth[seen])
        accuracy = float(tree.score(column[held_out], truth[held_out]))
        if most < 1 and accuracy >= least:
            found[name] = accuracy
    return found


def _numbers(X: Features, number: int) -> np.ndarray:
    """A column (N, 1) within float32, which trees use; texts as numbers of their sorted values."""
    if isinstance(X, pl.DataFrame):
        column = X.to_series(number)
        is_text = column.dtype == pl.String
        X = (column.rank("dense") if is_text else column).cast(pl.Float64).to_numpy()[:, None]
        number = 0
    return np.clip(X[:, [number]], -3e38, 3e38)
