"""Checks and small sums that every kind of set needs.

Shapes: N items, K classes.
"""

import operator
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from credalearn._checks import refuse_masked as refuse_masked
from credalearn.errors import CredalError

Batch = TypeVar("Batch", bound=Any)

_WHOLE = (
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
)
SUM_TOLERANCE = 1e-5  # float32 rows of 1000 classes drift by about 1e-6


def as_tensor(values: Any, *, name: str) -> Tensor:
    """``values`` as a dense tensor of real numbers, of any shape and dtype."""
    refuse_masked(values, name=name)
    first = values
    while isinstance(first, list | tuple) and first:
        first = first[0]
    try:
        if first is not values and isinstance(first, np.ndarray | Tensor):  # a list of arrays
            values = torch.stack([as_tensor(each, name=name) for each in values])
        if hasattr(values, "__array__") and not isinstance(values, Tensor):
            values = np.array(values)  # a copy: the caller may change the array later
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).rstrip(".")
        raise CredalError(
            f"{name} must be an array of numbers, as many for every item; {reason}."
        ) from error
    refuse_no_array(tensor, name=name)
    return tensor


def refuse_no_array(tensor: Tensor, *, name: str) -> None:
    """Raise unless a tensor is dense, real and has values."""
    if tensor.is_meta or tensor.layout != torch.strided or tensor.is_complex():
        kind = f"{tensor.dtype} with layout {tensor.layout} on {tensor.device}"
        raise CredalError(f"{name} must be a dense tensor of real numbers; got {kind}.")


def as_floats(values: Any, *, name: str, ndim: int, finite: bool = True) -> Tensor:
    """``values`` as a float32 or float64 tensor of ``ndim`` dimensions; whole numbers convert."""
    tensor = as_tensor(values, name=name)
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.dtype not in (torch.float32, torch.float64):
        raise CredalError(
            f"{name} must be float32 or float64; got {tensor.dtype}. To fix: convert it first."
        )
    if tensor.ndim != ndim or 0 in tensor.shape[1 if ndim == 3 else -1 :]:
        shape = {2: "items, classes", 3: "items, vertices, classes"}.get(ndim, "…, classes")
        least = "one vertex or more, one class or more" if ndim == 3 else "one class or more"
        raise CredalError(
            f"{name} must have shape ({shape}) with {least}; got {tuple(tensor.shape)}. To fix: "
            "reshape it, a column a class."
        )
    # A finite sum has finite terms, and costs a fifth of looking at each.
    if finite and not tensor.sum().isfinite():
        ok = tensor.isfinite()
        require(ok, rule=f"{name} must be finite", remedy="fill or drop it", **{name: tensor})
    return tensor


def as_classes(y: Any, *, num_classes: int, name: str) -> Tensor:
    """``y`` as class indices, shape (N,), int64, each in 0..K-1; True and False are none."""
    refuse_masked(y, name=name)
    rule = f"{name} must hold class indices, whole numbers of shape (items,)"
    try:
        given = y if isinstance(y, Tensor) else np.asarray(y)
    except (TypeError, ValueError) as error:  # such as rows of several lengths
        raise CredalError(f"{rule}; {str(error).rstrip('.')}.") from error
    if isinstance(given, Tensor):
        refuse_no_array(given, name=name)
    elif given.dtype.kind in "iu":
        given = torch.from_numpy(given.astype(np.int64))
    if not isinstance(given, Tensor) or given.ndim != 1 or given.dtype not in _WHOLE:
        raise CredalError(f"{rule}; got {given.dtype} of shape {tuple(given.shape)}.")
    classes = given.long()  # before they are compared: torch compares no uint16
    require(
        ((classes >= 0) & (classes < num_classes))[:, None],
        rule=f"{name} must lie in 0..{num_classes - 1}",
        remedy=f"count the classes from 0, and check that there are {num_classes}",
        **{name: classes},
    )
    return classes


def require(ok: Tensor, *, rule: str, remedy: str, **values: Tensor) -> None:
    """Name the first row where ``ok`` fails, what it holds in ``values`` and how to mend it."""
    if ok.all():
        return
    row = int((~ok).flatten(1).any(1).nonzero()[0])
    held = ", ".join(f"{name}={_rounded(value[row])}" for name, value in values.items())
    raise CredalError(f"{rule}; row {row} has {held}. To fix: {remedy}.")


