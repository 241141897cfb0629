"""What every batch of credal sets can do, written once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.sets._checks import (
    SUM_TOLERANCE,
    as_distributions,
    as_rows,
    as_tensor,
    map_tensors,
    moved,
    require,
    require_shape,
)

_JOINS = (np.concatenate, np.append, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack)


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class CredalSet(ABC):
    """A batch of N closed convex sets of distributions over K classes: the abstract kind.

    The kinds are :class:`LowerBounds`, :class:`Intervals`, :class:`MeanIntervals`,
    :class:`Vertices`, :class:`TotalVariationBall` and :class:`Possibility`. A set is checked once,
    when it is made.

    Attributes:
        lower: Smallest probability of each class over the set, shape (N, K).
        upper: Largest probability of each class over the set, shape (N, K).
        soft: The soft label that each set was made from, shape (N, K), or None.

    Example:
        >>> import credalearn as cl
        >>> cl.LowerBounds([[0.7, 0.0], [0.0, 0.0]])
        LowerBounds(2 sets, 2 classes, float32 on cpu)
    """

    lower: Tensor
    upper: Tensor
    soft: Tensor | None

    @abstractmethod
    def _extreme(self, cost: Tensor, *, largest: bool) -> Tensor:
        """A member of largest or smallest expected ``cost`` (N, K), shape (N, K)."""

    @abstractmethod
    def center(self) -> Tensor:
        """A member in the middle of each set, shape (N, K)."""

    @abstractmethod
    def diameter(self) -> Tensor:
        """Largest total-variation distance between two members, shape (N,)."""

    @abstractmethod
    def _inside(self, q: Tensor, tolerance: float) -> Tensor:
        """Whether each set contains its distribution ``q`` (N, K), shape (N,)."""

    @final
    def worst(self, cost: "ArrayLike") -> Tensor:
        r"""Largest expected cost, :math:`\max_{q \in Q} q^\top c`, shape (N,).

        Exact, and differentiable in ``cost`` of shape (N, K), or (K,) for all items. An infinite
        cost counts only where the target puts mass.
        """
        return self._expected(cost, largest=True)

    @final
    def best(self, cost: "ArrayLike") -> Tensor:
        r"""Smallest expected cost, :math:`\min_{q \in Q} q^\top c`, shape (N,), likewise exact."""
        return self._expected(cost, largest=False)

    @final
    def worst_target(self, cost: "ArrayLike") -> Tensor:
        """A member that attains :meth:`worst`, shape (N, K), without gradient (ties: lowest)."""
        return self._extreme(self._rows(cost, "cost").detach(), largest=True)

    @final
    def best_target(self, cost: "ArrayLike") -> Tensor:
        """A member that attains :meth:`best`, shape (N, K), likewise."""
        return self._extreme(self._rows(cost, "cost").detach(), largest=False)

    @final
    def contains(self, q: "ArrayLike", *, tolerance: float = 1e-6) -> Tensor:
        """Whether each set contains its row of ``q``, shape (N,), bool.

        ``q`` has shape (N, K), or (K,) for all items; ``tolerance`` is how far outside a bound or
        hull still counts as inside.
        """
        points = self._rows(q, "q").to(self.lower.dtype)
        sums_to_one = (points.sum(1) - 1).abs() <= max(tolerance, SUM_TOLERANCE)
        return (points >= -tolerance).all(1) & sums_to_one & self._inside(points, tolerance)

    @property
    def reference(self) -> Tensor:
        """The soft label that each set was made from, else its :meth:`center`, shape (N, K)."""
        return self.center() if self.soft is None else self.soft

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K); scikit-learn's splitters use it."""
        return self.lower.shape[0], self.lower.shape[1]

    @final
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The ``reference`` as an array, for tools that know only soft labels."""
        return np.array(self.reference.numpy(force=True), dtype=dtype, copy=copy)

    @final
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions see the ``reference``; joining functions would lose the sets."""
        if func in _JOINS:
            raise CredalError(f"np.{func.__name__} drops the sets. To fix: credalearn.concatenate.")
        return np.ndarray.__array_function__(np.empty(0), func, (), args, kwargs)

    @property
    def num_classes(self) -> int:
        """How many classes K the distributions are over."""
        return self.lower.shape[1]

    @final
    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same sets on another device or in another dtype: ``torch.Tensor.to``'s arguments."""
        return moved(self, *args, **kwargs)

    @final
    def __getitem__(self, rows: Any) -> Self:
        chosen = as_rows(rows, length=len(self), device=self.lower.device)
        return map_tensors(self, lambda tensor: tensor[chosen])

    @final
    def __len__(self) -> int:
        return self.lower.shape[0]

    @final
    def __repr__(self) -> str:
        dtype = str(self.lower.dtype).removeprefix("torch.")
        sets = "set" if len(self) == 1 else "sets"
        return (
            f"{type(self).__name__}({len(self)} {sets}, {self.num_classes} classes, "
            f"{dtype} on {self.lower.device})"
        )

    def _expected(self, cost: "ArrayLike", *, largest: bool) -> Tensor:
        """Extreme expected cost, shape (N,); a class without mass may cost anything: 0·∞ = 0."""
        costs = self._rows(cost, "cost")
        q = self._extreme(costs.detach(), largest=largest)
        return torch.where(q > 0, q * costs, 0).sum(-1)

    def _keep(self, **tensors: Tensor | None) -> None:
        """Set fields of this frozen object while it is being made."""
        for name, tensor in tensors.items():
            object.__setattr__(self, name, tensor)

    def _keep_soft(self, values: "ArrayLike | None") -> None:
        """Keep the soft label, where there is one: it must be a member of its set."""
        soft = None
        if values is not None:
            soft = as_distributions(values, name="soft", ndim=2).detach().to(self.lower, copy=True)
            require_shape(soft, self.lower.shape, name="soft")
            require(
                self.contains(soft, tolerance=1e-5)[:, None],
                rule="a set must contain the soft label it was made from",
                remedy="widen the set, or leave soft out",
                soft=soft,
                lower=self.lower,
                upper=self.upper,
            )
        self._keep(soft=soft)

    def _rows(self, values: "ArrayLike", name: str) -> Tensor:
        """One row per item, shape (N, K), from as many or from a single one."""
        rows = as_tensor(values, name=name).to(self.lower.device)
        if rows.shape not in (self.lower.shape, self.lower.shape[1:]):
            raise CredalError(
                f"{name} must have shape {tuple(self.lower.shape)} or ({self.num_classes},); "
                f"got {tuple(rows.shape)}."
            )
        return (rows if rows.is_floating_point() else rows.to(self.lower)).expand_as(self.lower)


