"""Recorded steps: on a GPU the same training as eager steps; without one, a clear message."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import credalearn as cl
from credalearn.labels.soft import taught_labels
from credalearn.methods import METHODS
from credalearn.nets import Network
from credalearn.train import Recipe, Training, crop_and_flip, seeded, train
from credalearn.train._cuda_graphs import RecordedLearner
from credalearn.train.augment import cutmix
from small_training import Heard, small_training

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # by its compiler
needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="CUDA graphs are recorded on a GPU; torch sees none here"
)
ITEMS, CLASSES = 97, 4  # batches of 33, 32 and 32


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


def job(method: str = "softmax", *, recipe: Recipe, **options: Any) -> Training:
    """A training on the GPU, recorded by default."""
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(256, (ITEMS, 3, 8, 8), generator=generator, dtype=torch.uint8)
    soft = (3 * torch.randn(ITEMS, CLASSES, generator=generator)).softmax(1)
    dropout = METHODS[method].dropout
    with seeded(torch.device("cpu"), recipe.random_state, 0):
        network = Network.on(
            Small(),
            torch.zeros(2, 3, 8, 8),
            num_heads=METHODS[method].num_heads,
            num_classes=CLASSES,
            dropout=dropout,
        )
    parts: dict[str, Any] = {"loss": METHODS[method].loss, "execution": "recorded", **options}
    return Training(
        network=network.cuda(),
        inputs=images.cuda(),
        labels=cl.relax(soft).to("cuda"),
        recipe=recipe,
        **parts,
    )


def weights(training: Training) -> Tensor:
    return torch.cat([x.flatten().float() for x in training.network.state_dict().values()]).cpu()


@pytest.mark.parametrize("execution", ["recorded", "compiled"])
def test_rejects_the_cpu(execution: str) -> None:
    training = small_training(Recipe(), execution=execution)
    message = f"execution='{execution}' needs one process on a GPU; the network is on cpu"
    with pytest.raises(cl.TrainingError, match=message):
        train([training])


@needs_gpu
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_cuda_graphs_steps_train_what_eager_steps_do(
    method: str, optimizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same order, augmentation, mixing and dropout, from the same random numbers."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)  # rounds to 10 bits
    recipe = Recipe(
        epochs=12,  # beyond the ten over which penalties rise
        batch_size=40,
        optimizer=optimizer,
        learning_rate=1e-3,
        weight_decay=5e-4,
        warmup_epochs=2,
        precision="float32",
    )
    recorded = job(method, recipe=recipe, augment=crop_and_flip, mix=cutmix)
    eager = job(method, recipe=recipe, augment=crop_and_flip, mix=cutmix, execution="eager")
    (losses,), (expected,) = train([recorded]), train([eager])
    assert losses == pytest.approx(expected, rel=1e-3, abs=1e-4)
    torch.testing.assert_close(weights(recorded), weights(eager), rtol=1e-2, atol=1e-2)


@needs_gpu
def test_compiled_layers_give_the_same_losses() -> None:
    """Two sizes of batch and two numbers of heads, with one backbone compiled for both."""
    recipe = Recipe(epochs=6, batch_size=40, learning_rate=0.01, precision="float32")
    methods = ("softmax", "pocc")
    plain = train([job(method, recipe=recipe) for method in methods])
    fused = train([job(method, recipe=recipe, execution="compiled") for method in methods])
    for expected, losses in zip(plain, fused, strict=True):
        assert losses == pytest.approx(expected, rel=1e-3)


@needs_gpu
@pytest.mark.parametrize("execution", ["recorded", "compiled"])
def test_recorded_steps_learn_from_teachers_as_eager_ones(execution: Any) -> None:
    """Teachers see the images as each epoch changes them."""
    recipe = Recipe(epochs=6, batch_size=40, learning_rate=0.01, precision="float32")
    teachers = [job(recipe=replace(recipe, random_state=state)) for state in (1, 2)]
    labels = taught_labels(torch.rand(ITEMS, 2, CLASSES, device="cuda").softmax(2))

    def student(execution: Any) -> Training:
        plain = job("credal-bounds", recipe=recipe, augment=crop_and_flip, mix=cutmix)
        networks = tuple(each.network for each in teachers)
        return replace(plain, labels=labels, teachers=networks, execution=execution)

    (losses,), (expected,) = train([student(execution)]), train([student("eager")])
    assert losses == pytest.approx(expected, rel=1e-3)


@needs_gpu
def test_training_continues_where_compiling_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler here")

    compiler = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda net, **options: compiler(net, backend=broken, **options)
    )
    recipe = Recipe(epochs=2, batch_size=ITEMS, learning_rate=0.01, precision="float32")
    (plain,) = train([job(recipe=recipe)])
    (losses,) = train([job(recipe=recipe, execution="compiled")])
    assert losses == pytest.approx(plain, rel=1e-3)


@needs_gpu
@pytest.mark.parametrize("method", ["softmax", "mc-dropout"])
def test_models_side_by_side_train_as_each_alone(method: str) -> None:
    other = Recipe(epochs=4, batch_size=32, learning_rate=0.01, random_state=9, precision="float32")
    recipe = replace(other, epochs=6, random_state=3)
    (alone,) = train([job(method, recipe=recipe)])
    jobs = [job("mc-dropout", recipe=other), job(method, recipe=recipe), job("pocc", recipe=other)]
    _, together, _ = train(jobs)
    assert together == pytest.approx(alone, rel=1e-3)


@needs_gpu
def test_a_killed_training_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordedLearner, "checkpoint_seconds", 0.0)
    recipe = Recipe(epochs=8, batch_size=40, learning_rate=0.01, precision="float32")
    whole = job("mc-dropout", recipe=recipe)
    (expected,) = train([whole])
    checkpoint = tmp_path / "resume.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train([job("mc-dropout", recipe=recipe, checkpoint=checkpoint, listener=Heard(4))])
    again = job("mc-dropout", recipe=recipe, checkpoint=checkpoint)
    (losses,) = train([again])
    assert losses == pytest.approx(expected, rel=1e-3)
    torch.testing.assert_close(weights(again), weights(whole), rtol=1e-3, atol=1e-3)


@needs_gpu
def test_process_wide_settings_are_restored() -> None:
    before = (torch.backends.cudnn.benchmark, torch.cuda.get_rng_state().tolist())
    training = job("mc-dropout", recipe=Recipe(epochs=1, batch_size=40))
    train([training])
    assert (torch.backends.cudnn.benchmark, torch.cuda.get_rng_state().tolist()) == before
    assert all(weight.is_contiguous() for weight in training.network.parameters())


@needs_gpu
def test_one_model_that_diverges_does_not_stop_the_other() -> None:
    good = job(recipe=Recipe(epochs=4, batch_size=40))
    bad = job(recipe=Recipe(epochs=4, batch_size=40, optimizer="sgd", learning_rate=1e30))
    error, losses = train([bad, good])
    assert isinstance(error, cl.TrainingError)
    assert isinstance(losses, list)
    assert len(losses) == 4
