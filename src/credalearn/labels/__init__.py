"""Credal sets from votes, posteriors, soft labels, teachers, smoothing and statements."""

from credalearn._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