def require_distributions(probs: Tensor, *, name: str, tolerance: float = SUM_TOLERANCE) -> None:
    """Refuse rows (last dimension) that are negative somewhere or do not sum to 1."""
    require(
        probs >= 0,
        rule=f"{name} must not be negative",
        remedy="clamp at 0 and divide each row by its sum (logits: take the softmax)",
        **{name: probs},
    )
    sums = probs.sum(-1, keepdim=True)
    require(
        (sums - 1).abs() <= tolerance,
        rule=f"each row of {name} must sum to 1, to {tolerance:g}",
        remedy="divide each row by its sum (votes: see from_votes; percentages: divide by 100)",
        **{name: probs, "sum": sums},
    )


def as_rows(rows: Any, *, length: int, device: torch.device) -> slice | Tensor:
    """What selects rows of a batch, as a slice or a tensor: a single row stays a batch of one."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]  # scikit-learn's way to take rows
    if isinstance(rows, slice):
        rows = range(length)[rows]
        if rows.step == 1:
            return slice(rows.start, rows.stop)
        rows = list(rows)
    if not isinstance(rows, tuple | bool) and np.ndim(rows) == 0:
        row = range(length)[operator.index(rows)]  # negative from the end, too far is refused
        return slice(row, row + 1)
    chosen = rows if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))
    numbers = chosen.ndim == 1 and (not chosen.is_floating_point() or len(chosen) == 0)
    if isinstance(rows, tuple | bool) or not numbers:
        raise CredalError(
            f"rows are chosen by a number, a slice, a list or a mask; got {rows!r}. To fix: give "
            "one of these, such as [0, 2]."
        )
    # As numbers of 64 bits: torch would read 8 bits as a mask.
    return (chosen if chosen.dtype == torch.bool else chosen.long()).to(device)


def map_tensors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """A frozen dataclass of tensors with every tensor changed, not checked a second time."""
    changed = object.__new__(type(batch))
    for each in fields(batch):
        tensor = getattr(batch, each.name)
        object.__setattr__(changed, each.name, None if tensor is None else change(tensor))
    return changed


def moved(batch: Batch, *args: Any, **kwargs: Any) -> Batch:
    """A frozen dataclass of tensors after ``torch.Tensor.to``; they stay floating-point numbers."""

    def move(tensor: Tensor) -> Tensor:
        result = tensor.to(*args, **kwargs)
        if not result.is_floating_point():
            raise CredalError(
                f"probabilities must be kept in a floating-point dtype; got {result.dtype}. "
                "To fix: give torch.float32 or torch.float64."
            )
        return result

    return map_tensors(batch, move)


def as_distributions(values: Any, *, name: str, ndim: int | None = None) -> Tensor:
    """``values`` as a float tensor whose last dimension holds distributions."""
    tensor = as_tensor(values, name=name)
    tensor = as_floats(tensor, name=name, ndim=max(tensor.ndim, 1) if ndim is None else ndim)
    require_distributions(tensor, name=name)
    return tensor


def expectation(q: Tensor, cost: Tensor) -> Tensor:
    """Each row's q·c, shape (N,), with 0·∞ = 0: a class without mass may cost anything."""
    return torch.where(q > 0, q * cost, 0).sum(-1)


def _rounded(row: Tensor) -> str:
    """At most eight numbers of a row: an error about 1000 classes must stay readable."""
    flat = [float(f"{value:.6g}") for value in row.flatten().tolist()]
    return str(flat) if len(flat) <= 8 else f"{str(flat[:8])[:-1]}, … {len(flat)} values]"


def check_sets(labels: object) -> None:
    """Raise unless labels are credal sets; an array of soft labels is not."""
    if not hasattr(labels, "worst_target"):
        raise CredalError(
            f"labels must be credal sets, one per item; got {type(labels).__name__}. To fix: make "
            "them with from_votes(counts), or precise(probs) for soft labels."
        )


def as_array(values: Any, *, name: str) -> Tensor | np.ndarray:
    """A tensor as it is, anything else as an array."""
    if isinstance(values, Tensor):
        return values
    refuse_masked(values, name=name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise CredalError(
            f"{name} must be an array of numbers, as many for every item; {reason}."
        ) from error
