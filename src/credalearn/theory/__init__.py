"""The theory as tools: tests of label sets, the risks they allow, the generalization bound."""

from credalearn.theory.consistency import can_reject, consistent, votes_to_reject
from credalearn.theory.coverage import RuleCoverage, coverage_of_rules
from credalearn.theory.generalization import (
    GeneralizationBound,
    bound_of_model,
    generalization_bound,
    last_layer_complexity,
)
from credalearn.theory.halves import Half, halves_of_annotators, halves_of_counts
from credalearn.theory.least_objective import least_objective
from credalearn.theory.risk import RiskProfile, risk_profile

__all__ = [
    "GeneralizationBound",
    "Half",
    "RiskProfile",
    "RuleCoverage",
    "bound_of_model",
    "can_reject",
    "consistent",
    "coverage_of_rules",
    "generalization_bound",
    "halves_of_annotators",
    "halves_of_counts",
    "last_layer_complexity",
    "least_objective",
    "risk_profile",
    "votes_to_reject",
]
