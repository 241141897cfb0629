"""Scores of items as NumPy arrays, in order. Imports no torch."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import refuse_masked
from credalearn.errors import CredalError


def as_scores(values: "ArrayLike", *, name: str, num_items: int | None = None) -> np.ndarray:
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
        what = "item, at least one" if num_items is None else f"each of the {num_items} items"
        per = "per" if num_items is None else "for"
        raise CredalError(f"{name} must have one number {per} {what}; got shape {array.shape}.")
    missing = np.isnan(array)
    if missing.any():
        raise CredalError(
            f"{name} must not be NaN; item {missing.argmax()} is. To fix: fill or drop it."
        )
    return array


def kept_means(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean value of the m items with the lowest scores, for m = 1..N; equal ones share theirs."""
    order = scores.argsort()
    ordered, kept = scores[order], np.arange(1, len(scores) + 1)
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))
    sums = values[order].cumsum()[ends - 1]
    # Among equals the expected sum grows in equal steps: along a straight line.
    return np.asarray(np.interp(kept, np.append(0, ends), np.append(0, sums)) / kept)


def as_array(values: Any) -> Any:
    """A torch tensor as a NumPy array, wherever it is stored; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    try:
        return values.numpy()
    except TypeError:  # bfloat16, and shorter floats
        return values.float().numpy()
