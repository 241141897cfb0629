"""Deep ensemble: five softmax networks (Lakshminarayanan, Pritzel and Blundell, 2017).

The predicted set is the hull of the members; mutual information is its usual score.
"""

from credalearn.methods.base import Method, hull_of_outputs
from credalearn.methods.softmax import softmax_loss

ENSEMBLE_SIZE = 5

DEEP_ENSEMBLE = Method(
    loss=softmax_loss,
    predictions=hull_of_outputs,
    num_members=ENSEMBLE_SIZE,
    score="mutual-information",
)
