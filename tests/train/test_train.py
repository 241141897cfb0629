"""The loop: schedules, determinism, kills, damaged files and losses that are not finite."""

import io
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.nets import Network
from credalearn.train import Loss, Progress, Recipe, Training, seeded, train
from credalearn.train.loop import _uses_bfloat16, make_optimizer

CPU = torch.device("cpu")


class Noisy(nn.Module):
    """A backbone with its own randomness and running statistics, which a resume must restore."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.layers(inputs)
        return features


def problem(num_items: int = 97) -> tuple[Network, Tensor, cl.CredalSet]:
    """A small network, inputs and credal labels, always the same."""
    with seeded(CPU, 5, 0):
        inputs = torch.randn(num_items, 3)
        labels = cl.from_votes(torch.randint(1, 5, (num_items, 4)))
        network = Network(Noisy(), num_features=8, num_heads=2, num_classes=4)
    return network, inputs, labels


def trained(
    network: Network,
    inputs: Tensor,
    labels: cl.CredalSet,
    loss: Loss,
    recipe: Recipe,
    **options: Any,
) -> list[float]:
    """The losses of a training."""
    whole = Training(
        network=network, inputs=inputs, labels=labels, loss=loss, recipe=recipe, **options
    )
    return train(whole)


def run(
    recipe: Recipe, *, checkpoint: Path | None = None, stop_after: int | None = None
) -> dict[str, Tensor]:
    """Train the small problem; stop the process's way, by an exception, after some epochs."""
    network, inputs, labels = problem()

    class Stopper(Progress):
        def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
            if number == stop_after:
                raise KeyboardInterrupt

    loss = METHODS["pocc"].loss
    progress = Stopper("stopper", stream=io.StringIO())
    trained(network, inputs, labels, loss, recipe, checkpoint=checkpoint, listener=progress)
    return network.state_dict()


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def test_same_seed_same_weights_bit_for_bit() -> None:
    torch.rand(3)  # whatever happened before
    first = run(Recipe(epochs=3, batch_size=20))
    torch.rand(5)
    assert same(first, run(Recipe(epochs=3, batch_size=20)))
    assert not same(first, run(Recipe(epochs=3, batch_size=20, random_state=1)))


