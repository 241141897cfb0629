"""One number for accuracy, calibration and deferral together: the balanced quality score.

Shapes: M methods, S seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import check_choice
from credalearn._ranks import as_scores
from credalearn.errors import CredalError

Table = Mapping[str, Mapping[str, ArrayLike]]
"""``table[method][metric]``: one value per seed, the same seeds in the same order for all."""

DECIMALS = 12  # 0.3 and 0.1 + 0.2 differ by 6e-17 in float64, and must tie

LARGER_IS_BETTER = {
    "accuracy": True,
    "ece": False,
    "auarc": True,
    "normalized_auarc": True,
    "aurc": False,
    "spearman_error": True,
    "auroc": True,
}


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
    scaled = [min_max(values) for values in by_metric(table, metrics).values()]
    return {
        method: BalancedQuality(tuple(seeds.tolist()), float(seeds.mean()), float(seeds.std()))
        for method, seeds in zip(table, np.mean(scaled, axis=0), strict=True)
    }


def min_max(values: np.ndarray) -> np.ndarray:
    """Scaled to [0, 1] along the first axis, the methods; where all are equal, 1."""
    rounded = values.round(DECIMALS)
    low, high = rounded.min(0), rounded.max(0)
    tied = low == high
    return np.where(tied, 1.0, (rounded - low) / np.where(tied, 1.0, high - low))


def by_metric(table: Table, metrics: Sequence[str]) -> dict[str, np.ndarray]:
    """Each metric's values, shape (M, S), with the sign that makes larger better."""
    if isinstance(metrics, str) or len(metrics) == 0 or len(table) == 0:
        raise CredalError(
            "there must be one or more methods and a sequence of one or more metrics; got "
            f"methods={list(table)}, metrics={metrics!r}."
        )
    found = {metric: _values(table, metric) for metric in metrics}
    if len({values.shape for values in found.values()}) > 1:
        raise CredalError("every metric must have one value for each of the same seeds.")
    return found


def _values(table: Table, metric: str) -> np.ndarray:
    kind = metric.split(":")[0]
    check_choice(kind, LARGER_IS_BETTER, name="metric")
    rows = []
    for method, row in table.items():
        name = f"table[{method!r}][{metric!r}]"
        if metric not in row:
            raise CredalError(f"{name} is missing; the metrics of {method!r} are: {list(row)}.")
        rows.append(as_scores(row[metric], name=name).astype(np.float64))
        if len(rows[-1]) != len(rows[0]) or not np.isfinite(rows[-1]).all():
            raise CredalError(f"{name} must be one finite number for each of the same seeds.")
    return np.stack(rows) if LARGER_IS_BETTER[kind] else -np.stack(rows)
