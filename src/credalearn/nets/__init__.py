"""Backbones that return features, and the heads on top of them."""

from credalearn._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
