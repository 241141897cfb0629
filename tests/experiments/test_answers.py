"""Predictions in which a network that several runs are built on is asked once."""

import pytest
import torch
from torch import Tensor, nn

from credalearn.methods import METHODS, Model
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn_experiments.running.answers import Answers

IMAGES = {"test": torch.linspace(-1, 1, 18).view(6, 3), "svhn": torch.linspace(0, 3, 12).view(4, 3)}


class Counting(nn.Module):
    """A backbone that counts the items it is shown, 10 in all of ``IMAGES``."""

    shown = 0

    def forward(self, inputs: Tensor) -> Tensor:
        self.shown += len(inputs)
        return inputs


def networks(method: str, *, count: int) -> list[Network]:
    heads = METHODS[method].num_heads
    torch.manual_seed(0)
    return [
        Network(Counting(), num_features=3, num_heads=heads, num_classes=4) for _ in range(count)
    ]


def model(method: str, *members: Network) -> Model:
    return Model(METHODS[method], members, {}, random_state=1)


def predict(answers: Answers, model: Model, *, shared: bool) -> list[CredalPredictions]:
    return [answers.predict(model, name, x, shared=shared) for name, x in IMAGES.items()]


def shown(members: list[Network]) -> list[int]:
    """Items that each was shown since the last call."""
    backbones = [member.backbone for member in members if isinstance(member.backbone, Counting)]
    counts = [backbone.shown for backbone in backbones]
    for backbone in backbones:
        backbone.shown = 0
    return counts


@pytest.mark.parametrize(
    ("base", "built"), [("softmax", "deep-ensemble"), ("pocc", "pocc-ensemble")]
)
def test_an_ensemble_says_the_same_and_asks_no_member_twice(base: str, built: str) -> None:
    members, answers = networks(base, count=6), Answers()
    models = [model(base, members[0]), model(built, *members[:5]), model(built, *members[1:])]
    expected = [[each.predict(images) for images in IMAGES.values()] for each in models]
    shown(members)
    asked = ([10, 0, 0, 0, 0, 0], [0, 10, 10, 10, 10, 0], [0, 0, 0, 0, 0, 10])
    for each, predictions, counts in zip(models, expected, asked, strict=True):
        found = predict(answers, each, shared=each is models[0])
        assert shown(members) == counts
        for one, other in zip(found, predictions, strict=True):
            for name in ("probs", "lower", "upper"):
                assert torch.equal(getattr(one, name), getattr(other, name))


def test_what_nobody_is_built_on_is_not_kept_and_the_rest_can_be_dropped() -> None:
    members, answers = networks("softmax", count=6), Answers()
    predict(answers, model("softmax", members[5]), shared=False)
    assert answers._logits == {}
    predict(answers, model("deep-ensemble", *members[:5]), shared=False)
    answers.forget_all_but(members[1:2])
    assert {network for network, _ in answers._logits} == {members[1]}
