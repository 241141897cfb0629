"""Small pictures that travel inside a page."""

import base64
import io
import warnings
from pathlib import Path

from PIL import Image, ImageOps

from credalearn.app.items.pixels import upright

MOST_BYTES = 15_000  # of the data URI
_SIDES = (192, 144, 96, 64, 32)  # pixels: the first that fits


def thumbnail(path: Path) -> str | None:
    """The image as a small JPEG in a data URI; None where it cannot be read.

    A page must not fail for a picture: training has named the images that cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "a.png"
        >>> Image.new("RGB", (500, 300)).save(path)
        >>> thumbnail(path)[:23]
        'data:image/jpeg;base64,'
        >>> thumbnail(path.with_name("none.png"))
    """
    try:
        with warnings.catch_warnings():
            # An image that unpacks to gigabytes is not worth a thumbnail.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as opened:
                opened.draft("RGB", (2 * _SIDES[0],) * 2)  # a JPEG is read at a fraction
                image = upright(opened)
                if image.mode.startswith("I") or image.mode == "F":
                    image = ImageOps.autocontrast(_eight_bits(image))
                image = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning):
        return None
    for side in _SIDES:
        small = image.copy()
        small.thumbnail((side, side))
        buffer = io.BytesIO()  # a new image has none of the file's notes: no place, no name
        small.save(buffer, "JPEG", quality=80, optimize=True)
        uri = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        if len(uri) < MOST_BYTES:
            return uri
    return None


def _eight_bits(image: Image.Image) -> Image.Image:
    """Gray values of 16 bits or floats, as scanners give them, brought to 0..255."""
    values = image.convert("F")
    low, high = values.getextrema()
    assert isinstance(low, float)
    assert isinstance(high, float)
    return values.point(lambda v: (v - low) * (255 / max(high - low, 1e-9))).convert("L")
