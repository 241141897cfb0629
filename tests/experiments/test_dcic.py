"""MiceBone and Treeversity#1: votes, folds and damage."""

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
from tiny_data import DCIC_CLASSES, write_dcic

TASK_OF = {"MiceBone": "micebone", "Treeversity#1": "treeversity"}


@pytest.fixture
def mice(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    write_dcic(tmp_path, "MiceBone", DCIC_CLASSES["MiceBone"], images_a_fold=4, rng=rng)
    return tmp_path


@pytest.mark.parametrize("name", TASK_OF)
def test_votes_and_folds_are_as_counted_slowly(name: str, tmp_path: Path) -> None:
    classes = DCIC_CLASSES[name]
    write_dcic(tmp_path, name, classes, images_a_fold=7, rng=np.random.default_rng(2))
    task = load_task(TASK_OF[name], DataFolders((tmp_path,)))
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
    images = (*task.train_inputs, *task.test_inputs)
    for path, image in zip((*train, *test), images, strict=True):
        with Image.open(tmp_path / path) as file:
            resized = file.resize((224, 224), Image.Resampling.BILINEAR)
        assert torch.equal(image.permute(1, 2, 0), torch.from_numpy(np.array(resized)))


@pytest.mark.parametrize(
    "change",
    [
        {"class_label": "x"},
        {"class_label": ["g"]},
        {"image_path": "MiceBone/fold6/1.png"},
        {"image_path": "MiceBone/fold1/.."},
        {"image_path": "../fold1/1.png"},
    ],
)
def test_a_bad_annotation_is_named(change: dict[str, Any], mice: Path) -> None:
    path = mice / "MiceBone/annotations.json"
    sets = json.loads(path.read_text())
    sets[1]["annotations"][2] |= change
    path.write_text(json.dumps(sets))
    with pytest.raises(CredalError, match=r"annotations.json could not .*annotation 2 of set 1"):
        load_task("micebone", DataFolders((mice,)))


@pytest.mark.parametrize("content", ["[", "{}", "3", '[{"other": []}]', "[]"])
def test_damaged_annotations_are_named(content: str, mice: Path) -> None:
    (mice / "MiceBone/annotations.json").write_text(content)
    with pytest.raises(CredalError, match=r"annotations.json could not be read as DCIC annotati"):
        load_task("micebone", DataFolders((mice,)))


def test_a_missing_or_damaged_image_is_named(mice: Path) -> None:
    path = mice / "MiceBone/fold1/001.png"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CredalError, match=r"fold1/001.png could not be read as an image"):
        load_task("micebone", DataFolders((mice,)))
    path.unlink()
    with pytest.raises(CredalError, match=r"an image with votes is missing: .*fold1/001.png"):
        load_task("micebone", DataFolders((mice,)))
