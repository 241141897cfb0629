"""The scikit-learn face of the package."""

from credalearn.estimator.classifier import CredalClassifier
from credalearn.estimator.loading import load

__all__ = ["CredalClassifier", "load"]
