"""A trained model as one graph of operations that ONNX has.

The formulas are those of :mod:`credalearn.methods`, without the checks, which depend on the values.
Each takes logits (N, M, H, K), features (N, D) of the first member and the post-hoc state, and
returns the heads (N, V, K) and the probabilities, lower and upper bounds, each (N, K).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.guarantees import DeferralScore
from credalearn.methods import METHODS, Method, Model, Outputs, State, decalibration, laplace_bridge
from credalearn.methods.base import hull_of_outputs
from credalearn.methods.decalibration import box_of_rows
from credalearn.methods.edl import concentration, mean_of_dirichlet
from credalearn.methods.laplace_bridge import logit_variance
from credalearn.predictions import CredalPredictions

_Outputs = tuple[Tensor, Tensor, Tensor, Tensor]
_Rule = Callable[[Tensor, Tensor, State], _Outputs]


def _hull(logits: Tensor, features: Tensor, state: State) -> _Outputs:  # noqa: ARG001
    heads = logits.flatten(1, 2).softmax(2)
    lower, upper = heads.amin(1), heads.amax(1)
    return heads, heads.mean(1).clamp(lower, upper), lower, upper


def _dirichlet(logits: Tensor, features: Tensor, state: State) -> _Outputs:  # noqa: ARG001
    alpha = concentration(logits[:, 0, 0])
    mean = alpha / alpha.sum(1, keepdim=True)
    return mean[:, None], mean, mean, mean


def _bridge(logits: Tensor, features: Tensor, state: State) -> _Outputs:
    """``log_bridge`` without logaddexp, which ONNX computes through e^μ and overflows."""
    own = logits[:, 0, 0].double()
    num_classes = own.shape[1]
    least = own.amin(1, keepdim=True)
    log_sums = own - least + (least - own).exp().sum(1, keepdim=True).log()
    log_sums = log_sums - 2 * math.log(num_classes)
    rest = torch.full_like(log_sums, math.log(1 - 2 / num_classes) if num_classes > 2 else -1e300)
    log_alpha = torch.maximum(log_sums, rest) + (1 + (-(log_sums - rest).abs()).exp()).log()
    mean = (log_alpha - logit_variance(features, state).log()).softmax(1).float()
    return mean[:, None], mean, mean, mean


def _shifted(logits: Tensor, features: Tensor, state: State) -> _Outputs:  # noqa: ARG001
    probs = logits[:, 0, 0].double().softmax(1)
    lower, upper = box_of_rows(probs, state["shifts"].to(probs))
    mean = probs.float()
    return mean[:, None], mean, lower.float(), upper.float()


# By the function that turns outputs into predictions: methods that share it share the formula.
_RULES: dict[Callable[[Outputs, State], CredalPredictions], _Rule] = {
    hull_of_outputs: _hull,
    mean_of_dirichlet: _dirichlet,
    laplace_bridge.predictions: _bridge,
    decalibration.predictions: _shifted,
}


def why_not(method: Method) -> str:
    """Why a method cannot be exported; empty if it can."""
    if method.num_passes > 1:
        return "its predictions are drawn at random, and an ONNX model is fixed"
    if method.predictions not in _RULES:
        return "its predictions are written for torch alone"
    return ""


def _tempered(outputs: _Outputs, temperature: float, *, is_box: bool) -> _Outputs:
    """:meth:`CredalPredictions.temper`: the probabilities become a head where there are heads."""
    heads, probs, lower, upper = outputs

    def temper(values: Tensor) -> Tensor:
        return (values.clamp(min=1e-38).log() / temperature).softmax(-1)

    probs = temper(probs)
    if is_box:
        lower, upper = ((each.logit(1e-12) / temperature).sigmoid() for each in (lower, upper))
        return probs[:, None], probs, lower.minimum(probs), upper.maximum(probs)
    heads = torch.cat([temper(heads), probs[:, None]], 1)
    return heads, probs, heads.amin(1), heads.amax(1)


class Graph(nn.Module):
    """A model from inputs to scores, all members in one; probabilities are about what is right."""

    def __init__(
        self,
        method: str,
        model: Model,
        temperature: float = 1.0,
        *,
        score: DeferralScore = "lower-probability",
    ) -> None:
        super().__init__()
        self.score = score
        why = why_not(model.method)
        if why:
            others = ", ".join(name for name, other in METHODS.items() if not why_not(other))
            raise CredalError(
                f"the method {method!r} cannot be exported: {why}. To fix: train one of {others}."
            )
        self.rule, self.temperature = _RULES[model.method.predictions], temperature
        self.members = nn.ModuleList(model.members)
        self.names = tuple(model.state)
        for name, tensor in model.state.items():
            self.register_buffer(f"state_{name}", tensor)
        self.eval()

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Heads, probabilities, lower, upper, label and score: the outputs of the ONNX model."""
        networks: list[Any] = list(self.members)
        features = [each.features(inputs) for each in networks]
        logits = [each.logits(found) for each, found in zip(networks, features, strict=True)]
        state = {name: getattr(self, f"state_{name}") for name in self.names}
        outputs = self.rule(torch.stack(logits, 1), features[0], state)
        if self.temperature != 1:
            outputs = _tempered(outputs, self.temperature, is_box=self.rule is _shifted)
        heads, probs, lower, upper = outputs
        label = probs.argmax(1)
        bound = probs if self.score == "top-probability" else lower
        score = 1 - bound.gather(1, label[:, None])[:, 0]
        return heads, probs, lower, upper, label, score
