"""When to predict and when to defer: thresholds with a guarantee, and what the guarantee says."""

from credalearn.decide.rule import DecisionRule
from credalearn.decide.shortfall import Shortfall
from credalearn.decide.thresholds import by_capacity, certify

__all__ = [
    "DecisionRule",
    "Shortfall",
    "by_capacity",
    "certify",
]
