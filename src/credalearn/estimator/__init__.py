"""The scikit-learn face of the package; moved to :mod:`credalearn.classifier`."""

from credalearn._load import load
from credalearn.classifier import CredalClassifier

__all__ = ["CredalClassifier", "load"]
