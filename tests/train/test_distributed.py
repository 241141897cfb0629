"""One model in two processes that torchrun starts, on the CPU: the same as in one.

The processes run this file: ``python tests/train/test_distributed.py CASE FOLDER``.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.nets import Network
from credalearn.train import Progress, Recipe, Training, seeded
from credalearn.train.distributed import (
    _synchronized,
    own_gpu,
    process_group,
    rank,
    under_torchrun,
)
from small_training import losses_of
from torchrun import torchrun

CPU = torch.device("cpu")
ITEMS = 61  # batches of 16, 15, 15 and 15: odd ones fall in unequal parts
ADAM = Recipe(epochs=6, batch_size=16, learning_rate=0.01)
SGD = replace(ADAM, optimizer="sgd", learning_rate=0.1, weight_decay=1e-3, warmup_epochs=1)
RECIPES = {"sgd": SGD, "adam": ADAM}
STOPS_AFTER = 3


class Plain(nn.Module):
    """A backbone whose outcome does not depend on who else is in the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.layers(inputs)
        return features


class Watched(Plain):
    """Keeps the items it saw, and a random number drawn where dropout would draw."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []
        self.drawn: list[Tensor] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen.append(inputs[:, 0].clone())
        self.drawn.append(torch.rand(1))
        return super().forward(inputs)


class Normalized(Plain):
    """Has running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.layers.append(nn.BatchNorm1d(8))


def problem(kind: type[Plain] = Plain) -> tuple[Network, Tensor, cl.CredalSet]:
    """A network, items that differ in their first number, and labels."""
    with seeded(CPU, 5, 0):
        inputs = torch.randn(ITEMS, 3)
        labels = cl.from_votes(torch.randint(1, 5, (ITEMS, 4)))
        network = Network(kind(), num_features=8, num_heads=2, num_classes=4)
    return network, inputs, labels


def shift(inputs: Tensor, generator: torch.Generator | None) -> Tensor:
    """An augmentation of all numbers but the first."""
    noise = 0.1 * torch.randn(len(inputs), 1, generator=generator)
    return torch.cat([inputs[:, :1], inputs[:, 1:] + noise], 1)


shift.__module__ = "test_distributed"  # in checkpoints, whoever runs this file


def training(recipe: Recipe, kind: type[Plain] = Plain, **options: Any) -> Training:
    network, inputs, labels = problem(kind)
    parts: dict[str, Any] = {"augment": shift, "loss": METHODS["pocc"].loss, **options}
    return Training(network=network, inputs=inputs, labels=labels, recipe=recipe, **parts)


def fit(
    recipe: Recipe, kind: type[Plain] = Plain, **options: Any
) -> tuple[dict[str, Tensor], list[float]]:
    whole = training(recipe, kind, **options)
    return whole.network.state_dict(), losses_of(whole)


def watch() -> tuple[Tensor, Tensor, Tensor]:
    """One epoch: the items seen, how many a step, and the numbers drawn."""
    whole = training(Recipe(epochs=1, batch_size=16), Watched)
    losses_of(whole)
    watched = whole.network.backbone
    assert isinstance(watched, Watched)
    counts = torch.tensor([len(each) for each in watched.seen])
    return torch.cat(watched.seen), counts, torch.cat(watched.drawn)


def refusal(recipe: Recipe, kind: type[Plain] = Plain) -> str:
    try:
        fit(recipe, kind)
    except cl.CredalError as error:
        return str(error)
    return "none"


class Stops(Progress):
    """Ends its process, or training, after some epochs."""

    def __init__(self, how: str) -> None:
        super().__init__("stops")
        self.how = how

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        if number == STOPS_AFTER and self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == STOPS_AFTER:
            raise InterruptedError("time is up")


