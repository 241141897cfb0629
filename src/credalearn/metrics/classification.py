"""How often the predicted class is the true one."""

from numpy.typing import ArrayLike

from credalearn.metrics.checks import as_probs_and_classes


def accuracy(probs: ArrayLike, y: ArrayLike) -> float:
    """Share of items whose most probable class, the lowest index among equals, is the true one.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).

    Raises:
        CredalError: If a row is no distribution, the shapes do not fit or a class index is out of
            range.

    Example:
        >>> accuracy([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8]], [0, 1, 1, 1])
        0.75
    """
    checked, classes = as_probs_and_classes(probs, y)
    return float((checked.argmax(1) == classes).double().mean())
