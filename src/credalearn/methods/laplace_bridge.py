"""Laplace bridge: a Dirichlet from a Gaussian over the last layer (Hobbhahn et al., 2022).

Post hoc, on a trained softmax network. The Gaussian is Laplace's approximation with
Kronecker-factored curvature, and only features and probabilities are needed, no Jacobians.
"""

import math

import torch
from scipy.linalg import helmert
from torch import Tensor

from credalearn.methods.base import Method, Outputs, State
from credalearn.methods.softmax import softmax_loss
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet

PRIOR_PRECISION = 1.0


def fit_curvature(outputs: Outputs, labels: CredalSet) -> State:  # noqa: ARG001
    """Eigenpairs of the two Kronecker factors A = mean φφᵀ and B = Σ diag p − ppᵀ, in float64."""
    # As B·1 = 0, its eigenpairs are taken in an orthonormal basis of the complement of 1: removing
    # the null direction afterwards cancels, and dropping the smallest eigenpair is wrong when a
    # class is never predicted.
    features = outputs.features.double()
    probs = outputs.logits[:, 0, 0].double().softmax(1)
    input_values, input_vectors = torch.linalg.eigh(features.T @ features / len(features))
    curvature = torch.diag(probs.sum(0)) - probs.T @ probs
    basis = torch.from_numpy(helmert(probs.shape[1]).T).to(probs)  # of vectors that sum to 0
    output_values, rotation = torch.linalg.eigh(basis.T @ curvature @ basis)
    return {
        "input_values": input_values.clamp(min=0),
        "input_vectors": input_vectors,
        "output_values": output_values.clamp(min=0),
        "output_vectors": basis @ rotation,
    }


def logit_variance(features: Tensor, state: State) -> Tensor:
    """Variance of each centered logit under the posterior, shape (N, K), float64."""
    # The weights' precision is B ⊗ A + δI, the bias' B + δI, with no cross term: the covariance of
    # one item's logits has the ``spectrum`` below on B's eigenvectors, in O(N·(D + K)) memory.
    # In the features' own dtype: a sum of squares does not cancel, and float32 is twice as fast.
    projected = (features @ state["input_vectors"].to(features)).square().double()
    output_values = state["output_values"]
    shrunk = 1 / (state["input_values"][:, None] * output_values + PRIOR_PRECISION)
    spectrum = projected @ shrunk + 1 / (output_values + PRIOR_PRECISION)
    return spectrum @ state["output_vectors"].square().T


def log_bridge(logits: Tensor, variance: Tensor) -> Tensor:
    """Logarithm of the Dirichlet parameters that match a Gaussian over the logits, shape (N, K)."""
    # The plain bridge of docs/methods.md, without normalization of the variance. In logs, because
    # e^μ overflows if a network is very sure; centering would cancel between the two terms.
    num_classes = logits.shape[1]
    log_sums = logits + (-logits).logsumexp(1, keepdim=True) - 2 * math.log(num_classes)
    rest = logits.new_tensor(1 - 2 / num_classes).log()
    return log_sums.logaddexp(rest) - variance.log()


def predictions(outputs: Outputs, state: State) -> CredalPredictions:
    """The bridge's Dirichlet, cut so that its sum is finite; its mean gives the probabilities."""
    logits = outputs.logits[:, 0, 0].double()
    log_alpha = log_bridge(logits, logit_variance(outputs.features, state))
    largest = torch.finfo(outputs.logits.dtype).max / (2 * logits.shape[1])
    mean = log_alpha.softmax(1).to(outputs.logits.dtype)
    alpha = log_alpha.exp().clamp(max=largest).to(outputs.logits.dtype)
    return CredalPredictions(mean, mean, mean, concentration=alpha)


LAPLACE_BRIDGE = Method(
    loss=softmax_loss, predictions=predictions, score="evidence", post_hoc=fit_curvature
)
