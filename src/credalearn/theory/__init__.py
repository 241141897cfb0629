"""The theory as tools: tests of label sets, the risks they allow, the generalization bound."""

from credalearn._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
