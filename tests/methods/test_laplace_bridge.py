"""The Laplace bridge against laplace-torch, and against dense matrices where that one cancels."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, TensorDataset

from credalearn.methods.base import Outputs
from credalearn.methods.laplace_bridge import fit_curvature, logit_variance, predictions
from laplace_shim import Laplace
from largest_tensor import LargestTensor


def trained(num_classes: int) -> tuple[nn.Sequential, Tensor, Tensor]:
    """A small trained net in float64, with what it was trained on."""
    with torch.random.fork_rng():
        torch.manual_seed(num_classes)
        y = torch.randint(num_classes, (200,))
        X = torch.randn(200, 6).double()
        X[:, 0] += y
        body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 9), nn.ReLU())
        net = nn.Sequential(body, nn.Linear(9, num_classes)).double()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        for _ in range(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return net, X, y


@torch.no_grad()
def outputs_of(net: nn.Sequential, inputs: Tensor) -> Outputs:
    return Outputs(net(inputs)[:, None, None], net[0](inputs))


def random_outputs(num_items: int, num_classes: int, generator: torch.Generator) -> Outputs:
    shape = (num_items, 1, 1, num_classes)
    logits = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    features = torch.randn(num_items, 4, generator=generator, dtype=torch.float64)
    return Outputs(logits, features.clamp(min=0))


def dense_variance(training: Outputs, features: Tensor) -> Tensor:
    """Diagonal of C J P⁻¹ Jᵀ C with full Jacobians J of weights and bias, C the centering.

    C J has no part in the null direction of B, so that the inverse may be taken whole.
    """
    probs = training.logits[:, 0, 0].softmax(1)
    num_items, num_classes = probs.shape
    inner = sum(torch.outer(phi, phi) for phi in training.features) / num_items
    outer = sum(torch.diag(p) - torch.outer(p, p) for p in probs)
    assert isinstance(inner, Tensor)
    assert isinstance(outer, Tensor)
    weights = torch.kron(outer, inner)
    precision = torch.block_diag(weights, outer)  # type: ignore[no-untyped-call]
    covariance = torch.linalg.inv(precision + torch.eye(len(precision)).double())
    eye = torch.eye(num_classes).double()
    found = []
    for phi in features:
        jacobian = torch.cat([torch.kron(eye, phi[None]), eye], 1)
        centered = jacobian - jacobian.mean(0)
        found.append((centered @ covariance @ centered.T).diagonal())
    return torch.stack(found)


def dense_alpha(logits: Tensor, variance: Tensor) -> Tensor:
    mu = logits - logits.mean(1, keepdim=True)
    num_classes = logits.shape[1]
    sums = mu.exp() * (-mu).exp().sum(1, keepdim=True) / num_classes**2
    return (1 - 2 / num_classes + sums) / variance


@pytest.mark.parametrize("num_classes", [2, 4, 10])
def test_mean_and_logit_variance_equal_laplace_torch(
    num_classes: int, generator: torch.Generator
) -> None:
    net, X, y = trained(num_classes)
    reference = Laplace(
        net,
        "classification",
        subset_of_weights="last_layer",
        hessian_structure="kron",
        prior_precision=1.0,
    )
    reference.fit(DataLoader(TensorDataset(X, y), batch_size=64))
    items = 3 * torch.randn(50, 6, generator=generator, dtype=torch.float64)
    _, covariance = reference._glm_predictive_distribution(items)  # type: ignore[attr-defined]
    row = covariance.sum(2)  # its own correction for the sum of the logits, which is free
    covariance = covariance - row[:, :, None] * row[:, None] / row.sum(1)[:, None, None]
    ours = outputs_of(net, items)
    state = fit_curvature(outputs_of(net, X), None)  # type: ignore[arg-type]
    variance = logit_variance(ours.features, state)
    assert_close(variance, covariance.diagonal(dim1=1, dim2=2), rtol=1e-8, atol=0)
    mean = reference(items, pred_type="glm", link_approx="bridge")
    assert_close(predictions(ours, state).probs, mean, rtol=1e-8, atol=0)


@pytest.mark.parametrize(("num_classes", "never"), [(2, []), (7, []), (4, [2])])
def test_variance_and_parameters_equal_dense_matrices(
    num_classes: int, never: list[int], generator: torch.Generator
) -> None:
    training = random_outputs(30, num_classes, generator)
    training.logits[..., never] = -400.0  # their probability is 0: B loses another direction
    state = fit_curvature(training, None)  # type: ignore[arg-type]
    items = random_outputs(20, num_classes, generator)
    expected = dense_variance(training, items.features)
    assert_close(logit_variance(items.features, state), expected, rtol=1e-9, atol=0)
    pred = predictions(items, state)
    assert pred.concentration is not None
    assert_close(pred.concentration, dense_alpha(items.logits[:, 0, 0], expected))
    assert_close(pred.probs, pred.concentration / pred.concentration.sum(1, keepdim=True))
    assert_close(pred.score("evidence"), num_classes / pred.concentration.sum(1))
    assert pred.lower is pred.probs is pred.upper


def test_a_very_sure_network_stays_finite(generator: torch.Generator) -> None:
    state = fit_curvature(random_outputs(30, 3, generator), None)  # type: ignore[arg-type]
    for spread in (50.0, 200.0, 2000.0):  # e^89 is float32's largest, e^709 float64's
        logits = torch.tensor([[spread, 0.0, -spread]])[:, None, None]
        pred = predictions(Outputs(logits, torch.ones(1, 4)), state)
        assert pred.concentration is not None
        assert pred.concentration.dtype == torch.float32
        assert pred.concentration.isfinite().all()
        assert pred.score("evidence").isfinite().all()
        assert pred.probs[0, 0] == pytest.approx(1)


def test_memory_has_no_matrix_per_item(generator: torch.Generator) -> None:
    outputs = random_outputs(500, 40, generator)
    with LargestTensor() as seen:
        predictions(outputs, fit_curvature(outputs, None))  # type: ignore[arg-type]
    assert seen.numel == 500 * 40  # N·K, where full Jacobians would be N·K·K·D
