"""Thumbnails of images as teams have them: small JPEGs, or nothing."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from credalearn.app.items.thumbnails import MOST_BYTES, thumbnail

NOISE = np.random.default_rng(0)
IMAGES = {
    "noise.png": Image.fromarray(NOISE.integers(0, 256, size=(192, 192, 3), dtype=np.uint8)),
    "deep.png": Image.fromarray(NOISE.integers(900, 1100, size=(50, 40)).astype(np.uint16)),
    "clear.png": Image.new("RGBA", (30, 30)),
    "palette.gif": Image.new("P", (30, 30)),
    "thin.png": Image.new("L", (3000, 1)),
}


def opened(uri: str | None) -> Image.Image:
    assert uri is not None
    assert len(uri) < MOST_BYTES
    return Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/jpeg;base64,"))))


@pytest.mark.parametrize("name", IMAGES)
def test_thumbnails_are_small(tmp_path: Path, name: str) -> None:
    IMAGES[name].save(tmp_path / name)
    assert max(opened(thumbnail(tmp_path / name)).size) <= 192


def test_gray_values_of_16_bits_are_stretched(tmp_path: Path) -> None:
    IMAGES["deep.png"].save(tmp_path / "deep.png")
    assert np.asarray(opened(thumbnail(tmp_path / "deep.png"))).max() > 200


def test_files_that_are_no_images_have_none(tmp_path: Path) -> None:
    IMAGES["noise.png"].save(tmp_path / "noise.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "noise.png").read_bytes()[:1000])
    (tmp_path / "text.png").write_text("no image")
    assert [thumbnail(tmp_path / name) for name in ("broken.png", "text.png")] == [None, None]
