"""What each method says of its networks' outputs, as operations that ONNX has.

The same formulas as :mod:`credalearn.methods`, without the checks, which depend on the values. Each
takes logits (N, M, H, K), features (N, D) of the first member and the post-hoc state, and returns
the heads (N, V, K), probabilities and bounds, three of (N, K).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.methods import Model, State
from credalearn.methods.decalibration import _box
from credalearn.methods.edl import concentration
from credalearn.methods.laplace_bridge import logit_variance

_Said = tuple[Tensor, Tensor, Tensor, Tensor]


def _hull(logits: Tensor, features: Tensor, state: State) -> _Said:  # noqa: ARG001
    heads = logits.flatten(1, 2).softmax(2)
    lower, upper = heads.amin(1), heads.amax(1)
    return heads, heads.mean(1).clamp(lower, upper), lower, upper


def _dirichlet(logits: Tensor, features: Tensor, state: State) -> _Said:  # noqa: ARG001
    alpha = concentration(logits[:, 0, 0])
    mean = alpha / alpha.sum(1, keepdim=True)
    return mean[:, None], mean, mean, mean


def _bridge(logits: Tensor, features: Tensor, state: State) -> _Said:
    """As ``log_bridge``, whose logaddexp ONNX would compute by way of e^μ, which overflows."""
    own = logits[:, 0, 0].double()
    num_classes = own.shape[1]
    least = own.amin(1, keepdim=True)
    log_sums = own - least + (least - own).exp().sum(1, keepdim=True).log()
    log_sums = log_sums - 2 * math.log(num_classes)
    rest = torch.full_like(log_sums, math.log(1 - 2 / num_classes) if num_classes > 2 else -1e300)
    log_alpha = torch.maximum(log_sums, rest) + (1 + (-(log_sums - rest).abs()).exp()).log()
    mean = (log_alpha - logit_variance(features, state).log()).softmax(1).float()
    return mean[:, None], mean, mean, mean


def _shifted(logits: Tensor, features: Tensor, state: State) -> _Said:  # noqa: ARG001
    probs = logits[:, 0, 0].double().softmax(1)
    lower, upper = _box(probs, state["shifts"].to(probs))
    mean = probs.float()
    return mean[:, None], mean, lower.float(), upper.float()


RULES: dict[str, Callable[[Tensor, Tensor, State], _Said]] = {
    "pocc": _hull,
    "pocc-center": _hull,
    "pocc-mean": _hull,
    "pocc-ensemble": _hull,
    "softmax": _hull,
    "deep-ensemble": _hull,
    "edl": _dirichlet,
    "edl-soft": _dirichlet,
    "dappr": _dirichlet,
    "laplace-bridge": _bridge,
    "decalibration": _shifted,
}


class Graph(nn.Module):
    """A model from inputs to decisions, all members in one.

    Args:
        method: Name of the method.
        model: The trained model.

    Raises:
        CredalError: If the method draws at random, as Monte-Carlo dropout does.

    Example:
        >>> import credalearn as cl
        >>> clf = cl.CredalClassifier(epochs=1).fit([[0.0], [1.0]], ["no", "yes"])
        >>> heads, *_ = Graph("pocc", clf.model_)(torch.zeros(3, 1, dtype=torch.float64))
        >>> heads.shape
        torch.Size([3, 2, 2])
    """

    def __init__(self, method: str, model: Model) -> None:
        super().__init__()
        if method not in RULES:
            raise CredalError(
                f"the method {method!r} cannot be exported: its predictions are drawn at random at "
                f"every pass, and an ONNX model is fixed. To fix: train one of {', '.join(RULES)}."
            )
        self.rule = RULES[method]
        self.members = nn.ModuleList(model.members)
        self.names = tuple(model.state)
        for name, tensor in model.state.items():
            self.register_buffer(f"state_{name}", tensor)
        self.eval()

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Heads, probabilities, lower, upper, label and score: the outputs of the ONNX model."""
        features = [member.features(inputs) for member in self._networks()]
        logits = [
            member.logits(found) for member, found in zip(self._networks(), features, strict=True)
        ]
        state = {name: getattr(self, f"state_{name}") for name in self.names}
        heads, probs, lower, upper = self.rule(torch.stack(logits, 1), features[0], state)
        label = probs.argmax(1)
        score = 1 - lower.gather(1, label[:, None])[:, 0]
        return heads, probs, lower, upper, label, score

    def _networks(self) -> list[Any]:
        return list(self.members)
