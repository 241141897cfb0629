"""What a model sees of each item: a row of numbers, or an image.

Shapes: N items, D features, S pixels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from credalearn.app.annotations.places import shown
from credalearn.app.items.checked import (
    check_array,
    check_columns,
    check_features,
    check_width,
    checked_features,
    checked_names,
    item_column,
    place_of,
)
from credalearn.app.items.names import How, ImageNames
from credalearn.app.items.pixels import upright_rgb
from credalearn.app.tables.arrays import is_array, open_array
from credalearn.app.tables.blocks import blocks, columns_of
from credalearn.app.tables.decimal_commas import comma_columns
from credalearn.errors import CredalError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
UNREADABLE_SHARE = 0.01  # more unreadable images than this, and something else is wrong


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    r"""Features of items, as numbers.

    Args:
        path: Where they were read.
        items: Name of each item, all different.
        names: Name of each feature.
        values: Shape (N, D), finite.
        extra: Columns that were asked for beside the features, a row an item.
        commas: Features in which decimal commas were read, as in 0,5.
        item: The column that names the items; None: they are called by their row.
        later: Where they stand in several files, those after the first, each with the number of
            its first item.
        unnamed: Those of the files whose items are called by their row.
        dropped: Columns that were left out.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text("id,size,site\n007,1.5,x\nb,2,y\n")
        >>> table = read_features(path, extra=("site",))
        >>> table.items, table.names, table.values.tolist(), table.extra["site"].to_list()
        (['007', 'b'], ['size'], [[1.5], [2.0]], ['x', 'y'])
    """

    path: Path
    items: list[str]
    names: list[str]
    values: np.ndarray
    extra: pl.DataFrame
    commas: tuple[str, ...] = ()
    later: tuple[tuple[int, Path], ...] = ()
    item: str | None = None
    unnamed: tuple[Path, ...] = ()
    dropped: tuple[str, ...] = ()


def read_features(
    path: str | Path,
    *,
    item: str | None = None,
    extra: Sequence[str] = (),
    drop: Sequence[str] = (),
    names: Sequence[str] | None = None,
) -> FeatureTable:
    """Features from CSV, TSV, Parquet, npy or npz.

    A table names its items in the column ``item``, or else in one that is called like it (id, task,
    file, …); all its other columns are features. Of an npz file the one array of two dimensions
    holds the features, and arrays with one value a row are columns beside them; the rows of an npy
    file, or of an npz file without such arrays, are the items 0, 1, …. Names are trimmed and in
    Unicode's form NFC, as those of annotations are.

    Args:
        path: The file.
        item: Column that names the items.
        extra: Columns that are no features but wanted: a group, a gold label, a split.
        drop: Columns to leave out.
        names: The features of a model, which alone are read, by name and in this order; of an npy
            or npz file those are its columns.

    Raises:
        CredalError: If the file cannot be read, a column is missing, an item comes twice, or a
            feature is no finite number.
    """
    path = Path(path)
    if path.is_dir():
        raise CredalError(f"{path} is a folder. To fix: name the file, or give it as --images.")
    if is_array(path):
        return _from_array(path, item, extra, drop, names)
    return _from_table(path, item, extra, drop, names)


def find_images(folder: str | Path, items: Sequence[str]) -> dict[str, Path]:
    """The image file of each item that has one, as :func:`match_images` finds it.

    Raises:
        CredalError: As there.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> Image.new("RGB", (4, 4)).save(folder / "cat-1.png")
        >>> find_images(folder, ["cat-1", "cat-2"])["cat-1"].name
        'cat-1.png'
    """
    return {item: file for item, (file, _) in match_images(folder, items).items()}


def match_images(folder: str | Path, items: Sequence[str]) -> dict[str, tuple[Path, How]]:
    """The image file of each item that has one, and by what it was found.

    By its path below the folder, with or without its end, which may be in other case; by the path
    that an address such as ``/data/local-files/?d=a/1.png`` holds; or by the name of the file,
    where one file alone has it, also behind the letters that Label Studio puts before an upload's
    name.

    Raises:
        CredalError: If the folder is not there or holds no image, or two files fit one item.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> Image.new("RGB", (4, 4)).save(folder / "1.png")
        >>> match_images(folder, ["/data/local-files/?d=1.png"]).popitem()[1][1]
        'path in the address'
    """
    folder = Path(folder)
    names = ImageNames(image_files(folder), folder)
    found = ((item, names.find(item)) for item in items)
    return {item: match for item, match in found if match is not None}


def image_files(folder: Path) -> list[Path]:
    """The images in a folder and those below, in order, without hidden files.

    Raises:
        CredalError: If the folder is not there or holds none.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("b.png", "a.JPG", "._a.JPG", "notes.txt"):
        ...     (folder / name).touch()
        >>> [file.name for file in image_files(folder)]
        ['a.JPG', 'b.png']
    """
    if not folder.is_dir():
        raise CredalError(
            f"there is no folder {folder} of images. To fix: name the folder that holds them."
        )
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in IMAGE_SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise CredalError(
            f"{folder} holds no image; looked for files ending in {', '.join(IMAGE_SUFFIXES)}. To "
            "fix: name the folder that holds them, or save them as one of these."
        )
    return files


def read_image(path: Path, size: int) -> np.ndarray:
    """An image as numbers, uint8 of shape (3, S, S).

    Raises:
        CredalError: If it cannot be read, with the why.

    Example:
        >>> read_image(Path("none.png"), 2)
        Traceback (most recent call last):
        credalearn.errors.CredalError: none.png: [Errno 2] No such file or directory: 'none.png'
    """
    try:
        with Image.open(path) as image:
            small = upright_rgb(image).resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(small).transpose(2, 0, 1)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise CredalError(f"{path}: {error}") from error


def read_images(
    paths: Mapping[str, Path], size: int
) -> tuple[np.ndarray, list[str], dict[str, str]]:
    """Images as numbers, the items they belong to, and those that could not be read with the why.

    Args:
        paths: File of each item.
        size: Height and width that all are brought to, S.

    Returns:
        uint8 of shape (N, 3, S, S), N names, and a reason by name.

    Raises:
        CredalError: If more than 1 % of the images cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "red.png"
        >>> Image.new("RGB", (7, 5), (255, 0, 0)).save(path)
        >>> pixels, items, broken = read_images({"red": path}, 2)
        >>> pixels[0, :, 0, 0].tolist(), items, broken
        ([255, 0, 0], ['red'], {})
    """
    pixels: list[np.ndarray] = []
    items: list[str] = []
    broken: dict[str, str] = {}
    for item, path in paths.items():
        try:
            pixels.append(read_image(path, size))
        except CredalError as error:
            broken[item] = str(error)
        else:
            items.append(item)
    if len(broken) > UNREADABLE_SHARE * len(paths):
        first = next(iter(broken.values()))
        raise CredalError(
            f"{len(broken)} of {len(paths)} images cannot be read, more than 1 %; the first is "
            f"{first}. To fix: replace them, or leave those items out."
        )
    return np.stack(pixels) if pixels else np.empty((0, 3, size, size), np.uint8), items, broken


def _from_table(
    path: Path,
    item: str | None,
    extra: Sequence[str],
    drop: Sequence[str],
    known: Sequence[str] | None,
) -> FeatureTable:
    columns = columns_of(path)
    item = item_column(path, columns, item, features=known or ())
    check_columns(path, columns, (*extra, *drop))
    names = [name for name in columns if name not in (item, *extra, *drop)]
    if known is not None:
        check_features(path, columns, known)
        names = list(known)
    if not names:
        raise CredalError(f"{path} has no column of features beside {item!r}. To fix: add one.")
    parts = list(blocks(path))  # every value of text still text: an item 007 is not 7
    if not parts:
        raise CredalError(f"{path} holds no row below its header. To fix: add the items.")
    table = pl.concat(parts)
    items = checked_names(path, table[item])
    _refuse_twice(path, items)
    commas = comma_columns(path, [table], names)
    values = checked_features(path, table, names, items, training=known is None, commas=commas)
    beside = table.select(list(dict.fromkeys(extra)))
    told = tuple(sorted(commas))
    return FeatureTable(path, items.to_list(), names, values, beside, told, item=item)


def _from_array(
    path: Path,
    item: str | None,
    extra: Sequence[str],
    drop: Sequence[str],
    known: Sequence[str] | None,
) -> FeatureTable:
    array = open_array(path, item=item, beside=(*extra, *drop))
    if known is not None:
        check_width(path, array.shape[1], len(known))
    values = np.concatenate(list(array.blocks()))
    given = array.items()
    names = range(len(values)) if given is None else given
    items = checked_names(path, pl.Series([str(name) for name in names], dtype=pl.String))
    _refuse_twice(path, items)
    check_array(path, values, items)
    features = known or [f"f{number}" for number in range(values.shape[1])]
    beside = pl.DataFrame({name: array.column(name) for name in extra})
    unnamed = () if array.names else (path,)
    return FeatureTable(
        path, items.to_list(), list(features), values, beside, item=array.names, unnamed=unnamed
    )


def _refuse_twice(path: Path, items: pl.Series) -> None:
    again = ~items.is_first_distinct()
    if again.any():
        row = again.arg_max() or 0
        first = (items == items[row]).arg_max() or 0
        before = place_of(path, first).removeprefix(f"{path}, ")
        raise CredalError(
            f"{place_of(path, row)}: the item {shown(items[row])} comes a second time, first in "
            f"{before}. To fix: one row an item."
        )