def concatenate(sets: Sequence[CredalSet]) -> CredalSet:
    """Several batches of one kind of credal set as one, in order; each ``reference`` is kept.

    Example:
        >>> import credalearn as cl
        >>> monday, friday = cl.from_votes([[1, 3]]), cl.from_votes([[2, 0], [1, 1]])
        >>> cl.concatenate([monday, friday])
        LowerBounds(3 sets, 2 classes, float32 on cpu)
    """
    batches = list(sets)
    if not batches or not all(isinstance(each, CredalSet) for each in batches):
        raise CredalError("concatenate takes a list of one or more credal sets.")
    counts = list(dict.fromkeys(each.num_classes for each in batches))
    if len(counts) > 1:
        raise CredalError(f"the sets must be over the same classes; got {counts} classes.")
    kinds = list(dict.fromkeys(type(each).__name__ for each in batches))
    if len(kinds) > 1:
        raise CredalError(
            f"the sets must be of one kind; got {' and '.join(kinds)}. To fix: make all labels "
            "with one rule."
        )
    with_soft = any(each.soft is not None for each in batches)
    soft = torch.cat([each.reference for each in batches]) if with_soft else None
    joined: CredalSet = object.__new__(type(batches[0]))  # of sets that are checked already
    for name in (each.name for each in fields(joined) if each.name != "soft"):
        parts = [getattr(batch, name) for batch in batches]
        joined._keep(**{name: torch.cat(_as_many(parts, name))})
    joined._keep(soft=soft)
    return joined


def _as_many(parts: list[Tensor], name: str) -> list[Tensor]:
    """Parts (N, V, …) of one V, with points or people added that change neither set nor center."""
    most = max(part.shape[1] for part in parts) if parts[0].ndim > 1 else 0
    for place, part in enumerate(parts):
        if part.ndim > 1 and part.shape[1] < most:
            more = part.mean(1, keepdim=True) if name == "points" else 0 * part[:, :1]
            parts[place] = torch.cat([part, more.repeat_interleave(most - part.shape[1], 1)], 1)
    return parts
