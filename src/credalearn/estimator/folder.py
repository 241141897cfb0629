"""A trained model as a folder: ``model.safetensors`` and ``config.json``, and no code.

The weights' file holds the configuration too, so that a single rename puts a new model in the place
of an old one; ``config.json`` is a copy of it for people.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.files import whole_file

_FORMAT = 1


def write_model(folder: Path, *, config: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Write both files, each whole or not at all; what cannot be written changes nothing."""
    # Copies: tied weights share memory, which the format refuses.
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in weights.items()}
    content = {"format": _FORMAT, **config, "weights_sha256": _digest(copies)}
    text = json.dumps(content, indent=2, ensure_ascii=False, default=_plain)
    with whole_file(folder / "model.safetensors") as partial:
        save_file(copies, partial, metadata={"config": text})
    with whole_file(folder / "config.json") as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the weights.

    Raises:
        CredalError: If the file is missing, damaged or of another format.
    """
    path = folder / "model.safetensors"
    if not path.is_file():
        what = "model.safetensors is missing" if folder.is_dir() else "there is no such folder"
        inside = folder / "model"  # where a run has it
        fix = f" To fix: load {inside}." if (inside / path.name).is_file() else ""
        raise CredalError(f"{folder} holds no model: {what}.{fix}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        config: dict[str, Any] = json.loads(metadata.get("config", "{}"))
    except (SafetensorError, json.JSONDecodeError) as error:
        raise CredalError(f"{path} is damaged: {error}. To fix: save the model again.") from error
    if config.get("format") != _FORMAT:
        raise CredalError(f"{path} is no model of format {_FORMAT}, which this version reads.")
    if config.get("weights_sha256") != _digest(weights):
        raise CredalError(
            f"{path} is damaged: its weights are not those that were saved. To fix: save the "
            "model again."
        )
    return config, weights


def _digest(weights: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(weights[name].flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _plain(value: object) -> object:
    """Options as JSON holds them: NumPy's numbers, which grids hold, and devices."""
    return value.item() if isinstance(value, np.generic) else str(value)
