"""Targets y of the classifier, as credal sets with class names."""

from numbers import Number
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn._checks import check_choice, check_present
from credalearn._formats import many
from credalearn.errors import CredalError
from credalearn.labels.soft import SOFT_RULES, precise
from credalearn.sets import CredalSet
from credalearn.sets._checks import as_distributions, require_shape


def ordered_columns(y: Any, classes: "ArrayLike | None") -> tuple[Any, ArrayLike | None]:
    """A data frame of soft labels in the order of the classes, and the class names if y has any."""
    columns = list(getattr(y, "columns", ()))
    if len(columns) < 2 or classes is None:
        return y, columns if len(columns) > 1 else classes
    wanted = list(classes)  # type: ignore[arg-type]
    if sorted(map(str, columns)) != sorted(map(str, wanted)):
        fix = "give y one column per class, in any order"
        raise CredalError(f"y has the columns {columns}; the classes are {wanted}. To fix: {fix}.")
    return y[wanted], classes


def check_labels(y: Any) -> None:
    """Raise if labels are in a sparse matrix, or one is missing, as None and the NA of pandas."""
    if issparse(y):
        raise CredalError("y must be dense; it is a sparse matrix. To fix: pass y.toarray().")
    given = np.asarray(y, dtype=object)
    if given.ndim == 1:
        check_present(given.tolist(), name="y")


def as_credal(
    y: Any, *, names: "ArrayLike | None", label_rule: str
) -> tuple[CredalSet, np.ndarray]:
    """Labels (N,), (N, 1), soft labels (N, K) or a set as a credal set, and the K class names."""
    check_choice(label_rule, SOFT_RULES, name="label_rule")
    if isinstance(y, CredalSet):
        labels = y
    else:
        y = np.asarray(y)
        if y.ndim == 1 or y.shape[1] == 1:
            return _from_labels(column_or_1d(y, warn=True), names)
        try:
            soft = as_distributions(np.asarray(y, dtype=np.float64), name="probs", ndim=2)
            labels = SOFT_RULES[label_rule](soft, soft.argmax(1))
        except (CredalError, ValueError) as error:
            raise CredalError(
                f"y of shape {y.shape} is read as soft labels, one distribution per item: {error} "
                "For counts of votes use credalearn.from_votes(counts)."
            ) from error
    classes = _as_names(np.arange(labels.num_classes) if names is None else names)
    if classes.shape != (labels.num_classes,):
        count = f"y has {labels.num_classes} classes"
        raise CredalError(f"{count}; classes must name each, in order; got {classes.tolist()}.")
    return labels, classes


def top_class_names(y: Any, classes: np.ndarray) -> Any:
    """Class labels as they are; of soft and credal labels the name of the top class, shape (N,)."""
    if not isinstance(y, CredalSet):
        y, _ = ordered_columns(y, classes)
        if np.ndim(y) < 2 or np.shape(y)[1] < 2:
            return y
    if np.shape(y)[1] != len(classes):
        known = f"the {len(classes)} classes that were learned"
        raise CredalError(f"y must be over {known}, {classes.tolist()}; got {np.shape(y)[1]}.")
    labels, _ = as_credal(y, names=classes, label_rule="precise")
    return classes[labels.reference.numpy(force=True).argmax(1)]


def truth_of(labels: CredalSet, truth: Any, classes: np.ndarray) -> Tensor:
    """The right class as a distribution (N, K): as given, else the top classes, in equal shares."""
    if truth is None:
        soft = labels.reference.double()
        top = soft >= soft.amax(1, keepdim=True) - 1e-6
        return top.double() / top.sum(1, keepdim=True)
    if np.ndim(truth) == 2:
        shares = as_distributions(truth, name="truth", ndim=2).double()
        require_shape(shares, labels.shape, name="truth")
        return shares
    index = {name: number for number, name in enumerate(classes.tolist())}
    given = np.asarray(truth)
    unknown = [name for name in given.ravel().tolist() if name not in index]
    if given.shape != (len(labels),) or unknown:
        got = f"{unknown[0]!r}" if unknown else f"shape {given.shape}"
        rule = f"truth must have one of the classes {classes.tolist()}"
        raise CredalError(f"{rule} for each of the {len(labels)} items; got {got}.")
    return one_hot(torch.tensor([index[name] for name in given.tolist()]), len(classes)).double()


def as_weights(weights: Any, count: int) -> Tensor:
    """Weights of items as float64 (N,), 0 or more, not all 0."""
    try:
        rules = {"dtype": np.float64, "ensure_non_negative": True}
        checked = torch.tensor(_check_sample_weight(weights, np.empty(count), **rules))
    except ValueError as error:
        raise CredalError(f"sample_weight is invalid: {error}") from error
    if not checked.any():  # which older versions of scikit-learn accept
        raise CredalError("sample_weight must have a weight above zero; all are zero.")
    return checked


def as_groups(groups: Any, count: int) -> np.ndarray:
    """Groups of items as an array (N,) that can be sorted: names of several types become texts."""
    names = np.asarray(groups)
    if names.shape != (count,):
        raise CredalError(f"groups must have shape ({count},), as y; got {names.shape}.")
    if names.dtype.kind not in "iu":
        check_present(groups, name="groups")
    return names.astype(str) if names.dtype == object else names


def _from_labels(y: np.ndarray, names: "ArrayLike | None") -> tuple[CredalSet, np.ndarray]:
    """One class label per item: a precise set on that class."""
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    wanted = _as_names(classes if names is None else names)
    position = {name: place for place, name in enumerate(wanted.tolist())}
    unknown = [each for each in classes.tolist() if each not in position]
    if unknown:
        raise CredalError(
            f"classes must contain every label of y; {unknown} are missing. To fix: add them."
        )
    index = np.array([position[each] for each in classes.tolist()])[index]
    hard = one_hot(torch.from_numpy(index).long(), len(wanted))
    return precise(hard.to(torch.get_default_dtype())), classes if names is None else wanted


def _as_names(names: "ArrayLike") -> np.ndarray:
    """Class names as an array: all strings or all numbers, each different."""
    if isinstance(names, str | set | frozenset) or not hasattr(names, "__len__"):
        raise CredalError(f"classes must be a list of names, in order; got {names!r}.")
    given = np.asarray(names).tolist() if hasattr(names, "__array__") else list(names)  # type: ignore[arg-type]
    kinds = (str, Number | np.generic)
    plain = any(all(isinstance(name, kind) for name in given) for kind in kinds)
    if not plain or len(set(given)) < len(given) or any(name != name for name in given):
        raise CredalError(
            f"class names must be all strings or all numbers, each different; got {given}."
        )
    if len(given) < 2:
        raise CredalError(
            f"a classifier needs at least two classes; got {many(len(given), 'class', 'classes')}: "
            f"{given}. To fix: add items of another class, or name all with classes=[...]."
        )
    return np.asarray(given)
