"""One learning task: images and labels, split into training and test as in the paper.

Shapes: N training items, M test items, K classes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from credalearn.errors import CredalError

_SUM_TOLERANCE = 1e-6  # shares are float64; published probabilities carry 9 digits or more


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """Images, true classes and, where people labelled them, the shares of their votes.

    Checked once, here; code that is handed a ``Task`` trusts it.

    Args:
        name: Key of ``TASKS``.
        classes: Names of the K classes, in the order of the labels.
        train_images: uint8, shape (N, 3, H, W).
        train_y: int64, shape (N,): true classes; in annotators' data the top of ``train_soft``,
            the lowest class on ties.
        train_soft: float64, shape (N, K): the shares of the annotators' votes; None where the
            labels are made (smoothing, teacher).
        test_images: uint8, shape (M, 3, H, W).
        test_y: int64, shape (M,).

    Raises:
        CredalError: If kinds, shapes or values do not fit together.

    Example:
        >>> black = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
        >>> task = Task(name="two", classes=("a", "b"), train_images=black,
        ...     train_y=torch.tensor([0, 1]), train_soft=None,
        ...     test_images=black, test_y=torch.tensor([1, 1]))
        >>> task.num_classes, task.train_y.tolist()
        (2, [0, 1])
    """

    name: str
    classes: tuple[str, ...]
    train_images: Tensor
    train_y: Tensor
    train_soft: Tensor | None
    test_images: Tensor
    test_y: Tensor

    def __post_init__(self) -> None:
        _check_part(self, "train", self.train_images, self.train_y)
        _check_part(self, "test", self.test_images, self.test_y)
        sizes = tuple(self.train_images.shape[2:]), tuple(self.test_images.shape[2:])
        if sizes[0] != sizes[1]:
            raise CredalError(
                f"training and test images must have one size; {self.name} has {sizes[0]} and "
                f"{sizes[1]}. To fix: resize them alike."
            )
        if self.train_soft is not None:
            _check_soft(self, self.train_soft)

    @property
    def num_classes(self) -> int:
        """How many classes there are, K."""
        return len(self.classes)


def _check_part(task: Task, part: str, images: Tensor, y: Tensor) -> None:
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != 3 or not len(images):
        raise CredalError(
            f"{part}_images must be uint8 of shape (items, 3, height, width), with an item or "
            f"more; {task.name} has {images.dtype} of shape {tuple(images.shape)}."
        )
    if y.dtype != torch.int64 or y.shape != images.shape[:1]:
        raise CredalError(
            f"{part}_y must be int64 with one class an image, shape ({len(images)},); "
            f"{task.name} has {y.dtype} of shape {tuple(y.shape)}."
        )
    wrong = ((y < 0) | (y >= task.num_classes)).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise CredalError(
            f"{part}_y must hold classes 0 to {task.num_classes - 1}; {task.name} has "
            f"{int(y[row])} at item {row}. To fix: name every class in classes."
        )


def _check_soft(task: Task, soft: Tensor) -> None:
    shape = (len(task.train_images), task.num_classes)
    if soft.dtype != torch.float64 or soft.shape != shape:
        raise CredalError(
            f"train_soft must be float64 of shape {shape}; {task.name} has {soft.dtype} of shape "
            f"{tuple(soft.shape)}."
        )
    ok = (soft >= 0).all(1) & ((soft.sum(1) - 1).abs() <= _SUM_TOLERANCE)
    if not ok.all():
        row = int((~ok).nonzero()[0])
        raise CredalError(
            f"rows of train_soft must be shares that sum to 1; {task.name} has "
            f"{soft[row].tolist()} at item {row}. To fix: divide votes by their sum."
        )
