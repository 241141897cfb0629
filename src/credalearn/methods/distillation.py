"""Networks that learn what several teachers say: their mean, and how far they disagree.

A student's labels are the boxes between their smallest and largest probabilities, with the mean as
the soft label. Its predicted box is stretched around the center by one factor.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from credalearn.methods.base import Method, Outputs, State
from credalearn.methods.pocc import three_heads
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet, Intervals
from credalearn.train._linear import log_odds

Predict = Callable[[State], CredalPredictions]  # of a student, by its state
STRETCHES = tuple(2.0**power for power in range(9))  # 1 to 256
_COVERAGE = 0.9  # at which the factor gives the narrowest sets


def bounds_loss(logits: Tensor, labels: CredalSet, epoch: int | Tensor) -> Tensor:  # noqa: ARG001
    """The mean of three losses on logits (N, 3, K): lower bounds, upper bounds and center."""
    # Heads 0 and 1 are how far the log-odds of the bounds are from those of the center.
    odds = logits[:, :2] + log_odds(logits[:, 2].detach())[:, None]
    ends = zip(odds.unbind(1), (labels.lower, labels.upper), strict=True)
    costs = [binary_cross_entropy_with_logits(z, q.to(z), reduction="sum") for z, q in ends]
    center = cross_entropy(logits[:, 2], labels.reference.to(logits.dtype))
    return ((costs[0] + costs[1]) / len(logits) + center) / 3


def learned_bounds(outputs: Outputs, state: State) -> CredalPredictions:
    """The box of the bounds of heads 0 and 1, stretched around the softmax of head 2."""
    logits = outputs.logits[:, 0]
    ends = (logits[:, :2] + log_odds(logits[:, 2])[:, None]).sigmoid()
    return stretched(logits[:, 2].softmax(1), ends, state)


def distilled(outputs: Outputs, state: State) -> CredalPredictions:
    """The box of the pessimist 0 and the optimist 1, stretched around the center 2."""
    heads = outputs.logits[:, 0].softmax(2)
    return stretched(heads[:, 2], heads[:, :2], state)


def stretched(center: Tensor, ends: Tensor, state: State) -> CredalPredictions:
    """The box around center (N, K) and ends (N, 2, K), each side times the factor of the state."""
    factor = state["stretch"].to(center)
    down = (center - ends.amin(1)).clamp(min=0) * factor
    up = (ends.amax(1) - center).clamp(min=0) * factor
    lower, upper = (center - down).clamp(min=0), (center + up).clamp(max=1)
    return CredalPredictions(center, lower, upper)


def narrowest(predict: Predict, observed: Tensor, factors: Sequence[float] = STRETCHES) -> State:
    """The factor whose boxes, widened alike to cover 90 % of shares (N, K), are narrowest."""

    def width(state: State) -> float:
        boxes = predict(state)
        wide = boxes.conformalize(boxes.inflation(observed, coverage=_COVERAGE, scale="none"))
        return float((wide.upper - wide.lower).mean())

    return min(map(stretch, factors), key=width)


def as_wide_as(predict: Predict, labels: Intervals) -> State:
    """The factor with which a student's boxes are on average as wide as its teachers'."""
    boxes = predict(stretch(1.0))
    own, wanted = (float((each.upper - each.lower).double().mean()) for each in (boxes, labels))
    return stretch(wanted / own if own > 0 else 1.0)


def stretch(factor: float) -> State:
    """A state with this factor."""
    return {"stretch": torch.tensor(factor, dtype=torch.float64)}


_LOWER = "lower-probability"
CREDAL_BOUNDS = Method(
    loss=bounds_loss, predictions=learned_bounds, num_heads=3, score=_LOWER, teachers="cross-fitted"
)
POCC_DISTILLED = Method(
    loss=three_heads, predictions=distilled, num_heads=3, score=_LOWER, teachers="ensemble"
)
