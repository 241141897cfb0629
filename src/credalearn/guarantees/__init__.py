"""When to predict and when to defer: thresholds with a guarantee. Imports no torch, no sklearn."""

from credalearn._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
