"""How much an item's set is widened compared with the others: the scales of the nonconformity.

A scale is a function of the chosen distribution alone, above 0, of shape (N, 1), one number per
item, or (N, K), one per class. Only its proportions matter: the radius makes up for a factor.

``benchmarks/conformal_scales.py`` measures the resulting sets. At 90 % coverage of the about 51
votes of CIFAR-10H, softmax's mean class-wise width is .45 unscaled, .23 by the entropy, .13 by
``"binomial"`` and .11 by ``"relative-variance"``. The entropy, the variance as it is and the width
of the predicted set were tried and left out: one of these gave narrower intervals everywhere.

Shapes: N items, K classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from credalearn.conformal.inflation import Distance, Scale

# So that a class without any probability can be voted for, too. A floor of .001 gives 18 % narrower
# sets for 3 votes per image and 22 to 47 % wider ones for 51; one of .1 wider ones for both.
FLOOR = 0.01


def relative_variance(probs: Tensor) -> Tensor:
    r""":math:`p_k (1 - p_k) / \max_i p_i + 0.01`, shape (N, K): the narrowest intervals.

    For the top class that is 1 − its probability.
    """
    return probs * (1 - probs) / probs.amax(1, keepdim=True) + FLOOR


def binomial(probs: Tensor) -> Tensor:
    r"""A vote's standard deviation by class, :math:`\sqrt{p_k (1 - p_k)} + 0.01`, shape (N, K).

    A few percent narrower than the relative variance with few classes and much disagreement.
    """
    return (probs * (1 - probs)).clamp(min=0).sqrt() + FLOOR


def top_probability(probs: Tensor) -> Tensor:
    r""":math:`1 - \max_k p_k + 0.01`, the same for all classes, shape (N, 1): small diameters."""
    return 1 - probs.amax(1, keepdim=True) + FLOOR


def none(probs: Tensor) -> Tensor:
    """1 for all items, shape (N, 1): the radius is then a probability."""
    return torch.ones_like(probs[:, :1])


SCALES: dict[Scale, Callable[[Tensor], Tensor]] = {
    "relative-variance": relative_variance,
    "binomial": binomial,
    "top-probability": top_probability,
    "none": none,
}


def scale_of(probs: Tensor, distance: Distance, scale: Scale) -> Tensor:
    """The scale as the distance takes it, shape (N, 1) or (N, K); for total variation (N, 1)."""
    factor = SCALES[scale](probs)
    if distance == "total-variation" and factor.shape[1] > 1:
        return factor.sum(1, keepdim=True) / 2  # the distance of two whose classes are off by s
    return factor
