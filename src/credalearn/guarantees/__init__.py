"""When to predict and when to defer: thresholds with a guarantee. Imports no torch, no sklearn."""

from credalearn.guarantees.deferral_score import DeferralScore, better_score
from credalearn.guarantees.guarantee import CertifyMethod, Guarantee
from credalearn.guarantees.items import ScoredItems
from credalearn.guarantees.promises import Promise
from credalearn.guarantees.shortfall import Shortfall
from credalearn.guarantees.thresholds import by_capacity, certify

__all__ = [
    "CertifyMethod",
    "DeferralScore",
    "Guarantee",
    "Promise",
    "ScoredItems",
    "Shortfall",
    "better_score",
    "by_capacity",
    "certify",
]
