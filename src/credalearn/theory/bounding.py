"""The terms of the generalization bound from what training left behind.

Shapes: N items, D features, K classes; the two heads in the order pessimistic, optimistic.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._formats import check_share
from credalearn.errors import CredalError
from credalearn.methods import Model, pocc_loss
from credalearn.sets import CredalSet
from credalearn.sets.checks import check_sets
from credalearn.theory.attainable import least_objective
from credalearn.theory.bound import BoundTerm, GeneralisationBound
from credalearn.theory.rademacher import check_heads, last_layer_complexity
from credalearn.theory.trained import features_of, the_network

if TYPE_CHECKING:
    from credalearn.estimator import CredalClassifier


def generalization_bound(
    features: Tensor,
    weights: Tensor,
    labels: CredalSet,
    *,
    biases: Tensor | None = None,
    confidence: float = 0.95,
) -> GeneralisationBound:
    r"""The four terms of the paper's bound, from the training items and POCC's two trained heads.

    =============  ===========================================================================
    term           from
    =============  ===========================================================================
    complexity     :func:`~credalearn.theory.last_layer_complexity`: the backbone is left out
    sampling       n, δ and :math:`B = \log(1 + (K - 1)e^L)`
    optimization   the objective less the mean of
                   :func:`~credalearn.theory.least_objective`: an upper bound on η
    imprecision    L and the mean diameter of the labels
    =============  ===========================================================================

    L is the largest range (maximum less minimum over the classes) of an item's logits: twice the
    paper's A after the shift of the item's logits that makes A smallest. A softmax whose logits
    range over L has no probability below :math:`1/(1 + (K - 1)e^L)`, so this B is what the theorem
    asks for, and is below the paper's :math:`\log K + 2A` by up to :math:`\log\frac{K}{K-1}`. Both
    are the training items' own; that they hold for every other item and every network of the class
    is assumed. The mean diameter is taken for that of all items, without a term for chance, and the
    norms of the trained heads for limits chosen before training. The objective is half of
    :func:`~credalearn.pocc_loss`, whichever of the two was trained on, and so is its gap. In
    float64.

    Args:
        features: What the heads see of the training items, shape (N, D).
        weights: Of the pessimistic and the optimistic head, shape (2, K, D).
        labels: The sets the heads were trained on.
        biases: Of the heads, shape (2, K), or None.
        confidence: 1 − δ, in (0, 1).

    Raises:
        CredalError: If these are no tensors or no sets, the shapes do not fit, there is one class
            only, or confidence is no probability.

    Example:
        Heads of zeros say 50/50 on every item: the range L is 0, B = log 2, and the objective of
        log 2 is log 2 / 2 above the least one for labels "at least 0.5 for the first class".

        >>> from credalearn import LowerBounds
        >>> labels = LowerBounds([[0.5, 0.0]] * 100)
        >>> bound = generalization_bound(torch.ones(100, 1), torch.zeros(2, 2, 1), labels)
        >>> [round(term.value, 4) for term in bound.terms]
        [0.0, 0.1883, 0.3466, 0.0]
    """
    check_heads(features, weights, biases)
    check_sets(labels)
    check_share(confidence, name="confidence")
    num_items, num_classes = labels.shape
    if weights.shape[:2] != (2, num_classes) or len(features) != num_items or num_classes < 2:
        raise CredalError(
            "there must be two heads over the labels' two or more classes, and one row of features "
            f"a label; got weights {tuple(weights.shape)}, features {tuple(features.shape)} and "
            f"labels {labels.shape}."
        )
    logits = _logits(features, weights, biases)
    exact = labels.to(device=logits.device, dtype=torch.float64)
    loss_range = float((logits.amax(2) - logits.amin(2)).max())
    # log(1 + (K − 1)e^L) without e^L, which overflows
    loss_bound = float(np.logaddexp(0.0, math.log(num_classes - 1) + loss_range))
    mean_diameter = float(exact.diameter().mean())
    objective = float(pocc_loss(logits[:, 0], logits[:, 1], exact)) / 2
    least = float(least_objective(exact).mean())
    return GeneralisationBound(
        complexity=_complexity(last_layer_complexity(features, weights, biases)),
        sampling=_sampling(loss_bound, num_items, confidence),
        optimization=_optimization(objective, least),
        imprecision=_imprecision(loss_range, mean_diameter),
        items=num_items,
        num_classes=num_classes,
        confidence=float(confidence),
        loss_range=loss_range,
        loss_bound=loss_bound,
        mean_diameter=mean_diameter,
    )


def bound_of_model(
    model: Model | CredalClassifier,
    inputs: ArrayLike,
    labels: CredalSet,
    *,
    confidence: float = 0.95,
) -> GeneralisationBound:
    """:func:`generalization_bound` of a trained POCC: a fitted classifier, or its ``model_``.

    The losses of its heads may have been summed (``"pocc"``) or averaged (``"pocc-mean"``): the
    bound is about the trained heads, and takes their objective anew.

    Args:
        model: One network with a pessimistic and an optimistic head.
        inputs: The training inputs, as they were fitted, shape (N, ...).
        labels: The sets they were fitted on.
        confidence: 1 − δ, in (0, 1).

    Raises:
        CredalError: If the model is another method's, the inputs are not what it was fitted on, and
            as :func:`generalization_bound`.

    Example:
        >>> from torch import nn
        >>> from credalearn import LowerBounds
        >>> from credalearn.methods import METHODS
        >>> from credalearn.nets import Network
        >>> network = Network(nn.Identity(), num_features=2, num_heads=2, num_classes=3)
        >>> model = Model(METHODS["pocc"], (network,), {}, random_state=0)
        >>> bound = bound_of_model(model, torch.zeros(50, 2), LowerBounds(torch.zeros(50, 3)))
        >>> bound.items, bound.mean_diameter
        (50, 1.0)
    """
    trained = getattr(model, "model_", model)
    network = the_network(trained)
    check_sets(labels)
    return generalization_bound(
        features_of(trained, inputs),
        network.heads.weight.detach().cpu().view(*network.shape, -1),
        labels.to("cpu"),
        biases=network.heads.bias.detach().cpu().view(network.shape),
        confidence=confidence,
    )


def _logits(features: Tensor, weights: Tensor, biases: Tensor | None) -> Tensor:
    """Of both heads, shape (N, 2, K), in float64."""
    logits = torch.einsum("nd,hkd->nhk", features.double(), weights.double())
    return logits if biases is None else logits + biases.double()


def _complexity(rademacher: float) -> BoundTerm:
    return BoundTerm(
        "model class",
        4 * rademacher,
        "4 · Rademacher complexity",
        "estimated",
        "last layer only, the backbone taken as fixed; the class is of heads with norms up to "
        "the trained ones', as if chosen before training; Maurer's vector contraction",
    )


def _sampling(loss_bound: float, num_items: int, confidence: float) -> BoundTerm:
    return BoundTerm(
        "finite sample",
        2 * loss_bound * math.sqrt(math.log(2 / (1 - confidence)) / (2 * num_items)),
        "2B · √(log(2/δ) / 2n)",
        "assumed",
        f"n = {num_items:,}, δ = {1 - confidence:.2g}; B = {loss_bound:.2f} from the largest "
        "range of logits on the training items, assumed for all others",
    )


def _optimization(objective: float, least: float) -> BoundTerm:
    return BoundTerm(
        "optimization gap",
        max(objective - least, 0.0),  # a perfect fit may be below by a rounding
        "η",
        "measured",
        f"at most the objective, {objective:.3f}, less the least that any predictor reaches "
        f"on these labels, {least:.3f}",
    )


def _imprecision(loss_range: float, mean_diameter: float) -> BoundTerm:
    return BoundTerm(
        "annotation imprecision",
        loss_range * mean_diameter,
        "L · mean diameter",
        "assumed",
        f"mean diameter {mean_diameter:.3f} and L = {loss_range:.2f}, the largest range of "
        "logits, both measured on the training items and assumed for all others",
    )