def case_same(folder: Path) -> None:
    """Everything that ends well, in one go: starting processes is what takes time."""
    found: dict[str, Any] = {}
    for name, recipe in RECIPES.items():
        weights, found[name] = fit(recipe)
        save_file(weights, folder / f"{name}-{rank()}.safetensors")
    seen, counts, drawn = watch()
    save_file({"seen": seen, "counts": counts, "drawn": drawn}, folder / f"watch-{rank()}")
    weights, _ = fit(RECIPES["sgd"], Normalized)
    save_file(weights, folder / f"normalized-{rank()}.safetensors")
    found["one each"] = refusal(Recipe(epochs=1, batch_size=1))
    found["normalized"] = refusal(Recipe(epochs=1, batch_size=3), Normalized)
    found["seeds"] = refusal(Recipe(epochs=1, random_state=rank()))
    try:
        fit(RECIPES["sgd"], checkpoint=folder / "resume", listener=Stops("raise"))
    except (InterruptedError, cl.TrainingError) as error:
        found["stopped"] = f"{type(error).__name__}: {error}"
    _, found["resumed"] = fit(RECIPES["sgd"], checkpoint=folder / "resume")
    (folder / f"found-{rank()}.json").write_text(json.dumps(found))


def case_killed(folder: Path) -> None:
    fit(RECIPES["adam"], checkpoint=folder / "resume", listener=Stops("kill"))


CASES: dict[str, Callable[[Path], None]] = {"same": case_same, "killed": case_killed}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which two processes left what they found."""
    folder = tmp_path_factory.mktemp("two")
    done = torchrun(__file__, "same", str(folder), made=folder)
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


def test_parts_make_up_the_batches_and_dropout_differs_between_processes(
    outcome: Path,
) -> None:
    first, second = (load_file(outcome / f"watch-{number}") for number in (0, 1))
    seen, counts, _ = watch()
    assert counts.tolist() == [16, 15, 15, 15]
    assert first["counts"].tolist() == [8, 7, 7, 7]
    steps = [torch.split(each["seen"], each["counts"].tolist()) for each in (first, second)]
    assert torch.equal(torch.cat([torch.cat(pair) for pair in zip(*steps, strict=True)]), seen)
    assert not (first["drawn"] == second["drawn"]).any()


def test_running_statistics_end_the_same(outcome: Path) -> None:
    first, second = (load_file(outcome / f"normalized-{number}.safetensors") for number in (0, 1))
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert first["backbone.layers.4.num_batches_tracked"] == 24


def test_a_stop_of_the_first_process_stops_all_and_they_resume_together(outcome: Path) -> None:
    assert found(outcome, 0)["stopped"] == "InterruptedError: time is up"
    assert found(outcome, 1)["stopped"].startswith("TrainingError: 1 of 2 processes that train")
    _, losses = fit(RECIPES["sgd"])
    assert found(outcome, 1)["resumed"] == pytest.approx(losses, abs=1e-5)


def test_one_process_continues_where_two_were_killed(tmp_path: Path) -> None:
    done = torchrun(__file__, "killed", str(tmp_path), made=tmp_path)
    assert done.returncode != 0
    assert "SIGKILL" in done.stderr
    assert len(load_file(tmp_path / "resume")["losses"]) == STOPS_AFTER
    weights, losses = fit(RECIPES["adam"], checkpoint=tmp_path / "resume")
    expected, all_losses = fit(RECIPES["adam"])
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-5)
    assert losses == pytest.approx(all_losses, abs=1e-5)


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
    with pytest.raises(cl.CredalError, match="a GPU of its own; got device 'cuda:1'"):
        own_gpu("cuda:1")


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


def test_names_the_missing_part_of_torchruns_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for size, message in (("x", "WORLD_SIZE is 'x'"), ("2", "not set: RANK, LOCAL_RANK")):
        monkeypatch.setenv("WORLD_SIZE", size)
        with pytest.raises(cl.CredalError, match=message):
            under_torchrun()
    for name in names:
        monkeypatch.setenv(name, "0")
    assert under_torchrun()
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert not under_torchrun()


if __name__ == "__main__":
    with process_group():
        CASES[sys.argv[1]](Path(sys.argv[2]))
