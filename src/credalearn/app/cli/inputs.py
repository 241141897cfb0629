"""What the commands that read annotated items are given of them: features or images, checked."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credalearn.app.annotations.table import Source
    from credalearn.app.items.columns import ItemColumns
    from credalearn.app.items.inputs import FeatureTable
    from credalearn.app.run import Run


def check_inputs(
    features: list[Path] | None,
    images: Path | None,
    table: Path | None,
    drop: list[str] | None = None,
) -> None:
    """One kind of input, and only the options that go with it.

    Raises:
        CredalError: If there are two kinds or none, or an option goes with the other.
    """
    from credalearn.errors import CredalError

    if bool(features) == (images is not None):
        raise CredalError("give one of --features and --images: what the model is to see.")
    if images is not None and drop:
        raise CredalError(
            "--drop names a column of --features; with --images there are none. To fix: leave it "
            "out."
        )
    if features and table is not None:
        raise CredalError(
            "--table goes with --images; the columns beside features stand in --features. To fix: "
            "leave it out."
        )


def read_inputs(
    features: list[Path] | None,
    images: Path | None,
    table: Path | None,
    columns: Sequence[str],
    *,
    source: "Source",
    asked: Mapping[str, Any],
    optional: Sequence[str] = (),
    drop: Sequence[str] = (),
    names: Sequence[str] | None = None,
    item: str | None = None,
) -> tuple["FeatureTable | Path", "ItemColumns | None"]:
    """Features, or the folder of images and what stands beside them in a table.

    Args:
        features: The files of features, if that is it.
        images: The folder of images, if that is it.
        table: With images, what the columns are columns of; the export unless given.
        columns: That are asked for and are no features.
        source: The export.
        asked: How it was read, as ``read_annotations`` takes it.
        optional: Those of the columns that some of several files may lack.
        drop: Columns to leave out.
        names: The features of a model, where there is one.
        item: The column that named its items, which files of features may have too.

    Raises:
        CredalError: If a file cannot be read.
    """
    from credalearn.app.items.columns import read_item_columns
    from credalearn.app.items.joined_features import read_feature_files

    if not features:
        assert images is not None
        if not columns:
            return images, None
        if table is None or (table.exists() and table.samefile(source.path)):
            how = {"encoding": asked["encoding"], "delimiter": asked["delimiter"]}
            named = source.item or asked["item"]
            return images, read_item_columns(source.path, columns, item=named, **how)
        return images, read_item_columns(table, columns, item=asked["item"])
    found = read_feature_files(
        features,
        named_in=[name for name in (asked["item"], item) if name is not None],
        extra=columns,
        optional=optional,
        drop=drop,
        names=names,
    )
    return found, None


def row_numbers(features: list[Path] | None) -> Iterator[str]:
    """Which columns are not read, as they number the rows."""
    from credalearn.app.tables.arrays import is_array
    from credalearn.app.tables.blocks import index_columns

    for path in features or ():
        for name in () if is_array(path) else index_columns(path):
            what = f"the column {name!r}" if name else "the column without a name"
            yield f"left out: {what} of {path}, as pandas writes the numbers of the rows"


def decimal_commas(inputs: "FeatureTable | Path") -> Iterator[str]:
    """In which columns 0,5 was read as a half."""
    from credalearn.app.tables.decimal_commas import said_of_commas

    if not isinstance(inputs, Path) and inputs.commas:
        yield said_of_commas(inputs.commas)


def left_out(run: "Run") -> Iterator[str]:
    """Which items of a run's export took no part, and how images were found."""
    inputs = run.facts.inputs
    for name, why in list(inputs.unreadable.items())[:5]:
        yield f"cannot be read: {name}, {why}"
    if inputs.matched:
        found = ", ".join(f"{count:,} by {how}" for how, count in inputs.matched.items())
        yield f"images found: {found}"
    for reason, count in inputs.left_out.items():
        yield f"left out: {count:,} items {reason}"
