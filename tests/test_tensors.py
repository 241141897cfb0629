"""Tensors in files: any memory order, read back unchanged; damage is reported in one way."""

from pathlib import Path

import torch
from torch import nn

from credalearn._tensors import read_tensors, write_tensors


def test_every_memory_order_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.safetensors"
    rows = torch.arange(24.0).reshape(4, 6)
    images = torch.arange(48).reshape(2, 2, 3, 4)
    tensors = {
        "transposed": rows.T,
        "every second": rows[:, ::2],
        "one row for all": rows[:1].expand(3, 6),
        "channels last": images.to(memory_format=torch.channels_last),
        "shared": rows,
        "a number": torch.tensor(True),
        "learned": nn.Parameter(rows),
    }
    write_tensors(path, tensors, metadata={"by": "us"})
    found, metadata = read_tensors(path, fix="write it again")
    assert metadata == {"by": "us"}
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name
        assert found[name].dtype == tensor.dtype
    write_tensors(path, {"x": rows})
    assert read_tensors(path, fix="write it again")[1] == {}
    assert [each.name for each in path.parent.iterdir()] == [path.name]
