"""What deferring the least certain items does to the accuracy of the rest."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._ranks import as_scores, sort_order, tie_ends
from credalearn.metrics.classification import as_probs_and_classes


def accuracy_rejection(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> Tensor:
    """Accuracy of the m most certain items for m = 1..N, shape (N,), float64.

    Entry m − 1 is the accuracy when N − m items are deferred; the last is the plain accuracy. Items
    with equal scores share their mean accuracy, the expectation over their orders, so that the
    order of the rows never matters; a constant score gives the flat curve of random deferral.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).
        score: Uncertainty, larger is deferred first, shape (N,).

    Example:
        The wrong item is the least certain.

        >>> accuracy_rejection([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    checked, classes = as_probs_and_classes(probs, y)
    scores = as_scores(score, name="score", num_items=len(classes))
    right = (checked.argmax(1) == classes).numpy(force=True)
    order = sort_order(scores)
    ends = tie_ends(scores[order])
    hits = right[order].cumsum()[ends - 1]
    kept = np.arange(1, len(order) + 1)
    # Among equals the expected number of right items grows in equal steps: along a straight line.
    curve = np.interp(kept, np.append(0, ends), np.append(0, hits)) / kept
    return torch.from_numpy(curve).to(checked.device)


def auarc(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> float:
    """Area under the accuracy–rejection curve (:func:`accuracy_rejection`): its mean over m = 1..N.

    Example:
        >>> auarc([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        0.75
    """
    return float(accuracy_rejection(probs, y, score).mean())


def normalized_auarc(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> float:
    r"""Share of the possible gain in accuracy that deferring brings, averaged over the curve.

    The mean over m = 1..N of :math:`(A(\beta) - A(0)) / (1 - A(0))`, where :math:`A(\beta)` is the
    accuracy when a share β = 1 − m/N is deferred and :math:`A(0)` the accuracy without deferral. At
    most 1, 0 for random deferral, negative where deferring does harm; 0 where every item is right.

    Arguments as for :func:`accuracy_rejection`.

    Example:
        >>> normalized_auarc([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        0.5
    """
    curve = accuracy_rejection(probs, y, score)
    plain = curve[-1]
    return float(((curve - plain) / (1 - plain)).mean()) if plain < 1 else 0.0


def aurc(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> float:
    """Area under the risk–coverage curve (Geifman, Uziel and El-Yaniv, 2019); smaller is better.

    The mean over m = 1..N of the share of wrong predictions among the m most certain items, which
    is 1 − AUARC. Arguments as for :func:`accuracy_rejection`.

    Example:
        >>> aurc([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        0.25
    """
    return 1 - auarc(probs, y, score)
