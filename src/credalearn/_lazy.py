"""Names that a package imports on first use, as its stub, ``__init__.pyi``, lists them."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, for its ``__init__.py``."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {  # name: the module that defines it
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        is_module = home == package
        value = import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *homes}), list(homes)
