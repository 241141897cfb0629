"""The loop: determinism, several models at once, deadlines, batches, losses and recipes."""

import math
import time
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import credalearn as cl
from credalearn.train import Recipe, train
from credalearn.train._learner import autocast, make_optimizer
from small_training import (
    Heard,
    Watch,
    losses_of,
    own_training,
    run,
    same_weights,
    small_training,
)

STORED = [2.7882350646343426, 2.6872999053640463, 2.629126951866543]


def test_stored_losses_are_reproduced() -> None:
    """Losses of version 0.1 on the CPU."""
    losses = losses_of(small_training(Recipe(epochs=3, batch_size=20, learning_rate=0.01)))
    assert losses == pytest.approx(STORED, rel=1e-6)


def test_models_that_take_turns_train_as_each_alone(tmp_path: Path) -> None:
    """Bit for bit, with different methods, numbers of steps and epochs, one of them resumed."""
    recipes = [Recipe(epochs=3, batch_size=20), Recipe(epochs=5, batch_size=50, random_state=4)]
    jobs = {"pocc": recipes[0], "edl": recipes[1], "softmax": recipes[1]}
    alone = [small_training(recipe, method) for method, recipe in jobs.items()]
    losses = [losses_of(training) for training in alone]
    checkpoint = tmp_path / "resume.safetensors"
    with pytest.raises(KeyboardInterrupt):
        losses_of(small_training(recipes[1], "edl", checkpoint=checkpoint, listener=Heard(2)))
    together = [small_training(recipe, method) for method, recipe in jobs.items()]
    together[1] = replace(together[1], checkpoint=checkpoint, listener=Heard())
    assert train(together) == losses
    for one, other in zip(together, alone, strict=True):
        assert same_weights(one.network.state_dict(), other.network.state_dict())
    own = together[1].listener
    assert isinstance(own, Heard)
    assert own.done_before == [2]
    assert [each[:3] for each in own.epochs] == [(n, 5, losses[1][n - 1]) for n in (3, 4, 5)]


def test_a_deadline_stops_after_an_epoch_and_the_checkpoint_continues(tmp_path: Path) -> None:
    recipe, checkpoint = Recipe(epochs=3), tmp_path / "resume.safetensors"
    for done in (1, 2, 3, 3):
        training = small_training(recipe, checkpoint=checkpoint)
        (losses,) = train([training], deadline=time.monotonic())
        assert isinstance(losses, list)
        assert len(losses) == done
    assert same_weights(training.network.state_dict(), run(recipe))


def test_a_training_ends_when_its_stop_is_true(tmp_path: Path) -> None:
    """Others go on, and the weights are those of as many epochs at a constant rate."""
    asked: list[int] = []

    def stop(epoch: int) -> bool:
        asked.append(epoch)
        return epoch == 2

    recipe = Recipe(epochs=5, batch_size=20, schedule="constant")
    first, second = small_training(recipe, stop=stop), small_training(recipe)
    losses = train([first, second])
    assert [len(each) for each in losses if isinstance(each, list)] == [2, 5]
    assert asked == [1, 2]
    assert same_weights(first.network.state_dict(), run(replace(recipe, epochs=2)))
    assert same_weights(second.network.state_dict(), run(recipe))
    (alone,) = train([small_training(recipe, stop=lambda epoch: True)])
    assert isinstance(alone, list)
    assert len(alone) == 1


def test_the_rate_reaches_the_optimizer() -> None:
    """SGD without momentum on a loss of slope 1 moves by the sum of the rates."""
    recipe = Recipe(
        epochs=3, batch_size=2, optimizer="sgd", momentum=0, learning_rate=0.2, warmup_epochs=1
    )
    training = own_training(
        nn.Identity(), torch.zeros(4, 1), recipe, loss=lambda logits, *_: logits[:, 0, 0].mean()
    )
    before = training.network.heads.bias.detach().clone()
    losses_of(training)
    moved = (before - training.network.heads.bias.detach())[0].item()
    assert moved == pytest.approx(sum(recipe.rate_at(step / 2) for step in range(6)))


def test_bfloat16_trains_close_to_float32() -> None:
    low, full = (run(Recipe(epochs=3, precision=each)) for each in ("bfloat16", "float32"))
    assert low["heads.weight"].dtype == torch.float32
    difference = (low["heads.weight"] - full["heads.weight"]).abs().max()
    assert 0 < difference < 0.05


