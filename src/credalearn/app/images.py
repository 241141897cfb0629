"""Images: their files, found by the names that exports use, and their pixels."""

import base64
import hashlib
import io
import re
import struct
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Lock
from urllib.parse import unquote

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from credalearn._formats import check_unicode, many
from credalearn.errors import CredalError

# Pillow knows 40 formats, and hands PostScript to another program; no other than these is opened.
_FORMATS = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".gif": "GIF",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
}
IMAGE_SUFFIXES = tuple(_FORMATS)
_MOST_PIXELS = 50_000_000  # 0.6 GB while an RGB image is read, 1.6 GB for 16-bit gray
_MOST_BYTES = 16 * _MOST_PIXELS  # what the largest uncompressed image takes
_LARGE = 4_000_000  # pixels from which on one image is read at a time
_Index = dict[str, list[Path]]
_UPLOAD = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio's, before the name of an uploaded file
# The largest value that a mode is used with: of several the smallest that fits the image. Files of
# 16 bits come as I;16 or as I, floats of 0 to 1 and floats of 8 or 16 bits as F.
_LARGEST = {"I;16": (65_535,), "I": (65_535, 2**31 - 1), "F": (1, 255, 65_535)}
_DAMAGE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
_BATCH = 256  # decoded at a time: 3 MB at 64 px, 38 MB at 224 px
_WORKERS = 4  # Pillow decodes outside Python's lock
_ONE_OPENS, _ONE_LARGE = Lock(), Lock()
THUMBNAIL_BYTES = 15_000  # of the data URI
_THUMBNAIL_SIDES = (192, 144, 96, 64, 32)  # pixels: the first that fits


def image_files(folder: Path) -> list[Path]:
    """The images in a folder and below, in order, without hidden files."""
    if not folder.is_dir():
        raise CredalError(f"there is no folder {folder} of images. To fix: check the path.")
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in IMAGE_SUFFIXES
        and not file.name.startswith(".")
        and file.is_file()  # not a pipe, which may never end
    )
    for file in files:
        check_unicode(file.name)
    if not files:
        raise CredalError(
            f"{folder} contains no image; known suffixes are {', '.join(IMAGE_SUFFIXES)}. To fix: "
            "check the path, or save the images as one of these."
        )
    return files


def find_images(folder: Path, items: Iterable[str]) -> dict[str, Path]:
    """The image file of each item that has one."""
    by_path: _Index = {}  # below the folder, with or without the suffix
    by_name: _Index = {}
    for file in image_files(folder):
        path, name = nfc(file.relative_to(folder).as_posix()), nfc(file.name)
        called = [(each, _small_end(each), each.removesuffix(file.suffix)) for each in (path, name)]
        for each in dict.fromkeys(called[0]):
            by_path.setdefault(each, []).append(file)
        for each in dict.fromkeys((*called[0], *called[1])):
            by_name.setdefault(each, []).append(file)
    found = {}
    for item in items:
        for index, reading in _readings(item, by_path, by_name):
            name = nfc(reading)
            fits = index.get(name) or index.get(_small_end(name)) or []
            fits = [file for file in fits if nfc(file.name) == name.rpartition("/")[2]] or fits
            if len(fits) > 1:
                raise CredalError(
                    f"item {item!r} fits {len(fits)} images: {fits[0]} and {fits[1]}. To fix: name "
                    "items by their path within the folder."
                )
            if fits:
                found[item] = fits[0]
                break
    return found


def read_images(
    files: Sequence[Path], size: int
) -> Iterator[list[tuple[Path, tuple[np.ndarray, str] | str]]]:
    """Images in batches: pixels (3, S, S), uint8, and the SHA-256 of the file; or why not."""

    def read(file: Path) -> tuple[Path, tuple[np.ndarray, str] | str]:
        try:
            content = _content(file)
            with _opened(io.BytesIO(content)) as image:
                large = image.width * image.height > _LARGE
                with _ONE_LARGE if large else nullcontext():
                    whole = _eight_bits(_upright(image)).convert("RGB")
                    small = whole.resize((size, size), Image.Resampling.BILINEAR)
        except _DAMAGE as error:
            return file, f"{file}: {error}"
        pixels = np.asarray(small).transpose(2, 0, 1)
        return file, (pixels, hashlib.sha256(content).hexdigest())

    with ThreadPoolExecutor(_WORKERS) as pool:
        for start in range(0, len(files), _BATCH):
            yield list(pool.map(read, files[start : start + _BATCH]))


