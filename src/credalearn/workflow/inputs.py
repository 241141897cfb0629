"""What a model sees of each item: a row of numbers, or an image.

Shapes: N items, D features, S pixels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from credalearn.annotations.places import listed, nearest, shown
from credalearn.errors import CredalError
from credalearn.workflow.arrays import open_array
from credalearn.workflow.blocks import TextTable, blocks, columns_of, is_parquet
from credalearn.workflow.item_names import How, ImageNames
from credalearn.workflow.pixels import upright_rgb

ITEM_NAMES = (
    "item",
    "item_id",
    "id",
    "task",
    "task_id",
    "name",
    "file",
    "filename",
    "image",
    "path",
)
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


def read_features(
    path: str | Path,
    *,
    item: str | None = None,
    extra: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> FeatureTable:
    """Features from CSV, TSV, Parquet, npy or npz.

    A table names its items in the column ``item``, or else in one that is called like it (id, task,
    file, …); all its other columns are features. The rows of an npy file are the items 0, 1, …; an
    npz file may name them in an array ``items``. Names are trimmed and in Unicode's form NFC, as
    those of annotations are.

    Args:
        path: The file.
        item: Column that names the items.
        extra: Columns that are no features but wanted: a group, a gold label, a split.
        drop: Columns to leave out.

    Raises:
        CredalError: If the file cannot be read, a column is missing, an item comes twice, or a
            feature is no finite number.
    """
    path = Path(path)
    if path.is_dir():
        raise CredalError(f"{path} is a folder. To fix: name the file, or give it as --images.")
    if path.suffix.lower() in (".npy", ".npz"):
        return _from_array(path, (*extra, *drop))
    return _from_table(path, item, extra, drop)


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


def place_of(path: Path, row: int) -> str:
    r"""A row of a table, from 0, as a message names it: in text by its line.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "items.csv"
        >>> _ = path.write_text("id,size\na,1\n")
        >>> place_of(path, 0).split(", ")[1]
        'line 2'
    """
    if path.suffix.lower() in (".npy", ".npz") or is_parquet(path):
        return f"{path}, row {row + 1}"
    return f"{path}, line {TextTable(path).line_of(row)}"


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

    By its path below the folder, with or without its end; by the path that an address such as
    ``/data/local-files/?d=a/1.png`` holds; or by the name of the file, where one file alone has
    it, also behind the letters that Label Studio puts before an upload's name.

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
    if not folder.is_dir():
        raise CredalError(f"there is no folder {folder} of images.")
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES)
    if not files:
        raise CredalError(
            f"{folder} holds no image; looked for files ending in {', '.join(IMAGE_SUFFIXES)}."
        )
    names = ImageNames(files, folder)
    found = ((item, names.find(item)) for item in items)
    return {item: match for item, match in found if match is not None}


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
            with Image.open(path) as image:
                small = upright_rgb(image).resize((size, size), Image.Resampling.BILINEAR)
                pixels.append(np.asarray(small).transpose(2, 0, 1))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            broken[item] = f"{path}: {error}"
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
    path: Path, item: str | None, extra: Sequence[str], drop: Sequence[str]
) -> FeatureTable:
    columns = columns_of(path)
    check_columns(path, columns, (*([item] if item is not None else []), *extra, *drop))
    if item is None:
        known = {column.lower(): column for column in reversed(columns)}
        item = next((known[name] for name in ITEM_NAMES if name in known), None)
    if item is None:
        raise CredalError(
            f"{path} has no column that names the items; it has {listed(columns)}. To fix: name it "
            "with --item."
        )
    names = [name for name in columns if name not in (item, *extra, *drop)]
    if not names:
        raise CredalError(f"{path} has no column of features beside {item!r}. To fix: add one.")
    parts = list(blocks(path))  # every value of text still text: an item 007 is not 7
    if not parts:
        raise CredalError(f"{path} holds no row below its header. To fix: add the items.")
    table = pl.concat(parts)
    items = _checked_items(path, table[item])
    values = np.stack([_numbers(path, table[name], items) for name in names], axis=1)
    return FeatureTable(path, items, names, values, table.select(list(dict.fromkeys(extra))))


def _checked_items(path: Path, column: pl.Series) -> list[str]:
    """Names as annotations have them: trimmed, in Unicode's normal form, each once."""
    names = column.cast(pl.String).str.strip_chars().str.normalize("NFC").to_list()
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if not name:
            raise CredalError(f"{place_of(path, row)}: the item has no name. To fix: name it.")
        if first.setdefault(name, row) != row:
            before = place_of(path, first[name]).removeprefix(f"{path}, ")
            raise CredalError(
                f"{place_of(path, row)}: the item {shown(name)} comes a second time, first in "
                f"{before}. To fix: one row an item."
            )
    return names


def _numbers(path: Path, column: pl.Series, items: list[str]) -> np.ndarray:
    """A column as float64, every value finite; true and false are 1 and 0."""
    numbers = column
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        truth = text.str.to_lowercase().replace_strict(
            ["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64
        )
        numbers = text.cast(pl.Float64, strict=False)
        numbers = numbers.zip_with(numbers.is_not_null(), truth)
    elif not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise CredalError(
            f"features must be numbers; {path}, column {column.name!r} is of type {column.dtype}. "
            f"To fix: leave it out with --drop {column.name}, or turn it into numbers."
        )
    numbers = numbers.cast(pl.Float64)
    wrong = (~numbers.is_finite()).fill_null(True)
    if wrong.any():
        row, count = wrong.arg_max() or 0, int(wrong.sum())
        what = "is empty" if column[row] is None else f"holds {shown(column[row])}"
        more = f", and {count - 1:,} more such values" if count > 1 else ""
        text_column = numbers[row] is None and column[row] is not None
        fix = f"leave the column out with --drop {column.name}, or "
        fix += "turn it into numbers" if text_column else "fill it, or leave the item out"
        raise CredalError(
            f"{place_of(path, row)}: features must be {'numbers' if text_column else 'finite'}; "
            f"column {column.name!r} {what} for item {shown(items[row])}{more}. To fix: {fix}."
        )
    return numbers.to_numpy()


def _from_array(path: Path, columns: Sequence[str]) -> FeatureTable:
    if columns:
        raise CredalError(
            f"{path} has no columns with names, and so no {columns[0]!r}. To fix: give a table, "
            "CSV or Parquet, or leave --group, --gold, --split and --drop out."
        )
    array = open_array(path)
    values = np.concatenate(list(array.blocks()))
    given = array.items()
    names = range(len(values)) if given is None else given
    items = _checked_items(path, pl.Series([str(name) for name in names], dtype=pl.String))
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise CredalError(
            f"{place_of(path, row)}: features must be finite; feature {column + 1} is "
            f"{values[row, column]} for item {shown(items[row])}. To fix: fill it, or leave the "
            "item out."
        )
    features = [f"f{number}" for number in range(values.shape[1])]
    return FeatureTable(path, items, features, values, pl.DataFrame())
