r"""Dirichlet-approximated possibilistic posterior predictions, DAPPr.

The network gives a Dirichlet distribution, :math:`\alpha = \mathrm{softplus}(z) + 1`.
"""

from torch import Tensor

from credalearn.methods.base import Method
from credalearn.methods.edl import concentration, mean_of_dirichlet, rising
from credalearn.sets import CredalSet

_PENALTY = 2e-4
_FLOOR = 1e-8


def dappr_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:
    r"""DAPPr's loss of logits (N, 1, K) on each label's reference q, a mean over items.

    .. math:: \alpha_0\log\alpha_0 + \sum_k \alpha_k\log(p^*_k / \alpha_k)
              + \lambda\sum_k ((1 - q_k)\alpha_k)^2

    with :math:`p^* \propto \alpha - q`, a constant for the gradient, and λ rising to 2e-4 over ten
    epochs.
    """
    q = labels.reference.to(logits.dtype)
    alpha = concentration(logits[:, 0])
    total = alpha.sum(1)
    mode = (alpha - q).detach().clamp(min=0) + _FLOOR  # a q of 1 may be 1.000001 by rounding
    mode = mode / mode.sum(1, keepdim=True)
    fit = total * total.log() + (alpha * (mode.log() - alpha.log())).sum(1)
    penalty = ((1 - q) * alpha).square().sum(1)
    return (fit + _PENALTY * rising(epoch) * penalty).mean()


DAPPR = Method(loss=dappr_loss, predictions=mean_of_dirichlet, score="evidence")
