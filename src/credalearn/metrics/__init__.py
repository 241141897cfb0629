"""Accuracy, calibration and deferral of predictions; comparisons of methods over seeds."""

from credalearn.metrics.calibration import Reliability, accuracy, ece, reliability
from credalearn.metrics.quality import (
    BalancedQuality,
    Significance,
    balanced_quality,
    balanced_significance,
    pairwise_p_values,
    significance_ranking,
)
from credalearn.metrics.rejection import (
    accuracy_rejection,
    auarc,
    aurc,
    auroc,
    normalized_auarc,
    spearman_error,
)

__all__ = [
    "BalancedQuality",
    "Reliability",
    "Significance",
    "accuracy",
    "accuracy_rejection",
    "auarc",
    "aurc",
    "auroc",
    "balanced_quality",
    "balanced_significance",
    "ece",
    "normalized_auarc",
    "pairwise_p_values",
    "reliability",
    "significance_ranking",
    "spearman_error",
]
