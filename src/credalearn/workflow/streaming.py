"""What a trained model is to predict, a batch at a time: features or images, checked on the way.

Shapes: N items of a batch, D features, S pixels.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl

from credalearn.annotations.places import listed, nearest, shown
from credalearn.errors import CredalError
from credalearn.workflow.arrays import open_array
from credalearn.workflow.batches import Batch, Stream
from credalearn.workflow.blocks import TextTable, blocks, columns_of, index_columns, is_parquet
from credalearn.workflow.folder import RunFolder
from credalearn.workflow.inputs import IMAGE_SUFFIXES, ITEM_NAMES, UNREADABLE_SHARE, read_images

IMAGES = 256  # decoded at a time: 3 MB at 64 px, 38 MB at 224 px
_WORKERS = 4  # Pillow decodes outside Python's lock


def open_stream(run: RunFolder, data: str | Path, *, item: str | None = None) -> Stream:
    """The items in ``data``, as the run's model takes them.

    Args:
        run: Says which features the model has, by name, or how large its images are.
        data: CSV, TSV, Parquet, npy or npz; or a folder of images.
        item: Column that names the items; else one that is called like it.

    Raises:
        CredalError: If the data are of another kind, or features are missing.
    """
    data = Path(data)
    inputs = run.facts["inputs"]
    if inputs["kind"] == "images":
        return _images(run, data, int(inputs["image_size"]))
    if data.is_dir():
        raise CredalError(
            f"{data} is a folder; this model takes features. To fix: give a table of them."
        )
    names = list(inputs["features"])
    if data.suffix.lower() in (".npy", ".npz"):
        return _array(data, len(names))
    return _table(data, names, item)


def _table(path: Path, names: list[str], item: str | None) -> Stream:
    columns = columns_of(path)
    item = _item_column(path, columns, names, item)
    missing = [name for name in names if name not in columns]
    if missing:
        near = nearest(missing[0], [name for name in columns if name not in names])
        hint = f"rename {near!r} if that is it" if near else "add them, under the names of training"
        raise CredalError(
            f"{path} lacks {len(missing)} of the model's {len(names)} features: {listed(missing)}. "
            f"To fix: {hint}."
        )
    ignored = tuple(name for name in columns if name not in {*names, item})

    def batches() -> Iterator[Batch]:
        row = 0
        for block in blocks(path):
            items = _checked_items(path, block[item], row)
            yield Batch(items, _numbers(path, block, names, items, row), block.select(ignored))
            row += len(block)
        if not row:
            raise CredalError(f"{path} holds no row below its header.")

    return Stream(path, batches, (*index_columns(path), *ignored))


def _item_column(path: Path, columns: list[str], names: list[str], item: str | None) -> str:
    if item is not None and item not in columns:
        near = nearest(item, columns)
        hint = f"did you mean {near!r}?" if near else "name another with --item."
        raise CredalError(f"{path} has no column {item!r} but {listed(columns)}. To fix: {hint}")
    known = {name.lower(): name for name in reversed(columns) if name not in names}
    item = item or next((known[name] for name in ITEM_NAMES if name in known), None)
    if item is None:
        raise CredalError(
            f"{path} has no column that names the items; it has {listed(columns)}. To fix: name "
            "it with --item."
        )
    return item


def _checked_items(path: Path, column: pl.Series, start: int) -> pl.Series:
    """Names as annotations have them: trimmed, in Unicode's normal form."""
    items = column.cast(pl.String).str.strip_chars().str.normalize("NFC")
    empty = (items.is_null() | (items == "")).fill_null(True)
    if empty.any():
        row = empty.arg_max() or 0
        raise CredalError(f"{_place(path, start + row)}: the item has no name. To fix: name it.")
    return items


def _numbers(
    path: Path, block: pl.DataFrame, names: list[str], items: pl.Series, start: int
) -> np.ndarray:
    """The features as float64 (N, D), every value finite."""
    for name in names:
        kind = block.schema[name]
        if not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null)):
            raise CredalError(
                f"features must be numbers; {path}, column {name!r} is of type {kind}."
            )
    table = block.select(pl.col(names)).with_columns(pl.col(pl.String).str.strip_chars())
    values = table.cast(pl.Float64, strict=False).to_numpy()
    if np.isfinite(values).all():
        return values
    found = table.select(_number(table, name) for name in names)
    for name in names:
        bad = (~found[name].is_finite()).fill_null(True)
        if bad.any():
            row = bad.arg_max() or 0
            value, number = block[name][row], found[name][row]
            what = "is empty" if value is None else f"holds {shown(value)}"
            rule = "numbers" if number is None and value is not None else "finite"
            raise CredalError(
                f"{_place(path, start + row)}: features must be {rule}; column {name!r} {what} for "
                f"item {shown(items[row])}. To fix: "
                f"{'fill it, or leave the item out' if rule == 'finite' else 'give a number'}."
            )
    return found.to_numpy()


