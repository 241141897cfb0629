"""A trained model as a folder: ``model.safetensors`` and ``config.json``, and no code.

The file of weights contains the configuration too, so that a single rename replaces a model;
``config.json`` is a copy for people.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from credalearn._files import whole_file
from credalearn._tensors import damaged, digest_of, read_tensors, write_tensors
from credalearn.errors import CredalError

_FORMAT = 1
_AGAIN = "save the model again"


def write_model(folder: Path, *, config: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Write both files, each whole or not at all."""
    content = {"format": _FORMAT, **config, "weights_sha256": digest_of(weights)}
    text = json.dumps(content, indent=2, ensure_ascii=False, default=_plain)
    write_tensors(folder / "model.safetensors", weights, metadata={"config": text})
    with whole_file(folder / "config.json") as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the weights."""
    path = folder / "model.safetensors"
    if not path.is_file():
        what = "model.safetensors is missing" if folder.is_dir() else "there is no such folder"
        raise CredalError(
            f"{folder} contains no model: {what}. To fix: name the folder that a classifier was "
            "saved to; in the folder of a run it is called model."
        )
    weights, metadata = read_tensors(path, fix=_AGAIN)
    try:
        config: dict[str, Any] = json.loads(metadata.get("config", "{}"))
    except json.JSONDecodeError as error:
        raise damaged(path, str(error), fix=_AGAIN) from error
    if config.get("format") != _FORMAT:
        raise CredalError(
            f"{path} is not a model of format {_FORMAT}, which this version reads. To fix: "
            f"{_AGAIN}, with this version."
        )
    if config.get("weights_sha256") != digest_of(weights):
        raise damaged(path, "its weights are not those that were saved", fix=_AGAIN)
    return config, weights


def _plain(value: object) -> object:
    """Options as JSON has them: NumPy's numbers, which parameter grids contain, and devices."""
    return value.item() if isinstance(value, np.generic) else str(value)
