"""The theory as tools: tests of label sets, the risks they allow, the generalization bound."""

from credalearn.theory.consistency import consistent as consistent
from credalearn.theory.consistency import votes_to_reject as votes_to_reject
from credalearn.theory.coverage import RuleCoverage as RuleCoverage
from credalearn.theory.coverage import coverage_of_rules as coverage_of_rules
from credalearn.theory.generalization import GeneralizationBound as GeneralizationBound
from credalearn.theory.generalization import bound_of_model as bound_of_model
from credalearn.theory.generalization import generalization_bound as generalization_bound
from credalearn.theory.generalization import last_layer_complexity as last_layer_complexity
from credalearn.theory.objective import least_objective as least_objective
from credalearn.theory.risk import RiskProfile as RiskProfile
from credalearn.theory.risk import risk_profile as risk_profile
from credalearn.theory.splits import Half as Half
from credalearn.theory.splits import halves_of_annotators as halves_of_annotators
from credalearn.theory.splits import halves_of_counts as halves_of_counts
