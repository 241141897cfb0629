"""What decides between predicting and deferring: the run's rule, or a threshold of one's own."""

import math
from dataclasses import dataclass

import numpy as np

from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold of the user's own: predict up to this score, with no promise.

    Args:
        threshold: In [0, 1].

    Raises:
        CredalError: If it is not.

    Example:
        >>> Cut(0.4).decide(np.array([0.4, 0.5])).tolist()
        ['predict', 'defer']
    """

    threshold: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and 0 <= self.threshold <= 1):
            raise CredalError(
                f"a threshold must lie in [0, 1], as scores do; got {self.threshold!r}. To fix: "
                "give one such as 0.4."
            )

    def decide(self, score: np.ndarray) -> np.ndarray:
        """``"predict"`` or ``"defer"`` for each item."""
        return np.where(score <= self.threshold, "predict", "defer")


def find_rule(run: Run, *, threshold: float | None = None, otherwise: str = "") -> Guarantee | Cut:
    """What decides: the threshold that was given, else the run's certified rule.

    Args:
        run: A finished run.
        threshold: Predict up to this score.
        otherwise: What else a user can do who has neither.

    Raises:
        CredalError: If there is neither, or ``guarantee.json`` holds no rule.
    """
    if threshold is not None:
        return Cut(threshold)
    rule = run.guarantee
    if rule is None:
        raise CredalError(
            f"{run.path} has no rule yet, so nothing can be decided. To fix: credalearn certify "
            f"{run.path} --max-error 0.10; or give a --threshold{otherwise}."
        )
    return rule
