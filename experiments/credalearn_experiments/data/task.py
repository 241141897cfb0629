"""One learning task: images or features and labels, split into training and test.

Shapes: N training items, M test items, V held-out items with votes, K classes, D features.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from credalearn.errors import CredalError

_SUM_TOLERANCE = 1e-6  # shares are float64; published probabilities have 9 digits or more


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """Inputs, true classes and, where people labeled the items, their votes.

    Inputs are images, uint8 of shape (N, 3, H, W), or features, float32 of shape (N, D).
    """

    name: str
    classes: tuple[str, ...]
    train_inputs: Tensor
    train_y: Tensor  # int64 (N,): true classes, or the top of the votes, the lowest on ties
    train_soft: Tensor | None  # float64 (N, K): shares of the votes, if people voted
    test_inputs: Tensor
    test_y: Tensor
    train_counts: Tensor | None = None  # int64 (N, K): the votes, at least one per item
    voted_inputs: Tensor | None = None  # items with votes that no network is trained on
    voted_counts: Tensor | None = None  # int64 (V, K)

    def __post_init__(self) -> None:
        self._check_inputs("train_inputs", self.train_inputs)
        self._check_inputs("test_inputs", self.test_inputs)
        self._check_classes("train_y", self.train_y, len(self.train_inputs))
        self._check_classes("test_y", self.test_y, len(self.test_inputs))
        if self.train_soft is not None:
            self._check_votes("train_soft", self.train_soft, len(self.train_inputs))
        if self.train_counts is not None:
            self._check_votes("train_counts", self.train_counts, len(self.train_inputs))
        if (self.voted_inputs is None) != (self.voted_counts is None):
            self._fail("voted_inputs and voted_counts must be given together", "only one of them")
        if self.voted_inputs is not None and self.voted_counts is not None:
            self._check_inputs("voted_inputs", self.voted_inputs)
            self._check_votes("voted_counts", self.voted_counts, len(self.voted_inputs))

    @property
    def num_classes(self) -> int:
        """Number of classes, K."""
        return len(self.classes)

    def _check_inputs(self, name: str, inputs: Tensor) -> None:
        images = inputs.dtype == torch.uint8 and inputs.ndim == 4 and inputs.shape[1] == 3
        features = inputs.dtype == torch.float32 and inputs.ndim == 2 and inputs.shape[1] > 0
        shown = f"{inputs.dtype} of shape {tuple(inputs.shape)}"
        if not (images or features) or not len(inputs):
            kinds = "uint8 of shape (items, 3, height, width) or float32 of shape (items, features)"
            self._fail(f"{name} must be {kinds}, with at least one item", shown)
        if inputs.shape[1:] != self.train_inputs.shape[1:]:
            self._fail(f"{name} must have the size of train_inputs", shown)
        if features and not inputs.isfinite().all():
            row, column = (~inputs.isfinite()).nonzero()[0].tolist()
            value = float(inputs[row, column])
            self._fail(f"{name} must be finite", f"{value} at item {row}, column {column}")

    def _check_classes(self, name: str, y: Tensor, items: int) -> None:
        if y.dtype != torch.int64 or y.shape != (items,):
            shown = f"{y.dtype} of shape {tuple(y.shape)}"
            self._fail(f"{name} must be int64 with one class per item, shape ({items},)", shown)
        wrong = ((y < 0) | (y >= self.num_classes)).nonzero()
        if len(wrong):
            row = int(wrong[0])
            rule = f"{name} must contain classes 0 to {self.num_classes - 1}"
            self._fail(rule, f"{int(y[row])} at item {row}")

    def _check_votes(self, name: str, votes: Tensor, items: int) -> None:
        soft = name == "train_soft"
        dtype, shape = torch.float64 if soft else torch.int64, (items, self.num_classes)
        if votes.dtype != dtype or votes.shape != shape:
            shown = f"{votes.dtype} of shape {tuple(votes.shape)}"
            self._fail(f"{name} must be {dtype} of shape {shape}", shown)
        total = votes.sum(1)
        ok = (votes >= 0).all(1) & ((total - 1).abs() <= _SUM_TOLERANCE if soft else total > 0)
        if not ok.all():
            row = int((~ok).nonzero()[0])
            rule = "shares that sum to 1" if soft else "at least one vote and no negative number"
            self._fail(f"each row of {name} must have {rule}", f"{votes[row].tolist()} at {row}")

    def _fail(self, rule: str, value: str) -> None:
        raise CredalError(f"{rule}; task {self.name!r} has {value}.")
