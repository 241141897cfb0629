"""How far an item's set is widened beside the others': the scales of the nonconformity.

A scale is a function of the chosen distribution alone, above 0, of shape (N, 1), one number an
item, or (N, K), one a class. Only its proportions matter: the radius makes up for a factor.

``benchmarks/conformal_scales.py`` measures what the sets come to. At 90 % coverage of the about 51
votes of CIFAR-10H, softmax's mean class-wise width is .45 unscaled, .23 by the entropy, .13 by
``"binomial"`` and .11 by ``"relative-variance"``. The entropy, the variance as it is and the width
of the predicted set were tried and left out: one of these gave narrower intervals everywhere.

Shapes: N items, K classes.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

Scale = Literal["relative-variance", "binomial", "top-probability", "none"]

# So that a class without any probability can be voted for, too. A floor of .001 gives 18 % narrower
# sets for 3 votes an image and 22 to 47 % wider ones for 51; one of .1 wider ones for both.
FLOOR = 0.01


def relative_variance(probs: Tensor) -> Tensor:
    r"""How probable a class is beside the first, shape (N, K): the narrowest intervals.

    :math:`p_k (1 - p_k) / \max_i p_i + 0.01`. Of the top class that is 1 − its probability.

    Example:
        >>> relative_variance(torch.tensor([[0.8, 0.2, 0.0]]))
        tensor([[0.2100, 0.2100, 0.0100]])
    """
    return probs * (1 - probs) / probs.amax(1, keepdim=True) + FLOOR


def binomial(probs: Tensor) -> Tensor:
    r"""A vote's standard deviation, class by class, shape (N, K).

    :math:`\sqrt{p_k (1 - p_k)} + 0.01`. A few per cent narrower than the relative variance where
    there are few classes and much disagreement.

    Example:
        >>> binomial(torch.tensor([[0.8, 0.2, 0.0]]))
        tensor([[0.4100, 0.4100, 0.0100]])
    """
    return (probs * (1 - probs)).clamp(min=0).sqrt() + FLOOR


def top_probability(probs: Tensor) -> Tensor:
    r"""How unsure the predicted class is, shape (N, 1): the smallest diameters.

    :math:`1 - \max_k p_k + 0.01`, the same for all classes of an item.

    Example:
        >>> top_probability(torch.tensor([[0.8, 0.2, 0.0]]))
        tensor([[0.2100]])
    """
    return 1 - probs.amax(1, keepdim=True) + FLOOR


def none(probs: Tensor) -> Tensor:
    """All items alike, shape (N, 1): the radius is then a probability.

    Example:
        >>> none(torch.tensor([[0.8, 0.2, 0.0]]))
        tensor([[1.]])
    """
    return torch.ones_like(probs[:, :1])


SCALES: dict[Scale, Callable[[Tensor], Tensor]] = {
    "relative-variance": relative_variance,
    "binomial": binomial,
    "top-probability": top_probability,
    "none": none,
}
