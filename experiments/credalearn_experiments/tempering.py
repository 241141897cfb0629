"""Calibration error after one temperature, which any method can have.

Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017. Shapes: N items, K classes.
"""

import math

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from credalearn.metrics import ece
from credalearn_experiments.data.cifar import split_in_two

_FLOOR = 1e-12  # below, float32 probabilities are 0 and have no logarithm
_RANGE = (math.log(0.05), math.log(20.0))  # of the logarithm of the temperature


def tempered_ece(probs: Tensor, y: Tensor) -> float:
    """The calibration error of each half of the items, tempered by the other half; their mean.

    The temperature minimizes the negative log-likelihood of the true classes (N,). It is fitted to
    items like those of the test, so this is the best case for every method.
    """
    halves = split_in_two(len(y), len(y) // 2)
    logits, y = probs.double().cpu().clamp(min=_FLOOR).log(), y.cpu()
    errors = [
        ece((logits[test] / fit_temperature(logits[rest], y[rest])).softmax(1), y[test])
        for rest, test in (halves, halves[::-1])
    ]
    return sum(errors) / 2


def fit_temperature(logits: Tensor, y: Tensor) -> float:
    """The number T that makes softmax(logits / T) (N, K) most likely; between 0.05 and 20."""

    def loss(log_t: float) -> float:
        return float(torch.nn.functional.cross_entropy(logits / math.exp(log_t), y))

    # Convex in 1 / T, so a search of the interval finds the minimum.
    return math.exp(minimize_scalar(loss, bounds=_RANGE, method="bounded").x)
