"""A bound on the Rademacher complexity of POCC's objective: how rich the last layer is.

Shapes: N items, D features, H heads, K classes.
"""

import math

from torch import Tensor

from credalearn.sets.checks import as_floats, require_shape


def last_layer_complexity(features: Tensor, weights: Tensor, biases: Tensor | None = None) -> float:
    r"""Rademacher complexity of the mean loss of H linear heads on fixed features: an upper bound.

    .. math:: \hat{\mathfrak R}_n \le \frac{1}{H}\sum_h \frac{2 \rho_h}{n}
              \sqrt{(K - 1)\sum_i (\lVert\phi_i\rVert^2 + 1)}

    for heads whose weights and bias, less their mean over the classes, have Frobenius norm at most
    :math:`\rho_h`, the norm of the given ones. The loss is √2-Lipschitz in the logits and does not
    change when a constant is added to them; vector contraction (Maurer, 2016, Theorem 3), then
    Cauchy–Schwarz and Jensen give the rest. It is one-sided, without the absolute value of the
    paper's definition; the paper's bound is valid with it. The backbone is left out: for a network
    trained end to end the value is too small, by an unknown amount.

    Args:
        features: Inputs of the heads, shape (N, D).
        weights: Weights of the heads, shape (H, K, D).
        biases: Biases, shape (H, K); None for heads without bias, which drops the + 1.

    Example:
        >>> import torch
        >>> round(last_layer_complexity(torch.ones(50, 1), torch.tensor([[[1.0], [-1.0]]])), 4)
        0.4
    """
    check_heads(features, weights, biases)
    squares = features.double().square().sum()
    centered = weights.double() - weights.double().mean(1, keepdim=True)
    norms = centered.square().sum((1, 2))
    if biases is not None:
        squares = squares + len(features)
        norms = norms + (biases.double() - biases.double().mean(1, keepdim=True)).square().sum(1)
    directions = weights.shape[1] - 1
    return float(2 * norms.sqrt().mean()) * math.sqrt(directions * float(squares)) / len(features)


def check_heads(features: Tensor, weights: Tensor, biases: Tensor | None) -> None:
    """Raise unless features (N, D), weights (H, K, D) and biases (H, K) are finite and fit."""
    features = as_floats(features, name="features", ndim=2)
    weights = as_floats(weights, name="weights", ndim=3)
    require_shape(weights, (*weights.shape[:2], features.shape[1]), name="weights")
    if biases is not None:
        require_shape(as_floats(biases, name="biases", ndim=2), weights.shape[:2], name="biases")
