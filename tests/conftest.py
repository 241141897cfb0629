"""Settings shared by all tests."""

import gc
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
import torch

import torchvision_shim  # noqa: F401  # before torchmetrics

# torch's first call takes 400 ms, twice hypothesis's limit; CI must not be random.
hypothesis.settings.register_profile("repo", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repo")


# Small tensors: threads that wait for each other cost more than they bring on a busy machine.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # and in the processes that tests start


def pytest_collection_finish() -> None:
    """What is loaded by now stays: to look through it for garbage takes a tenth of the time."""
    gc.freeze()


@pytest.fixture
def generator() -> torch.Generator:
    """A fixed source of random numbers."""
    return torch.Generator().manual_seed(20261115)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file and gives its path."""

    def to(content: str | bytes, name: str = "votes.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to
