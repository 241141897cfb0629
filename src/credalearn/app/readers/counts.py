"""Counts of votes: one row per item, one column per class."""

from credalearn.app.readers._content import Content, Raw
from credalearn.app.readers._layout import find_layout, read_shares


def recognize(content: Content) -> bool:
    """Whole numbers in columns called like counts, or the same number of votes for each item."""
    found = find_layout(content)
    return found is not None and found.shape == "counts"


def read(content: Content) -> Raw:
    """One row per item."""
    return read_shares(content, "counts")
