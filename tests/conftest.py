"""Settings shared by all tests."""

import hypothesis
import pytest
import torch

# torch's first call takes 400 ms, twice hypothesis's limit; CI must not be random.
hypothesis.settings.register_profile("repo", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repo")


@pytest.fixture
def generator() -> torch.Generator:
    """A fixed source of random numbers."""
    return torch.Generator().manual_seed(20261115)
