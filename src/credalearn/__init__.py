"""Learn classifiers from annotators who disagree, and know when to ask a human.

Public names are imported on first use: ``import credalearn`` alone imports neither torch nor
scikit-learn, so that the command answers at once. ``__init__.pyi`` lists them.

Shapes in all docstrings: N items, K classes, V vertices, D features, H heads, M members or passes.
"""

from credalearn._lazy import attach_stub

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
