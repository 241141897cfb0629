"""Accuracy, calibration and deferral of predictions; comparisons of methods over seeds."""

from credalearn.metrics.calibration import Reliability as Reliability
from credalearn.metrics.calibration import accuracy as accuracy
from credalearn.metrics.calibration import ece as ece
from credalearn.metrics.calibration import reliability as reliability
from credalearn.metrics.quality import BalancedQuality as BalancedQuality
from credalearn.metrics.quality import Significance as Significance
from credalearn.metrics.quality import balanced_quality as balanced_quality
from credalearn.metrics.quality import balanced_significance as balanced_significance
from credalearn.metrics.quality import pairwise_p_values as pairwise_p_values
from credalearn.metrics.quality import significance_ranking as significance_ranking
from credalearn.metrics.rejection import accuracy_rejection as accuracy_rejection
from credalearn.metrics.rejection import auarc as auarc
from credalearn.metrics.rejection import aurc as aurc
from credalearn.metrics.rejection import auroc as auroc
from credalearn.metrics.rejection import normalized_auarc as normalized_auarc
from credalearn.metrics.rejection import spearman_error as spearman_error
