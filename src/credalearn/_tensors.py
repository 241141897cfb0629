"""Tensors in one safetensors file: written whole or not at all, read without running code."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from credalearn._files import whole_file
from credalearn.errors import CredalError


def write_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    *,
    metadata: dict[str, str] | None = None,
    other: str | None = "name another file",
) -> None:
    """Write tensors, from any device and in any memory order, and texts that belong to them."""
    # Copies: tied weights share memory, which the format refuses.
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    with whole_file(path, other=other) as partial:
        save_file(copies, partial, metadata=metadata)


def read_tensors(path: Path, *, fix: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, on the CPU, and its texts; ``fix`` is the remedy if it is damaged."""
    if not path.is_file():
        raise CredalError(f"there is no file {path}. To fix: {fix}.")
    content = path.read_bytes()  # by its path, safetensors opens a file twice
    try:
        tensors = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return tensors, header.get("__metadata__", {})
    except SafetensorError as error:
        raise damaged(path, str(error), fix=fix) from error


def by_part(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Tensors by their names up to the first dot, and then by the rest of their names."""
    parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    return parts


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of the names and values of tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        flat = tensors[name].detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def damaged(path: Path, why: str, *, fix: str) -> CredalError:
    """The error to raise about a file that is not as it was written."""
    return CredalError(f"{path} is damaged ({why}). To fix: {fix}.")
