"""Accuracy, calibration and deferral of predictions; comparisons of methods over seeds."""

from credalearn._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
