"""Rounds of annotations; see ``credalearn.app.readers.read_rounds``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from credalearn.app.annotations.table import Annotations, Conflicts
from credalearn.app.readers import _has
from credalearn.app.readers import read_rounds as _read_rounds
from credalearn.app.readers.options import RoundOptions
from credalearn.app.sources import open_source
from credalearn.errors import CredalError


def read_rounds(
    path: str | Path,
    later: Sequence[Path],
    asked: dict[str, Any],
    *,
    items: Sequence[str] = (),
    images: Path | None = None,  # noqa: ARG001
    conflicts: Conflicts = "refuse",
) -> Annotations:
    """Annotations of several rounds, as one."""
    merge_item = items[0] if items else None
    options = RoundOptions(
        **asked, merge=tuple(later), merge_item=merge_item, merge_conflicts=conflicts
    )
    return _read_rounds(path, options)


def holds(path: str | Path, name: str) -> bool:
    """Whether a table has such a column, or JSON such a field."""
    try:
        return _has(open_source(path), name)
    except CredalError:
        return True
