"""The scikit-learn face of the package."""

from credalearn.estimator.classifier import CredalClassifier, load

__all__ = ["CredalClassifier", "load"]
