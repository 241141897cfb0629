"""The paper's generalization bound, term by term, for a trained model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._checks import check_number
from credalearn._formats import percent
from credalearn.errors import CredalError
from credalearn.methods import Model, pocc_loss
from credalearn.methods.pocc import mean_of_two_heads, two_heads
from credalearn.nets import MLP
from credalearn.sets import CredalSet
from credalearn.sets._checks import as_floats, check_sets, require_shape
from credalearn.theory.objective import least_objective

if TYPE_CHECKING:
    from credalearn.classifier import CredalClassifier


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralizationBound:
    r"""How far the risk of POCC's averaged prediction can be above the best of its class.

    .. math:: R_0(\bar f) - \inf_f R_0(f) \le 4\mathfrak R_n
              + 2B\sqrt{\tfrac{\log(2/\delta)}{2n}} + \eta + L\,\mathbb E[d_Q]

    with probability 1 − δ (Wang and Chau, 2026, Theorem 1), for the risk R₀ under the true label
    distributions, which every label's set must contain. The ``statement`` lists the assumptions.
    Made by :func:`~credalearn.theory.generalization_bound`.

    Args:
        complexity: 4 times the Rademacher complexity of the objective, in nats, as are the next
            three; estimated, from the last layer alone.
        sampling: Term for the finite number of items; B is assumed for all items.
        optimization: η, the training objective less the least one; measured.
        imprecision: L times the mean total-variation diameter of the labels, both assumed for all
            items.
        items: n.
        num_classes: K.
        confidence: 1 − δ.
        loss_range: L, the largest difference between the losses of two classes.
        loss_bound: B, the largest cross-entropy.
        mean_diameter: Mean diameter of the labels, in [0, 1].

    Example:
        >>> import credalearn as cl
        >>> labels = cl.LowerBounds([[0.5, 0.0]] * 100)
        >>> bound = cl.theory.generalization_bound(torch.ones(100, 1), torch.zeros(2, 2, 1), labels)
        >>> print(bound.verdict)
        The bound is informative: 0.53 nats is below log K = 0.69, the risk of a uniform guess.
    """

    complexity: float
    sampling: float
    optimization: float
    imprecision: float
    items: int
    num_classes: int
    confidence: float
    loss_range: float
    loss_bound: float
    mean_diameter: float

    @property
    def total(self) -> float:
        """The right-hand side, in nats."""
        return self.complexity + self.sampling + self.optimization + self.imprecision

    @property
    def vacuous(self) -> bool:
        """Whether the total is log K or more, the risk of a uniform guess."""
        return self.total >= math.log(self.num_classes)

    @property
    def items_needed(self) -> int | None:
        """Items from which on it is not vacuous, all else equal; None if no number is enough."""
        # The first two terms fall as 1/√n, the other two do not.
        room = math.log(self.num_classes) - self.optimization - self.imprecision
        if room <= 0:
            return None
        share = (self.complexity + self.sampling) / room
        return math.floor(self.items * share**2) + 1

    @property
    def verdict(self) -> str:
        """Whether the bound is informative, and what it would take."""
        guess = f"log K = {math.log(self.num_classes):.2f}, the risk of a uniform guess"
        if not self.vacuous:
            return f"The bound is informative: {self.total:.2f} nats is below {guess}."
        text = f"The bound is vacuous: {self.total:.2f} nats is not below {guess}. "
        if self.items_needed is not None:
            count = int(float(f"{self.items_needed:.2g}"))  # an extrapolation has no more digits
            return f"{text}It would take about {count:,} items like these."
        fixed = self.optimization + self.imprecision
        return (
            f"{text}More items would not help: the last two terms, {fixed:.2f}, do not fall with "
            "n. To fix: use more precise labels, or a network whose logits range less."
        )

    @property
    def statement(self) -> str:
        """What the bound claims and what it assumes."""
        return (
            f"With {percent(self.confidence)} confidence, the risk of the averaged prediction is "
            f"at most {self.total:.2f} nats above the best of its class. This assumes that every "
            "label's set contains the true distribution and depends on its item alone, not on who "
            f"voted; that the mean diameter over all items is at most {self.mean_diameter:.3f}, as "
            f"here; that no two classes' losses differ by more than {self.loss_range:.2f} nats; "
            "and that the features and the norms of the heads were fixed before training. The "
            "confidence covers the draw of the items only."
        )


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
    features = as_floats(features, name="features", ndim=2)
    weights = as_floats(weights, name="weights", ndim=3)
    require_shape(weights, (*weights.shape[:2], features.shape[1]), name="weights")
    squares = features.double().square().sum()
    centered = weights.double() - weights.double().mean(1, keepdim=True)
    norms = centered.square().sum((1, 2))
    if biases is not None:
        require_shape(as_floats(biases, name="biases", ndim=2), weights.shape[:2], name="biases")
        squares = squares + len(features)
        norms = norms + (biases.double() - biases.double().mean(1, keepdim=True)).square().sum(1)
    directions = weights.shape[1] - 1
    return float(2 * norms.sqrt().mean()) * math.sqrt(directions * float(squares)) / len(features)


def generalization_bound(
    features: Tensor,
    weights: Tensor,
    labels: CredalSet,
    *,
    biases: Tensor | None = None,
    confidence: float = 0.95,
) -> GeneralizationBound:
    r"""The four terms of the paper's bound, from the training items and POCC's two trained heads.

    :func:`~credalearn.theory.last_layer_complexity` gives the complexity; n, δ and :math:`B =
    \log(1 + (K - 1)e^L)` the sampling term; the objective (half of :func:`~credalearn.pocc_loss`)
    less the mean of :func:`~credalearn.theory.least_objective` an upper bound on η; L and the mean
    diameter of the labels the imprecision. L is the largest range of an item's logits: twice the
    paper's A after the shift that makes A smallest, so B is at most the paper's :math:`\log K +
    2A`. All are measured on the training items and assumed for others. In float64.

    Args:
        features: Inputs of the heads for the training items, shape (N, D).
        weights: Weights of the pessimistic and the optimistic head, shape (2, K, D).
        labels: The sets the heads were trained on.
        biases: Biases of the heads, shape (2, K), or None.
        confidence: 1 − δ, in (0, 1).

    Example:
        >>> from credalearn import LowerBounds
        >>> labels = LowerBounds([[0.5, 0.0]] * 100)
        >>> bound = generalization_bound(torch.ones(100, 1), torch.zeros(2, 2, 1), labels)
        >>> bound.complexity, round(bound.sampling, 4), round(bound.optimization, 4)
        (0.0, 0.1883, 0.3466)
    """
    check_sets(labels)
    check_number(confidence, name="confidence", above=0, below=1)
    complexity = last_layer_complexity(features, weights, biases)
    num_items, num_classes = labels.shape
    if weights.shape[:2] != (2, num_classes) or len(features) != num_items or num_classes < 2:
        raise CredalError(
            "there must be two heads over two or more classes, and one row of features per label; "
            f"got weights {tuple(weights.shape)}, features {tuple(features.shape)} and labels "
            f"{labels.shape}."
        )
    logits = torch.einsum("nd,hkd->nhk", features.double(), weights.double())
    logits = logits if biases is None else logits + biases.double()
    exact = labels.to(device=logits.device, dtype=torch.float64)
    loss_range = float((logits.amax(2) - logits.amin(2)).max())
    # log(1 + (K − 1)e^L) without e^L, which overflows
    loss_bound = float(np.logaddexp(0.0, math.log(num_classes - 1) + loss_range))
    diameter = float(exact.diameter().mean())
    objective = float(pocc_loss(logits[:, 0], logits[:, 1], exact)) / 2
    least = float(least_objective(exact).mean())
    chance = math.sqrt(math.log(2 / (1 - confidence)) / (2 * num_items))
    return GeneralizationBound(
        complexity=4 * complexity,
        sampling=2 * loss_bound * chance,
        optimization=max(objective - least, 0.0),  # a perfect fit may be below by a rounding
        imprecision=loss_range * diameter,
        items=num_items,
        num_classes=num_classes,
        confidence=float(confidence),
        loss_range=loss_range,
        loss_bound=loss_bound,
        mean_diameter=diameter,
    )


def bound_of_model(
    model: Model | CredalClassifier,
    inputs: ArrayLike,
    labels: CredalSet,
    *,
    confidence: float = 0.95,
) -> GeneralizationBound:
    """:func:`generalization_bound` of a trained POCC: a fitted classifier, or its ``model_``.

    Args:
        model: One network with a pessimistic and an optimistic head.
        inputs: The training inputs, as they were fitted, shape (N, ...).
        labels: The sets they were fitted on.
        confidence: 1 − δ, in (0, 1).

    Example:
        >>> import credalearn as cl
        >>> inputs, labels = np.zeros((50, 2)), cl.from_votes([[1, 1, 0]] * 50)
        >>> clf = cl.CredalClassifier("pocc", epochs=1).fit(inputs, labels)
        >>> bound_of_model(clf, inputs, labels).items
        50
    """
    trained: object = getattr(model, "model_", model)
    if not isinstance(trained, Model):
        raise CredalError(
            "model must be a fitted CredalClassifier, or its model_; got "
            f"{type(model).__name__}. To fix: fit it first."
        )
    check_sets(labels)
    method, network = trained.method, trained.members[0]
    two_of_pocc = method.loss in (two_heads, mean_of_two_heads) and method.num_heads == 2
    if not two_of_pocc or len(trained.members) > 1 or method.num_passes > 1:
        raise CredalError(
            "the bound is about one network with POCC's two heads and their loss. To fix: fit with "
            "method='pocc' or 'pocc-mean'."
        )
    # A table is standardized in float64, as the classifier does.
    dtype = torch.float64 if isinstance(network.backbone, MLP) else torch.float32
    given = torch.as_tensor(np.asarray(inputs)).to(dtype)
    return generalization_bound(
        trained.outputs(given).features,
        network.heads.weight.detach().cpu().view(*network.shape, -1),
        labels.to("cpu"),
        biases=network.heads.bias.detach().cpu().view(network.shape),
        confidence=confidence,
    )
