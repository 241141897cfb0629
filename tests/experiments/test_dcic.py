"""MiceBone and Treeversity#1: votes, folds, images left out, damage."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from credalearn import CredalError
from credalearn_experiments.data import DataFolders, load_task
from tiny_data import DCIC_CLASSES, write_dcic, write_image

TASK_OF = {"MiceBone": "micebone", "Treeversity#1": "treeversity"}


@pytest.fixture
def mice(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    write_dcic(tmp_path, "MiceBone", DCIC_CLASSES["MiceBone"], images_a_fold=4, rng=rng)
    return tmp_path


def load(folder: Path) -> Any:
    return load_task("micebone", DataFolders([folder]))


def annotations(folder: Path) -> Any:
    return json.loads((folder / "MiceBone/annotations.json").read_text())


def annotate(folder: Path, sets: Any) -> None:
    (folder / "MiceBone/annotations.json").write_text(json.dumps(sets))


@pytest.mark.parametrize("name", TASK_OF)
def test_votes_and_folds_are_as_counted_slowly(name: str, tmp_path: Path) -> None:
    classes = DCIC_CLASSES[name]
    rng = np.random.default_rng(2)
    write_dcic(tmp_path, name, classes, images_a_fold=7, rng=rng)
    task = load_task(TASK_OF[name], DataFolders([tmp_path]))
    assert list(task.classes) == classes == sorted(classes)
    said: dict[str, Counter[str]] = {}
    for each in json.loads((tmp_path / name / "annotations.json").read_text()):
        for note in each["annotations"]:
            if note["class_label"] is not None:
                said.setdefault(note["image_path"], Counter())[note["class_label"]] += 1
    assert {sum(votes.values()) for votes in said.values()} == {2, 3}  # null is no vote
    train = [path for path in sorted(said) if "/fold5/" not in path]
    test = [path for path in sorted(said) if "/fold5/" in path]
    assert (len(train), len(test)) == (len(task.train_y), len(task.test_y)) == (28, 7)
    assert task.train_soft is not None
    for row, path in enumerate(train):
        votes = said[path]
        shares = [votes[label] / sum(votes.values()) for label in classes]
        torch.testing.assert_close(task.train_soft[row].tolist(), shares)
        assert task.train_y[row] == shares.index(max(shares))
    tops = [max(classes, key=lambda label: said[path][label]) for path in test]  # first on ties
    assert [classes[label] for label in task.test_y] == tops
    paths, images = (*train, *test), (*task.train_inputs, *task.test_inputs)
    for path, image in zip(paths, images, strict=True):
        with Image.open(tmp_path / path) as file:
            resized = file.resize((224, 224), Image.Resampling.BILINEAR)
        assert torch.equal(image.permute(1, 2, 0), torch.from_numpy(np.array(resized)))


def test_images_without_a_vote_are_left_out_and_counted(
    mice: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(load(mice).train_y) == 16
    assert capsys.readouterr().err == ""
    write_image(mice / "MiceBone/fold2/never-shown.png", np.zeros((3, 8, 8), np.uint8))
    sets = annotations(mice)
    for each in sets:  # and one that nobody could tell
        each["annotations"][0]["class_label"] = None
    annotate(mice, sets)
    assert len(load(mice).train_y) == 15
    assert capsys.readouterr().err == "MiceBone: 2 images without a vote are left out\n"


def test_gray_images_and_ties(mice: Path) -> None:
    Image.new("L", (30, 10), 77).save(mice / "MiceBone/fold1/000.png")
    sets = annotations(mice)
    for each, label in zip(sets, ("ug", "nr", None), strict=True):
        each["annotations"][0]["class_label"] = label
    annotate(mice, sets)
    task = load(mice)
    assert (task.train_inputs[0] == 77).all()
    assert task.train_soft[0].tolist() == [0, 0.5, 0.5]
    assert task.train_y[0] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"class_label": "x"},
            r"labels must be one of g, nr, ug or null; annotation 2 of set 1 ha",
        ),
        ({"class_label": ["g"]}, r"labels must be one of .* has \['g'\]"),
        (
            {"image_path": "MiceBone/fold6/1.png"},
            r"image_path must be .*has 'MiceBone/fold6/1.png'",
        ),
        ({"image_path": "MiceBone/fold1/.."}, r"image_path must be .*has 'MiceBone/fold1/..'"),
        ({"image_path": "../fold1/1.png"}, r"image_path must be .*has '../fold1/1.png'"),
        ({"image_path": 3}, r"annotations.json could not be read as DCIC annotations \(TypeError"),
    ],
)
def test_a_bad_annotation_is_named(change: dict[str, Any], message: str, mice: Path) -> None:
    sets = annotations(mice)
    sets[1]["annotations"][2] |= change
    annotate(mice, sets)
    with pytest.raises(CredalError, match=f"{message}.* To fix: unpack MiceBone.zip"):
        load(mice)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"annotations": ', r"\(JSONDecodeError"),
        ("{}", r"a list of annotation sets is wanted; it is a dict"),
        ('[{"name": "a"}]', r"\(KeyError: 'annotations'\)"),
        ('[{"annotations": [{"image_path": "a"}]}]', r"\(KeyError: 'class_label'\)"),
        ("[]", r"must have votes on images of fold1 to fold4 and of fold5; it has 0 and 0"),
    ],
)
def test_damaged_annotations_are_named(content: str, message: str, mice: Path) -> None:
    (mice / "MiceBone/annotations.json").write_text(content)
    with pytest.raises(CredalError, match=f"MiceBone/annotations.json .*{message}"):
        load(mice)


def test_a_missing_or_damaged_image_is_named(mice: Path) -> None:
    path = mice / "MiceBone/fold3/001.png"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(CredalError, match=r"fold3/001.png could not be read as an image \(OSError"):
        load(mice)
    path.write_bytes(b"no image")
    with pytest.raises(CredalError, match=r"fold3/001.png could not be .* \(UnidentifiedImageErr"):
        load(mice)
    path.unlink()
    with pytest.raises(CredalError, match=r"an image with votes is missing: no MiceBone/fold3/001"):
        load(mice)


def test_progress_is_told_when_reading_takes_long(
    mice: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("credalearn_experiments.data.images._SECONDS_BETWEEN_LINES", 0.0)
    load(mice)
    assert capsys.readouterr().err.splitlines()[-1] == "MiceBone: 20 of 20 images read"
