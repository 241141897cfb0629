"""The risk on the test items that labels which are sets leave open."""

import math
from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from credalearn.app.annotations.dawid_skene import dawid_skene
from credalearn.app.labels import make_labels
from credalearn.app.report.held_out import HeldOut
from credalearn.app.run import Run
from credalearn.app.steps.voted_items import said_of
from credalearn.errors import CredalError
from credalearn.labels import PROMISING, VoteRule
from credalearn.theory import RiskProfile, risk_profile


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
    """Between which two values the risk lies if the labels contain the truth.

    Args:
        rule: The rule that turns votes into labels; empty where people stated bounds.
        profile: The two risks; None where no labels could be made.
        why_not: Why no labels could be made.
        skilled: Whether votes were weighted by a model of the annotators.
        confidence: Confidence level of the rules that have one.
        guess: Risk of the uniform distribution, log K.
    """

    rule: str
    profile: RiskProfile | None
    why_not: str
    skilled: bool
    confidence: float
    guess: float

    @property
    def promised(self) -> bool:
        """Whether the rule guarantees that a label contains the item's true distribution."""
        return self.rule in PROMISING and not self.skilled

    @property
    def line(self) -> RiskLine | None:
        """The picture."""
        return None if self.profile is None else RiskLine.of(self.profile, self.guess)


def label_risk(run: Run, held_out: HeldOut) -> LabelRisk:
    """Label the test items by the run's own rule, and compute the risk profile."""
    said, options = said_of(run), run.facts.options
    stated = said.kind == "bounds"
    rule = "" if stated else run.facts.label_rule
    skilled = not stated and options.skill != "equal"
    profile, why_not = None, ""
    try:
        posterior = None
        if skilled:
            found = dict(zip(said.items, dawid_skene(said), strict=True))
            posterior = np.stack([found[item] for item in held_out.items])
        labels = make_labels(
            said,
            held_out.votes,
            cast(VoteRule, rule),
            s=options.s,
            confidence=options.confidence,
            posterior=posterior,
        )
        profile = risk_profile(held_out.probs, labels)
    except CredalError as error:
        why_not = str(error)
    guess = math.log(len(held_out.classes))
    return LabelRisk(rule, profile, why_not, skilled, options.confidence, guess)
