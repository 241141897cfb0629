"""Checkpoints: resumed runs, damaged files, and checkpoints of other runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.train import Recipe, check_checkpoint, train
from small_training import run, same_weights, small_training


@pytest.mark.catches(
    "train/checkpoint.py",
    'optimizer.load_state_dict({"state": state, "param_groups": groups})',
    "state.clear()",
    case="1-adam",
)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_stopped_run_resumes_to_the_same_weights(
    optimizer: Any, stop_after: int, tmp_path: Path
) -> None:
    recipe = Recipe(epochs=4, batch_size=20, optimizer=optimizer, warmup_epochs=1)
    checkpoint = tmp_path / "resume.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(recipe, checkpoint=checkpoint, stop_after=stop_after)
    for _ in range(2):  # what is finished is not trained again
        assert same_weights(run(recipe, checkpoint=checkpoint), run(recipe))


def test_rejects_the_checkpoint_of_another_run(tmp_path: Path) -> None:
    corners = torch.eye(4).expand(97, 4, 4)
    more = torch.cat([corners, corners.mean(1, keepdim=True)], 1)  # within the same bounds
    first, whole, dropping, shifted = (
        replace(
            small_training(Recipe(epochs=2), checkpoint=tmp_path / "resume"),
            labels=cl.Vertices(corners),
        )
        for _ in range(4)
    )
    train([first])
    dropping.network.dropout.p = 0.3  # layers without weights count too
    with torch.no_grad():
        shifted.network.heads.bias.add_(1)
    for other, message in (
        (replace(whole, recipe=Recipe(epochs=3)), r"epochs \(2 there, 3 here\) differ"),
        (replace(whole, inputs=whole.inputs + 1), "inputs differ"),
        (replace(whole, labels=cl.Vertices(more)), "labels differ"),
        (replace(whole, loss=METHODS["softmax"].loss), r"method \(.*two_heads' there"),
        (dropping, "network differ"),
        (shifted, "first weights differ"),
    ):
        for use in (lambda job: train([job]), check_checkpoint):
            with pytest.raises(cl.TrainingError, match=f"belongs to another run: {message}"):
                use(other)


def test_a_failed_write_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "resume.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(Recipe(epochs=4), checkpoint=checkpoint, stop_after=2)
    whole = checkpoint.read_bytes()

    def half_written(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(whole[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("credalearn._tensors.save_file", half_written)
    with pytest.raises(OSError, match="No space left"):
        run(Recipe(epochs=4), checkpoint=checkpoint)
    assert checkpoint.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["resume.safetensors"]


def test_rejects_a_damaged_checkpoint_and_files_that_are_none(tmp_path: Path) -> None:
    checkpoint, other = tmp_path / "resume.safetensors", tmp_path / "other.safetensors"
    run(Recipe(epochs=2), checkpoint=checkpoint)
    whole = checkpoint.read_bytes()
    save_file({"x": torch.zeros(1)}, other)
    with pytest.raises(cl.TrainingError, match="is a folder"):
        run(Recipe(epochs=2), checkpoint=tmp_path)
    for content, message in (
        (whole[:-1], "is damaged"),
        (whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:], "is damaged"),  # one bit of a weight
        (other.read_bytes(), "not a checkpoint"),
    ):
        checkpoint.write_bytes(content)
        with pytest.raises(cl.TrainingError, match=message):
            run(Recipe(epochs=2), checkpoint=checkpoint)
