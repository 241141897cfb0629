"""Counts of votes, or probabilities: one row per item, one column per class."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from credalearn.app.readers._content import Content, Raw
from credalearn.app.readers._layout import find_layout, need_layout


@dataclass(frozen=True, slots=True)
class Shares:
    """The reader of one kind; the columns of the classes lose a prefix that all share."""

    kind: Literal["counts", "probabilities"]

    def recognize(self, content: Content) -> bool:
        """Columns called like the kind; counts of equal sum, or decimals."""
        found = find_layout(content)
        return found is not None and found.shape == self.kind

    def read(self, content: Content) -> Raw:
        """One row per item."""
        found = need_layout(content)
        names = found.others
        classes = without_prefix(names)
        if "item" in classes:
            content.source.refuse(
                "no class can be called 'item'", fix="name the item's column with --item"
            )
        frame = content.text(item=found.item, **dict(zip(classes, names, strict=True)))
        words = f"one row per item {found.item!r}, one column per class with its {self.kind}"
        return Raw(self.kind, frame, content.source, words, item=found.item)


def without_prefix(names: Sequence[str]) -> list[str]:
    """The names of columns without a prefix such as ``p_`` or ``probs.`` that all share."""
    found = re.match(r"[^\W\d_]+[_.]", names[0])
    prefix = "" if found is None else found[0]
    same = all(name.startswith(prefix) and len(name) > len(prefix) for name in names)
    return [name.removeprefix(prefix) for name in names] if same else list(names)
