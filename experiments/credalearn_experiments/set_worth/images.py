"""Images: a published ResNet-20, trained further on images with people's votes.

Small enough for a CPU. The network was trained on CIFAR-10's training images; all images here are
its test images.
"""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import credalearn as cl
from credalearn.train import Recipe
from credalearn_experiments.data.cifar import read_cifar10h
from credalearn_experiments.data.crowd_sets import CROWD_SETS
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.data.teachers import CifarBackbone
from credalearn_experiments.set_worth.kinds import CENTER, LINEAR, MIXES, scores_of
from credalearn_experiments.set_worth.widths import BOUNDS, DISTILLED
from credalearn_experiments.studies import Score

# Short and gentle, since the network is trained already; the same for all methods.
_RECIPE: Any = {"optimizer": "sgd", "learning_rate": 0.004, "weight_decay": 5e-4, "epochs": 15}
_NUM_TEACHERS = 5

ENSEMBLE = "five softmax networks"
IMAGE_CELLS = {"CIFAR-10H, all votes": None}
_MIXED: dict[str, tuple[str, Any]] = {
    f"{learner}{mix}": (method, "crop-flip" if augment == "none" else augment)
    for learner, method in (("softmax", "softmax"), (CENTER, "pocc-center"))
    for mix, augment in MIXES.items()
}
IMAGE_LEARNERS = (*_MIXED, LINEAR, ENSEMBLE, DISTILLED, BOUNDS)
_AUGMENTS = ("none", "crop-flip", "mixup", "cutmix")
SCRATCH: dict[str, tuple[str, Any]] = {
    **{f"softmax, {name}": ("softmax", name) for name in _AUGMENTS[1:]},
    **{f"{CENTER}, {name}": ("pocc-center", name) for name in _AUGMENTS},
}
_SCRATCH_ITEMS = 2000
_SCRATCH_RECIPE: dict[str, Any] = {
    each.name: each.default for each in fields(Recipe) if each.name in _RECIPE
}


def image_scores(cell: str, random_state: int, folders: DataFolders) -> Iterator[Score]:
    """Mixed images, five networks, and one that they taught."""
    data = CROWD_SETS[cell](folders, random_state)
    images = read_cifar10h(folders)[0].float().numpy()
    labels = data.labels
    state = 10 * random_state  # every split has networks of its own

    def fit(method: str, random_state: int = state, **options: Any) -> cl.CredalClassifier:
        clf = _classifier(method, folders, random_state=random_state, **options)
        return clf.fit(images[data.train], labels)

    def predict(clf: cl.CredalClassifier) -> cl.CredalPredictions:
        return clf.predict_credal(images[data.others], meaning="votes")

    with TemporaryDirectory() as folder:
        distilled = fit("pocc-distilled", checkpoint=Path(folder) / "net.safetensors")
        # The checkpoints of its teachers are complete: nothing is trained again.
        teachers = [
            fit("softmax", state + 1 + n, checkpoint=Path(folder) / f"net-teacher-{n}.safetensors")
            for n in range(_NUM_TEACHERS)
        ]
    found = {
        name: predict(fit(method, augment=augment))
        for name, (method, augment) in _MIXED.items()
        if name != "softmax"
    }
    members = [clf.model_.members[0] for clf in teachers]
    ensemble = _classifier("deep-ensemble", folders)
    found |= {
        "softmax": predict(teachers[0]),
        ENSEMBLE: predict(ensemble.fit(images[data.train], labels, members=members)),
        DISTILLED: predict(distilled),
        BOUNDS: predict(fit("credal-bounds")),
    }
    X, new = data.inputs
    linear = cl.CredalClassifier(random_state=random_state, device="cpu").fit(X, labels)
    found[LINEAR] = linear.predict_credal(new)
    for learner in IMAGE_LEARNERS:
        yield from scores_of(learner, found[learner].probs.double(), *data.answers)


def scratch_scores(cell: str, random_state: int, folders: DataFolders) -> Iterator[Score]:
    """Augmentation from the first random weights on, by the recipe that is the default."""
    data = CROWD_SETS[cell](folders, random_state)
    images, rows = read_cifar10h(folders)[0].float().numpy(), data.train[:_SCRATCH_ITEMS]
    for learner, (method, augment) in SCRATCH.items():
        clf = _classifier(
            method, None, random_state=random_state, augment=augment, **_SCRATCH_RECIPE
        )
        clf.fit(images[rows], cl.from_votes(data.counts[rows]))
        probs = clf.predict_credal(images[data.others]).probs.double()
        yield from scores_of(learner, probs, *data.answers)


def _classifier(method: str, folders: DataFolders | None, **options: Any) -> cl.CredalClassifier:
    """A classifier on a ResNet-20, trained before if there are folders; bfloat16 is faster."""
    options = {"augment": "crop-flip", "precision": "bfloat16", **_RECIPE, **options}
    return cl.CredalClassifier(
        method, backbone=lambda: CifarBackbone(folders), device="cpu", **options
    )