def check_readable(unreadable: Sequence[str], number: int) -> None:
    """Refuse more than five unreadable images and more than 1 %, or no readable one."""
    if unreadable and (len(unreadable) == number or len(unreadable) > max(5, 0.01 * number)):
        raise CredalError(
            f"{len(unreadable):,} of {many(number, 'image')} cannot be read; the first is "
            f"{unreadable[0]}. To fix: replace what cannot be read, or leave it out."
        )


def thumbnail(path: Path) -> str | None:
    """The image as a small JPEG in a data URI; None where it cannot be read."""
    try:
        with _opened(io.BytesIO(_content(path))) as opened:
            opened.draft("RGB", (2 * _THUMBNAIL_SIDES[0],) * 2)  # a JPEG is read at a fraction
            # A scan may use a small part of its range.
            image = _eight_bits(_upright(opened), stretch=True).convert("RGB")
    except _DAMAGE:
        return None
    for side in _THUMBNAIL_SIDES:
        small = image.copy()
        small.thumbnail((side, side))
        buffer = io.BytesIO()  # a new image has none of the file's metadata
        small.save(buffer, "JPEG", quality=80, optimize=True)
        uri = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        if len(uri) < THUMBNAIL_BYTES:
            return uri
    return None


def _content(file: Path) -> bytes:
    if file.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has {file.stat().st_size:,} bytes; at most {_MOST_BYTES:,} are read")
    return file.read_bytes()


def _opened(content: io.BytesIO) -> Image.Image:
    """The image, its header read; a ValueError for other formats and for too many pixels."""
    formats = list(dict.fromkeys(_FORMATS.values()))
    try:
        with _ONE_OPENS, warnings.catch_warnings():  # warnings belong to all threads
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(content, formats=formats)
        pixels = image.width * image.height
    except UnidentifiedImageError as error:
        raise ValueError(f"its content is none of {', '.join(formats)}") from error
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        pixels = int("".join(re.findall(r"\d+", str(error))[:1]) or _MOST_PIXELS + 1)
    if pixels > _MOST_PIXELS:
        raise ValueError(f"it has {pixels:,} pixels; at most {_MOST_PIXELS:,} are read")
    return image


def nfc(name: str) -> str:
    """A name in Unicode's form NFC, as annotations have it; folders from a Mac have another."""
    return unicodedata.normalize("NFC", name)


def _upright(image: Image.Image) -> Image.Image:
    """The image, turned as its EXIF orientation says."""
    image.load()  # what is raised from here on is about the EXIF alone
    with suppress(OSError, ValueError, SyntaxError, TypeError, struct.error):
        return ImageOps.exif_transpose(image)
    return image


def _eight_bits(image: Image.Image, *, stretch: bool = False) -> Image.Image:
    """Gray values of more than 8 bits as 0 to 255; other images as they are."""
    if not image.mode.startswith(("I", "F")):
        return image
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0, neginf=0)
    if stretch:  # without the 0.5 % at either end: a burned-in mark would leave the rest black
        low, high = np.percentile(values, (0.5, 99.5))
        low, high = (low, high) if high > low else (values.min(), values.max())
        values = ((values - low) / max(high - low, 1e-9)).clip(0, 1)
    mode = "F" if stretch else "I;16" if image.mode.startswith("I;16") else image.mode
    most = next((x for x in _LARGEST[mode] if values.max() <= x), _LARGEST[mode][-1])
    return Image.fromarray((values.clip(0, most) * (255 / most)).round().astype(np.uint8))


def _small_end(name: str) -> str:
    """IMG.PNG as IMG.png."""
    before, dot, end = name.rpartition(".")
    return f"{before}{dot}{end.lower()}" if dot else name


def _readings(item: str, by_path: _Index, by_name: _Index) -> Iterator[tuple[_Index, str]]:
    """What the name may mean, the most literal first: ``/data/local-files/?d=a/1.png``, too."""
    whole = item.replace("\\", "/")
    bare, _, query = whole.partition("?")
    given = [unquote(part[2:]) for part in query.split("&") if part.startswith("d=")]
    for path in (whole, *given):
        yield by_path, path
    every = list(dict.fromkeys((*given, bare, unquote(bare), whole)))
    for text in every:
        # The longest path that is known: exports often carry the folders of another machine.
        parts = text.split("/")
        for start in range(len(parts)):
            yield by_name, "/".join(parts[start:])
    for text in every:
        name = text.rpartition("/")[2]
        if _UPLOAD.match(name):
            yield by_name, _UPLOAD.sub("", name)
