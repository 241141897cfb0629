"""Tasks, data folders and foreign images, from small files of the official layouts."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from credalearn import CredalError
from credalearn.app.nodules import load_nodules
from credalearn_experiments.data import (
    FOREIGN,
    TASKS,
    DataFolders,
    MissingDataError,
    Task,
    foreign,
    load_task,
)
from tiny_data import idx, write, write_image


@pytest.mark.parametrize("name", TASKS)
def test_every_task_loads_and_respects_the_limit(
    name: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")
    folders = DataFolders((data,))
    whole, few = load_task(name, folders), load_task(name, folders, limit=2)
    assert (whole.name, few.name) == (name, name)
    assert len(few.train_y) == len(few.test_y) == 2
    assert torch.equal(few.train_y, whole.train_y[:2])
    torch.testing.assert_close(few.test_inputs, whole.test_inputs[:2])
    assert few.voted_counts is None or len(few.voted_counts) == 2


def test_no_patient_is_in_training_and_test() -> None:
    nodules, task = load_nodules(), load_task("lidc", DataFolders())
    assert task.voted_inputs is not None
    features = nodules.features.astype(np.float32)
    rows = {tuple(row): patient for row, patient in zip(features, nodules.patients, strict=True)}
    train = {rows[tuple(row)] for row in task.train_inputs.numpy()}
    held_out = {rows[tuple(row)] for row in task.voted_inputs.numpy()}
    assert not train & held_out
    assert len(task.train_y) + len(task.voted_inputs) == len(nodules.votes)


@pytest.mark.parametrize("name", [name for name in (*TASKS, *FOREIGN) if name != "lidc"])
def test_a_missing_set_says_which_file_and_how_to_get_it(name: str, tmp_path: Path) -> None:
    def load(folders: DataFolders) -> object:
        if name in TASKS:
            return load_task(name, folders)
        return FOREIGN[name](folders, 32, None)

    with pytest.raises(MissingDataError, match=rf"is missing: no .* in {tmp_path}\. To fix: "):
        load(DataFolders((tmp_path,)))
    with pytest.raises(MissingDataError, match=r"no data folder is named\. To fix: set"):
        load(DataFolders())


def test_folders_come_from_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        write(folder / "both", b"")
    write(second / "one", b"")
    monkeypatch.setenv("CREDALEARN_DATA", f"{first}{os.pathsep}{second}")
    folders = DataFolders.named()
    assert folders.find("both", what="it", get="make it") == first / "both"
    assert folders.find("none", "one", what="it", get="make it") == second / "one"
    monkeypatch.setenv("CREDALEARN_DATA", str(tmp_path / "absent"))
    with pytest.raises(CredalError, match=r"a data folder must exist; .*absent' does not"):
        DataFolders.named()


IMAGES = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
Y = torch.tensor([0, 1])
COUNTS = torch.tensor([[1, 0], [0, 2]])
NAN = torch.tensor([[0.0], [torch.nan]])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train_inputs": IMAGES.float()}, r"train_inputs must be uint8 .*float32 of shape \(2, 3"),
        ({"test_inputs": IMAGES[:0]}, "test_inputs must be .* at least one item"),
        ({"test_inputs": IMAGES[..., :2]}, r"test_inputs must have shape \(2, 3, 4, 4\)"),
        ({"train_y": Y[:1]}, r"train_y must have shape \(2,\); got \(1,\)"),
        ({"test_y": torch.tensor([0, 2])}, r"test_y must lie in 0\.\.1; row 1"),
        ({"train_soft": torch.ones(2, 2).double()}, "each row of train_soft must sum to 1"),
        ({"train_counts": 0 * COUNTS}, "an item of train_counts must have a vote; row 0"),
        ({"train_counts": COUNTS[:, :1]}, r"train_counts must have shape \(2, 2\)"),
        ({"train_inputs": NAN, "test_inputs": NAN}, "train_inputs must be finite; row 1"),
        ({"voted_counts": COUNTS}, "voted_inputs and voted_counts must be given together"),
        ({"voted_inputs": IMAGES, "voted_counts": -COUNTS}, "voted_counts must be whole numbers"),
    ],
)
def test_rejects_a_task_that_does_not_fit_together(parts: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"train_inputs": IMAGES, "train_y": Y}
    whole |= {"test_inputs": IMAGES, "test_y": Y}
    Task(name="two", classes=("a", "b"), **whole)
    with pytest.raises(CredalError, match=rf"task 'two' cannot be used: {message}"):
        Task(name="two", classes=("a", "b"), **(whole | parts))


@pytest.mark.parametrize("size", [32, 20])
@pytest.mark.parametrize("name", FOREIGN)
def test_every_foreign_set_loads_at_every_size(name: str, size: int, data: Path) -> None:
    images = FOREIGN[name](DataFolders((data,)), size, None)
    assert images.shape == (12, 3, size, size)
    assert images.dtype == torch.uint8
    few = FOREIGN[name](DataFolders((data,)), size, 5)
    assert torch.equal(few, images[:5])


def test_foreign_images_are_the_right_way_up(tmp_path: Path) -> None:
    image = np.zeros((3, 32, 32), np.uint8)
    image[0, 1, 2] = 200  # red, second row, third column
    gray = image[0, :28, :28]
    (tmp_path / "svhn").mkdir()
    savemat(tmp_path / "svhn/test_32x32.mat", {"X": image.transpose(1, 2, 0)[..., None]})
    clothes = gzip.compress(idx(gray[None]))
    write(tmp_path / "fashion-mnist/t10k-images-idx3-ubyte.gz", clothes)
    write_image(tmp_path / "places365/any/a.png", image)
    (tmp_path / "ood").mkdir()
    sheet = image.transpose(1, 2, 0).reshape(1, 1024, 3)
    Image.fromarray(sheet).save(tmp_path / "ood/tiny_imagenet_32px_2500.png")
    folders = DataFolders((tmp_path,))
    for name in ("svhn", "places365", "tiny-imagenet"):
        found = FOREIGN[name](folders, 32, None)
        assert torch.equal(found[0], torch.from_numpy(image)), name
    found = FOREIGN["fashion-mnist"](folders, 28, None)
    assert torch.equal(found[0], torch.from_numpy(gray).expand(3, 28, 28))


def test_large_folders_are_thinned_in_the_order_of_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("b/1.png", "a/10.JPEG", "a/2.jpg", "c.webp")):
        write_image(tmp_path / "imagenet/val" / name, np.full((3, 8, 8), 60 * number, np.uint8))
    write(tmp_path / "imagenet/val/._1.png", b"hidden")
    write(tmp_path / "imagenet/val/notes.txt", b"")
    monkeypatch.setattr(foreign, "AT_MOST", 2)
    images = FOREIGN["imagenet"](DataFolders((tmp_path,)), 8, None)
    assert images.float().mean((1, 2, 3)).round().tolist() == [60, 0]


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("svhn", "svhn/test_32x32.mat", b"no mat file"),
        ("fashion-mnist", "fashion-mnist/t10k-images-idx3-ubyte.gz", b"no gzip"),
        (
            "fashion-mnist",
            "fashion-mnist/t10k-images-idx3-ubyte.gz",
            gzip.compress(b"x" * 40, mtime=0),
        ),
        ("imagenet", "imagenet/val/a.png", b"no image"),
        ("tiny-imagenet", "ood/tiny_imagenet_32px_2500.png", b"no image"),
    ],
)
def test_a_damaged_foreign_file_is_named(
    name: str, file: str, content: bytes, tmp_path: Path
) -> None:
    write(tmp_path / file, content)
    with pytest.raises(CredalError, match=rf"{Path(file).name} could not be read as .* To fix: "):
        FOREIGN[name](DataFolders((tmp_path,)), 32, None)
