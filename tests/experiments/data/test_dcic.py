"""MiceBone and Treeversity#1: votes, folds and damage."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from credalearn import CredalError
from credalearn_experiments.data import DataFolders, load_task
from tiny_data import DCIC_CLASSES, write_dcic

TASK_OF = {"MiceBone": "micebone", "Treeversity#1": "treeversity"}


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
    ("change", "message"),
    [
        ({"class_label": "x"}, "annotation 2 of set 1"),
        ({"image_path": "MiceBone/fold6/1.png"}, "annotation 2 of set 1"),
        ({"image_path": "../fold1/1.png"}, "annotation 2 of set 1"),
        ({"image_path": "MiceBone/fold1/absent.png"}, "image with votes is missing: .*absent.png"),
        (None, "annotations.json could not be read as DCIC annotations"),
    ],
)
def test_rejects_damaged_annotations(
    change: dict[str, str] | None, message: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    write_dcic(tmp_path, "MiceBone", DCIC_CLASSES["MiceBone"], images_a_fold=4, rng=rng)
    path = tmp_path / "MiceBone/annotations.json"
    sets = json.loads(path.read_text())
    sets[1]["annotations"][2] |= change or {}
    path.write_text(json.dumps(sets if change else {}))
    with pytest.raises(CredalError, match=message):
        load_task("micebone", DataFolders((tmp_path,)))
