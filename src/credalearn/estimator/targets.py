"""What users give as y, as credal sets with class names.

Shapes: N items, K classes.
"""

from numbers import Number
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch.nn.functional import one_hot

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn.labels.soft import SOFT_RULES, precise
from credalearn.sets import CredalSet
from credalearn.sets.checks import as_distributions


def column_names(y: Any) -> list[Any] | None:
    """The class names in a data frame of soft labels, else None."""
    names = list(getattr(y, "columns", ()))
    return names if len(names) > 1 else None


def as_credal(y: Any, *, names: ArrayLike | None, label_rule: str) -> tuple[CredalSet, np.ndarray]:
    """Credal labels and the K class names.

    Args:
        y: A credal set; an array of class labels (N,) or (N, 1); or of soft labels (N, K).
        names: The class names in order, where they are known.
        label_rule: What soft labels become, a key of ``SOFT_RULES``.
    """
    check_choice(label_rule, SOFT_RULES, name="label_rule")
    if not isinstance(y, CredalSet) and (y.ndim == 1 or y.shape[1] == 1):
        return _from_labels(column_or_1d(y, warn=True), names)
    if isinstance(y, CredalSet):
        labels = y
    else:
        try:
            soft = as_distributions(np.asarray(y, dtype=np.float64), name="probs", ndim=2)
            labels = SOFT_RULES[label_rule](soft, soft.argmax(1))
        except (CredalError, ValueError) as error:
            raise CredalError(
                f"y of shape {y.shape} is read as soft labels, a distribution an item: {error} "
                f"Counts of votes become labels by credalearn.from_votes(counts).{_if_coded(y)}"
            ) from error
    classes = np.arange(labels.num_classes) if names is None else _as_names(names)
    if classes.shape != (labels.num_classes,):
        raise CredalError(
            f"classes must name the {labels.num_classes} classes of y; got {classes.tolist()}. To "
            f"fix: give {labels.num_classes} names, in the order of the columns of y."
        )
    _check_two_classes(classes)
    return labels, classes


def top_classes(y: Any, *, num_classes: int) -> np.ndarray:
    """The top class's index of each soft or credal label (N, K), checked as for training."""
    y = y if isinstance(y, CredalSet) else np.asarray(y)
    if y.shape[1] != num_classes:
        raise CredalError(
            f"y must be over the {num_classes} classes that were learned; got {y.shape[1]}. To fix: "
            "give y a column for each of them, in the order of classes_."
        )
    labels, _ = as_credal(y, names=None, label_rule="precise")
    top: np.ndarray = labels.reference.numpy(force=True).argmax(1)
    return top


def _if_coded(y: np.ndarray) -> str:
    """A hint where whole numbers may be scikit-learn's codes: one for each value of a column."""
    if not np.issubdtype(y.dtype, np.integer):
        return ""
    return (
        " If these are not your numbers, cross_val_predict(..., method='predict_proba') coded the "
        "columns of your labels: loop over KFold().split(X) and predict_credal there instead."
    )


def _from_labels(y: np.ndarray, names: ArrayLike | None) -> tuple[CredalSet, np.ndarray]:
    """One class label an item: a precise set on that class."""
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    if names is not None:
        wanted = _as_names(names)
        unknown = [each for each in classes.tolist() if each not in wanted.tolist()]
        if unknown:
            raise CredalError(
                f"classes must hold every label of y; {unknown} are missing. To fix: add them, or "
                "leave classes out."
            )
        position = {name: place for place, name in enumerate(wanted.tolist())}
        index = np.array([position[each] for each in classes.tolist()])[index]
        classes = wanted
    _check_two_classes(classes)
    hard = one_hot(torch.from_numpy(index).long(), len(classes))
    return precise(hard.to(torch.get_default_dtype())), classes


def _as_names(names: ArrayLike) -> np.ndarray:
    """Class names as an array: strings or numbers, no name twice."""
    if isinstance(names, str | set | frozenset) or not hasattr(names, "__len__"):
        raise CredalError(
            f"classes must be a list of names, in order; got {names!r}. To fix: give a list such "
            "as ['no', 'yes']."
        )
    given = np.asarray(names).tolist() if hasattr(names, "__array__") else list(names)  # type: ignore[arg-type]
    strings = [isinstance(name, str) for name in given]
    plain = all(strings) or (
        not any(strings) and all(isinstance(x, Number | np.generic) and x == x for x in given)
    )
    if not plain or len(set(given)) < len(given):
        raise CredalError(
            f"class names must be all strings or all numbers, each different; got {given}. To fix: "
            "make them strings, each another."
        )
    return np.asarray(given)


def _check_two_classes(classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise CredalError(
            f"a classifier needs two classes or more; y has one class only: {classes.tolist()}. To "
            "fix: add items of another class, or name all classes by classes=[...]."
        )
