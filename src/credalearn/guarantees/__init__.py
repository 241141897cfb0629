"""When to predict and when to defer: thresholds with a guarantee. Imports no torch, no sklearn."""

from credalearn.guarantees.guarantee import CertifyMethod, Guarantee
from credalearn.guarantees.shortfall import Shortfall
from credalearn.guarantees.thresholds import by_capacity, certify

__all__ = ["CertifyMethod", "Guarantee", "Shortfall", "by_capacity", "certify"]
