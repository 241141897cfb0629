"""The risk on the test items that labels which are sets leave open."""

import math
from dataclasses import dataclass
from typing import Self

from credalearn.labels import PROMISING
from credalearn.theory import RiskProfile


@dataclass(frozen=True, slots=True)
class RiskLine:
    """The risk profile as a picture: places on a line from 0, in percent of its length."""

    best: float
    worst: float
    best_ends: tuple[float, float]
    worst_ends: tuple[float, float] | None
    guess: float

    @classmethod
    def of(cls, profile: RiskProfile, guess: float) -> Self:
        """Draw to scale; an infinite risk lies at the end of the line."""
        risks = (profile.optimistic, profile.pessimistic, guess)
        ends = (*profile.optimistic_interval, *profile.pessimistic_interval)
        scale = 110 / 100 * max(each for each in (*risks, *ends) if math.isfinite(each))

        def place(risk: float) -> float:
            return round(100 * min(risk / scale, 1), 2)

        infinite = math.isinf(profile.pessimistic)
        low, high = profile.optimistic_interval
        return cls(
            best=place(profile.optimistic),
            worst=place(profile.pessimistic),
            best_ends=(place(low), place(high)),
            worst_ends=None if infinite else (place(ends[2]), place(ends[3])),
            guess=place(guess),
        )


@dataclass(frozen=True, slots=True)
class LabelRisk:
    """Between which two values the risk lies if the labels contain the truth."""

    rule: str  # the rule that turns votes into labels; empty where people stated bounds
    profile: RiskProfile | None  # the two risks; None where no labels could be made
    why_not: str  # why no labels could be made
    skilled: bool  # whether votes were weighted by a model of the annotators
    confidence: float  # confidence level of the rules that have one
    num_classes: int  # number of classes, K

    @property
    def guess(self) -> float:
        """Risk of the uniform distribution, log K."""
        return math.log(self.num_classes)

    @property
    def promised(self) -> bool:
        """Whether the rule guarantees that a label contains the item's true distribution."""
        return self.rule in PROMISING and not self.skilled

    @property
    def line(self) -> RiskLine | None:
        """The picture."""
        return None if self.profile is None else RiskLine.of(self.profile, self.guess)
