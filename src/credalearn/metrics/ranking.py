"""Whether uncertainty ranks errors and out-of-distribution items last.

Shapes: N items, K classes.
"""

import numpy as np
from numpy.typing import ArrayLike

from credalearn._ranks import as_scores, average_ranks
from credalearn.metrics.classification import as_probs_and_classes


def spearman_error(probs: ArrayLike, y: ArrayLike, score: ArrayLike) -> float:
    r"""Spearman correlation of uncertainty and error, Sp(EU, CE), in [−1, 1].

    Pearson's correlation of the ranks of the scores and the ranks of the items' cross-entropies
    :math:`-\log p(y)`; equal values share the mean of their ranks, so the order of the rows never
    matters. Exact: a logarithm keeps the order, so the ranks are taken from p(y) itself, and
    p(y) = 0, an infinite error, ranks last. Where the scores or the errors are all equal there is
    no correlation, so that one item gives 0 too.

    Args:
        probs: Predicted probabilities, shape (N, K).
        y: True class indices, shape (N,).
        score: Uncertainty, shape (N,).

    Example:
        >>> spearman_error([[0.9, 0.1], [0.6, 0.4], [0.0, 1.0]], [0, 0, 0], [0.1, 0.5, 0.7])
        1.0
    """
    checked, classes = as_probs_and_classes(probs, y)
    scores = as_scores(score, name="score", num_items=len(classes))
    chosen = checked.gather(1, classes[:, None])[:, 0].numpy(force=True)
    mean = (len(scores) + 1) / 2
    first, second = average_ranks(scores) - mean, average_ranks(-chosen) - mean
    spread = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / spread) if spread else 0.0


def auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    r"""Probability that an out-of-distribution item is more uncertain; equal scores count half.

    :math:`P(u_{\mathrm{out}} > u_{\mathrm{in}}) + \tfrac12 P(u_{\mathrm{out}} = u_{\mathrm{in}})`,
    the area under the ROC curve. Exact, from the sum of ranks (Mann and Whitney, 1947).

    Args:
        inside: Uncertainty of in-distribution items, one or more, shape (N,).
        outside: Uncertainty of out-of-distribution items, one or more, shape (M,).

    Example:
        >>> auroc([0.1, 0.3], [0.3, 0.8])
        0.875
    """
    own, foreign = as_scores(inside, name="inside"), as_scores(outside, name="outside")
    ranks = average_ranks(np.concatenate([own, foreign]))[len(own) :]
    pairs_won = ranks.sum() - len(foreign) * (len(foreign) + 1) / 2
    return float(pairs_won / (len(own) * len(foreign)))
