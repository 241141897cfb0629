"""Sets on the probability simplex, their extremes, imprecision and entropy. Tensors only."""

from credalearn._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
