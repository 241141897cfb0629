"""How well stated probabilities match how often they come true."""

import torch
from numpy.typing import ArrayLike

from credalearn.errors import CredalError
from credalearn.metrics.checks import as_probs_and_classes


def ece(probs: ArrayLike, y: ArrayLike, *, num_bins: int = 10) -> float:
    r"""Expected calibration error of the top probability (Guo et al., 2017).

    :math:`\sum_b \frac{n_b}{N} |\mathrm{accuracy}_b - \mathrm{confidence}_b|` over equal-width bins
    (l, r]; a confidence of 1 is in the last, one of 0 in the first.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).
        num_bins: How many bins.

    Raises:
        CredalError: If the shapes do not fit, a class index is out of range, or there is no bin.

    Example:
        Says 0.9 four times and is right three times.

        >>> round(ece([[0.9, 0.1]] * 4, [0, 0, 0, 1]), 6)
        0.15
    """
    if num_bins < 1:
        raise CredalError(f"num_bins must be 1 or more; got {num_bins}.")
    checked, classes = as_probs_and_classes(probs, y)
    confidence, predicted = checked.double().max(1)
    edges = torch.linspace(0, 1, num_bins + 1, dtype=checked.dtype)[1:-1]
    # In the dtype that the probabilities came in: float32's 0.7 must fall on its own edge.
    bins = torch.bucketize(checked.amax(1), edges.to(checked.device))
    gaps = confidence.new_zeros(num_bins).index_add(
        0, bins, (predicted == classes).double() - confidence
    )
    return float(gaps.abs().sum() / len(classes))
