"""A trained model as a folder: ``model.safetensors`` and ``config.json``, and no code.

The file of weights contains the configuration too, so that a single rename replaces a model;
``config.json`` is a copy for people.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from credalearn._files import whole_file
from credalearn._tensors import damaged, digest_of, read_tensors, write_tensors
from credalearn.errors import CredalError

_FORMAT = 1
_AGAIN = "save the model again"
_ANY_ITEM = 1 << 16  # features that a network of few weights may take
_LARGEST_ITEM = 1 << 24  # numbers: an RGB image of 2,364 pixels a side


def write_model(folder: Path, *, config: dict[str, Any], weights: dict[str, Tensor]) -> None:
    """Write both files, each whole or not at all."""
    content = {"format": _FORMAT, **config, "weights_sha256": digest_of(weights)}
    content = json.loads(json.dumps(content, default=_plain))
    content["config_sha256"] = _digest(content)
    text = json.dumps(content, indent=2, ensure_ascii=False)
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
        config = json.loads(metadata.get("config", "{}"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error), fix=_AGAIN) from error
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise CredalError(
            f"{path} is not a model of format {_FORMAT}, which this version reads. To fix: "
            f"{_AGAIN}, with this version."
        )
    if config.get("weights_sha256") != digest_of(weights):
        raise damaged(path, "its weights are not those that were saved", fix=_AGAIN)
    if config.pop("config_sha256", None) != _digest(config):
        raise damaged(path, "its configuration is not the one that was saved", fix=_AGAIN)
    if not _is_shape(config.get("input_shape"), sum(x.numel() for x in weights.values())):
        raise damaged(path, "the shape of its inputs is not one of its network", fix=_AGAIN)
    params = config.get("params")
    params = params if isinstance(params, dict) else {}
    seed = params.get("random_state")
    if not isinstance(seed, int) or not 0 <= seed < 1 << 63 or params.get("device") != "auto":
        raise damaged(path, "its options are not those of a classifier", fix=_AGAIN)
    names = config.get("classes")
    if not isinstance(names, list) or any(isinstance(name, list | dict) for name in names):
        raise damaged(path, "its classes are not a list of names", fix=_AGAIN)
    return config, weights


def _is_shape(shape: object, num_weights: int) -> bool:
    """Whether items may have this shape; a forged one would fill the memory."""
    if (
        not isinstance(shape, list)
        or not shape
        or not all(type(size) is int and size > 0 for size in shape)
    ):
        return False
    most = max(num_weights, _ANY_ITEM) if len(shape) == 1 else _LARGEST_ITEM
    return math.prod(shape) <= most


def _digest(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _plain(value: object) -> object:
    """Options as JSON has them: NumPy's numbers, which parameter grids contain, and devices."""
    return value.item() if isinstance(value, np.generic) else str(value)
