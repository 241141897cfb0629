"""The paper's tables as one table, read from ``published.csv`` beside this file.

Wang and Chau, *Epistemic Learning from Imprecise Annotation*: ten seeds a row.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from credalearn.errors import CredalError

_COLUMNS = ("table", "dataset", "supervision", "setting", "method", "metric")


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """One printed number.

    Args:
        table: The paper's own label of the table that it stands in.
        dataset: For instance ``CIFAR-10H``.
        supervision: Where the labels come from: ``annotators``, ``smoothing``, ``teacher T=1``,
            ``teacher T=2.5``.
        setting: The teacher, the strength of the smoothing, ``collapsed`` or nothing.
        method: For instance ``POCC``.
        metric: For instance ``ACC``; ``net_ACC`` is wins − losses in significance tests on it.
        mean: Over ten seeds: in per cent, but for net scores (counts) and OOD AUROC (a share).
        std: Over the same seeds, where the paper prints one.

    Example:
        >>> row = published()[0]
        >>> row.dataset, row.method, row.metric, row.mean, row.std
        ('CIFAR-10H', 'EDL', 'ACC', 85.0, 0.4)
    """

    table: str
    dataset: str
    supervision: str
    setting: str
    method: str
    metric: str
    mean: float
    std: float | None


def published(**filters: str) -> tuple[PublishedValue, ...]:
    """The printed numbers whose columns equal the filters, in the paper's order; all without any.

    Args:
        **filters: ``table``, ``dataset``, ``supervision``, ``setting``, ``method`` or ``metric``,
            each with the one value wanted.

    Raises:
        CredalError: If there is no such column, or the column never holds the value.

    Example:
        >>> for row in published(table="tab:result", method="POCC"):
        ...     print(row.metric, row.mean, row.std)
        ACC 87.0 0.4
        ECE 2.9 0.3
        AUARC 97.1 0.2
        BQS 86.0 6.1
    """
    rows = _all_rows()
    for column, wanted in filters.items():
        if column not in _COLUMNS:
            raise CredalError(f"a filter must be one of {', '.join(_COLUMNS)}; got {column!r}.")
        held = sorted({getattr(row, column) for row in _all_rows()})
        if wanted not in held:
            raise CredalError(f"no published {column} is {wanted!r}; there are {held}.")
        rows = tuple(row for row in rows if getattr(row, column) == wanted)
    return rows


@cache
def _all_rows() -> tuple[PublishedValue, ...]:
    text = files("credalearn_experiments").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        PublishedValue(
            table=row["table"],
            dataset=row["dataset"],
            supervision=row["supervision"],
            setting=row["setting"],
            method=row["method"],
            metric=row["metric"],
            mean=float(row["mean"]),
            std=float(row["std"]) if row["std"] else None,
        )
        for row in csv.DictReader(text.splitlines())
    )
