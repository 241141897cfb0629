"""Features that stand in several files: those of the first items, then of items that came later."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from credalearn.annotations.places import listed, shown
from credalearn.errors import CredalError
from credalearn.workflow.items.inputs import FeatureTable


def join_features(tables: Sequence[FeatureTable]) -> FeatureTable:
    r"""The rows of several tables with the same features, in the order of the first's columns.

    Args:
        tables: One or more, read with the same columns beside the features.

    Raises:
        CredalError: If their features differ, or an item is in two of them.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from credalearn.workflow.items.inputs import read_features
        >>> old, new = (Path(tempfile.mkdtemp()) / name for name in ("old.csv", "new.csv"))
        >>> _ = old.write_text("id,size,age\na,1,2\n"), new.write_text("id,age,size\nb,3,4\n")
        >>> found = join_features([read_features(old), read_features(new)])
        >>> found.items, found.names, found.values.tolist(), found.later == ((1, new),)
        (['a', 'b'], ['size', 'age'], [[1.0, 2.0], [4.0, 3.0]], True)
    """
    first, *others = tables
    if not others:
        return first
    items, values, later = list(first.items), [first.values], []
    owner = dict.fromkeys(items, first.path)
    for other in others:
        _check_names(first, other)
        for item in other.items:
            if item in owner:
                raise CredalError(
                    f"the item {shown(item)} is in {owner[item]} and in {other.path}. To fix: one "
                    "row an item."
                )
        owner |= dict.fromkeys(other.items, other.path)
        later.append((len(items), other.path))
        items += other.items
        values.append(other.values[:, [other.names.index(name) for name in first.names]])
    return FeatureTable(
        first.path,
        items,
        first.names,
        np.concatenate(values),
        # As text: the patient 7 of Parquet is the 7 of a CSV file.
        pl.concat([table.extra.cast(pl.String) for table in tables]),
        tuple(sorted({name for table in tables for name in table.commas})),
        tuple(later),
    )


def _check_names(first: FeatureTable, other: FeatureTable) -> None:
    for here, there in ((first, other), (other, first)):
        lacking = [name for name in here.names if name not in there.names]
        if lacking:
            raise CredalError(
                f"{there.path} lacks features of {here.path}: {listed(lacking)}. To fix: give "
                "every file the same columns, or leave a column out with --drop."
            )
