"""Images: found by the names of exports, read upright in 8 bits."""

import base64
import io
import unicodedata
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

import credalearn as cl
from credalearn._files import sha256_of
from credalearn.app.images import (
    THUMBNAIL_BYTES,
    check_readable,
    find_images,
    read_images,
    thumbnail,
)
from team_files import make_images


def found_in(folder: Path, items: list[str]) -> dict[str, str]:
    found = find_images(folder, items)
    return {item: path.relative_to(folder).as_posix() for item, path in found.items()}


def pixels_of(path: Path, size: int) -> np.ndarray:
    [[(_, read)]] = read_images([path], size)
    assert not isinstance(read, str), read
    assert read[1] == sha256_of(path)
    return read[0]


def test_images_are_found_by_the_names_of_exports(tmp_path: Path) -> None:
    make_images(tmp_path, ["i 00", "1a2b3c4d-x", "x"])
    make_images(tmp_path / "a", ["i01", "two"])
    make_images(tmp_path / "b", ["two"])
    wanted = {
        "i 00.png": "i 00.png",
        "a/i01": "a/i01.png",
        "C:\\data\\i01.png": "a/i01.png",
        "/data/local-files/?d=i%2000.png": "i 00.png",
        "/data/local-files/?d=img%2Fb%2Ftwo.png": "b/two.png",
        "/data/upload/3/1a2b3c4d-i01.png": "a/i01.png",
        "/data/upload/3/ffffffff-x.png": "x.png",
        "https://example.org/i%2000.png?sig=1&d2=3": "i 00.png",
    }
    assert found_in(tmp_path, [*wanted, "/data/upload/3/1a2b3c4d-none.png"]) == wanted
    for item in ("two", "/data/upload/3/1a2b3c4d-two.png"):
        with pytest.raises(cl.CredalError, match=rf"item '{item}' fits 2 images"):
            find_images(tmp_path, [item])


def test_names_of_a_mac_and_suffixes_in_capitals_are_found(tmp_path: Path) -> None:
    mac = unicodedata.normalize("NFD", "Žába é")
    make_images(tmp_path / "a", [mac, "one", "two"])
    for name in ("one", "two"):
        (tmp_path / "a" / f"{name}.png").rename(tmp_path / "a" / f"{name}.PNG")
    make_images(tmp_path / "b", ["two", "Three"])
    wanted = {
        unicodedata.normalize("NFC", f"a/{mac}.png"): f"a/{mac}.png",
        "/data/?d=" + quote(f"a/{mac}.png"): f"a/{mac}.png",
        unicodedata.normalize("NFC", mac): f"a/{mac}.png",
        "a/one.png": "a/one.PNG",
        "https://example.org/one.Png": "a/one.PNG",
        "a/two.png": "a/two.PNG",
        "b/two.png": "b/two.png",
        "two.PNG": "a/two.PNG",
    }
    assert found_in(tmp_path, [*wanted, "three.png"]) == wanted  # the stem keeps its case


def test_images_of_every_mode_become_three_colors(tmp_path: Path) -> None:
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"):
        suffix = ".tif" if mode in ("CMYK", "I;16") else ".png"
        Image.new(mode, (7, 3)).save(tmp_path / f"{mode.replace(';', '')}{suffix}")
    for path in tmp_path.iterdir():
        pixels = pixels_of(path, 4)
        assert pixels.shape == (3, 4, 4)
        assert pixels.dtype == np.uint8


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("gray.png", np.array([[0, 257], [32_896, 65_535]], np.uint16), [0, 1, 128, 255]),
        ("whole.tif", np.array([[-5, 257], [32_896, 65_535]], np.int32), [0, 1, 128, 255]),
        ("share.tif", np.array([[0, 0.2], [np.nan, 1]], np.float32), [0, 51, 0, 255]),
        ("sixteen.tif", np.array([[0, 257], [771, 7e4]], np.float32), [0, 1, 3, 255]),
    ],
)  # fmt: skip
def test_more_than_eight_bits_are_scaled_by_their_type(
    tmp_path: Path, name: str, values: np.ndarray, wanted: list[int]
) -> None:
    Image.fromarray(values).save(tmp_path / name)
    assert pixels_of(tmp_path / name, 2).reshape(3, 4).tolist() == [wanted] * 3


