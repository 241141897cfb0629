"""M methods compared over S seeds: balanced quality (BQS), and by significance (BQS-ST)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from credalearn._checks import check_choice, check_number
from credalearn._formats import percent
from credalearn._ranks import as_scores
from credalearn.errors import CredalError

Table = Mapping[str, Mapping[str, "ArrayLike"]]
"""``table[method][metric]``: one value per seed, the same seeds in the same order for all."""

_DECIMALS = 12  # 0.3 and 0.1 + 0.2 differ by 6e-17 in float64, and must tie

_METRICS = ("accuracy", "ece", "auarc", "normalized_auarc", "aurc", "spearman_error", "auroc")
_SMALLER_IS_BETTER = ("ece", "aurc")


@dataclass(frozen=True, slots=True)
class BalancedQuality:
    """One method's balanced quality score.

    Args:
        per_seed: The score on each seed, in [0, 1].
        mean: Their mean.
        std: Their standard deviation, with division by the number of seeds; 0 for one seed.

    Example:
        >>> BalancedQuality(per_seed=(0.25, 0.75), mean=0.5, std=0.25).mean
        0.5
    """

    per_seed: tuple[float, ...]
    mean: float
    std: float


def balanced_quality(
    table: Table, *, metrics: Sequence[str] = ("accuracy", "ece", "auarc")
) -> dict[str, BalancedQuality]:
    r"""Balanced quality score (BQS) of every method in the table.

    On each seed every metric is scaled across the methods,
    :math:`\hat m = (m - \min) / (\max - \min)`, with 1 − ECE for ECE and likewise for AURC, where
    smaller is better; the score is the mean over the metrics. A metric on which all methods are
    equal, to 12 decimals, scales to 1 for all. The score depends on the methods in the table.

    Args:
        table: ``table[method][metric]``: one value per seed, the same seeds for all.
        metrics: Names of functions of this module, with an optional suffix after a colon:
            ``auarc:mmi``, ``auarc:h_diff``.

    Example:
        >>> table = {
        ...     "pocc": {"accuracy": [0.9, 0.8], "ece": [0.1, 0.2], "auarc": [0.9, 0.95]},
        ...     "softmax": {"accuracy": [0.8, 0.7], "ece": [0.3, 0.3], "auarc": [0.95, 0.99]},
        ... }
        >>> round(balanced_quality(table)["pocc"].mean, 6)
        0.666667
    """
    scaled = [_min_max(values) for values in _by_metric(table, metrics).values()]
    return {
        method: BalancedQuality(tuple(seeds.tolist()), float(seeds.mean()), float(seeds.std()))
        for method, seeds in zip(table, np.mean(scaled, axis=0), strict=True)
    }


@dataclass(frozen=True, slots=True)
class Significance:
    """One method's place among the others by significance tests.

    As text it is the score in percent, or a dash where there are too few seeds.

    Args:
        net: For each metric, the number of methods that it beats significantly less the number that
            beat it; None where there are too few seeds for any test to be significant.
        score: Mean over the metrics of the net scores, scaled to [0, 1] across the methods, or
            None.

    Example:
        >>> print(Significance({"accuracy": 2}, 0.909), Significance(None, None))
        90.9 –
    """

    net: Mapping[str, int] | None
    score: float | None

    def __str__(self) -> str:
        return percent(self.score, decimals=1).removesuffix(" %")


def significance_ranking(
    table: Table, *, metrics: Sequence[str] = ("accuracy", "ece", "auarc"), level: float = 0.05
) -> dict[str, Significance]:
    r"""Net wins and the balanced score by significance tests (BQS-ST) of every method in the table.

    On each metric a method beats another where the one-sided test of :func:`pairwise_p_values`
    gives p < level; its net score is wins − losses, and :func:`balanced_significance` makes one
    number of the net scores. Net and score are None where S seeds cannot give p < level, as
    :math:`2^{-S}` is the smallest. As in the paper, p is not corrected for the number of pairs.

    Args:
        table: ``table[method][metric]``: one value per seed, the same seeds for all.
        metrics: Names of metrics, as in :func:`balanced_quality`.
        level: Level of each test, in (0, 1).

    Example:
        >>> table = {
        ...     "pocc": {"accuracy": [0.91, 0.92, 0.93, 0.94, 0.95]},
        ...     "softmax": {"accuracy": [0.9, 0.9, 0.9, 0.9, 0.9]},
        ... }
        >>> for method, found in significance_ranking(table, metrics=["accuracy"]).items():
        ...     print(method, found.net, found)
        pocc {'accuracy': 1} 100.0
        softmax {'accuracy': -1} 0.0
    """
    check_number(level, name="level", above=0, below=1)
    num_seeds = next(iter(_by_metric(table, metrics).values())).shape[1]
    if 0.5**num_seeds >= level:
        return {method: Significance(None, None) for method in table}
    net: dict[str, dict[str, int]] = {method: {} for method in table}
    for metric in metrics:
        p_values = pairwise_p_values(table, metric)
        for method in table:
            wins = sum(p < level for p in p_values[method].values())
            losses = sum(row[method] < level for row in p_values.values() if method in row)
            net[method][metric] = wins - losses
    scores = balanced_significance(net)
    return {method: Significance(net[method], scores[method]) for method in table}


def pairwise_p_values(table: Table, metric: str) -> dict[str, dict[str, float]]:
    """``p[a][b]`` of the one-sided signed-rank test that method a is better than method b.

    Wilcoxon's test (1945) on the differences per seed, rounded to 12 decimals. Differences of 0 are
    left out, equal ones share the mean of their ranks; without any difference p = 1. Exact for
    every number of seeds, with or without ties.

    ``table[method][metric]`` is one value per seed; for ``ece`` and ``aurc`` smaller is better.

    Example:
        >>> table = {"a": {"accuracy": [0.7, 0.8, 0.9]}, "b": {"accuracy": [0.6, 0.6, 0.6]}}
        >>> pairwise_p_values(table, "accuracy")
        {'a': {'b': 0.125}, 'b': {'a': 1.0}}
    """
    values = dict(zip(table, _by_metric(table, [metric])[metric], strict=True))
    return {a: {b: _signed_rank_p(values[a] - values[b]) for b in values if b != a} for a in values}


def balanced_significance(net: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Balanced score (BQS-ST) in [0, 1] from ``net[method][metric]``, wins − losses.

    Each metric's net scores are scaled to [0, 1] across the methods, all to 1 where they are equal;
    the score is the mean over the metrics.

    Example:
        >>> balanced_significance({"a": {"acc": 2, "ece": 0}, "b": {"acc": -2, "ece": 0}})
        {'a': 1.0, 'b': 0.5}
    """
    metrics = [sorted(row) for row in net.values()]
    if not metrics or not metrics[0] or any(row != metrics[0] for row in metrics):
        raise CredalError(f"net must have the same metrics for every method; got {metrics}.")
    for method, row in net.items():
        for metric, value in row.items():
            check_number(value, name=f"net[{method!r}][{metric!r}]")
    values = np.array([[row[metric] for metric in metrics[0]] for row in net.values()], np.float64)
    return dict(zip(net, _min_max(values).mean(1).tolist(), strict=True))


