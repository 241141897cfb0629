"""Items and their features, checked: every name is there, every value a finite number.

For tables that are read whole and for those that come a block of rows at a time. Shapes: N items,
D features.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from credalearn._checks import folded, nearest
from credalearn.app.annotations.columns import ITEM, find
from credalearn.app.annotations.places import listed, shown
from credalearn.app.items.feature_names import TRUTH
from credalearn.app.tables.arrays import is_array
from credalearn.app.tables.blocks import is_parquet
from credalearn.app.tables.csv_blocks import TextTable
from credalearn.app.tables.decimal_commas import WITH_COMMA, with_points
from credalearn.errors import CredalError


def check_columns(path: Path, columns: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a column that the table does not have.

    Raises:
        CredalError: With the nearest that it has.

    Example:
        >>> check_columns(Path("items.csv"), ["id", "site"], ["sitee"])
        Traceback (most recent call last):
        credalearn.errors.CredalError: items.csv has no column 'sitee' but 'id', 'site'. To fix: did
        you mean 'site'?
    """
    for name in wanted:
        if name not in columns:
            near = nearest(name, columns)
            hint = f"did you mean {near!r}?" if near else "name a column that is there."
            raise CredalError(
                f"{path} has no column {name!r} but {listed(columns)}. To fix: {hint}"
            )


def check_features(path: Path, columns: Sequence[str], features: Sequence[str]) -> None:
    """Refuse a table that lacks features of a model.

    Raises:
        CredalError: With the column that may be meant.

    Example:
        >>> check_features(Path("items.csv"), ["id", "Size"], ["size"])
        Traceback (most recent call last):
        credalearn.errors.CredalError: items.csv lacks 1 of the model's 1 features: 'size'. To fix:
        rename 'Size' if that is it.
    """
    missing = [name for name in features if name not in columns]
    if missing:
        near = nearest(missing[0], [name for name in columns if name not in features])
        hint = f"rename {near!r} if that is it" if near else "add them, under the names of training"
        raise CredalError(
            f"{path} lacks {len(missing)} of the model's {len(features)} features: "
            f"{listed(missing)}. To fix: {hint}."
        )


def check_width(path: Path, width: int, num_features: int) -> None:
    """Refuse an array with more or fewer features than a model has.

    Raises:
        CredalError: If it has.

    Example:
        >>> check_width(Path("items.npy"), 2, 2)
    """
    if width != num_features:
        raise CredalError(
            f"{path} holds {width} features an item; this model takes {num_features}. To fix: give "
            "those of training, in their order."
        )


def item_column(
    path: Path, columns: Sequence[str], asked: str | None, *, features: Sequence[str] = ()
) -> str:
    """The column that names the items: the one asked for, or else one that is called like it.

    Args:
        path: The table.
        columns: Its columns.
        asked: What the user named, if anything.
        features: Columns that are features, and so not called like it.

    Raises:
        CredalError: If there is none.

    Example:
        >>> item_column(Path("items.csv"), ["size", "Image ID"], None)
        'Image ID'
    """
    if asked is not None:
        check_columns(path, columns, [asked])
        return asked
    found = find([name for name in columns if name not in features], ITEM)
    if found is None:
        raise CredalError(
            f"{path} has no column that names the items; it has {listed(columns)}. To fix: name it "
            "with --item."
        )
    return found


def place_of(path: Path, row: int) -> str:
    r"""A row of a table, from 0, as a message names it: in text by its line.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text("id,size\na,1\n")
        >>> place_of(path, 0).split(", ")[1]
        'line 2'
    """
    if is_array(path) or is_parquet(path):
        return f"{path}, row {row + 1}"
    return f"{path}, line {TextTable(path).line_of(row)}"


def checked_names(path: Path, column: pl.Series, *, start: int = 0) -> pl.Series:
    """Names as annotations have them: trimmed, in Unicode's form NFC.

    Args:
        path: Where they were read.
        column: Names of N items.
        start: The row of the first.

    Raises:
        CredalError: If an item has none.

    Example:
        >>> checked_names(Path("items.csv"), pl.Series([" cafe\u0301 "])).to_list()
        ['café']
    """
    names = column.cast(pl.String).str.strip_chars().str.normalize("NFC")
    empty = names.fill_null("") == ""
    if empty.any():
        place = place_of(path, start + (empty.arg_max() or 0))
        raise CredalError(f"{place}: the item has no name. To fix: name it.")
    return names