def test_the_loss_of_an_epoch_is_the_mean_over_items() -> None:
    seen: list[float] = []

    def record(logits: Tensor, sets: cl.CredalSet, epoch: int | Tensor) -> Tensor:
        seen.extend(sets.lower[:, 0].tolist())
        return sets.lower[:, 0].mean() + 0 * logits.sum()

    labels = cl.LowerBounds(torch.tensor([[0.0], [0.1], [0.2], [0.3], [0.9]]).repeat(1, 2) / 2)
    recipe = Recipe(epochs=1, batch_size=3)  # batches of 3 and 2
    inputs = torch.arange(5.0)[:, None]
    (mean,) = losses_of(own_training(nn.Identity(), inputs, recipe, labels=labels, loss=record))
    assert len(seen) == 5
    assert mean == pytest.approx(0.15, abs=1e-6)


@pytest.mark.catches(
    "train/_learner.py",
    "self.random.reseed(random_state, self.epoch + 1)  #",
    "self.random.reseed(random_state, 1)  #",
    case="21",
)
@pytest.mark.parametrize("num_items", [2, 3, 21, 41])
def test_no_batch_is_tiny_and_every_item_is_seen(num_items: int) -> None:
    watch, inputs = Watch(), torch.arange(float(num_items))[:, None]
    losses_of(own_training(watch, inputs, Recipe(epochs=4, batch_size=20)))
    orders = torch.cat(watch.seen).view(4, num_items).tolist()
    assert all(sorted(order) == list(range(num_items)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1  # another order in every epoch
    assert all(1 < len(batch) <= 20 for batch in watch.seen)


def test_optimizers_are_the_ones_asked_for() -> None:
    network = small_training(Recipe()).network
    sgd = make_optimizer(network, Recipe(optimizer="sgd", momentum=0.8, weight_decay=5e-4))
    adam = make_optimizer(network, Recipe(weight_decay=1e-3))
    assert (type(sgd), type(adam)) == (torch.optim.SGD, torch.optim.Adam)
    assert (sgd.defaults["momentum"], sgd.defaults["weight_decay"]) == (0.8, 5e-4)
    assert adam.defaults["weight_decay"] == 1e-3


@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.parametrize(
    ("precision", "device", "low"),
    [("auto", "cpu", False), ("auto", "cuda", True), ("float32", "cuda", False)],
)
def test_auto_precision_is_bfloat16_on_a_gpu_only(precision: Any, device: str, low: bool) -> None:
    found = autocast(Recipe(precision=precision), torch.device(device))
    assert isinstance(found, torch.autocast) == low


def test_a_model_that_diverges_is_reported_and_does_not_stop_the_other(tmp_path: Path) -> None:
    def explode(logits: Tensor, sets: cl.CredalSet, epoch: int | Tensor) -> Tensor:
        return logits.mean() * (math.nan if epoch == 2 else 1.0)

    checkpoint = tmp_path / "resume.safetensors"
    bad = small_training(Recipe(epochs=4), loss=explode, checkpoint=checkpoint)
    error, losses = train([bad, small_training(Recipe(epochs=4))])
    assert isinstance(error, cl.TrainingError)
    assert "became nan in epoch 3 of 4" in str(error)
    assert losses == losses_of(small_training(Recipe(epochs=4)))
    assert checkpoint.exists()  # with the last good epoch


@pytest.mark.catches("train/training.py", "math.cos(math.pi * share)", "math.cos(share)")
def test_rates_of_the_papers_recipes() -> None:
    plain = Recipe(epochs=150, optimizer="sgd", learning_rate=0.1)
    assert plain.rate_at(0) == 0.1
    assert plain.rate_at(75) == pytest.approx(0.05)
    assert plain.rate_at(150) == pytest.approx(0)
    warmup: dict[str, Any] = {"warmup_epochs": 5, "warmup_start": 0.001}
    warm = Recipe(epochs=200, learning_rate=0.1, final_learning_rate=1e-6, **warmup)
    assert warm.rate_at(0) == 0.001
    assert warm.rate_at(2.5) == pytest.approx(0.0505)
    assert warm.rate_at(5) == 0.1
    assert warm.rate_at(200) == pytest.approx(1e-6)
    rates = [warm.rate_at(epoch / 10) for epoch in range(50, 2001)]
    assert all(a >= b for a, b in pairwise(rates))
    constant = Recipe(epochs=60, learning_rate=1e-5, schedule="constant")
    assert {constant.rate_at(epoch) for epoch in range(60)} == {1e-5}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"learning_rate": math.nan}, "learning_rate must be a number"),
        ({"warmup_epochs": 9, "epochs": 3}, "warmup_epochs must be at most epochs, 3; got 9"),
        ({"final_learning_rate": 1.0}, r"at most learning_rate, 0\.001; got 1"),
        ({"optimizer": "lion"}, "optimizer must be one of 'adam', 'sgd'; got 'lion'"),
    ],
)
def test_rejects_values_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        Recipe(**options)


def test_the_classifier_has_the_recipes_defaults() -> None:
    params = cl.CredalClassifier().get_params()
    assert {each.name: params[each.name] for each in fields(Recipe)} == {
        each.name: each.default for each in fields(Recipe)
    }
