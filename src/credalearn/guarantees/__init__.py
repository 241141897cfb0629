"""When to predict and when to defer: thresholds with a guarantee, and what the guarantee says."""

from credalearn.guarantees.rule import Guarantee
from credalearn.guarantees.shortfall import Shortfall
from credalearn.guarantees.thresholds import by_capacity, certify

__all__ = [
    "Guarantee",
    "Shortfall",
    "by_capacity",
    "certify",
]
