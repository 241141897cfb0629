"""What deferring the least certain items does to the accuracy of the rest."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.metrics.checks import as_probs_and_classes


def accuracy_rejection(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> Tensor:
    """Accuracy of the m most certain items for m = 1..N, shape (N,), float64.

    Entry m − 1 is the accuracy when N − m items are deferred; the last is the plain accuracy. Items
    with equal scores share their mean accuracy, the expectation over their orders, so that the
    order of the rows never matters; a constant score gives the flat curve of random deferral.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).
        score: Uncertainty, larger is deferred first, shape (N,).

    Raises:
        CredalError: If the shapes do not fit or a score is NaN.

    Example:
        The wrong item is the least certain.

        >>> accuracy_rejection([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    checked, classes = as_probs_and_classes(probs, y)
    ranks: Tensor = torch.as_tensor(score, device=checked.device)
    if ranks.shape != classes.shape or bool(ranks.isnan().any()):
        raise CredalError(
            f"score must hold one number for each of the {len(classes)} items, none NaN; got shape "
            f"{tuple(ranks.shape)}."
        )
    right = (checked.argmax(1) == classes).double()
    _, group, size = torch.unique(ranks, return_inverse=True, return_counts=True)
    share = right.new_zeros(len(size)).index_add(0, group, right) / size
    ordered = share.repeat_interleave(size)  # groups come sorted, the most certain first
    kept = torch.arange(1, len(ordered) + 1, dtype=torch.float64, device=ordered.device)
    curve: Tensor = ordered.cumsum(0) / kept
    return curve


def auarc(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> float:
    """Area under the accuracy–rejection curve: its mean over m = 1..N.

    Arguments and errors are those of :func:`accuracy_rejection`.

    Example:
        >>> auarc([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        0.75
    """
    return float(accuracy_rejection(probs, y, score).mean())
