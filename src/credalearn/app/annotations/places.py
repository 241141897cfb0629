"""How a reader refuses: one line with the place, the value, the rule and the nearest remedy."""

from pathlib import Path
from typing import NoReturn

from credalearn._formats import enumerated as enumerated
from credalearn._formats import listed as listed
from credalearn._formats import many as many
from credalearn._formats import shown as shown
from credalearn.errors import CredalError


def refuse(path: Path, where: str, rule: str, *, fix: str) -> NoReturn:
    """Raise the one error of bad input."""
    place = f"{path}, {where}" if where else str(path)
    raise CredalError(" ".join(f"{place}: {rule}. To fix: {fix}.".split("\n")))
