"""Foreign sets: what is read is what lies there, in an order of its own, and damage is named."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import loadmat, savemat

from credalearn import CredalError
from credalearn_experiments.data import DataFolders, load_foreign
from credalearn_experiments.data.images import image_files
from tiny_data import idx, write, write_foreign, write_image

ITEMS = 12


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_foreign(tmp_path, ITEMS, np.random.default_rng(3))
    return tmp_path


def load(name: str, folder: Path, size: int = 32) -> torch.Tensor:
    return load_foreign(name, DataFolders([folder]), size=size)


def opened(path: Path, size: int) -> torch.Tensor:
    with Image.open(path) as image:
        pixels = np.array(image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR))
    return torch.from_numpy(pixels).permute(2, 0, 1)


def test_svhn_is_turned_the_right_way(tiny: Path) -> None:
    pixels = loadmat(tiny / "svhn/test_32x32.mat")["X"]
    images = load("svhn", tiny)
    for row in range(ITEMS):
        assert images[row].permute(1, 2, 0).tolist() == pixels[:, :, :, row].tolist()
    (tiny / "svhn/test_32x32.mat").rename(tiny / "test_32x32.mat")
    assert torch.equal(load("svhn", tiny), images)


def test_fashion_mnist_is_gray_and_resized(tiny: Path) -> None:
    packed = tiny / "fashion-mnist/t10k-images-idx3-ubyte.gz"
    content = gzip.decompress(packed.read_bytes())
    gray = np.frombuffer(content[16:], np.uint8).reshape(ITEMS, 28, 28)
    as_is, resized = load("fashion-mnist", tiny, 28), load("fashion-mnist", tiny)
    for row in range(ITEMS):
        for channel in range(3):
            assert as_is[row, channel].tolist() == gray[row].tolist()
        slow = np.array(Image.fromarray(gray[row]).resize((32, 32), Image.Resampling.BILINEAR))
        assert resized[row, 0].tolist() == slow.tolist()
    packed.unlink()
    write(packed.with_suffix(""), content)
    assert torch.equal(load("fashion-mnist", tiny), resized)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("places365", "places365/val_256"),
        ("imagenet", "imagenet/val"),
        ("tiny-imagenet", "tiny-imagenet-200/val/images"),
    ],
)
def test_folders_are_read_in_sorted_order(name: str, folder: str, tiny: Path) -> None:
    files = sorted((path for path in (tiny / folder).rglob("*.*")), key=str)
    images = load(name, tiny, 16)
    assert len(files) == len(images) == ITEMS
    for path, image in zip(files, images, strict=True):
        assert torch.equal(image, opened(path, 16))
    broken = files[5]
    broken.write_bytes(broken.read_bytes()[:300])
    with pytest.raises(CredalError, match=rf"{broken.name} could not be read as an image"):
        load(name, tiny)
    for path in files:
        path.unlink()
    with pytest.raises(CredalError, match=rf"{folder} must hold images .*; it holds none. To fix"):
        load(name, tiny)


def test_any_folder_of_images_will_do_for_places365(tmp_path: Path) -> None:
    write_image(tmp_path / "places365/some/where/1.png", np.full((3, 8, 8), 9, np.uint8))
    assert load("places365", tmp_path).unique().tolist() == [9]  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", ["places365", "imagenet"])
def test_large_sets_are_thinned_evenly(
    name: str, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = load(name, tiny)
    monkeypatch.setattr("credalearn_experiments.data.foreign.AT_MOST", 4)
    assert torch.equal(load(name, tiny), every[::3])
    few = load_foreign(name, DataFolders([tiny]), size=32, limit=2)
    assert torch.equal(few, every[::3][:2])


def test_the_sheet_is_read_where_there_is_no_folder(tiny: Path) -> None:
    (tiny / "tiny-imagenet-200").rename(tiny / "away")
    with Image.open(tiny / "ood/tiny_imagenet_32px_2500.png") as sheet:
        rows = np.array(sheet)
    images = load("tiny-imagenet", tiny)
    for row in range(ITEMS):
        for pixel in (0, 33, 1023):  # in reading order
            got = images[row, :, pixel // 32, pixel % 32]
            assert got.tolist() == rows[row, pixel].tolist()
    Image.fromarray(rows[:, :1000]).save(tiny / "ood/tiny_imagenet_32px_2500.png")
    with pytest.raises(CredalError, match=r"2500.png could not be read as a sheet of images"):
        load("tiny-imagenet", tiny)


def test_a_damaged_svhn_is_named(tiny: Path) -> None:
    path = tiny / "svhn/test_32x32.mat"
    savemat(path, {"X": np.zeros((32, 32, 3, 2))})
    with pytest.raises(CredalError, match=r"test_32x32.mat .*X must be uint8 .* it is float64"):
        load("svhn", tiny)
    savemat(path, {"Z": np.zeros(3)})
    with pytest.raises(CredalError, match=r"test_32x32.mat could not be .*\(KeyError: 'X'\)"):
        load("svhn", tiny)
    for content in (b"", b"rubbish" * 100, path.read_bytes()[:150]):
        path.write_bytes(content)
        with pytest.raises(CredalError, match=r"test_32x32.mat could not be read as SVHN's test"):
            load("svhn", tiny)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"\(EOFError|\(ValueError"),
        (b"no gzip", r"\(BadGzipFile"),
        (gzip.compress(bytes(5000))[:-9], r"\(EOFError"),
        (gzip.compress(b"short"), r"\(ValueError"),
        (
            gzip.compress(idx(np.zeros((2, 28, 28), np.uint8))[:-1]),
            r"2 images of 28 x 28\) does no",
        ),
        (gzip.compress(bytes(16)), r"its head \(0x0, 0 images of 0 x 0\) does not fit"),
    ],
    # Bytes as names would hold gzip's clock, and differ between two test processes.
    ids=["empty", "no gzip", "cut off", "too short", "a pixel short", "no images"],
)
def test_a_damaged_fashion_mnist_is_named(content: bytes, message: str, tiny: Path) -> None:
    write(tiny / "fashion-mnist/t10k-images-idx3-ubyte.gz", content)
    with pytest.raises(CredalError, match=f"idx3-ubyte.gz could not be read as .*({message})"):
        load("fashion-mnist", tiny)


@pytest.mark.parametrize("name", ["svhn", "fashion-mnist", "tiny-imagenet"])
def test_a_set_without_images_is_refused(name: str, tmp_path: Path) -> None:
    write_foreign(tmp_path, 1, np.random.default_rng(3))
    none = np.zeros((0, 28, 28), np.uint8)
    savemat(tmp_path / "svhn/test_32x32.mat", {"X": np.zeros((32, 32, 3, 0), np.uint8)})
    packed = gzip.compress(idx(none))
    write(tmp_path / "fashion-mnist/t10k-images-idx3-ubyte.gz", packed)
    (tmp_path / "tiny-imagenet-200/val/images/val_0.JPEG").unlink()
    with pytest.raises(CredalError, match=r"must hold (an image or more|images .*); it holds none"):
        load(name, tmp_path)


def test_image_files_are_sorted_by_path(tmp_path: Path) -> None:
    for name in ("b/1.png", "a/2.jpg", "a/10.JPEG", "c.webp", "a/.hidden.png", "a/readme.txt"):
        write(tmp_path / name, b"")
    found = [path.relative_to(tmp_path).as_posix() for path in image_files(tmp_path)]
    assert found == ["a/10.JPEG", "a/2.jpg", "b/1.png", "c.webp"]


@pytest.mark.parametrize(
    ("name", "file", "items"),
    [
        ("fashion-mnist", "fashion-mnist/t10k-images-idx3-ubyte.gz", 10_000),
        ("tiny-imagenet", "ood/tiny_imagenet_32px_2500.png", 2_500),
    ],
)
def test_the_real_sets_are_as_large_as_published(name: str, file: str, items: int) -> None:
    try:
        folders = DataFolders.named()
        folders.find(file, what="a real file for this test", get="see the message")
    except CredalError as error:
        pytest.skip(str(error))
    images = load_foreign(name, folders, size=32)
    assert images.shape[0] in (items, 10_000)  # the sheet, or the folder of all
    assert 40 < images.double().mean() < 140
