"""Evidential deep learning (Sensoy, Kaplan and Kandemir, 2018), and DAPPr (Ni et al., 2026).

The networks give a Dirichlet distribution; docs/methods.md has the formulas of their losses.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus

from credalearn.methods.base import Method, Outputs, State
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet

_RISE = 10  # epochs over which a penalty rises to its full weight
_PENALTY = 2e-4  # that full weight, of DAPPr
_FLOOR = 1e-8


def edl_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:
    """Evidential loss of logits (N, 1, K) on the one-hot top class of each label's reference."""
    reference = labels.reference
    y = one_hot(reference.argmax(1), reference.shape[1])
    return _evidential(logits[:, 0], y.to(logits.dtype), epoch)


def edl_soft_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:
    """:func:`edl_loss` with the soft label itself as y."""
    return _evidential(logits[:, 0], labels.reference.to(logits.dtype), epoch)


def rising(epoch: int | Tensor) -> Tensor:
    """The share of its full weight that a penalty has: from 0 to 1 over ten epochs."""
    return (torch.as_tensor(epoch, dtype=torch.float64) / _RISE).clamp(max=1)


def concentration(logits: Tensor) -> Tensor:
    """Dirichlet parameters softplus(z) + 1 of logits (N, K)."""
    return softplus(logits) + 1


def mean_of_dirichlet(outputs: Outputs, state: State) -> CredalPredictions:  # noqa: ARG001
    """The Dirichlet of the one head; its mean, a single point, gives class and probabilities."""
    alpha = concentration(outputs.logits[:, 0, 0])
    mean = alpha / alpha.sum(1, keepdim=True)
    return CredalPredictions(mean, mean, mean, concentration=alpha)


def _evidential(logits: Tensor, y: Tensor, epoch: int | Tensor) -> Tensor:
    alpha = concentration(logits)
    fit = (y * (alpha.sum(1, keepdim=True).log() - alpha.log())).sum(1)
    # The penalty is KL(Dir(α) ‖ Dir(1)) without the evidence for y.
    alpha = y + (1 - y) * alpha
    total = alpha.sum(1, keepdim=True)
    spread = ((alpha - 1) * (alpha.digamma() - total.digamma())).sum(1)
    constant = total.lgamma()[:, 0] - math.lgamma(alpha.shape[1]) - alpha.lgamma().sum(1)
    return (fit + rising(epoch) * (constant + spread)).mean()


def dappr_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:
    """DAPPr's loss of logits (N, 1, K) on each label's reference q, a mean over items."""
    q = labels.reference.to(logits.dtype)
    alpha = concentration(logits[:, 0])
    total = alpha.sum(1)
    mode = (alpha - q).detach().clamp(min=0) + _FLOOR  # a q of 1 may be 1.000001 by rounding
    mode = mode / mode.sum(1, keepdim=True)
    fit = total * total.log() + (alpha * (mode.log() - alpha.log())).sum(1)
    penalty = ((1 - q) * alpha).square().sum(1)
    return (fit + _PENALTY * rising(epoch) * penalty).mean()


EDL = Method(loss=edl_loss, predictions=mean_of_dirichlet, score="evidence")
EDL_SOFT = Method(loss=edl_soft_loss, predictions=mean_of_dirichlet, score="evidence")
DAPPR = Method(loss=dappr_loss, predictions=mean_of_dirichlet, score="evidence")
