"""How well uncertainty ranks errors and out-of-distribution items, and what deferring gains."""

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from torch import Tensor

from credalearn._ranks import as_scores, kept_means
from credalearn.metrics.calibration import as_probs_and_classes


def accuracy_rejection(probs: "ArrayLike", y: "ArrayLike", score: "ArrayLike") -> Tensor:
    """Accuracy of the m most certain items for m = 1..N, shape (N,), float64.

    Entry m − 1 is the accuracy when N − m items are deferred; the last is the plain accuracy. Items
    with equal scores share their mean accuracy, the expectation over their orders, so that the
    order of the rows never matters; a constant score gives the flat curve of random deferral.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).
        score: Uncertainty, larger is deferred first, shape (N,).

    Example:
        >>> accuracy_rejection([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    checked, classes = as_probs_and_classes(probs, y)
    scores = as_scores(score, name="score", num_items=len(classes))
    right = (checked.argmax(1) == classes).numpy(force=True)
    return torch.from_numpy(kept_means(scores, right)).to(checked.device)


def auarc(probs: "ArrayLike", y: "ArrayLike", score: "ArrayLike") -> float:
    """Area under the accuracy–rejection curve (:func:`accuracy_rejection`): its mean over m = 1..N.

    Example:
        >>> auarc([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        0.75
    """
    return float(accuracy_rejection(probs, y, score).mean())


def normalized_auarc(probs: "ArrayLike", y: "ArrayLike", score: "ArrayLike") -> float:
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


def aurc(probs: "ArrayLike", y: "ArrayLike", score: "ArrayLike") -> float:
    """Area under the risk–coverage curve (Geifman, Uziel and El-Yaniv, 2019); smaller is better.

    The mean over m = 1..N of the share of wrong predictions among the m most certain items, which
    is 1 − AUARC. Arguments as for :func:`accuracy_rejection`.

    Example:
        >>> aurc([[0.9, 0.1], [0.6, 0.4]], [0, 1], [0.1, 0.4])
        0.25
    """
    return 1 - auarc(probs, y, score)


def spearman_error(probs: "ArrayLike", y: "ArrayLike", score: "ArrayLike") -> float:
    r"""Spearman correlation of uncertainty and error, Sp(EU, CE), in [−1, 1].

    Pearson's correlation of the ranks of the scores and of the cross-entropies :math:`-\log p(y)`;
    equal values share the mean of their ranks. Exact: the ranks are taken from p(y) itself, and
    p(y) = 0 ranks last. 0 where the scores or the errors are all equal.

    Arguments as for :func:`accuracy_rejection`.

    Example:
        >>> spearman_error([[0.9, 0.1], [0.6, 0.4], [0.0, 1.0]], [0, 0, 0], [0.1, 0.5, 0.7])
        1.0
    """
    checked, classes = as_probs_and_classes(probs, y)
    scores = as_scores(score, name="score", num_items=len(classes))
    chosen = checked.gather(1, classes[:, None])[:, 0].numpy(force=True)
    mean = (len(scores) + 1) / 2
    first, second = rankdata(scores) - mean, rankdata(-chosen) - mean
    spread = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / spread) if spread else 0.0


def auroc(inside: "ArrayLike", outside: "ArrayLike") -> float:
    r"""Probability that an out-of-distribution item is more uncertain; equal scores count half.

    :math:`P(u_{\mathrm{out}} > u_{\mathrm{in}}) + \tfrac12 P(u_{\mathrm{out}} = u_{\mathrm{in}})`,
    the area under the ROC curve. Exact, from the sum of ranks (Mann and Whitney, 1947).

    Both are uncertainties, of in-distribution (N,) and out-of-distribution items (M,).

    Example:
        >>> auroc([0.1, 0.3], [0.3, 0.8])
        0.875
    """
    own, foreign = as_scores(inside, name="inside"), as_scores(outside, name="outside")
    ranks = rankdata(np.concatenate([own, foreign]))[len(own) :]
    pairs_won = ranks.sum() - len(foreign) * (len(foreign) + 1) / 2
    return float(pairs_won / (len(own) * len(foreign)))