def _number(table: pl.DataFrame, name: str) -> pl.Expr:
    """A column as numbers: true and false are 1 and 0, as in training."""
    number = pl.col(name).cast(pl.Float64, strict=False)
    if table.schema[name] != pl.String:
        return number
    truth = (
        pl.col(name)
        .str.to_lowercase()
        .replace_strict(["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64)
    )
    return pl.coalesce(number, truth)


def _place(path: Path, row: int) -> str:
    """The file and the row, from 1; in text the line."""
    if is_parquet(path):
        return f"{path}, row {row + 1}"
    return f"{path}, line {TextTable(path).line_of(row)}"


def _array(path: Path, num_features: int) -> Stream:
    array = open_array(path)
    if array.shape[1] != num_features:
        raise CredalError(
            f"{path} holds {array.shape[1]} features an item; this model takes {num_features}. To "
            "fix: give those of training, in their order."
        )
    names = array.items()

    def batches() -> Iterator[Batch]:
        row = 0
        for values in array.blocks():
            stop = row + len(values)
            given = range(row, stop) if names is None else names[row:stop]
            items = pl.Series("item", [str(name) for name in given], dtype=pl.String)
            finite = np.isfinite(values)
            if not finite.all():
                bad, column = np.argwhere(~finite)[0].tolist()
                raise CredalError(
                    f"{path}, row {row + bad + 1}: features must be finite; feature {column + 1} "
                    f"is {values[bad, column]} for item {shown(items[bad])}. To fix: fill it, or "
                    "leave the item out."
                )
            yield Batch(items, values, pl.DataFrame())
            row = stop

    return Stream(path, batches, row_names=names is None)


def _images(run: RunFolder, folder: Path, size: int) -> Stream:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        raise CredalError(f"this model takes a folder of images; {folder} {what}.")
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise CredalError(
            f"{folder} holds no image; looked for files ending in {', '.join(IMAGE_SUFFIXES)}."
        )
    trained = run.items["item"].head(100).to_list()
    with_suffix = any(name.lower().endswith(IMAGE_SUFFIXES) for name in trained)
    broken: dict[str, str] = {}

    def named(file: Path) -> str:
        within = file.relative_to(folder)
        return (within if with_suffix else within.with_suffix("")).as_posix()

    def decoded(file: Path) -> np.ndarray | str:
        try:
            read, *_ = read_images({"": file}, size)
        except CredalError as error:  # one of one is more than 1 %
            return str(error.args[0]).partition(str(file) + ": ")[2].partition(". To fix")[0]
        pixels: np.ndarray = read[0]
        return pixels

    def batches() -> Iterator[Batch]:
        broken.clear()
        with ThreadPoolExecutor(_WORKERS) as pool:
            for start in range(0, len(files), IMAGES):
                some = files[start : start + IMAGES]
                read = dict(zip(some, pool.map(decoded, some), strict=True))
                broken.update(
                    {named(f): f"{f}: {x}" for f, x in read.items() if isinstance(x, str)}
                )
                _check_broken(folder, broken, len(files))
                good = {f: x for f, x in read.items() if not isinstance(x, str)}
                if good:
                    yield Batch(
                        pl.Series("item", [named(file) for file in good], dtype=pl.String),
                        np.stack(list(good.values())).astype(np.float32),
                        pl.DataFrame({"image": [f.relative_to(folder).as_posix() for f in good]}),
                    )

    return Stream(folder, batches, broken=broken)


def _check_broken(folder: Path, broken: dict[str, str], num_files: int) -> None:
    if len(broken) > UNREADABLE_SHARE * num_files:
        raise CredalError(
            f"{len(broken)} or more of the {num_files} images in {folder} cannot be read, more "
            f"than 1 %; the first is {next(iter(broken.values()))}. To fix: replace them, or take "
            "them out of the folder."
        )
