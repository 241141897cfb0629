"""Metrics of a run where people's votes were held out: errors against votes, and sizes of sets.

Shapes: N test items, V held-out items with votes, K classes.
"""

from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

from credalearn._ranks import as_scores, sort_order, tie_ends
from credalearn.conformal.distance import box_distance
from credalearn.predictions import CredalPredictions
from credalearn.theory import consistent

KEPT = (80, 90)  # percent of the items, the most certain ones
COVERAGES = (90, 95)  # percent of the items whose vote shares a widened set must cover
SPLITS = 20
_FLOOR = 1e-12  # a softmax in float32 underflows to 0 at 104 nats; it counts as 27.6


def evaluate_voted(
    test: CredalPredictions, y: Tensor, voted: CredalPredictions, counts: Tensor
) -> dict[str, float]:
    """Errors among the most certain items, and agreement of predictions with held-out votes.

    For every method, the most certain items are those with the highest lower probability.

    ==========================  ================================================================
    metric                      meaning
    ==========================  ================================================================
    ``error_at_80``, ``_90``    error of the most certain 80 or 90 % of the test items
    ``human_cross_entropy``     mean cross-entropy of the vote shares to ``probs``, nats
    ``human_error``             1 − share of the votes for the predicted class
    ``human_error_at_80``, …    the same among the most certain 80 or 90 % of the voted items
    ``human_coverage``          share of items whose votes are consistent with the predicted set
    ``human_gap``               mean smallest r with the shares in [lower − r, upper + r]
    ``set_coverage_90``, …      coverage of the vote shares by sets widened to cover 90 or 95 %
    ``set_width_90``, …         their mean class-wise width
    ``set_width_90_plain``      the same, all items widened alike
    ==========================  ================================================================

    Sets are widened on half of the voted items (split conformal) and measured on the other half:
    means over 20 random halves, the same for all methods. "Consistent" is
    :func:`credalearn.theory.consistent` at 5 %.
    """
    shares = counts.double() / counts.sum(1, keepdim=True)
    wrong = (test.classes != y).double()
    other = 1 - shares.gather(1, voted.classes[:, None])[:, 0]
    log_probs = voted.probs.double().clamp(min=_FLOOR).log()
    off = box_distance(shares, voted.lower, voted.upper, torch.ones_like(shares[:, :1]))
    return {
        **errors_at("error", wrong, test),
        "human_cross_entropy": float(-(shares * log_probs).sum(1).mean()),
        "human_error": float(other.mean()),
        **errors_at("human_error", other, voted),
        "human_coverage": float(consistent(counts, voted.lower, voted.upper).double().mean()),
        "human_gap": float(off.mean()),
        **set_sizes(voted, counts),
    }


def errors_at(name: str, wrong: Tensor, predictions: CredalPredictions) -> dict[str, float]:
    """Mean of ``wrong`` (N,) over the most certain 80 and 90 %; equally certain items share it."""
    scores = as_scores(predictions.score("lower-probability"), name="score")
    order = sort_order(scores)
    ends = tie_ends(scores[order])
    sums = wrong.double().numpy(force=True)[order].cumsum()[ends - 1]
    # Python rounds halves to even: 80 % and 90 % of five items are both four.
    kept = {percent: max(1, round(percent * len(order) / 100)) for percent in KEPT}
    return {
        f"{name}_at_{percent}": float(np.interp(count, np.append(0, ends), np.append(0, sums)))
        / count
        for percent, count in kept.items()
    }


def set_sizes(voted: CredalPredictions, counts: Tensor) -> dict[str, float]:
    """Coverage reached and mean class-wise width of widened sets, over random halvings."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    rng = np.random.default_rng(0)  # the same halves for every run of a task
    for _ in range(SPLITS):
        half = rng.permutation(len(voted)) < len(voted) // 2
        rest = voted[~half]
        for coverage in COVERAGES:
            inflation = voted[half].inflation(counts[half], coverage=coverage / 100)
            covered = inflation.covers(counts[~half], rest.lower, rest.upper, rest.probs)
            found[f"set_coverage_{coverage}"].append(float(covered.double().mean()))
            found[f"set_width_{coverage}"].append(_width(rest.conformalize(inflation)))
        plain = voted[half].inflation(counts[half], coverage=COVERAGES[0] / 100, scale="none")
        found[f"set_width_{COVERAGES[0]}_plain"].append(_width(rest.conformalize(plain)))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _width(predictions: CredalPredictions) -> float:
    return float((predictions.upper - predictions.lower).double().mean())
