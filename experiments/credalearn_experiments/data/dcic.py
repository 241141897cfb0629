"""MiceBone and Treeversity#1, in the layout of the data-centric benchmark DCIC.

Schmarje et al., *Is one annotation enough?*, NeurIPS 2022. A folder ``<Name>`` holds the images in
``fold1`` to ``fold5`` and ``annotations.json``: a list of sets, each one person's pass over some
images, ``{"annotations": [{"image_path": "<Name>/fold1/1.png", "class_label": "g"}, …]}``. A null
label is no vote. A vote counts as often as it stands in the file.

Shapes: N voted images, K classes.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from credalearn.errors import CredalError
from credalearn_experiments.data.cifar_people import top_class
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.images import image_files, read_images
from credalearn_experiments.data.reading import naming
from credalearn_experiments.data.task import Task

SIZE = 224
_FOLDS = tuple(f"fold{number}" for number in range(1, 6))


@dataclass(frozen=True, slots=True, kw_only=True)
class DcicSet:
    """One data set of the benchmark.

    Args:
        task: Key of ``TASKS``.
        folder: Its folder, which is its name in the benchmark.
        classes: In alphabetical order.
    """

    task: str
    folder: str
    classes: tuple[str, ...]

    @property
    def get(self) -> str:
        """How to get the files."""
        return (
            f"unpack {self.folder}.zip of the DCIC benchmark (https://zenodo.org/records/8115942) "
            "in the data folder"
        )


MICEBONE = DcicSet(task="micebone", folder="MiceBone", classes=("g", "nr", "ug"))
TREEVERSITY = DcicSet(
    task="treeversity",
    folder="Treeversity#1",
    classes=("bark", "bud", "flower", "fruit", "leaf", "whole_plant"),
)


def micebone(folders: DataFolders, limit: int | None = None) -> Task:
    """MiceBone: 7,240 images of collagen fibres, classes g, nr, ug; split by ``read_dcic``."""
    return read_dcic(MICEBONE, folders, limit)


def treeversity(folders: DataFolders, limit: int | None = None) -> Task:
    """Treeversity#1: 9,489 images of plants in six classes; split by ``read_dcic``."""
    return read_dcic(TREEVERSITY, folders, limit)


def read_dcic(source: DcicSet, folders: DataFolders, limit: int | None = None) -> Task:
    """Folds 1 to 4 train, fold 5 tests: our reading of the paper's 80:20.

    Soft labels are the shares of the votes; classes, in training and test, are their top, the
    lowest class on ties. Images are in the order of fold and file name, resized to 224 pixels.
    Images without a vote are left out, and a line on standard error counts them.

    Args:
        source: Which data set.
        folders: Where its folder lies.
        limit: At most so many training and so many test images, the first ones of each.

    Raises:
        CredalError: If a file is missing or damaged, a label is no class of the set, or a fold
            has no image with votes.
    """
    path = folders.find(
        f"{source.folder}/annotations.json", what=f"{source.folder}'s file of votes", get=source.get
    )
    votes = _count_votes(source, path)
    files = sorted(votes)
    train = [file for file in files if file[0] != _FOLDS[-1]][:limit]
    test = [file for file in files if file[0] == _FOLDS[-1]][:limit]
    if not train or not test:
        raise CredalError(
            f"{path} must have votes on images of fold1 to fold4 and of fold5; it has "
            f"{len(train)} and {len(test)}. To fix: {source.get}."
        )
    paths = [
        folders.find(f"{source.folder}/{fold}/{name}", what="an image with votes", get=source.get)
        for fold, name in (*train, *test)
    ]
    _count_left_out(source, path.parent, votes)
    train_votes = torch.tensor([votes[file] for file in train])
    test_votes = torch.tensor([votes[file] for file in test])
    images = read_images(paths, SIZE, label=source.folder)
    return Task(
        name=source.task,
        classes=source.classes,
        train_inputs=images[: len(train)],
        train_y=top_class(train_votes),
        train_soft=train_votes.double() / train_votes.sum(1, keepdim=True),
        test_inputs=images[len(train) :],
        test_y=top_class(test_votes),
    )


def _count_votes(source: DcicSet, path: Path) -> dict[tuple[str, str], list[int]]:
    """Votes by class for each (fold, file name) that has any."""
    votes: dict[tuple[str, str], list[int]] = {}
    with naming(path, "DCIC annotations", get=source.get):
        sets = json.loads(path.read_text(encoding="utf-8"))
        for place, annotation in _annotations(sets):
            label = annotation["class_label"]
            if label is None:
                continue
            if label not in source.classes:
                raise CredalError(
                    f"labels must be one of {', '.join(source.classes)} or null; {place} has "
                    f"{label!r}"
                )
            file = _fold_and_name(place, annotation["image_path"])
            votes.setdefault(file, [0] * len(source.classes))[source.classes.index(label)] += 1
    return votes


def _annotations(sets: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every annotation with the place where it stands."""
    if not isinstance(sets, list):
        raise CredalError(f"a list of annotation sets is wanted; it is a {type(sets).__name__}")
    for number, each in enumerate(sets):
        for row, annotation in enumerate(each["annotations"]):
            yield f"annotation {row} of set {number}", annotation


def _fold_and_name(place: str, image_path: str) -> tuple[str, str]:
    """Of ``<Name>/foldN/<file>``; nothing else is followed, least of all ``..``."""
    parts = PurePosixPath(image_path).parts
    if len(parts) != 3 or parts[1] not in _FOLDS or ".." in parts:
        raise CredalError(
            f"image_path must be <name>/fold1 to fold5/<file>; {place} has {image_path!r}"
        )
    return parts[1], parts[2]


def _count_left_out(source: DcicSet, folder: Path, votes: dict[tuple[str, str], list[int]]) -> None:
    silent = [
        path
        for path in image_files(folder)
        if path.parent.name in _FOLDS and (path.parent.name, path.name) not in votes
    ]
    if silent:
        print(
            f"{source.folder}: {len(silent):,} images without a vote are left out", file=sys.stderr
        )
