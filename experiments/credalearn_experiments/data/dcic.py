"""MiceBone and Treeversity#1, in the layout of the benchmark DCIC.

Schmarje et al., *Is one annotation enough?*, NeurIPS 2022. A folder ``<Name>`` contains the images
in ``fold1`` to ``fold5`` and ``annotations.json``: a list of sets, each one person's pass over some
images, ``{"annotations": [{"image_path": "<Name>/fold1/1.png", "class_label": "g"}, …]}``. A null
label is no vote.
"""

import json
from functools import partial
from pathlib import Path, PurePosixPath

import torch

from credalearn.errors import CredalError
from credalearn_experiments.data.folders import DataFolders, naming
from credalearn_experiments.data.foreign import read_images
from credalearn_experiments.data.task import Loader, Task

SIZE = 224
_FOLDS = tuple(f"fold{number}" for number in range(1, 6))
Votes = dict[tuple[str, str], list[int]]
"""Votes by class for each (fold, file name) that has any."""


def read_dcic(
    task: str, folder: str, classes: tuple[str, ...], folders: DataFolders, limit: int | None
) -> Task:
    """Folds 1 to 4 are for training, fold 5 for testing: our reading of the paper's 80:20."""
    get = f"unpack {folder}.zip of https://zenodo.org/records/8115942 in the data folder"
    path = folders.find(f"{folder}/annotations.json", what=f"{folder}'s file of votes", get=get)
    with naming(path, "DCIC annotations", get=get):
        votes = _count_votes(path, classes)
        train = [file for file in sorted(votes) if file[0] != _FOLDS[-1]][:limit]
        test = [file for file in sorted(votes) if file[0] == _FOLDS[-1]][:limit]
        if not train or not test:
            raise CredalError("votes on images of fold1 to fold4 and of fold5 are needed")
    paths = [
        folders.find(f"{folder}/{fold}/{name}", what="an image with votes", get=get)
        for fold, name in (*train, *test)
    ]
    images = read_images(paths, SIZE)
    train_votes = torch.tensor([votes[file] for file in train])
    test_votes = torch.tensor([votes[file] for file in test])
    return Task(
        name=task,
        classes=classes,
        train_inputs=images[: len(train)],
        train_y=train_votes.argmax(1),
        train_counts=train_votes,
        test_inputs=images[len(train) :],
        test_y=test_votes.argmax(1),
    )


def _count_votes(path: Path, classes: tuple[str, ...]) -> Votes:
    votes: Votes = {}
    for number, each in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        for row, annotation in enumerate(each["annotations"]):
            label = annotation["class_label"]
            parts = PurePosixPath(annotation["image_path"]).parts
            if label is None:
                continue
            # Only <Name>/foldN/<file>, so that a path cannot leave the folder.
            if label not in classes or len(parts) != 3 or parts[1] not in _FOLDS or ".." in parts:
                raise CredalError(f"annotation {row} of set {number} is {annotation}")
            file = (parts[1], parts[2])
            votes.setdefault(file, [0] * len(classes))[classes.index(label)] += 1
    return votes


_PLANTS = ("bark", "bud", "flower", "fruit", "leaf", "whole_plant")
DCIC: dict[str, Loader] = {
    "micebone": partial(read_dcic, "micebone", "MiceBone", ("g", "nr", "ug")),
    "treeversity": partial(read_dcic, "treeversity", "Treeversity#1", _PLANTS),
}
"""Loaders of 7,240 images of collagen fibers, and of 9,489 images of plants."""
