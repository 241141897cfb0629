"""Training side by side: on a GPU the same as the plain loop; without one, a clear message."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.nets import Network
from credalearn.train import (
    Recipe,
    Training,
    crop_and_flip,
    seeded,
    together,
    train,
    train_together,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # by its compiler
needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="CUDA graphs are recorded on a GPU; torch sees none here"
)
ITEMS, CLASSES = 96, 4


class Small(nn.Module):
    """Convolution, batch normalization and pooling: what a ResNet is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),  # one would have no gradient but noise
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layers(images.float() / 255)
        return features


def problem(device: str = "cuda") -> tuple[Tensor, cl.CredalSet]:
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(256, (ITEMS, 3, 8, 8), generator=generator, dtype=torch.uint8)
    soft = (3 * torch.randn(ITEMS, CLASSES, generator=generator)).softmax(1)
    return images.to(device), cl.relax(soft).to(device)


def network(heads: int = 1, *, seed: int = 0, dropout: float = 0.0) -> Network:
    with seeded(torch.device("cpu"), seed, 0):
        built = Network.on(
            Small(),
            torch.zeros(2, 3, 8, 8),
            num_heads=heads,
            num_classes=CLASSES,
            dropout=dropout,
        )
    return built.cuda()


def job(method: str = "softmax", *, recipe: Recipe, **options: object) -> Training:
    inputs, labels = problem()
    heads, dropout = METHODS[method].num_heads, METHODS[method].dropout
    return Training(
        network=network(heads, random_state=recipe.random_state, dropout=dropout),
        inputs=inputs,
        labels=labels,
        loss=METHODS[method].loss,
        recipe=recipe,
        **options,  # type: ignore[arg-type]
    )


def weights(training: Training) -> Tensor:
    return torch.cat([x.flatten().float() for x in training.network.state_dict().values()]).cpu()


def test_without_a_gpu_it_says_so() -> None:
    inputs, labels = problem("cpu")
    net = Network(nn.Flatten(), num_features=192, num_heads=1, num_classes=CLASSES)
    training = Training(
        network=net, inputs=inputs, labels=labels, loss=METHODS["softmax"].loss, recipe=Recipe()
    )
    with pytest.raises(cl.TrainingError, match="side by side on a GPU; the inputs are on cpu"):
        train_together([training])


@needs_gpu
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_one_batch_an_epoch_gives_the_plain_loops_weights(method: str, optimizer: str) -> None:
    """With all items in one batch their order does not matter, so both loops do the same."""
    if METHODS[method].dropout:
        pytest.skip("dropout draws other numbers; the next test looks at it")
    recipe = Recipe(
        epochs=14,  # beyond the ten over which penalties rise
        batch_size=ITEMS,
        optimizer=optimizer,  # type: ignore[arg-type]
        learning_rate=0.01,
        weight_decay=5e-4,
        warmup_epochs=2,
        precision="float32",
    )
    fast = job(method, recipe=recipe)
    (losses,) = train_together([fast])
    plain = network(METHODS[method].num_heads)
    expected = train(replace(fast, network=plain))
    assert losses == pytest.approx(expected, rel=1e-3, abs=1e-4)
    there = torch.cat([x.flatten().float() for x in plain.state_dict().values()]).cpu()
    torch.testing.assert_close(weights(fast), there, rtol=1e-3, atol=1e-3)


@needs_gpu
def test_compiled_layers_give_the_same_losses() -> None:
    """Two sizes of batch and two numbers of heads, with one backbone compiled for both."""
    recipe = Recipe(epochs=6, batch_size=40, learning_rate=0.01, precision="float32")
    methods = ("softmax", "pocc")
    plain = train_together([job(method, recipe=recipe) for method in methods])
    fused = train_together([job(method, recipe=recipe, compile=True) for method in methods])
    for expected, losses in zip(plain, fused, strict=True):
        assert losses == pytest.approx(expected, rel=1e-3)


