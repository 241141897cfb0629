"""Probabilities: one row per item, one column per class."""

from credalearn.app.readers._content import Content, Raw
from credalearn.app.readers._layout import find_layout, read_shares


def recognize(content: Content) -> bool:
    """Decimals, or columns called like probabilities."""
    found = find_layout(content)
    return found is not None and found.shape == "probabilities"


def read(content: Content) -> Raw:
    """One row per item."""
    return read_shares(content, "probabilities")
