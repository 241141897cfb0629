"""What a trained model is to predict, a batch at a time: features or images, checked on the way.

Shapes: N items of a batch, D features, S pixels.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl

from credalearn.app.items.batches import Batch, Stream
from credalearn.app.items.checked import (
    check_array,
    check_features,
    check_width,
    checked_features,
    checked_names,
    item_column,
)
from credalearn.app.items.digests import DIGEST, image_digest, row_digests
from credalearn.app.items.inputs import (
    IMAGE_SUFFIXES,
    UNREADABLE_SHARE,
    image_files,
    read_image,
)
from credalearn.app.items.names import nfc
from credalearn.app.run import Run
from credalearn.app.tables.arrays import array_columns, is_array, open_array
from credalearn.app.tables.blocks import blocks, columns_of, index_columns
from credalearn.app.tables.decimal_commas import comma_columns
from credalearn.errors import CredalError

IMAGES = 256  # decoded at a time: 3 MB at 64 px, 38 MB at 224 px
_BROKEN = 5  # images that may be unreadable, however few there are
_WORKERS = 4  # Pillow decodes outside Python's lock


def open_stream(run: Run, data: str | Path, *, item: str | None = None) -> Stream:
    """The items in ``data``, as the run's model takes them.

    Args:
        run: Says which features the model has, by name, or how large its images are.
        data: CSV, TSV, Parquet, npy or npz; or a folder of images.
        item: Column that names the items; else that of the training, or one that is called like
            it.

    Raises:
        CredalError: If the data are of another kind, or features are missing.
    """
    data = Path(data)
    inputs = run.facts.inputs
    if run.takes_images:
        return _images(run, data, inputs.image_size or 0)
    if data.is_dir():
        raise CredalError(
            f"{data} is a folder; this model takes features. To fix: give a table of them."
        )
    names = list(inputs.features)
    held = array_columns(data) if is_array(data) else columns_of(data)
    if item is None and inputs.item in held:
        item = inputs.item
    if is_array(data):
        beside = [name for name in run.columns_beside if name in held]
        return _array(data, len(names), item, beside)
    return _table(data, names, item)


def _table(path: Path, names: list[str], item: str | None) -> Stream:
    columns = columns_of(path)
    named = item_column(path, columns, item, features=names)
    check_features(path, columns, names)
    ignored = tuple(name for name in columns if name not in {*names, named})
    commas = comma_columns(path, blocks(path), names)  # of all rows: a block may not tell

    def batches() -> Iterator[Batch]:
        row = 0
        for block in blocks(path):
            items = checked_names(path, block[named], start=row)
            values = checked_features(path, block, names, items, start=row, commas=commas)
            extra = block.select(ignored).get_columns()
            extra.append(pl.Series(DIGEST, row_digests(values)))
            yield Batch(items, values, pl.DataFrame(extra))
            row += len(block)
        if not row:
            raise CredalError(f"{path} holds no row below its header. To fix: add the items.")

    passed_over = (*index_columns(path), *ignored)
    return Stream(path, batches, passed_over, commas=tuple(commas), named=named)


def _array(path: Path, num_features: int, item: str | None, beside: list[str]) -> Stream:
    array = open_array(path, item=item, beside=beside)
    check_width(path, array.shape[1], num_features)
    names = array.items()

    def batches() -> Iterator[Batch]:
        row = 0
        for values in array.blocks():
            stop = row + len(values)
            given = range(row, stop) if names is None else names[row:stop]
            column = pl.Series("item", [str(name) for name in given], dtype=pl.String)
            items = checked_names(path, column, start=row)
            check_array(path, values, items, start=row)
            yield Batch(items, values, pl.DataFrame({DIGEST: row_digests(values)}))
            row = stop

    ignored = tuple(name for name in array.columns if name != array.names)
    named = array.names or "item"
    return Stream(path, batches, ignored, row_names=names is None, named=named)


def _images(run: Run, folder: Path, size: int) -> Stream:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        raise CredalError(
            f"this model takes a folder of images; {folder} {what}. To fix: name the folder."
        )
    files = image_files(folder)
    trained = run.items["item"].head(100).to_list()
    with_suffix = any(name.lower().endswith(IMAGE_SUFFIXES) for name in trained)
    broken: dict[str, str] = {}

    def named(file: Path) -> str:
        within = file.relative_to(folder)
        return nfc((within if with_suffix else within.with_suffix("")).as_posix())

    def decoded(file: Path) -> tuple[np.ndarray, str] | str:
        try:
            return read_image(file, size), image_digest(file)
        except (CredalError, OSError) as error:
            return str(error)

    def batches() -> Iterator[Batch]:
        broken.clear()
        with ThreadPoolExecutor(_WORKERS) as pool:
            for start in range(0, len(files), IMAGES):
                some = files[start : start + IMAGES]
                read = dict(zip(some, pool.map(decoded, some), strict=True))
                broken.update({named(f): x for f, x in read.items() if isinstance(x, str)})
                _check_broken(folder, broken, len(files))
                good = {f: x for f, x in read.items() if not isinstance(x, str)}
                if good:
                    pixels, digests = zip(*good.values(), strict=True)
                    within = [file.relative_to(folder).as_posix() for file in good]
                    yield Batch(
                        pl.Series("item", [named(file) for file in good], dtype=pl.String),
                        np.stack(pixels).astype(np.float32),
                        pl.DataFrame({"image": within, DIGEST: digests}),
                    )

    return Stream(folder, batches, broken=broken)


def _check_broken(folder: Path, broken: dict[str, str], num_files: int) -> None:
    if len(broken) == num_files:
        what = f"none of the {num_files} images in {folder} can be read"
    elif len(broken) > max(_BROKEN, UNREADABLE_SHARE * num_files):
        what = f"{len(broken)} or more of the {num_files} images in {folder} cannot be read, more "
        what += f"than {_BROKEN} and than 1 %"
    else:
        return
    raise CredalError(
        f"{what}; the first is {next(iter(broken.values()))}. To fix: replace them, or take them "
        "out of the folder."
    )
