"""Features that stand in several files: those of the first items, then of items that came later."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from credalearn.app.annotations.places import listed, shown
from credalearn.app.items.inputs import FeatureTable, read_features
from credalearn.app.tables.arrays import array_columns, is_array
from credalearn.app.tables.blocks import columns_of
from credalearn.errors import CredalError


def read_feature_files(
    paths: Sequence[Path],
    *,
    named_in: Sequence[str] = (),
    extra: Sequence[str] = (),
    optional: Sequence[str] = (),
    drop: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> FeatureTable:
    r"""Features from one file or several, as :func:`read_features` reads each.

    Args:
        paths: The files.
        named_in: Columns that name the items: of a file the first that it has; without any, one
            that is called like it.
        extra: Columns that are no features but wanted.
        optional: Those of ``extra`` that one file must have: in the others they are empty.
        drop: Columns to leave out, each in one file or more.
        names: The features of a model.

    Raises:
        CredalError: As :func:`read_features` and :func:`join_features`.

    Example:
        >>> import tempfile
        >>> old, new = (Path(tempfile.mkdtemp()) / name for name in ("old.csv", "new.csv"))
        >>> _ = old.write_text("id,size,gold\na,1,cat\n"), new.write_text("id,size,text\nb,2,x\n")
        >>> found = read_feature_files(
        ...     [old, new], extra=["gold"], optional=["gold"], drop=["text"]
        ... )
        >>> found.values.tolist(), found.extra["gold"].to_list()
        ([[1.0], [2.0]], ['cat', None])
    """
    held = [_columns(path) for path in paths]
    somewhere = {name for here in held for name in here}
    tables = []
    for path, here in zip(paths, held, strict=True):
        # What no file has is asked of the first, which refuses it.
        lacking = {name for name in (*optional, *drop) if name in somewhere and name not in here}
        table = read_features(
            path,
            item=next((name for name in named_in if name in here), None),
            extra=[name for name in extra if name not in lacking],
            drop=[name for name in drop if name not in lacking],
            names=names,
        )
        tables.append(table)
    return replace(join_features(tables), dropped=tuple(drop))


def join_features(tables: Sequence[FeatureTable]) -> FeatureTable:
    r"""The rows of several tables with the same features, in the order of the first's columns.

    Args:
        tables: One or more; where one lacks a column beside the features, it is empty there.

    Raises:
        CredalError: If their features differ, or an item is in two of them.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from credalearn.app.items.inputs import read_features
        >>> old, new = (Path(tempfile.mkdtemp()) / name for name in ("old.csv", "new.csv"))
        >>> _ = old.write_text("id,size,age\na,1,2\n"), new.write_text("id,age,size\nb,3,4\n")
        >>> found = join_features([read_features(old), read_features(new)])
        >>> found.items, found.names, found.values.tolist(), found.later == ((1, new),)
        (['a', 'b'], ['size', 'age'], [[1.0, 2.0], [4.0, 3.0]], True)
    """
    first, *others = tables
    if not others:
        return first
    beside = list(dict.fromkeys(name for table in tables for name in table.extra.columns))
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
        pl.concat([_texts(table, beside) for table in tables]),
        tuple(sorted({name for table in tables for name in table.commas})),
        tuple(later),
        first.item,
        tuple(path for table in tables for path in table.unnamed),
    )


def _columns(path: Path) -> list[str]:
    if path.is_dir():
        return []  # which is refused where it is read
    return array_columns(path) if is_array(path) else columns_of(path)


def _texts(table: FeatureTable, names: Sequence[str]) -> pl.DataFrame:
    """Columns as text: the patient 7 of Parquet is the 7 of a CSV file."""
    empty = pl.Series([None] * len(table.items), dtype=pl.String)
    held = table.extra.columns
    return pl.DataFrame(
        {name: table.extra[name].cast(pl.String) if name in held else empty for name in names}
    )


def _check_names(first: FeatureTable, other: FeatureTable) -> None:
    for here, there in ((first, other), (other, first)):
        lacking = [name for name in here.names if name not in there.names]
        if lacking:
            raise CredalError(
                f"{there.path} lacks features of {here.path}: {listed(lacking)}. To fix: give "
                "every file the same columns, or leave a column out with --drop."
            )
