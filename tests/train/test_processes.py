"""One model in two processes that torchrun starts, on the CPU: the same as in one.

The processes run this file: ``python tests/train/test_processes.py FOLDER``.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any, ClassVar

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.nets import Network
from credalearn.train import Progress, Recipe, Training, seeded
from credalearn.train._processes import _synchronized, own_gpu, rank
from credalearn.train.augment import mixup
from credalearn_experiments.executor import process_group
from small_training import losses_of
from torchrun import torchrun

CPU = torch.device("cpu")
ITEMS = 61  # batches of 16, 15, 15 and 15: odd ones fall in unequal parts
ADAM = Recipe(epochs=6, batch_size=16, learning_rate=0.01)
SGD = replace(ADAM, optimizer="sgd", learning_rate=0.1, weight_decay=1e-3, warmup_epochs=1)
RECIPES = {"sgd": SGD, "adam": ADAM}
STOPS_AFTER = 3


class Plain(nn.Sequential):
    """A backbone whose outcome does not depend on who else is in the batch."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())


class Drawing(Plain):
    """Keeps random numbers, drawn where dropout would draw."""

    drawn: ClassVar[list[float]] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self.drawn.append(torch.rand(()).item())
        features: Tensor = super().forward(inputs)  # type: ignore[no-untyped-call]
        return features


class Stops(Progress):
    """Ends training after some epochs."""

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        if number == STOPS_AFTER:
            raise InterruptedError("time is up")


class Normalized(Plain):
    """Has running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.append(nn.BatchNorm1d(8))


def problem(kind: type[Plain] = Plain) -> tuple[Network, Tensor, cl.CredalSet]:
    """A network, items that differ in their first number, and labels."""
    with seeded(CPU, 5, 0):
        inputs = torch.randn(ITEMS, 3)
        labels = cl.from_votes(torch.randint(1, 5, (ITEMS, 4)))
        network = Network(kind(), num_features=8, num_heads=2, num_classes=4)
    return network, inputs, labels


def shift(inputs: Tensor) -> Tensor:
    """An augmentation of all numbers but the first."""
    noise = 0.1 * torch.randn(len(inputs), 1)
    return torch.cat([inputs[:, :1], inputs[:, 1:] + noise], 1)


shift.__module__ = "test_processes"  # in checkpoints, however this file is run


def training(recipe: Recipe, kind: type[Plain] = Plain, **options: Any) -> Training:
    network, inputs, labels = problem(kind)
    mix = None if kind is Drawing else mixup  # it tells items apart by their first number
    parts: dict[str, Any] = {"augment": shift, "mix": mix, "loss": METHODS["pocc"].loss, **options}
    return Training(network=network, inputs=inputs, labels=labels, recipe=recipe, **parts)


def fit(
    recipe: Recipe, kind: type[Plain] = Plain, **options: Any
) -> tuple[dict[str, Tensor], list[float]]:
    whole = training(recipe, kind, **options)
    return whole.network.state_dict(), losses_of(whole)


def refusal(recipe: Recipe, kind: type[Plain] = Plain) -> str:
    try:
        fit(recipe, kind)
    except cl.CredalError as error:
        return str(error)
    return "none"


def in_each_process(folder: Path) -> None:
    """Everything in one go: starting processes is what takes time."""
    found: dict[str, Any] = {}
    for name, recipe in RECIPES.items():
        weights, found[name] = fit(recipe)
        save_file(weights, folder / f"{name}-{rank()}.safetensors")
    fit(Recipe(epochs=1, batch_size=16), Drawing)
    found["drawn"] = Drawing.drawn
    weights, _ = fit(RECIPES["sgd"], Normalized)
    save_file(weights, folder / f"normalized-{rank()}.safetensors")
    found["one each"] = refusal(Recipe(epochs=1, batch_size=1))
    found["normalized"] = refusal(Recipe(epochs=1, batch_size=3), Normalized)
    found["seeds"] = refusal(Recipe(epochs=1, random_state=rank()))
    try:
        fit(RECIPES["sgd"], checkpoint=folder / "resume", listener=Stops("stops"))
    except (InterruptedError, cl.TrainingError) as error:
        found["stopped"] = f"{type(error).__name__}: {error}"
    if rank() == 0:
        copyfile(folder / "resume", folder / "stopped")
    _, found["resumed"] = fit(RECIPES["sgd"], checkpoint=folder / "resume")
    (folder / f"found-{rank()}.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which two processes left what they found."""
    folder = tmp_path_factory.mktemp("two")
    done = torchrun(__file__, str(folder), made=folder)
    assert done.returncode == 0, done.stderr
    return folder


def found(outcome: Path, number: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((outcome / f"found-{number}.json").read_text())
    return content


@pytest.mark.parametrize("name", RECIPES)
def test_two_processes_train_what_one_does(outcome: Path, name: str) -> None:
    expected, losses = fit(RECIPES[name])
    for number in (0, 1):
        weights = load_file(outcome / f"{name}-{number}.safetensors")
        torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)
        assert found(outcome, number)[name] == pytest.approx(losses, abs=1e-5)


def test_dropout_differs_between_processes(outcome: Path) -> None:
    first, second = (found(outcome, number)["drawn"] for number in (0, 1))
    assert len(first) == len(second) == 4
    assert not {*first} & {*second}


def test_a_stop_of_the_first_process_stops_all_and_two_or_one_resume(outcome: Path) -> None:
    assert found(outcome, 0)["stopped"] == "InterruptedError: time is up"
    assert found(outcome, 1)["stopped"].startswith("TrainingError: 1 of 2 processes that train")
    expected, losses = fit(SGD)
    assert found(outcome, 1)["resumed"] == pytest.approx(losses, abs=1e-5)
    assert len(load_file(outcome / "stopped")["losses"]) == STOPS_AFTER
    weights, continued = fit(SGD, checkpoint=outcome / "stopped")
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)
    assert continued == pytest.approx(losses, abs=1e-5)


def test_running_statistics_end_the_same(outcome: Path) -> None:
    first, second = (load_file(outcome / f"normalized-{number}.safetensors") for number in (0, 1))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert first["backbone.4.num_batches_tracked"] == 24


def test_synchronized_layers_share_the_networks_tensors() -> None:
    """The layers themselves run on GPUs alone; that the caller's network learns shows here."""
    network, _, _ = problem(Normalized)
    layers = str(network)
    copied = _synchronized(network)
    assert str(network) == layers
    assert sum(isinstance(layer, nn.SyncBatchNorm) for layer in copied.modules()) == 1
    ours, theirs = network.state_dict(keep_vars=True), copied.state_dict(keep_vars=True)
    assert ours.keys() == theirs.keys()
    assert all(ours[name] is theirs[name] for name in ours)


def test_rejects_fewer_gpus_than_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(cl.CredalError, match="2 processes here, and torch sees 1 GPU"):
        own_gpu("cuda")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("one each", "must have 1 or more items of every batch"),
        ("normalized", "must have 2 or more items of every batch"),
        ("seeds", "they differ in: recipe"),
    ],
)
def test_all_processes_reject_what_they_cannot_share(
    outcome: Path, case: str, message: str
) -> None:
    assert message in found(outcome, 0)[case]
    assert found(outcome, 0)[case] == found(outcome, 1)[case]


if __name__ == "__main__":
    with process_group():
        in_each_process(Path(sys.argv[1]))
