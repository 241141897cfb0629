"""Learn classifiers from annotators who disagree, and know when to ask a human.

Public names are imported on first use: ``import credalearn`` alone imports neither torch nor
scikit-learn, so that the command answers at once. ``__init__.pyi`` lists them.

Shapes in all docstrings: N items, K classes, V vertices, D features, H heads, M members or passes.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

_MODULES = {  # name: the module that defines it
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'credalearn' has no attribute {name!r}")
    home = _MODULES[name]
    is_module = home == "credalearn"
    value = import_module(f"credalearn.{name}") if is_module else getattr(import_module(home), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
