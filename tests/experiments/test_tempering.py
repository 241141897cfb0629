"""One temperature, fitted on other items."""

import numpy as np
import pytest
import torch
from torch import Tensor

from credalearn.metrics import ece
from credalearn_experiments.tempering import fit_temperature, tempered_ece


def some_items(temperature: float, items: int = 4000) -> tuple[Tensor, Tensor]:
    """Logits whose softmax, divided by the temperature, is what the classes are drawn from."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(items, 5, generator=generator, dtype=torch.float64)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    return logits * temperature, y


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_is_found(temperature: float) -> None:
    logits, y = some_items(temperature)
    found = fit_temperature(logits, y)
    assert found == pytest.approx(temperature, rel=0.05)
    grid = np.exp(np.linspace(-2, 2, 400))
    losses = [float(torch.nn.functional.cross_entropy(logits / t, y)) for t in grid]
    assert found == pytest.approx(grid[np.argmin(losses)], rel=0.02)


@pytest.mark.parametrize("temperature", [0.3, 2.5])
def test_tempering_removes_the_calibration_error(temperature: float) -> None:
    logits, y = some_items(temperature)
    probs = logits.softmax(1)
    assert ece(probs, y) > 0.1
    assert tempered_ece(probs, y) < 0.03


def test_probabilities_of_zero_are_allowed() -> None:
    probs = torch.eye(3).repeat(4, 1)
    y = torch.tensor([0, 1, 2] * 3 + [1, 1, 1])
    assert 0 <= tempered_ece(probs, y) <= 1