def checked_features(
    path: Path,
    table: pl.DataFrame,
    names: Sequence[str],
    items: pl.Series,
    *,
    start: int = 0,
    training: bool = False,
    commas: Sequence[str] = (),
) -> np.ndarray:
    """Columns as float64 (N, D), every value finite; true and false are 1 and 0.

    Args:
        path: Where they were read.
        table: A row an item.
        names: The columns that are features.
        items: Name of each item.
        start: The row of the first.
        training: Whether columns may still be left out, with ``--drop``.
        commas: Those of them with decimal commas, by :func:`comma_columns` of the whole file.

    Raises:
        CredalError: If a value is no finite number.

    Example:
        >>> table = pl.DataFrame({"size": [" 1.5", "true"]})
        >>> checked_features(Path("items.csv"), table, ["size"], pl.Series(["a", "b"])).tolist()
        [[1.5], [1.0]]
    """
    kinds = ((name, table.schema[name]) for name in names)
    other = [
        (name, kind)
        for name, kind in kinds
        if not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null))
    ]
    if other:
        (name, kind), columns = other[0], [each for each, _ in other]
        raise CredalError(
            f"features must be numbers; {path}, column {name!r} is of type {kind}"
            f"{_others(columns)}. To fix: {_without(columns, training)}turn it into numbers."
        )
    text = table.select(pl.col(names)).with_columns(pl.col(pl.String).str.strip_chars())
    text = with_points(text, commas)
    values = text.cast(pl.Float64, strict=False).to_numpy(writable=True)
    if np.isfinite(values).all():
        return values
    found = text.select(_number(text, name) for name in names)
    _refuse_values(path, table, text, found, items, start=start, training=training)
    return found.to_numpy(writable=True)


def check_array(path: Path, values: np.ndarray, items: pl.Series, *, start: int = 0) -> None:
    """Refuse values (N, D) that are not finite.

    Raises:
        CredalError: With the first of them.

    Example:
        >>> check_array(Path("f.npy"), np.array([[1.0, np.nan]]), pl.Series(["a"]))
        Traceback (most recent call last):
        credalearn.errors.CredalError: f.npy, row 1: features must be finite; feature 2 is nan for
        item 'a'. To fix: fill it, or leave the item out.
    """
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise CredalError(
            f"{place_of(path, start + row)}: features must be finite; feature {column + 1} is "
            f"{values[row, column]} for item {shown(items[row])}. To fix: fill it, or leave the "
            "item out."
        )


def _refuse_values(
    path: Path,
    table: pl.DataFrame,
    text: pl.DataFrame,
    found: pl.DataFrame,
    items: pl.Series,
    *,
    start: int,
    training: bool,
) -> None:
    """Refuse the first value that is no finite number: as read, as trimmed text, as a number."""
    wrong = found.select((~pl.all().is_finite()).fill_null(True))
    columns = [name for name in found.columns if wrong[name].any()]
    if not columns:
        return
    name = columns[0]
    kinds = _kinds(text[name], found[name])
    # A word keeps commas from being read and tells what the column is: it is named first.
    kind = "word" if "word" in kinds else kinds.drop_nulls()[0]
    alike = (kinds == kind).fill_null(False)
    row, count = alike.arg_max() or 0, int(alike.sum())
    value = table[name][row]
    what = "is empty" if value is None else f"holds {shown(value)}"
    more = f", and {count - 1:,} more such values" if count > 1 else ""
    word = kind in ("word", "comma")
    fix = "turn it into numbers" if word else "fill it, or leave the item out"
    fix = f"{_without(columns, training)}{fix}"
    if kind == "comma":  # the column is no word: it may stay
        fix = "write a decimal point, and no comma for thousands"
    elif training and kind == "word" and folded(name) in TRUTH:
        fix = f"say --gold {shlex.quote(name)} if it holds the true class, or {fix}"
    raise CredalError(
        f"{place_of(path, start + row)}: features must be {'numbers' if word else 'finite'}; "
        f"column {name!r} {what} for item {shown(items[row])}{more}{_others(columns)}. To fix: "
        f"{fix}."
    )


def _kinds(text: pl.Series, number: pl.Series) -> pl.Series:
    """What is wrong with each value: "empty", "infinite", "comma" or "word"; null for nothing."""
    comma = pl.lit(False)
    if text.dtype == pl.String:
        comma = pl.col("text").str.contains(WITH_COMMA)
    kind = (
        pl.when(pl.col("text").is_null())
        .then(pl.lit("empty"))
        .when(pl.col("number").is_finite())
        .then(None)
        .when(pl.col("number").is_not_null())
        .then(pl.lit("infinite"))
        .when(comma)
        .then(pl.lit("comma"))
        .otherwise(pl.lit("word"))
    )
    return pl.DataFrame({"text": text, "number": number}).select(kind=kind)["kind"]


def _others(columns: Sequence[str]) -> str:
    """The columns after the first that are to be mended too."""
    return f"; to be mended too: {listed(columns[1:])}" if len(columns) > 1 else ""


def _without(columns: Sequence[str], training: bool) -> str:
    if not training:
        return ""
    what = "the column" if len(columns) == 1 else "columns"
    return (
        f"leave {what} out with {' '.join(f'--drop {shlex.quote(each)}' for each in columns)}, or "
    )


def _number(table: pl.DataFrame, name: str) -> pl.Expr:
    number = pl.col(name).cast(pl.Float64, strict=False)
    if table.schema[name] != pl.String:
        return number
    truth = (
        pl.col(name)
        .str.to_lowercase()
        .replace_strict(["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64)
    )
    return pl.coalesce(number, truth)
