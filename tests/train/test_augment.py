"""Augmentation and mixing: what is drawn, what is learned from it, and how training resumes."""

from functools import partial
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
from clouds import classifier
from credalearn.methods import METHODS
from credalearn.train import AUGMENTS, Recipe, _learner, checkpoint, seeded
from credalearn.train.augment import crop, crop_and_flip, cutmix, mixup
from random_sets import corners, intervals
from small_training import Watch, losses_of, own_training


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
    torch.manual_seed(0)
    possible = crops(image, border)
    count = 12 * len(possible)
    found = [same(each, possible) for each in crop(image.expand(count, -1, -1, -1))]
    assert all(len(each) == 1 for each in found)
    assert {each[0] for each in found} == set(range(len(possible)))  # and every one comes


@pytest.mark.catches("train/augment.py", "    if flip:", "    if True:")
def test_flipping_mirrors_half_of_the_crops(generator: torch.Generator) -> None:
    images = torch.rand(400, 2, 16, 16, generator=generator)
    with seeded(images.device, 3):
        plain = crop(images)
    with seeded(images.device, 3):
        both = crop_and_flip(images)
    flipped = [torch.equal(one, other.flip(2)) for one, other in zip(both, plain, strict=True)]
    for mirrored, one, other in zip(flipped, both, plain, strict=True):
        assert mirrored or torch.equal(one, other)
    assert 160 < sum(flipped) < 240


def test_mixup_averages_each_item_with_its_partner(generator: torch.Generator) -> None:
    inputs = torch.rand(4, 3, 2, 2, generator=generator)
    partners, kept = torch.tensor([1, 2, 2, 0]), torch.tensor([0.0, 0.25, 0.5, 1.0])
    mixed, exact = mixup(inputs, partners, kept)
    assert_close(mixed[0], inputs[1])
    assert_close(mixed[1], 0.25 * inputs[1] + 0.75 * inputs[2])
    assert_close(mixed[2:], inputs[2:])
    assert exact is kept
    pixels, _ = mixup(
        torch.tensor([[10], [13]], dtype=torch.uint8), partners[[1, 3]] % 2, kept[1:3]
    )
    assert pixels.tolist() == [[10], [12]]  # 11.5, to even


def test_cutmix_puts_a_rectangle_of_the_partner_into_each_image() -> None:
    count, high, wide = 600, 8, 4
    own = torch.zeros(count, 2, high, wide, dtype=torch.uint8)
    inputs = torch.cat([own, own + 1])  # every partner has another color
    partners = torch.arange(2 * count).roll(count)
    wanted = torch.linspace(0, 1, count).repeat(2)
    mixed, kept = cutmix(inputs, partners, wanted)
    cut = mixed != inputs
    assert_close(kept, 1 - cut.float().mean((1, 2, 3)))
    assert (kept - wanted).abs().max() <= 0.5 * (1 / high + 1 / wide)  # sides are whole pixels
    rows, columns = cut.any(3)[:, 0], cut.any(2)[:, 0]
    assert torch.equal(cut[:, 0], rows[:, :, None] & columns[:, None, :])
    for side in (rows, columns):  # without a gap, and each place is used
        edges = side.int().diff(dim=1, prepend=torch.zeros(2 * count, 1, dtype=torch.int32))
        assert (edges == 1).sum(1).max() == 1
        assert side.any(0).all()


def test_cutmix_takes_columns_of_features_from_the_partner() -> None:
    inputs = torch.stack([torch.zeros(50), torch.ones(50)])
    mixed, kept = cutmix(inputs, torch.tensor([1, 0]), torch.tensor([0.3, 0.3]))
    assert_close(mixed.mean(1), torch.tensor([0.7, 0.3]))
    assert_close(kept, torch.tensor([0.3, 0.3]))


def test_a_mixed_item_learns_from_both_labels_in_proportion() -> None:
    """Inputs are the labels, and the loss is linear in them: both must be mixed alike."""
    cost = torch.tensor([3.0, -1.0, 7.0])

    def loss(logits: Tensor, labels: cl.CredalSet, _: object) -> Tensor:
        return (labels.reference @ cost).mean() + 0 * logits.sum()

    shares = torch.eye(3).repeat(40, 1)
    watch, recipe = Watch(), Recipe(epochs=2, batch_size=20)
    learned: dict[str, Any] = {"labels": cl.precise(shares), "loss": loss, "mix": mixup}
    found = losses_of(own_training(watch, shares, recipe, num_classes=3, **learned))
    epochs = torch.cat(watch.seen).view(2, 120, 3)
    assert found == pytest.approx((epochs @ cost).mean(1).tolist(), rel=1e-5)
    mixed = (epochs.max(2).values < 1).float().mean()
    assert 0.2 < mixed < 0.5  # half of the items, a third of whose partners have the same label


def test_the_loss_on_a_mixed_set_is_the_mixture_of_two_losses(generator: torch.Generator) -> None:
    """Against every vertex of the mixed set; mixed bounds would be a larger one."""
    own, others = intervals(30, 4, generator), intervals(30, 4, generator)
    heads = torch.randn(2, 30, 4, generator=generator, dtype=torch.float64)
    for item in range(30):
        points, more = (corners(each.lower[item], each.upper[item]) for each in (own, others))
        mixed = cl.Vertices((0.3 * points[:, None] + 0.7 * more).flatten(0, 1)[None])
        pessimist, optimist = heads[:, item : item + 1]
        first, second = (
            cl.pocc_loss(pessimist, optimist, each[item : item + 1]) for each in (own, others)
        )
        assert_close(cl.pocc_loss(pessimist, optimist, mixed), 0.3 * first + 0.7 * second)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_mixed_items(method: str) -> None:
    X = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    y = np.arange(40) % 2
    clf = cl.CredalClassifier(method, augment="mixup", epochs=2, batch_size=16).fit(X, y)
    assert clf.predict_proba(X).shape == (40, 2)


IMAGES = np.random.default_rng(0).uniform(size=(24, 1, 16, 16)).astype(np.float32)
Y = np.arange(24) % 2


def small() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3, stride=3), nn.ReLU(), nn.Flatten())


augmented = partial(classifier, backbone=small, batch_size=8, learning_rate=0.05)


def test_every_way_to_augment_trains_another_network() -> None:
    found = [tuple(augmented(augment=each).fit(IMAGES, Y).loss_curve_) for each in AUGMENTS]
    assert found == [tuple(augmented(augment=each).fit(IMAGES, Y).loss_curve_) for each in AUGMENTS]
    assert len(set(found)) == len(AUGMENTS)


@pytest.mark.parametrize("augment", ["crop-flip", "cutmix"])
def test_a_killed_ensemble_resumes_to_the_same_weights(
    augment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_and_stop(*args: Any, **named: Any) -> None:
        checkpoint.save_checkpoint(*args, **named)
        raise KeyboardInterrupt

    options = {"method": "deep-ensemble", "augment": augment}
    whole = augmented(**options).fit(IMAGES, Y)
    clf = augmented(**options, checkpoint=tmp_path / "resume.safetensors")
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
