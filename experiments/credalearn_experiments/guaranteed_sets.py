"""Sets that cover 90 % of people's votes, and their precise rivals: intervals around one number.

Every contender has one radius that is added to each bound, and at most one number chosen on a third
of the calibration items. Shapes: N items, K classes.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from credalearn.conformal._calibration import narrowest_scale
from credalearn.methods.distillation import STRETCHES, narrowest, stretched
from credalearn.predictions import CredalPredictions

_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class GuaranteedSets:
    """Votes on items outside training: a third of the calibration items chooses for the rivals."""

    observed: Tensor  # votes on calibration items, then on test items, shape (N, K)
    parts: Sequence[np.ndarray]  # rows to choose by, to calibrate on and to test on

    @classmethod
    def split(cls, observed: Tensor, order: np.ndarray, count: int) -> Self:
        """The first so many items in this order calibrate, the others are tested on."""
        return cls(observed, np.split(order, [count // 3, count]))

    def stretched(
        self, center: Tensor, ends: Tensor, factors: Sequence[float] = STRETCHES
    ) -> CredalPredictions:
        """Boxes (N, 2, K) around a center, times the factor that the items to choose by prefer."""
        rows = self.parts[0]
        some = partial(stretched, center[rows], ends[rows])
        return stretched(center, ends, narrowest(some, self.observed[rows], factors))

    def spread(self, center: Tensor) -> CredalPredictions:
        """The center ± f·√(p(1 − p))."""
        gaps = (center * (1 - center)).clamp(min=0).sqrt()
        return self.stretched(center, torch.stack([center - gaps, center + gaps], 1), _FACTORS)

    def wide_hull(self, hull: CredalPredictions) -> CredalPredictions:
        """The box around a hull, stretched."""
        return self.stretched(hull.probs, torch.stack([hull.lower, hull.upper], 1))

    def scores(
        self, found: Mapping[str, CredalPredictions], *, scaled: Collection[str]
    ) -> Iterator[tuple[str, str, float]]:
        """One radius is added, to some sets with the best of the scales."""
        choosing, calibrating, testing = (self.observed[rows] for rows in self.parts)
        for learner, boxes in found.items():
            some, calibration, test = (boxes[rows] for rows in self.parts)
            scale: Any = "none"
            if learner in scaled:
                scale = narrowest_scale(some, choosing, coverage=0.9)
            inflation = calibration.inflation(calibrating, scale=scale)
            wide = test.conformalize(inflation)
            yield learner, "width", float((wide.upper - wide.lower).mean())
            yield learner, "coverage", float(test.covers(testing, inflation).double().mean())
