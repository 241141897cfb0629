"""A trained model as a folder: ``model.safetensors`` and ``config.json``, and no code.

The configuration is written last and holds the digest of the weights, so that a folder whose
writing was cut short is recognised, whatever it held before.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.files import whole_file

_FORMAT = 1


def write_model(folder: Path, *, config: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Write both files, each whole or not at all."""
    # Copies: tied weights share memory, which the format refuses.
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in weights.items()}
    path = folder / "model.safetensors"
    with whole_file(path) as partial:
        save_file(copies, partial)
    content = {"format": _FORMAT, **config, "weights_sha256": _digest(path)}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    with whole_file(folder / "config.json") as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the weights.

    Raises:
        CredalError: If a file is missing or damaged, or the folder was not written whole.
    """
    if not folder.is_dir():
        raise CredalError(f"{folder} holds no model: there is no such folder.")
    config_path, weights_path = folder / "config.json", folder / "model.safetensors"
    for path in (config_path, weights_path):
        if not path.is_file():
            raise CredalError(f"{folder} holds no model: {path.name} is missing.")
    try:
        config: dict[str, Any] = json.loads(config_path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CredalError(f"{config_path} is damaged: {error}.") from error
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise CredalError(
            f"{config_path} is not a model of format {_FORMAT}, which this version reads."
        )
    if config.get("weights_sha256") != _digest(weights_path):
        raise CredalError(
            f"{weights_path} is not what {config_path.name} describes: it is damaged, or writing "
            "the folder was cut short. To fix: save the model again."
        )
    return config, load_file(weights_path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
