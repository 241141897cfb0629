"""Predicted sets widened until they contain what people say about new items.

Imports no torch: a run's stored radius is read without it.
"""

from credalearn.conformal.inflation import Distance, Inflation, Scale, Stratum, Target, score_strata

__all__ = ["Distance", "Inflation", "Scale", "Stratum", "Target", "score_strata"]