def test_images_are_rotated_by_exif(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise
    lying = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]], np.uint8)
    path = tmp_path / "x.png"
    Image.fromarray(lying).save(path, exif=exif)
    assert (pixels_of(path, 2).transpose(1, 2, 0) == np.rot90(lying, -1)).all()


def test_unreadable_images_are_named_and_many_are_refused(tmp_path: Path) -> None:
    names = [f"x{number:03d}" for number in range(300)]  # more than one batch
    make_images(tmp_path, names, size=2)
    (tmp_path / "x007.png").write_bytes(b"\x89PNG no image")
    (tmp_path / "x280.png").write_bytes((tmp_path / "x281.png").read_bytes()[:50])
    files = [tmp_path / f"{name}.png" for name in names]
    read = dict(pair for batch in read_images(files, 2) for pair in batch)
    assert list(read) == files
    broken = [each for each in read.values() if isinstance(each, str)]
    assert ["x007.png" in broken[0], "x280.png" in broken[1]] == [True, True]
    check_readable(broken, 300)
    check_readable(["why"] * 5, 20)
    for number, of in ((6, 300), (2, 2)):
        with pytest.raises(cl.CredalError, match=rf"{number} of {of} images cannot .* is why\. To"):
            check_readable(["why"] * number, of)


def shown(path: Path) -> Image.Image:
    uri = thumbnail(path)
    assert uri is not None
    assert len(uri) < THUMBNAIL_BYTES
    return Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/jpeg;base64,"))))


def test_thumbnails_are_small_and_never_fail(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    scan = noise.integers(900, 1100, (50, 40)).astype(np.uint16)
    marked = np.where(np.arange(40) + np.arange(50)[:, None] < 2, np.uint16(65_535), scan)
    images = {
        "noise.png": Image.fromarray(noise.integers(0, 256, (192, 192, 3), dtype=np.uint8)),
        "deep.png": Image.fromarray(scan),
        "marked.png": Image.fromarray(marked),
        "clear.png": Image.new("RGBA", (30, 30)),
        "palette.gif": Image.new("P", (30, 30)),
        "thin.png": Image.new("L", (3000, 1)),
    }
    for name, image in images.items():
        image.save(tmp_path / name)
        assert max(shown(tmp_path / name).size) <= 192
    for name in ("deep.png", "marked.png"):  # stretched to be seen
        assert 100 < np.median(np.asarray(shown(tmp_path / name))) < 160
    (tmp_path / "broken.png").write_bytes((tmp_path / "noise.png").read_bytes()[:1000])
    (tmp_path / "text.png").write_text("no image")
    assert [thumbnail(tmp_path / name) for name in ("broken.png", "text.png")] == [None, None]


def png_of(width: int, height: int) -> bytes:
    """A PNG of a few kilobytes that unpacks to one bit per pixel."""
    buffer = io.BytesIO()
    Image.new("1", (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", "none of PNG, JPEG, BMP"),
        (png_of(8_000, 8_000), "it has 64,000,000 pixels; at most 50,000,000 are read"),
        (png_of(12_000, 12_000), "it has 144,000,000 pixels; at most 50,000,000"),
        (png_of(30_000, 30_000), "it has 900,000,000 pixels; at most 50,000,000"),
    ],
    ids=["PostScript", "above our limit", "above Pillow's limit", "above twice Pillow's limit"],
)
def test_rejects_other_formats_and_too_many_pixels(
    content: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image.Image, "load", lambda _: pytest.fail("pixels were read"))
    path = tmp_path / "x.png"
    path.write_bytes(content)
    [[(_, read)]] = read_images([path], 8)
    assert isinstance(read, str)
    assert why in read
    assert thumbnail(path) is None
