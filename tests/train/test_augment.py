"""Augmentation: every crop comes, half are mirrored, and a resumed training draws the same."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.testing import assert_close

import credalearn as cl
from credalearn.train import AUGMENTS, _learner, checkpoint
from credalearn.train.augment import crop, crop_and_flip


def crops(image: Tensor, border: int) -> list[Tensor]:
    """Every part of an image with black around it that is as large as the image."""
    padded = pad(image, (border,) * 4)
    _, height, width = image.shape
    places = [(row, column) for row in range(2 * border + 1) for column in range(2 * border + 1)]
    return [padded[:, row : row + height, column : column + width] for row, column in places]


def same(one: Tensor, many: list[Tensor]) -> list[int]:
    return [number for number, each in enumerate(many) if torch.equal(one, each)]


@pytest.mark.parametrize(("size", "border"), [(32, 4), (8, 1), (7, 0)])
def test_crops_are_parts_of_the_image_with_black_around(
    size: int, border: int, generator: torch.Generator
) -> None:
    image = torch.rand(3, size, size, generator=generator)
    possible = crops(image, border)
    count = 12 * len(possible)
    found = [same(each, possible) for each in crop(image.expand(count, -1, -1, -1), generator)]
    assert all(len(each) == 1 for each in found)
    assert {each[0] for each in found} == set(range(len(possible)))  # and every one comes


def test_flipping_mirrors_half_of_the_crops(generator: torch.Generator) -> None:
    images = torch.rand(400, 2, 16, 16, generator=generator)
    plain = crop(images, torch.Generator().manual_seed(3))
    both = crop_and_flip(images, torch.Generator().manual_seed(3))
    flipped = [torch.equal(one, other.flip(2)) for one, other in zip(both, plain, strict=True)]
    for mirrored, one, other in zip(flipped, both, plain, strict=True):
        assert mirrored or torch.equal(one, other)
    assert 160 < sum(flipped) < 240


IMAGES = np.random.default_rng(0).uniform(size=(24, 1, 16, 16)).astype(np.float32)
Y = np.arange(24) % 2


def small() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3, stride=3), nn.ReLU(), nn.Flatten())


def classifier(**options: Any) -> cl.CredalClassifier:
    return cl.CredalClassifier(
        backbone=small, epochs=3, batch_size=8, learning_rate=0.05, device="cpu", **options
    )


def test_every_way_to_augment_trains_another_network() -> None:
    found = [tuple(classifier(augment=each).fit(IMAGES, Y).loss_curve_) for each in AUGMENTS]
    assert found == [
        tuple(classifier(augment=each).fit(IMAGES, Y).loss_curve_) for each in AUGMENTS
    ]
    assert len(set(found)) == len(AUGMENTS)


def test_a_killed_ensemble_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_and_stop(*args: Any, **named: Any) -> None:
        checkpoint.save_checkpoint(*args, **named)
        raise KeyboardInterrupt

    options = {"method": "deep-ensemble", "augment": "crop-flip"}
    whole = classifier(**options).fit(IMAGES, Y)
    clf = classifier(**options, checkpoint=tmp_path / "resume.safetensors")
    for _ in range(3 * len(whole.model_.members)):  # killed after each epoch
        with monkeypatch.context() as patch:
            patch.setattr(_learner, "save_checkpoint", save_and_stop)
            with pytest.raises(KeyboardInterrupt):
                clone(clf).fit(IMAGES, Y)
    clf.fit(IMAGES, Y)
    assert clf.loss_curve_ == whole.loss_curve_
    for mine, other in zip(clf.model_.members, whole.model_.members, strict=True):
        assert_close(mine.state_dict(), other.state_dict(), atol=0, rtol=0)
    with pytest.raises(cl.TrainingError, match="another run: augment"):
        clone(clf).set_params(augment="crop").fit(IMAGES, Y)
