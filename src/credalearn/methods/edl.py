r"""Evidential deep learning (Sensoy, Kaplan and Kandemir, 2018).

The network gives a Dirichlet distribution, :math:`\alpha = \mathrm{softplus}(z) + 1`.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus

from credalearn.methods.base import Method, Outputs, State, dirichlet
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet

_RISE = 10  # epochs over which a penalty rises to its full weight


def edl_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:
    r"""Evidential loss of logits (N, 1, K) on the one-hot top class of each label's reference.

    The top class is the first of equally probable ones.

    .. math:: \sum_k y_k(\log S - \log\alpha_k)
              + \lambda\,\mathrm{KL}(\mathrm{Dir}(\tilde\alpha) \| \mathrm{Dir}(1)),
              \quad \tilde\alpha = y + (1 - y)\alpha

    a mean over items, with :math:`S = \sum_k \alpha_k` and λ rising to 1 over ten epochs.
    """
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
    """The Dirichlet of the one head; its mean gives class and probabilities."""
    return dirichlet(concentration(outputs.logits[:, 0, 0]))


def _evidential(logits: Tensor, y: Tensor, epoch: int | Tensor) -> Tensor:
    alpha = concentration(logits)
    fit = (y * (alpha.sum(1, keepdim=True).log() - alpha.log())).sum(1)
    return (fit + rising(epoch) * _divergence_from_uniform(y + (1 - y) * alpha)).mean()


def _divergence_from_uniform(alpha: Tensor) -> Tensor:
    """KL(Dir(α) ‖ Dir(1)), shape (N,)."""
    total = alpha.sum(1, keepdim=True)
    spread = (alpha - 1) * (alpha.digamma() - total.digamma())
    return (
        total.lgamma()[:, 0] - math.lgamma(alpha.shape[1]) - alpha.lgamma().sum(1) + spread.sum(1)
    )


EDL = Method(loss=edl_loss, predictions=mean_of_dirichlet, score="evidence")
EDL_SOFT = Method(loss=edl_soft_loss, predictions=mean_of_dirichlet, score="evidence")
