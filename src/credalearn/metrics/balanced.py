"""One number for accuracy, calibration and deferral together: the balanced quality score.

Shapes: M methods, S seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from credalearn.errors import CredalError
from credalearn.sets.checks import refuse_masked

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
    :math:`\hat m = (m - \min) / (\max - \min)`, with 1 − ECE for ECE and likewise for AURC, of
    which less is better; the score is the mean over the metrics. A metric on which all methods are
    equal, to 12 decimals, scales to 1 for all. The score is relative: it changes with the methods
    in the table.

    The standard deviation over the seeds divides by their number, as numpy does unasked; the paper
    does not say which. Dividing by one less would give 5 % more at ten seeds.

    Args:
        table: ``table[method][metric]`` holds one value per seed, the same seeds for all.
        metrics: Which metrics count, equally: names of the functions of this module. What follows
            a colon tells two of a kind apart: ``auarc:mmi``, ``auarc:h_diff``.

    Example:
        Best at two of three metrics, worst at one.

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
    """Each metric's values, shape (M, S), with the sign that makes larger better.

    1 − ECE and −ECE scale and compare alike, whatever the unit.
    """
    if isinstance(metrics, str) or len(metrics) == 0 or len(table) == 0:
        raise CredalError(
            "there must be one method or more in the table and one metric or more in the sequence "
            f"metrics; got methods={list(table)}, metrics={metrics!r}."
        )
    found = {metric: _values(table, metric) for metric in metrics}
    lengths = {metric: values.shape[1] for metric, values in found.items()}
    if len(set(lengths.values())) > 1:
        raise CredalError(
            f"every metric must have one value for each of the same seeds; got {lengths} seeds."
        )
    return found


def as_numbers(values: ArrayLike, *, name: str) -> np.ndarray:
    """``values`` as float64, all finite."""
    refuse_masked(values, name=name)
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biufO" or not np.isfinite(numbers.astype(float)).all():
            raise ValueError(f"got {numbers.tolist()!r}")
    except (TypeError, ValueError, RuntimeError) as error:
        raise CredalError(f"{name} must be finite numbers; {str(error).rstrip('.')}.") from error
    return numbers.astype(np.float64)


def _values(table: Table, metric: str) -> np.ndarray:
    kind = metric.split(":")[0]
    if kind not in LARGER_IS_BETTER:
        raise CredalError(
            f"metric {metric!r} is unknown, so whether larger is better is too; "
            f"known are {', '.join(LARGER_IS_BETTER)}, each with or without :suffix."
        )
    rows = {}
    for method, row in table.items():
        if metric not in row:
            raise CredalError(
                f"table[{method!r}] must hold {metric!r}; it holds {list(row)}. "
                "To fix: add it, or leave it out of metrics."
            )
        rows[method] = as_numbers(row[metric], name=f"table[{method!r}][{metric!r}]")
    shapes = {method: values.shape for method, values in rows.items()}
    if len(set(shapes.values())) > 1 or any(len(s) != 1 or s[0] == 0 for s in shapes.values()):
        raise CredalError(
            f"table[method][{metric!r}] must hold one value for each of the same seeds; got shapes "
            f"{shapes}."
        )
    values = np.stack(list(rows.values()))
    return values if LARGER_IS_BETTER[kind] else -values
