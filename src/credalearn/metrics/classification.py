"""How often the predicted class is the true one, and the checks that metrics share.

Shapes: N items, K classes.
"""

from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.sets.checks import as_classes, as_floats, require_distributions

ROUNDED = 0.02  # rows of two decimals, or of 16 bits, sum to 1 within it; logits and counts do not


def as_probs_and_classes(probs: ArrayLike, y: ArrayLike) -> tuple[Tensor, Tensor]:
    """Probabilities (N, K) and true class indices (N,), at least one item, without gradients."""
    checked = as_floats(probs, name="probs", ndim=2).detach()
    require_distributions(checked, name="probs", tolerance=ROUNDED)
    classes = as_classes(y, num_classes=checked.shape[1], name="y")
    if len(classes) != len(checked) or len(classes) == 0:
        raise CredalError(
            f"y must have one class index for each of the {len(checked)} items of probs, one or "
            f"more; got {len(classes)}."
        )
    return checked, classes.to(checked.device)


def accuracy(probs: ArrayLike, y: ArrayLike) -> float:
    """Share of items whose most probable class, the lowest index among equals, is the true one.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).

    Example:
        >>> accuracy([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8]], [0, 1, 1, 1])
        0.75
    """
    checked, classes = as_probs_and_classes(probs, y)
    return float((checked.argmax(1) == classes).double().mean())
