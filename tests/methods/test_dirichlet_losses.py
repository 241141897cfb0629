"""EDL's and DAPPr's losses against slow loops, with torch's own divergence of Dirichlets."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence
from torch.nn.functional import softplus
from torch.testing import assert_close

import credalearn as cl
from credalearn.methods.edl import dappr_loss, edl_loss, edl_soft_loss
from random_sets import distributions

Loss = Callable[[Tensor, cl.CredalSet, int], Tensor]
EPOCHS = {0: 0.0, 5: 0.5, 10: 1.0, 50: 1.0}  # epoch: share of the penalty
LOSSES: tuple[Loss, ...] = (edl_loss, edl_soft_loss, dappr_loss)


def softplus_plus_one(z: Tensor) -> Tensor:
    alpha = [math.log1p(math.exp(each)) + 1 for each in z.tolist()]
    return torch.tensor(alpha, dtype=torch.float64)


def slow_edl(z: Tensor, y: Tensor, weight: float) -> float:
    """One item's evidential loss, class by class."""
    alpha = softplus_plus_one(z)
    fit = sum(
        float(y[k]) * (math.log(float(alpha.sum())) - math.log(float(alpha[k])))
        for k in range(len(z))
    )
    kept = torch.stack([y[k] + (1 - y[k]) * alpha[k] for k in range(len(z))])
    return fit + weight * float(kl_divergence(Dirichlet(kept), Dirichlet(torch.ones_like(kept))))


def slow_dappr(z: Tensor, q: Tensor, weight: float) -> float:
    """One item's DAPPr loss, class by class."""
    alpha: list[float] = softplus_plus_one(z).tolist()
    total = sum(alpha)
    mode = [alpha[k] - float(q[k]) + 1e-8 for k in range(len(z))]
    fit = total * math.log(total)
    fit += sum(a * math.log(m / sum(mode) / a) for a, m in zip(alpha, mode, strict=True))
    penalty = sum(math.pow((1 - float(q[k])) * alpha[k], 2) for k in range(len(z)))
    return fit + 2e-4 * weight * penalty


def items(num_classes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Logits (N, 1, K) from doubtful to sure, and soft labels with ties and zeros."""
    z = 6 * torch.randn(40, 1, num_classes, generator=generator, dtype=torch.float64)
    return z, distributions(40, num_classes, generator=generator)


@pytest.mark.parametrize("num_classes", [2, 5, 100])
@pytest.mark.parametrize("epoch", EPOCHS)
def test_losses_equal_the_slow_loops(
    num_classes: int, epoch: int, generator: torch.Generator
) -> None:
    z, q = items(num_classes, generator)
    weight = EPOCHS[epoch]
    top = torch.zeros_like(q)
    for row, label in zip(top, q.tolist(), strict=True):
        row[label.index(max(label))] = 1  # the lowest index among equals
    labels = cl.relax(q)
    for loss, slow, target in (
        (edl_loss, slow_edl, top),
        (edl_soft_loss, slow_edl, q),
        (dappr_loss, slow_dappr, q),
    ):
        expected = sum(slow(z[i, 0], target[i], weight) for i in range(len(z))) / len(z)
        assert loss(z, labels, epoch).item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_dappr_treats_its_mode_as_constant(generator: torch.Generator) -> None:
    z, q = items(4, generator)
    z, q = z[:6].requires_grad_(), q[:6]

    def loss(x: Tensor, mode: Tensor) -> Tensor:
        alpha = softplus(x[:, 0]) + 1
        total = alpha.sum(1)
        fit = total * total.log() + (alpha * (mode / alpha).log()).sum(1)
        return (fit + 1e-4 * ((1 - q) * alpha).square().sum(1)).mean()

    mode = softplus(z[:, 0]) + 1 - q + 1e-8
    mode = mode / mode.sum(1, keepdim=True)
    (found,) = torch.autograd.grad(dappr_loss(z, cl.precise(q), 5), z)
    (held,) = torch.autograd.grad(loss(z, mode.detach()), z)
    (moving,) = torch.autograd.grad(loss(z, mode), z)
    assert_close(found, held)
    assert (found - moving).abs().max() > 1e-3
    assert torch.autograd.gradcheck(lambda x: loss(x, mode.detach()), z)


@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_logits_and_a_hundred_classes_stay_finite(
    loss: Loss, generator: torch.Generator
) -> None:
    for scale in (1.0, 30.0, 1000.0):
        z = scale * torch.randn(64, 1, 100, generator=generator)
        z.requires_grad_()
        q = distributions(64, 100, generator=generator)
        q[:8] = torch.eye(100, dtype=torch.float64)[:8]
        value = loss(z, cl.precise(q), 20)
        (gradient,) = torch.autograd.grad(value, z)
        assert value.isfinite()
        assert gradient.isfinite().all()
