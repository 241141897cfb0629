"""Scores of items as NumPy arrays, in order. Imports no torch."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import refuse_masked
from credalearn.errors import CredalError


def as_scores(values: ArrayLike, *, name: str, num_items: int | None = None) -> np.ndarray:
    """One number per item, shape (N,), none NaN: float32 as it is, anything else as float64."""
    refuse_masked(values, name=name)
    try:
        array = np.asarray(as_array(values))
    except ValueError as error:
        raise CredalError(f"{name} must be an array of numbers; {error}.") from error
    if array.dtype.kind not in "biuf":
        raise CredalError(f"{name} must be an array of numbers; got {array.dtype}.")
    array = array if array.dtype == np.float32 else array.astype(np.float64)
    size = len(array) if array.ndim == 1 and num_items is None else num_items
    if array.shape != (size,) or size == 0:
        items = "one item or more" if num_items is None else f"the {num_items} items"
        raise CredalError(
            f"{name} must have one number for each of {items}; got shape {array.shape}."
        )
    missing = np.isnan(array)
    if missing.any():
        raise CredalError(
            f"{name} must not be NaN; item {missing.argmax()} is. To fix: fill or drop it."
        )
    return array


def average_ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks from 1 to N, shape (N,), float64; equal scores share the mean of theirs."""
    order = scores.argsort()
    ends = tie_ends(scores[order])
    sizes = np.diff(ends, prepend=0)
    ranks = np.empty(len(scores))
    ranks[order] = np.repeat(ends - (sizes - 1) / 2, sizes)
    return ranks


def tie_ends(ordered: np.ndarray) -> np.ndarray:
    """For each run of equal values in ascending ones, how many values there are up to its end."""
    return np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))


def as_array(values: Any) -> Any:
    """A torch tensor as a NumPy array, wherever it is stored; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    try:
        return values.numpy()
    except TypeError:  # bfloat16, and shorter floats
        return values.float().numpy()
