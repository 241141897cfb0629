"""One learning task: images or features and labels, split into training and test.

Shapes: N training items, M test items, V held-out items with votes, K classes, D features.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.sets import _checks as checks
from credalearn_experiments.data.folders import DataFolders

_KINDS = "uint8 of shape (items, 3, height, width) or float32 of shape (items, features)"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """Inputs, true classes and, where people labeled the items, their votes.

    Inputs are images, uint8 of shape (N, 3, H, W), or features, float32 of shape (N, D).
    """

    name: str
    classes: tuple[str, ...]
    train_inputs: Tensor
    train_y: Tensor  # int64 (N,): true classes, or the top of the votes, the lowest on ties
    test_inputs: Tensor
    test_y: Tensor
    train_counts: Tensor | None = None  # int64 (N, K): the votes, at least one per item
    train_soft: Tensor | None = None  # float64 (N, K): by default the shares of the votes
    voted_inputs: Tensor | None = None  # items with votes that no network is trained on
    voted_counts: Tensor | None = None  # int64 (V, K)

    def __post_init__(self) -> None:
        try:
            if (self.voted_inputs is None) != (self.voted_counts is None):
                raise CredalError("voted_inputs and voted_counts must be given together.")
            for name in ("train_inputs", "test_inputs", "voted_inputs"):
                if (inputs := getattr(self, name)) is not None:
                    self._check_inputs(name, inputs)
            for name in ("train_y", "test_y", "train_counts", "voted_counts", "train_soft"):
                if (values := getattr(self, name)) is not None:
                    object.__setattr__(self, name, self._labels(name, values))
        except CredalError as error:
            raise CredalError(f"task {self.name!r} cannot be used: {error}") from error
        if self.train_soft is None and self.train_counts is not None:
            shares = self.train_counts.double() / self.train_counts.sum(1, keepdim=True)
            object.__setattr__(self, "train_soft", shares)

    @property
    def num_classes(self) -> int:
        """Number of classes, K."""
        return len(self.classes)

    def _check_inputs(self, name: str, inputs: Tensor) -> None:
        images = inputs.dtype == torch.uint8 and inputs.ndim == 4 and inputs.shape[1] == 3
        features = inputs.dtype == torch.float32 and inputs.ndim == 2
        if not (images or features) or not len(inputs):
            shown = f"{inputs.dtype} of shape {tuple(inputs.shape)}"
            raise CredalError(f"{name} must be {_KINDS}, with at least one item; got {shown}.")
        checks.require_shape(inputs, (len(inputs), *self.train_inputs.shape[1:]), name=name)
        if features:
            checks.as_floats(inputs, name=name, ndim=2)

    def _labels(self, name: str, values: Tensor) -> Tensor:
        """True classes, votes or their shares, one row per item, checked."""
        items = len(getattr(self, f"{name.partition('_')[0]}_inputs"))
        if name.endswith("y"):
            checks.require_shape(values, (items,), name=name)
            return checks.as_classes(values, num_classes=self.num_classes, name=name)
        checks.require_shape(values, (items, self.num_classes), name=name)
        if name == "train_soft":
            return checks.as_distributions(values, name=name).double()
        votes = checks.as_votes(values, name=name)
        some = votes.sum(1, keepdim=True) > 0
        checks.require(
            some, rule=f"an item of {name} must have a vote", remedy="drop it", votes=votes
        )
        return votes.long()


Loader = Callable[[DataFolders, int | None], Task]
"""Loads a task from the folders, with at most so many items in each part, the first ones."""
