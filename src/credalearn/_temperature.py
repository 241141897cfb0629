"""One temperature for predicted probabilities."""

import math

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

_LARGEST = 20.0  # and the smallest is its inverse


def fit_temperature(probs: Tensor, target: Tensor, *, weight: Tensor | None = None) -> float:
    """The T in [0.05, 20] whose p^(1/T) fit the targets (N, K) best (Guo et al., 2017)."""
    # Targets are smoothed by one of n + 1 items, as Platt (1999) does: where all of n predictions
    # are right, the best T without it would be 0. Exact up to 1e-4 of log T: convex in 1/T.
    logits, wanted = log_probs(probs), target.double()
    weights = torch.ones(len(logits), dtype=torch.float64) if weight is None else weight.double()
    count = weights.sum() ** 2 / weights.square().sum()  # of equal weights that tell as much
    wanted = (count * wanted + 1 / wanted.shape[1]) / (count + 1)

    def cost(log_temperature: float) -> float:
        costs = -(wanted * (logits / math.exp(log_temperature)).log_softmax(1)).sum(1)
        return float(costs @ weights)

    limit = math.log(_LARGEST)
    found = minimize_scalar(cost, bounds=(-limit, limit), method="bounded", options={"xatol": 1e-4})
    return math.exp(found.x)


def log_probs(probs: Tensor) -> Tensor:
    """Logarithms in float64; a probability of 0 counts as the smallest that float32 has."""
    return probs.double().clamp(min=1e-38).log()


def temper(probs: Tensor, temperature: float) -> Tensor:
    """Probabilities (…, K) with their logits divided by the temperature."""
    return (log_probs(probs) / temperature).softmax(-1).to(probs.dtype)
