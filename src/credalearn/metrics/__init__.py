"""Pure functions over predictions: how right, how calibrated, how well deferring works."""

from credalearn.metrics.calibration import ece
from credalearn.metrics.classification import accuracy
from credalearn.metrics.rejection import accuracy_rejection, auarc

__all__ = ["accuracy", "accuracy_rejection", "auarc", "ece"]
