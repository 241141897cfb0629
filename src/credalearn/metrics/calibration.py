"""Accuracy, and how well predicted probabilities match it."""

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._checks import check_number
from credalearn.errors import CredalError
from credalearn.sets._checks import as_classes, as_floats, require_distributions

ROUNDED = 0.02  # rows of two decimals, or of 16 bits, sum to 1 within it; logits and counts do not


def as_probs_and_classes(probs: "ArrayLike", y: "ArrayLike") -> tuple[Tensor, Tensor]:
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


def accuracy(probs: "ArrayLike", y: "ArrayLike") -> float:
    """Share of items whose most probable class, the lowest index among equals, is the true one.

    Predicted probabilities ``probs`` have shape (N, K), true class indices ``y`` (N,).

    Example:
        >>> accuracy([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.2, 0.8]], [0, 1, 1, 1])
        0.75
    """
    checked, classes = as_probs_and_classes(probs, y)
    return float((checked.argmax(1) == classes).double().mean())


@dataclass(frozen=True, slots=True)
class Reliability:
    r"""What a reliability diagram shows: confidence and accuracy, bin by bin (Guo et al., 2017).

    Args:
        edges: Edges of the bins, one more than there are bins, ascending.
        count: Number of items in each bin.
        confidence: Mean top probability of each bin's items; 0 in an empty bin.
        accuracy: Share of each bin's items whose top class is the true one; 0 in an empty bin.

    Example:
        >>> bins = Reliability((0, 0.5, 1), count=(0, 4), confidence=(0, 0.9), accuracy=(0, 0.75))
        >>> round(bins.ece, 6)
        0.15
    """

    edges: tuple[float, ...]
    count: tuple[int, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]

    @property
    def ece(self) -> float:
        r"""Expected calibration error, :math:`\sum_b \frac{n_b}{N} |a_b - c_b|`."""
        bins = zip(self.count, self.accuracy, self.confidence, strict=True)
        return sum(n * abs(right - stated) for n, right, stated in bins) / sum(self.count)


def reliability(probs: "ArrayLike", y: "ArrayLike", *, num_bins: int = 10) -> Reliability:
    """Confidence against accuracy in ``num_bins`` equal-width bins of the top probability.

    A bin is (l, r]; an edge b / num_bins is rounded as the probabilities are, so that a float32 of
    0.7 falls on its own edge. ``probs`` has shape (N, K), the true class indices ``y`` (N,).

    Example:
        >>> bins = reliability([[0.75, 0.25]] * 4 + [[1.0, 0.0]], [0, 0, 0, 1, 1], num_bins=4)
        >>> bins.count, bins.confidence, bins.accuracy
        ((0, 0, 4, 1), (0.0, 0.0, 0.75, 1.0), (0.0, 0.0, 0.75, 0.0))
    """
    check_number(num_bins, name="num_bins", least=1, whole=True)
    checked, classes = as_probs_and_classes(probs, y)
    # Not max(1), which gives both: on few items it waits 10 ms for its threads on a busy machine.
    top, predicted = checked.amax(1).clamp_(max=1), checked.argmax(1)
    # Not linspace: it misses the float nearest to 2/3, and with it every confidence of 2/3.
    inner = [b / num_bins for b in range(1, num_bins)]
    edges = torch.tensor(inner, dtype=checked.dtype)
    bins = torch.bucketize(top, edges.to(checked.device))
    # Sums of whole numbers, which no order of the rows changes: a confidence is so many units, each
    # 1e-16 for up to 500 items and 2e-13 for a million.
    units = 2 ** min(53, 62 - len(top).bit_length())
    stated = top.double().mul_(units).round_()
    none = torch.zeros(num_bins, dtype=torch.int64, device=checked.device)
    each_item = (torch.ones_like(bins), stated, predicted == classes)
    sums = (none.index_add(0, bins, values.long()) for values in each_item)
    count, confidence, accuracy = (each.tolist() for each in sums)
    return Reliability(
        (0.0, *inner, 1.0),
        tuple(count),
        tuple(total / (units * max(n, 1)) for total, n in zip(confidence, count, strict=True)),
        tuple(total / max(n, 1) for total, n in zip(accuracy, count, strict=True)),
    )


def ece(probs: "ArrayLike", y: "ArrayLike", *, num_bins: int = 10) -> float:
    r"""Expected calibration error of the top probability (Guo et al., 2017).

    :math:`\sum_b \frac{n_b}{N} |\mathrm{accuracy}_b - \mathrm{confidence}_b|` over the bins of
    :func:`reliability`, which has the same arguments.

    Example:
        >>> round(ece([[0.9, 0.1]] * 4, [0, 0, 0, 1]), 6)
        0.15
    """
    return reliability(probs, y, num_bins=num_bins).ece
