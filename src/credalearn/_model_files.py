"""A trained model as a folder: ``model.safetensors`` and ``config.json``, and no code.

The file of weights contains the configuration too, so that a single rename replaces a model;
``config.json`` is a copy for people.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
from torch import Tensor

from credalearn._files import digest_of_json, whole_file
from credalearn._selection import Choice
from credalearn._table_encoder import Column
from credalearn._tensors import damaged, digest_of, read_tensors, write_tensors
from credalearn._text_encoder import TextEncoder
from credalearn.errors import CredalError
from credalearn.methods import Model

_FORMAT = 1
_AGAIN = "save the model again"
_ANY_ITEM = 1 << 16  # features that a network of few weights may take
_LARGEST_ITEM = 1 << 24  # numbers: an RGB image of 2,364 pixels a side


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """A classifier without its weights; validated when it is read."""

    params: dict[str, Any]  # None for code of the user
    classes: list[str | bool | int | float]
    classes_dtype: str
    input_shape: tuple[int, ...]
    encoder: tuple[Column, ...] | TextEncoder | None
    choice: Choice | None
    temperatures: dict[str, float]
    num_features: int
    feature_names: list[str] | None
    loss_curve: list[float]
    versions: dict[str, str]

    def __post_init__(self) -> None:
        seed = self.params.get("random_state")
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 63:
            raise CredalError(f"random_state must be 0 or more; got {seed!r}.")
        if self.params.get("device") != "auto":
            raise CredalError("the device must be 'auto'.")
        if not all(0 < each < math.inf for each in self.temperatures.values()):
            raise CredalError(f"a temperature must be above 0; got {self.temperatures}.")
        if not self.input_shape or min(self.input_shape) < 1 or len(self.temperatures) != 2:
            raise CredalError("the shape of the inputs or a temperature is missing.")


def write_model(folder: Path, config: ModelConfig, model: Model) -> None:
    """Write both files, each whole or not at all."""
    tensors = {f"state.{name}": tensor for name, tensor in model.state.items()}
    for number, member in enumerate(model.members):
        weights = member.state_dict().items()
        tensors |= {f"member{number}.{name}": tensor for name, tensor in weights}
    content = {"format": _FORMAT, **asdict(config), "weights_sha256": digest_of(tensors)}
    # Parameter grids contain NumPy's numbers.
    plain = json.dumps(content, default=lambda x: x.item() if isinstance(x, np.generic) else str(x))
    content = json.loads(plain)
    content["config_sha256"] = digest_of_json(content)
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_tensors(folder / "model.safetensors", tensors, metadata={"config": text})
    with whole_file(folder / "config.json") as partial:
        partial.write_text(text + "\n", encoding="utf-8")


def read_model(folder: Path) -> tuple[ModelConfig, dict[str, Tensor], str]:
    """The configuration, the tensors and their SHA-256."""
    import msgspec  # here, so that training does not need it

    path = folder / "model.safetensors"
    if not path.is_file():
        what = "model.safetensors is missing" if folder.is_dir() else "there is no such folder"
        raise CredalError(
            f"{folder} contains no model: {what}. To fix: name the folder that a classifier was "
            "saved to; in the folder of a run it is called model."
        )
    tensors, metadata = read_tensors(path, fix=_AGAIN)
    try:
        content = msgspec.json.decode(metadata.get("config", "{}"), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(path, str(error), fix=_AGAIN) from error
    if content.get("format") != _FORMAT:
        raise CredalError(
            f"{path} is not a model of format {_FORMAT}, which this version reads. To fix: "
            f"{_AGAIN}, with this version."
        )
    digest = digest_of(tensors)
    if content.get("weights_sha256") != digest:
        raise damaged(path, "its weights are not those that were saved", fix=_AGAIN)
    if content.pop("config_sha256", None) != digest_of_json(content):
        raise damaged(path, "its configuration is not the one that was saved", fix=_AGAIN)
    try:
        config = msgspec.convert(content, ModelConfig)
    except msgspec.ValidationError as error:
        raise other_version(path, error) from error
    # A forged shape would fill the memory.
    num_weights = sum(each.numel() for each in tensors.values())
    most = max(num_weights, _ANY_ITEM) if len(config.input_shape) == 1 else _LARGEST_ITEM
    columns = config.encoder if isinstance(config.encoder, tuple) else ()
    width = (sum(len(each.names) for each in columns),)
    if math.prod(config.input_shape) > most or (columns and config.input_shape != width):
        raise damaged(path, "the shape of its inputs is not one of its network", fix=_AGAIN)
    return config, tensors, digest


def other_version(place: str | Path, why: Exception) -> CredalError:
    """The error to raise about a model with other content."""
    fix = "load it with that version, or train and save it with this one"
    return CredalError(
        f"{place} was written by another version: {shorten(str(why), 200)} To fix: {fix}."
    )
