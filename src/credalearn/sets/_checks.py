"""Arrays checked and converted to tensors, for sets, labels, predictions and metrics."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from credalearn._checks import refuse_masked
from credalearn.errors import CredalError

Batch = TypeVar("Batch", bound=Any)

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
            if values.dtype.kind == "O":  # such as nullable integers of pandas
                values = values.astype(np.float64)
            values = values.astype(values.dtype.newbyteorder("="), copy=False)
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CredalError(
            f"{name} must be an array of numbers; {str(error).rstrip('.')}."
        ) from error
    if tensor.is_meta or tensor.layout != torch.strided or tensor.is_complex():
        kind = f"{tensor.dtype} with layout {tensor.layout} on {tensor.device}"
        raise CredalError(f"{name} must be a dense tensor of real numbers; got {kind}.")
    return tensor


def as_floats(values: Any, *, name: str, ndim: int | None, finite: bool = True) -> Tensor:
    """``values`` as a float32 or float64 tensor of ``ndim`` dimensions; whole numbers convert."""
    tensor = as_tensor(values, name=name)
    ndim = max(tensor.ndim, 1) if ndim is None else ndim
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.dtype not in (torch.float32, torch.float64):
        raise CredalError(
            f"{name} must be float32 or float64; got {tensor.dtype}. To fix: convert it first."
        )
    if tensor.ndim != ndim or 0 in tensor.shape[1 if ndim == 3 else -1 :]:
        shape = {2: "items, classes", 3: "items, vertices, classes"}.get(ndim, "…, classes")
        least = "at least one vertex and one class" if ndim == 3 else "at least one class"
        raise CredalError(
            f"{name} must have shape ({shape}) with {least}; got {tuple(tensor.shape)}."
        )
    # A finite sum has finite terms, and costs a fifth of looking at each.
    if finite and not tensor.sum().isfinite():
        ok = tensor.isfinite()
        require(ok, rule=f"{name} must be finite", remedy="fill or drop it", **{name: tensor})
    return tensor


def as_classes(y: Any, *, num_classes: int, name: str) -> Tensor:
    """``y`` as class indices, shape (N,), int64, each in 0..K-1; True and False are none."""
    given = as_tensor(y, name=name)
    if given.ndim != 1 or given.is_floating_point() or given.dtype == torch.bool:
        raise CredalError(
            f"{name} must be class indices, whole numbers of shape (items,); got {given.dtype} of "
            f"shape {tuple(given.shape)}."
        )
    classes = given.long()  # before they are compared: torch compares no uint16
    require(
        ((classes >= 0) & (classes < num_classes))[:, None],
        rule=f"{name} must lie in 0..{num_classes - 1}",
        remedy=f"count from 0, and check that there are {num_classes}",
        **{name: classes},
    )
    return classes


def require(ok: Tensor, *, rule: str, remedy: str, **values: Tensor) -> None:
    """Raise unless ``ok`` is true throughout; the message shows the first bad row of ``values``."""
    if ok.all():
        return
    row = int((~ok).flatten(1).any(1).nonzero()[0])
    shown = ", ".join(f"{name}={_rounded(value[row])}" for name, value in values.items())
    raise CredalError(f"{rule}; row {row} has {shown}. To fix: {remedy}.")


def require_shape(values: Tensor | np.ndarray, shape: Sequence[int], *, name: str) -> None:
    """Raise unless an array has this shape."""
    if tuple(values.shape) != tuple(shape):
        raise CredalError(f"{name} must have shape {tuple(shape)}; got {tuple(values.shape)}.")


def require_bounds(lower: Tensor, upper: Tensor, *, tolerance: float = 0.0) -> None:
    """Raise unless 0 <= lower <= upper <= 1 for every class of two tensors (N, K)."""
    require_shape(upper, lower.shape, name="upper, like lower,")
    require(
        (lower >= 0) & (lower <= upper + tolerance) & (upper <= 1 + tolerance),
        rule="0 <= lower <= upper <= 1 must hold for every class",
        remedy="swap the bounds or clamp them",
        lower=lower,
        upper=upper,
    )


def require_distributions(probs: Tensor, *, name: str, tolerance: float = SUM_TOLERANCE) -> None:
    """Raise unless every row (last dimension) is 0 or more and sums to 1."""
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
    """Rows to select, as a slice or a tensor; a single row stays a batch of one."""
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]  # scikit-learn's way to take rows
    if isinstance(rows, slice):
        chosen = range(length)[rows]
        if chosen.step == 1:
            return slice(chosen.start, chosen.stop)
        return torch.tensor(chosen, dtype=torch.int64, device=device)  # float32 where it is empty
    if not isinstance(rows, tuple | bool) and np.ndim(rows) == 0:
        row = range(length)[operator.index(rows)]  # negative from the end, too far is refused
        return slice(row, row + 1)
    given = rows if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))
    numbers = given.ndim == 1 and (not given.is_floating_point() or len(given) == 0)
    if isinstance(rows, tuple | bool) or not numbers:
        raise CredalError(f"rows must be a number, a slice, a list or a mask; got {rows!r}.")
    # As numbers of 64 bits: torch would read 8 bits as a mask.
    return (given if given.dtype == torch.bool else given.long()).to(device)


def map_tensors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """A frozen dataclass of tensors with every tensor changed, not checked a second time."""
    changed = object.__new__(type(batch))
    for each in fields(batch):
        tensor = getattr(batch, each.name)
        object.__setattr__(changed, each.name, None if tensor is None else change(tensor))
    return changed


def moved(batch: Batch, *args: Any, **kwargs: Any) -> Batch:
    """A frozen dataclass of tensors after ``torch.Tensor.to``; they stay floating-point numbers."""
    result = map_tensors(batch, lambda tensor: tensor.to(*args, **kwargs))
    if not result.lower.is_floating_point():
        raise CredalError(
            f"probabilities must be kept in a floating-point dtype; got {result.lower.dtype}. "
            "To fix: give torch.float32 or torch.float64."
        )
    return result


def as_distributions(values: Any, *, name: str, ndim: int | None = None) -> Tensor:
    """``values`` as a float tensor whose last dimension holds distributions."""
    tensor = as_floats(values, name=name, ndim=ndim)
    require_distributions(tensor, name=name)
    return tensor


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


def as_votes(counts: Any, *, name: str = "counts") -> Tensor:
    """Whole numbers of votes of 0 or more, shape (N, K), in float64, which is exact to 2^53."""
    given = as_tensor(counts, name=name)
    votes = as_floats(given if given.is_floating_point() else given.double(), name=name, ndim=2)
    require(
        (votes >= 0) & (votes == votes.round()),
        rule=f"{name} must be whole numbers of 0 or more",
        remedy="give the number of votes, not shares (for shares: relax or precise)",
        **{name: votes},
    )
    return votes.detach().double()


def as_one_per_item(values: Any, num_items: int, *, name: str) -> Tensor:
    """One number per item, shape (N,), from as many or from a single one."""
    given = as_tensor(values, name=name)
    if given.shape not in ((), (num_items,)):
        raise CredalError(
            f"{name} must be one number, or one per item, shape ({num_items},); "
            f"got {tuple(given.shape)}."
        )
    column = as_floats(given.reshape(-1, 1), name=name, ndim=2).detach()
    return column[:, 0].expand(num_items).clone()
