"""One learning task: images or features and labels, split into training and test.

Shapes: N training items, M test items, V items with votes that are held out, K classes, D features.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from credalearn.errors import CredalError

_SUM_TOLERANCE = 1e-6  # shares are float64; published probabilities carry 9 digits or more


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """Inputs, true classes and, where people labeled them, the shares of their votes.

    Checked once, here; code that is handed a ``Task`` trusts it.

    Args:
        name: Key of ``TASKS``.
        classes: Names of the K classes, in the order of the labels.
        train_inputs: uint8, shape (N, 3, H, W); or rows of features, float32, shape (N, D), and
            then so for the other parts.
        train_y: int64, shape (N,): true classes; in annotators' data the top of ``train_soft``,
            the lowest class on ties.
        train_soft: float64, shape (N, K): the shares of the annotators' votes; None where the
            labels are made (smoothing, teacher).
        test_inputs: uint8, shape (M, 3, H, W).
        test_y: int64, shape (M,).
        train_counts: int64, shape (N, K): the annotators' votes themselves, one or more an item;
            None where they are not at hand.
        voted_inputs: uint8, shape (V, 3, H, W): items with people's votes that no network is
            trained on; None where there are none.
        voted_counts: int64, shape (V, K): their votes, one or more an item.

    Raises:
        CredalError: If kinds, shapes or values do not fit together.

    Example:
        >>> black = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
        >>> task = Task(name="two", classes=("a", "b"), train_inputs=black,
        ...     train_y=torch.tensor([0, 1]), train_soft=None,
        ...     test_inputs=black, test_y=torch.tensor([1, 1]))
        >>> task.num_classes, task.train_y.tolist()
        (2, [0, 1])
    """

    name: str
    classes: tuple[str, ...]
    train_inputs: Tensor
    train_y: Tensor
    train_soft: Tensor | None
    test_inputs: Tensor
    test_y: Tensor
    train_counts: Tensor | None = None
    voted_inputs: Tensor | None = None
    voted_counts: Tensor | None = None

    def __post_init__(self) -> None:
        _check_inputs(self, "train", self.train_inputs)
        _check_inputs(self, "test", self.test_inputs)
        _check_classes(self, "train", self.train_inputs, self.train_y)
        _check_classes(self, "test", self.test_inputs, self.test_y)
        _check_alike(self, "test", self.test_inputs)
        if self.train_soft is not None:
            _check_soft(self, self.train_soft)
        if self.train_counts is not None:
            _check_counts(self, "train", self.train_inputs, self.train_counts)
        if (self.voted_inputs is None) != (self.voted_counts is None):
            there = "voted_inputs" if self.voted_counts is None else "voted_counts"
            raise CredalError(
                f"voted_inputs and voted_counts belong together; {self.name} has {there} alone. "
                "To fix: give both or neither."
            )
        if self.voted_inputs is not None and self.voted_counts is not None:
            _check_inputs(self, "voted", self.voted_inputs)
            _check_alike(self, "voted", self.voted_inputs)
            _check_counts(self, "voted", self.voted_inputs, self.voted_counts)

    @property
    def num_classes(self) -> int:
        """How many classes there are, K."""
        return len(self.classes)


def _check_inputs(task: Task, part: str, inputs: Tensor) -> None:
    pictures = inputs.dtype == torch.uint8 and inputs.ndim == 4 and inputs.shape[1] == 3
    rows = inputs.dtype == torch.float32 and inputs.ndim == 2 and inputs.shape[1] > 0
    if not (pictures or rows) or not len(inputs):
        raise CredalError(
            f"{part}_inputs must be uint8 of shape (items, 3, height, width), or float32 of shape "
            f"(items, features), with an item or more; {task.name} has {inputs.dtype} of shape "
            f"{tuple(inputs.shape)}. To fix: give .byte() of pixels from 0 to 255, .float() of "
            "features."
        )
    if rows and not inputs.isfinite().all():
        row, column = (~inputs.isfinite()).nonzero()[0].tolist()
        raise CredalError(
            f"{part}_inputs must hold finite numbers; {task.name} has {float(inputs[row, column])} "
            f"at item {row}, column {column}. To fix: leave the item out, or fill the gap."
        )


def _check_alike(task: Task, part: str, inputs: Tensor) -> None:
    shapes = tuple(task.train_inputs.shape[1:]), tuple(inputs.shape[1:])
    if shapes[0] != shapes[1]:
        sizes = [shape[1:] if len(shape) == 3 else shape for shape in shapes]
        raise CredalError(
            f"training and {part} inputs must have one size; {task.name} has {sizes[0]} and "
            f"{sizes[1]}. To fix: resize them alike."
        )


def _check_classes(task: Task, part: str, inputs: Tensor, y: Tensor) -> None:
    if y.dtype != torch.int64 or y.shape != inputs.shape[:1]:
        raise CredalError(
            f"{part}_y must be int64 with one class an item, shape ({len(inputs)},); "
            f"{task.name} has {y.dtype} of shape {tuple(y.shape)}. To fix: give .long() of one "
            "class an item."
        )
    wrong = ((y < 0) | (y >= task.num_classes)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise CredalError(
            f"{part}_y must hold classes 0 to {task.num_classes - 1}; {task.name} has "
            f"{int(y[row])} at item {row}. To fix: name every class in classes."
        )


def _check_soft(task: Task, soft: Tensor) -> None:
    shape = (len(task.train_inputs), task.num_classes)
    if soft.dtype != torch.float64 or soft.shape != shape:
        raise CredalError(
            f"train_soft must be float64 of shape {shape}; {task.name} has {soft.dtype} of shape "
            f"{tuple(soft.shape)}. To fix: give .double() of one row an item, one column a class."
        )
    ok = (soft >= 0).all(1) & ((soft.sum(1) - 1).abs() <= _SUM_TOLERANCE)
    if not ok.all():
        row = int((~ok).nonzero()[0])
        raise CredalError(
            f"rows of train_soft must be shares that sum to 1; {task.name} has "
            f"{soft[row].tolist()} at item {row}. To fix: divide votes by their sum."
        )


def _check_counts(task: Task, part: str, inputs: Tensor, counts: Tensor) -> None:
    shape = (len(inputs), task.num_classes)
    if counts.dtype != torch.int64 or counts.shape != shape:
        raise CredalError(
            f"{part}_counts must be int64 of shape {shape}; {task.name} has {counts.dtype} of "
            f"shape {tuple(counts.shape)}. To fix: give .long() of one row an item, one column a "
            "class."
        )
    ok = (counts >= 0).all(1) & (counts.sum(1) > 0)
    if not ok.all():
        row = int((~ok).nonzero()[0])
        raise CredalError(
            f"rows of {part}_counts must hold a vote or more and no negative number; {task.name} "
            f"has {counts[row].tolist()} at item {row}. To fix: leave the item out."
        )
