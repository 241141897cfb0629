r"""Decalibration: how far each class can be shifted before the data object (Hofman et al., 2026).

Post hoc, on a trained softmax network. Shifting the logit of class k by c changes the mean
log-likelihood of the training labels by

.. math:: g_k(c) = c\,\bar q_k - \frac1N\sum_i \log(1 - p_{ik} + p_{ik}e^c),

which is concave with g_k(0) = 0. The shifts with :math:`g_k(c) \ge 0` are an interval; its two ends
for each class give 2K shifted softmaxes, and an item's set is the box around them.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from credalearn.methods.base import Method, Outputs, State
from credalearn.methods.softmax import softmax_loss
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet

_PRECISION = 1e-10
_MAX_STEPS = 200
_BLOCK = 1 << 18  # numbers worked on at once: 2 MB stay in the cache, four times as fast as 40 MB
_FARTHEST = 700.0  # e^709 is float64's largest: a root beyond is no different from none


def shift_interval(probs: Tensor, mean_label: Tensor) -> Tensor:
    """The smallest and largest shift of each class with g(c) ≥ 0, shape (2, K), float64."""
    # One end is 0 and the other the second root of g, on the side of the mismatch between the
    # labels' and the predictions' share of the class. A class that the labels never or always name
    # has no root on one side: the end is −∞ or +∞, as is a root beyond ±700.
    probs, mean_label = probs.double(), mean_label.double()
    up = (mean_label >= probs.mean(0)) & (mean_label > 0)
    # Shifting a class down is shifting the rest up: every root is positive, and no sum cancels.
    share = torch.where(up, probs, _sum_of_others(probs)).T.contiguous()
    target = torch.where(up, mean_label, 1 - mean_label)
    blocks = 1 + share.numel() // _BLOCK
    pairs = zip(share.tensor_split(blocks), target.tensor_split(blocks), strict=True)
    root = torch.where(up, 1.0, -1.0) * torch.cat([_outer_root(*pair) for pair in pairs])
    return torch.stack([root.clamp(max=0), root.clamp(min=0)])


def _outer_root(share: Tensor, target: Tensor) -> Tensor:
    """The positive root of s·target − mean log(1 + share·(e^s − 1)), for each row."""

    def gain(shift: Tensor) -> tuple[Tensor, Tensor]:
        growth = share * shift.expm1()[:, None]
        value = shift * target - growth.log1p().mean(1)
        return value, target - (share + growth).div_(growth.add_(1)).mean(1)

    # Start at twice the root of the parabola that touches g at 0; no farther than 1, as it is a
    # poor guide there.
    slope, bend = target - share.mean(1), (share * (1 - share)).mean(1)
    shift = (4 * slope.clamp(min=0) / bend).nan_to_num(nan=0.0).clamp(max=1.0)
    endless = target >= 1  # it rises to a limit above 0, which rounding can hide
    for _ in range(_MAX_STEPS):
        near = (gain(shift)[0] > 0) & ~endless
        endless |= near & (shift >= _FARTHEST)
        near &= ~endless
        if not near.any():
            break
        shift = torch.where(near, (2 * shift + _PRECISION).clamp(max=_FARTHEST), shift)
    # It is concave: from beyond the root, Newton's steps approach it without overshooting. A step
    # back, or below 1e-11, is rounding: a sum over items knows no more digits.
    for _ in range(_MAX_STEPS):
        value, slope = gain(shift)
        step = torch.where((slope < 0) & ~endless, value / slope, 0)
        shift = (shift - step).clamp(min=0)
        if not (step > _PRECISION / 10 * (1 + shift)).any():
            break
    return torch.where(endless, torch.inf, shift)


def box_of_shifts(probs: Tensor, shifts: Tensor) -> tuple[Tensor, Tensor]:
    """Class-wise least and largest probability over all 2K shifted softmaxes, two of (N, K)."""
    blocks = 1 + probs.numel() // _BLOCK
    boxes = [box_of_rows(rows, shifts.to(probs)) for rows in probs.tensor_split(blocks)]
    return torch.cat([lower for lower, _ in boxes]), torch.cat([upper for _, upper in boxes])


def box_of_rows(probs: Tensor, shifts: Tensor) -> tuple[Tensor, Tensor]:
    """As :func:`box_of_shifts`, all rows at once: fixed operations, more memory."""
    # Shifting class k by c turns p_k into p_k e^c f and scales every other class by
    # f = 1/(1 − p_k + p_k e^c). So class j is least under its own smallest shift or under the
    # smallest factor of another class: the two smallest and two largest factors of an item suffice.
    rest = _sum_of_others(probs)
    rest = torch.where(rest < torch.finfo(rest.dtype).tiny, 0, rest)  # 1 / rest would overflow
    log_odds = probs.log() - rest.log()
    least, kept_down = _shifted(log_odds, rest, shifts[0])
    most, kept_up = _shifted(log_odds, rest, shifts[1])
    lower = torch.minimum(least, probs * _of_others(kept_up, largest=False))
    upper = torch.maximum(most, probs * _of_others(kept_down, largest=True))
    return lower.minimum(probs), upper.maximum(probs).clamp(max=1)


def _shifted(log_odds: Tensor, rest: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Probability of each class under its own shift, and the factor f of the others, two (N, K)."""
    moved = log_odds + shift
    moved = torch.where(moved.isnan(), log_odds, moved)  # ∞ − ∞: sure or impossible, and stays so
    kept = torch.where(rest > 0, (-moved).sigmoid() / rest, 1)
    return moved.sigmoid(), kept


def _sum_of_others(probs: Tensor) -> Tensor:
    """1 − p with all its digits where p is nearly 1: the sum of the other classes, (N, K)."""
    before = pad(probs[:, :-1].cumsum(1), (1, 0))
    after = pad(probs[:, 1:].flip(1).cumsum(1).flip(1), (0, 1))
    return before + after


def _of_others(factors: Tensor, *, largest: bool) -> Tensor:
    """The extreme factor of all classes but one's own, shape (N, K)."""
    two = factors.topk(2, dim=1, largest=largest)
    is_own = two.indices[:, :1] == torch.arange(factors.shape[1], device=factors.device)
    return torch.where(is_own, two.values[:, 1:], two.values[:, :1])


def fit_shifts(outputs: Outputs, labels: CredalSet) -> State:
    """Each class's interval of shifts, from the training items without augmentation."""
    probs = outputs.logits[:, 0, 0].double().softmax(1)
    return {"shifts": shift_interval(probs, labels.reference.to(probs).mean(0))}


def predictions(outputs: Outputs, state: State) -> CredalPredictions:
    """A box and no vertices; class and probabilities come from the unshifted softmax."""
    probs = outputs.logits[:, 0, 0].double().softmax(1)
    lower, upper = box_of_shifts(probs, state["shifts"])
    return CredalPredictions(probs, lower, upper).to(outputs.logits.dtype)


DECALIBRATION = Method(
    loss=softmax_loss, predictions=predictions, score="entropy-difference", post_hoc=fit_shifts
)