def test_training_leaves_the_outer_random_numbers_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    run(Recipe(epochs=1))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_stopped_run_resumes_to_the_same_weights(
    optimizer: str, stop_after: int, tmp_path: Path
) -> None:
    recipe = Recipe(epochs=4, batch_size=20, optimizer=optimizer, warmup_epochs=1)  # type: ignore[arg-type]
    checkpoint = tmp_path / "resume.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(recipe, checkpoint=checkpoint, stop_after=stop_after)
    assert same(run(recipe, checkpoint=checkpoint), run(recipe))


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from safetensors.torch import save_file
from test_train import run
from credalearn.train import Recipe
weights = run(Recipe(epochs=150, batch_size=10), checkpoint=Path({checkpoint!r}))
save_file(weights, {output!r})
"""


def test_a_killed_process_resumes_to_the_same_weights(tmp_path: Path) -> None:
    """``kill -9`` at arbitrary moments, until the run gets through."""
    checkpoint, output = tmp_path / "resume.safetensors", tmp_path / "weights.safetensors"
    tests = str(Path(__file__).parent)
    code = KILLED.format(tests=tests, checkpoint=str(checkpoint), output=str(output))
    kills = 0
    while not output.exists():
        process = subprocess.Popen([sys.executable, "-c", code])
        if kills < 2:
            before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            while not (checkpoint.exists() and checkpoint.stat().st_mtime_ns != before):
                assert process.poll() is None, "the run ended before it could be killed"
                time.sleep(0.002)
            time.sleep(0.05 * kills)  # somewhere in the epochs that follow
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
            assert process.wait() == -signal.SIGKILL
        else:
            assert process.wait() == 0
    from safetensors.torch import load_file

    assert kills == 2
    assert same(load_file(output), run(Recipe(epochs=150, batch_size=10)))


def test_a_finished_checkpoint_is_not_trained_again(tmp_path: Path) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    recipe = Recipe(epochs=2)
    first = run(recipe, checkpoint=checkpoint)
    written = checkpoint.stat().st_mtime_ns
    assert same(first, run(recipe, checkpoint=checkpoint))
    assert checkpoint.stat().st_mtime_ns == written


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    run(Recipe(epochs=2), checkpoint=checkpoint)
    with pytest.raises(cl.TrainingError, match=r"another run: epochs \(2 there, 3 here\) differ"):
        run(Recipe(epochs=3), checkpoint=checkpoint)
    network, inputs, labels = problem()
    with pytest.raises(cl.TrainingError, match="belongs to another run"):
        trained(
            network,
            inputs + 1,
            labels,
            METHODS["pocc"].loss,
            Recipe(epochs=2),
            checkpoint=checkpoint,
        )
    network, inputs, labels = problem()
    other = METHODS["softmax"].loss  # the network alone does not tell the methods apart
    with pytest.raises(cl.TrainingError, match="belongs to another run"):
        trained(network, inputs, labels, other, Recipe(epochs=2), checkpoint=checkpoint)
    network, inputs, labels = problem()
    loss = METHODS["pocc"].loss
    network.dropout.p = 0.3  # layers without weights count too
    with pytest.raises(cl.TrainingError, match="another run: network differ"):
        trained(network, inputs, labels, loss, Recipe(epochs=2), checkpoint=checkpoint)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    run(Recipe(epochs=2), checkpoint=checkpoint)
    whole = bytearray(checkpoint.read_bytes())
    flipped = whole.copy()
    flipped[-3] ^= 1  # one bit of a weight: the file is whole, its content is another
    for content in (whole[:-1], flipped):
        checkpoint.write_bytes(content)
        with pytest.raises(cl.TrainingError, match=r"resume\.safetensors is damaged .* delete it"):
            run(Recipe(epochs=2), checkpoint=checkpoint)


def test_a_failed_write_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    recipe = Recipe(epochs=4)
    with pytest.raises(KeyboardInterrupt):
        run(recipe, checkpoint=checkpoint, stop_after=2)
    whole = checkpoint.read_bytes()

    def half_written(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(whole[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("credalearn._tensors.save_file", half_written)
    with pytest.raises(OSError, match="No space left"):
        run(recipe, checkpoint=checkpoint)
    assert checkpoint.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["resume.safetensors"]


def test_a_loss_that_is_not_finite_stops_with_the_epoch_and_a_remedy(tmp_path: Path) -> None:
    network, inputs, labels = problem()
    checkpoint = tmp_path / "resume.safetensors"

    def explode(logits: Tensor, sets: cl.CredalSet, epoch: int | Tensor) -> Tensor:
        return logits.mean() * (math.nan if epoch == 2 else 1.0)

    with pytest.raises(cl.TrainingError, match=r"became nan in epoch 3 of 5, .* lower learning"):
        trained(network, inputs, labels, explode, Recipe(epochs=5), checkpoint=checkpoint)
    assert checkpoint.exists()  # the last good epoch is kept


def test_the_rate_reaches_the_optimizer() -> None:
    """SGD without momentum on a loss of slope 1 moves by the sum of the rates."""
    network = Network(nn.Identity(), num_features=1, num_heads=1, num_classes=2)
    recipe = Recipe(
        epochs=3, batch_size=2, optimizer="sgd", momentum=0, learning_rate=0.2, warmup_epochs=1
    )
    before = network.heads.bias.detach().clone()
    inputs, labels = torch.zeros(4, 1), cl.precise([[1.0, 0.0]] * 4)
    trained(network, inputs, labels, lambda logits, *_: logits[:, 0, 0].mean(), recipe)
    moved = (before - network.heads.bias.detach())[0].item()
    assert moved == pytest.approx(sum(recipe.rate_at(step / 2) for step in range(6)))


def test_optimizers_are_the_ones_asked_for() -> None:
    network = problem()[0]
    recipe = Recipe(optimizer="sgd", momentum=0.8, weight_decay=5e-4)
    sgd = make_optimizer(network, recipe, 0.3)
    assert isinstance(sgd, torch.optim.SGD)
    assert sgd.defaults["momentum"] == 0.8
    assert sgd.defaults["weight_decay"] == 5e-4
    assert sgd.defaults["nesterov"] is False
    adam = make_optimizer(network, Recipe(weight_decay=1e-3), 0.3)
    assert isinstance(adam, torch.optim.Adam)
    assert adam.defaults["weight_decay"] == 1e-3


def test_bfloat16_is_the_choice_on_a_gpu_only() -> None:
    for precision, device, low in (
        ("auto", "cpu", False),
        ("auto", "cuda", True),
        ("float32", "cuda", False),
        ("bfloat16", "cpu", True),
    ):
        recipe = Recipe(precision=precision)  # type: ignore[arg-type]
        assert _uses_bfloat16(recipe, torch.device(device)) == low


def test_the_loss_of_an_epoch_is_the_mean_over_items() -> None:
    network = Network(nn.Identity(), num_features=1, num_heads=1, num_classes=2)
    inputs = torch.arange(5.0)[:, None]  # batches of 3 and 2
    seen: list[float] = []

    def record(logits: Tensor, sets: cl.CredalSet, epoch: int | Tensor) -> Tensor:
        seen.extend(sets.lower[:, 0].tolist())
        return sets.lower[:, 0].mean() + 0 * logits.sum()

    labels = cl.LowerBounds(torch.tensor([[0.0], [0.1], [0.2], [0.3], [0.9]]).repeat(1, 2) / 2)
    (mean,) = trained(network, inputs, labels, record, Recipe(epochs=1, batch_size=3))
    assert len(seen) == 5
    assert mean == pytest.approx(0.15, abs=1e-6)


def test_labels_with_the_same_bounds_are_told_apart(tmp_path: Path) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    corners = torch.eye(3)[None].expand(10, 3, 3)
    other = torch.cat([corners, corners.mean(1, keepdim=True)], 1)

    def fit(points: Tensor) -> None:
        with seeded(CPU, 1, 0):
            network = Network(nn.Identity(), num_features=2, num_heads=2, num_classes=3)
        inputs, loss, recipe = torch.ones(10, 2), METHODS["pocc"].loss, Recipe(epochs=1)
        trained(network, inputs, cl.Vertices(points), loss, recipe, checkpoint=checkpoint)

    fit(corners)
    with pytest.raises(cl.TrainingError, match="another run: labels differ"):
        fit(other)


def test_other_first_weights_are_told_apart_with_a_hint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    run(Recipe(epochs=1), checkpoint=checkpoint)
    network, inputs, labels = problem()
    with torch.no_grad():
        network.heads.bias.add_(1)
    loss = METHODS["pocc"].loss
    with pytest.raises(
        cl.TrainingError, match=r"first weights differ\. To fix: random_state torch before"
    ):
        trained(network, inputs, labels, loss, Recipe(epochs=1), checkpoint=checkpoint)


def test_a_foreign_file_is_no_checkpoint(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    checkpoint = tmp_path / "resume.safetensors"
    save_file({"x": torch.zeros(1)}, checkpoint)
    with pytest.raises(cl.TrainingError, match="no checkpoint of this version"):
        run(Recipe(epochs=1), checkpoint=checkpoint)
    message = "is a folder where the file of a checkpoint should be. To fix: delete it"
    with pytest.raises(cl.TrainingError, match=message):
        run(Recipe(epochs=1), checkpoint=tmp_path)


@pytest.mark.parametrize("num_items", [1, 3, 21])
def test_batches_of_two_leave_no_single_item(num_items: int) -> None:
    network = Network(nn.BatchNorm1d(1), num_features=1, num_heads=1, num_classes=2)
    inputs, labels = torch.rand(num_items, 1), cl.precise([[1.0, 0.0]] * num_items)
    loss = METHODS["softmax"].loss
    if num_items == 1:
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            trained(network, inputs, labels, loss, Recipe(epochs=1))
    else:
        losses = trained(network, inputs, labels, loss, Recipe(epochs=1, batch_size=2))
        assert len(losses) == 1


@pytest.mark.parametrize("num_items", [2, 3, 21, 41])
def test_no_batch_is_tiny_and_every_item_is_seen(num_items: int) -> None:
    seen: list[Tensor] = []

    class Watch(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            seen.append(inputs[:, 0])
            return inputs

    network = Network(Watch(), num_features=1, num_heads=1, num_classes=2)
    inputs = torch.arange(float(num_items))[:, None]
    labels = cl.precise([[1.0, 0.0]] * num_items)
    trained(network, inputs, labels, METHODS["softmax"].loss, Recipe(epochs=4, batch_size=20))
    orders = torch.cat(seen).view(4, num_items).tolist()
    assert all(sorted(order) == list(range(num_items)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1  # another order every epoch
    assert all(1 < len(batch) <= 20 for batch in seen)


def test_bfloat16_trains_close_to_float32() -> None:
    low, full = (run(Recipe(epochs=3, precision=each)) for each in ("bfloat16", "float32"))
    assert low["heads.weight"].dtype == torch.float32
    difference = (low["heads.weight"] - full["heads.weight"]).abs().max()
    assert 0 < difference < 0.05
