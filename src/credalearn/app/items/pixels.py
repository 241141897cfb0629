"""An opened image as red, green and blue of 8 bits, upright, whatever its mode."""

import struct
from contextlib import suppress

import numpy as np
from PIL import Image, ImageOps

# The largest value that a mode is used with: of several the smallest that holds the image. Files
# of 16 bits come as I;16 or as I, floats of 0 to 1 and floats of 8 or 16 bits as F.
_LARGEST = {"I;16": (65_535,), "I": (65_535, 2**31 - 1), "F": (1, 255, 65_535)}


def upright(image: Image.Image) -> Image.Image:
    """The image turned as its EXIF orientation says; where the EXIF is damaged, as it lies.

    Example:
        >>> image = Image.new("L", (3, 2))
        >>> image.getexif()[0x0112] = 6  # a camera held upright
        >>> upright(image).size
        (2, 3)
    """
    image.load()  # what is raised from here on is about the EXIF alone
    with suppress(OSError, ValueError, SyntaxError, TypeError, struct.error):
        return ImageOps.exif_transpose(image)
    return image


def upright_rgb(image: Image.Image) -> Image.Image:
    """The image, upright, in 8 bits a color.

    Gray values of more than 8 bits are scaled by the range of their type, 65535 to 255, not by
    the image's own: what is darker than another image stays darker.

    Example:
        >>> half = Image.fromarray(np.full((1, 1), 32_896, dtype=np.uint16))
        >>> half.mode, upright_rgb(half).getpixel((0, 0))
        ('I;16', (128, 128, 128))
    """
    image = upright(image)
    mode = "I;16" if image.mode.startswith("I;16") else image.mode
    if mode in _LARGEST:
        values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0, neginf=0)
        most = next((x for x in _LARGEST[mode] if values.max() <= x), _LARGEST[mode][-1])
        image = Image.fromarray((values.clip(0, most) * (255 / most)).round().astype(np.uint8))
    return image.convert("RGB")