def _signed_rank_p(difference: np.ndarray) -> float:
    """Probability, over all signs, of a rank sum in favor as large as this one or larger."""
    rounded = difference.round(_DECIMALS)
    rounded = rounded[rounded != 0]
    # Mean ranks are halves at the finest, so twice a rank is a whole number.
    ranks = np.rint(2 * rankdata(np.abs(rounded))).astype(int)
    observed = ranks[rounded > 0].sum()
    chance = np.zeros(ranks.sum() + 1)  # of each doubled rank sum, with more and more of the ranks
    chance[0] = 1
    for rank in ranks:
        counted = chance / 2
        counted[rank:] += chance[:-rank] / 2
        chance = counted
    return min(float(chance[observed:].sum()), 1.0)  # a sum of chances may pass 1 by a rounding


def _min_max(values: np.ndarray) -> np.ndarray:
    """Scaled to [0, 1] along the first axis, the methods; where all are equal, 1."""
    rounded = values.round(_DECIMALS)
    low, high = rounded.min(0), rounded.max(0)
    tied = low == high
    return np.where(tied, 1.0, (rounded - low) / np.where(tied, 1.0, high - low))


def _by_metric(table: Table, metrics: Sequence[str]) -> dict[str, np.ndarray]:
    """Each metric's values, shape (M, S), with the sign that makes larger better."""
    if isinstance(metrics, str) or len(metrics) == 0 or len(table) == 0:
        raise CredalError(
            "there must be one or more methods and a sequence of one or more metrics; got "
            f"methods={list(table)}, metrics={metrics!r}."
        )
    by_metric = {}
    for metric in metrics:
        kind, rows = metric.split(":")[0], []
        check_choice(kind, _METRICS, name="metric")
        for method, row in table.items():
            name = f"table[{method!r}][{metric!r}]"
            if metric not in row:
                raise CredalError(f"{name} is missing; the metrics of {method!r} are: {list(row)}.")
            rows.append(as_scores(row[metric], name=name).astype(np.float64))
            if len(rows[-1]) != len(rows[0]) or not np.isfinite(rows[-1]).all():
                raise CredalError(f"{name} must be one finite number for each of the same seeds.")
        by_metric[metric] = -np.stack(rows) if kind in _SMALLER_IS_BETTER else np.stack(rows)
    if len({values.shape for values in by_metric.values()}) > 1:
        raise CredalError("every metric must have one value for each of the same seeds.")
    return by_metric