@needs_gpu
def test_where_compiling_fails_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler here")

    compiler = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda net, **options: compiler(net, backend=broken, **options)
    )
    recipe = Recipe(epochs=2, batch_size=ITEMS, learning_rate=0.01, precision="float32")
    (plain,) = train_together([job(recipe=recipe)])
    (losses,) = train_together([job(recipe=recipe, compile=True)])
    assert losses == pytest.approx(plain, rel=1e-3)


@needs_gpu
def test_batches_of_two_sizes_and_augmentation_learn() -> None:
    recipe = Recipe(epochs=30, batch_size=40, learning_rate=0.01, precision="bfloat16")
    training = job("pocc", recipe=recipe, augment=crop_and_flip)
    (losses,) = train_together([training])
    assert isinstance(losses, list)
    assert len(losses) == 30
    assert losses[-1] < losses[0]


@needs_gpu
@pytest.mark.parametrize("method", ["softmax", "mc-dropout"])
def test_company_changes_nothing(method: str) -> None:
    """Alone, or beside others of the same and of another kind: the same losses."""
    recipe = Recipe(
        epochs=6, batch_size=32, learning_rate=0.01, random_state=3, precision="float32"
    )
    (alone,) = train_together([job(method, recipe=recipe)])
    other = Recipe(epochs=4, batch_size=32, learning_rate=0.01, random_state=9, precision="float32")
    jobs = [job("mc-dropout", recipe=other), job(method, recipe=recipe), job("pocc", recipe=other)]
    _, beside, _ = train_together(jobs)
    assert beside == pytest.approx(alone, rel=1e-3)


@needs_gpu
def test_dropout_is_on_and_drawn_anew_in_every_step() -> None:
    """A loss of the mean logit moves with what is dropped; without learning nothing else moves."""
    recipe = Recipe(epochs=5, batch_size=ITEMS, learning_rate=1e-9, precision="float32")
    (losses,) = train_together([job("mc-dropout", recipe=recipe)])
    assert isinstance(losses, list)
    assert len(set(losses)) == 5


@needs_gpu
def test_killed_and_resumed_it_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "_SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    recipe = Recipe(epochs=8, batch_size=40, learning_rate=0.01, precision="float32")
    whole = job("mc-dropout", recipe=recipe)
    (expected,) = train_together([whole])

    class Killer:
        def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
            if number == 4:
                raise KeyboardInterrupt

        def resumed(self, done: int, *, of: int, source: str) -> None: ...

    checkpoint = tmp_path / "resume.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train_together([job("mc-dropout", recipe=recipe, checkpoint=checkpoint)], progress=Killer())
    again = job("mc-dropout", recipe=recipe, checkpoint=checkpoint)
    (losses,) = train_together([again])
    assert losses == pytest.approx(expected, rel=1e-3)
    torch.testing.assert_close(weights(again), weights(whole), rtol=1e-3, atol=1e-3)


@needs_gpu
def test_the_network_ends_in_the_memory_order_of_a_loaded_one() -> None:
    """Else passes with dropout, drawn in that order, would differ between the two."""
    training = job(recipe=Recipe(epochs=1, batch_size=40))
    train_together([training])
    assert all(weight.is_contiguous() for weight in training.network.parameters())


@needs_gpu
def test_a_deadline_stops_and_keeps(tmp_path: Path) -> None:
    recipe = Recipe(epochs=5, batch_size=40)
    checkpoint = tmp_path / "resume.safetensors"
    stopped = job(recipe=recipe, checkpoint=checkpoint)
    (losses,) = train_together([stopped], deadline=time.monotonic())
    assert losses == []
    (losses,) = train_together([job(recipe=recipe, checkpoint=checkpoint)])
    assert isinstance(losses, list)
    assert len(losses) == 5


@needs_gpu
def test_one_that_diverges_does_not_stop_the_other() -> None:
    good = job(recipe=Recipe(epochs=4, batch_size=40))
    bad = job(recipe=Recipe(epochs=4, batch_size=40, optimizer="sgd", learning_rate=1e30))
    error, losses = train_together([bad, good])
    assert isinstance(error, cl.TrainingError)
    assert "lower learning_rate" in str(error)
    assert isinstance(losses, list)
    assert len(losses) == 4
