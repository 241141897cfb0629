"""Wide tables: one row per item, one column per annotator; an empty cell is no vote."""

from credalearn._formats import listed
from credalearn.app.readers._content import Content, Raw
from credalearn.app.readers._layout import find_layout, need_layout


def recognize(content: Content) -> bool:
    """Columns called like annotators, or cells that are labels."""
    found = find_layout(content)
    if found is not None and found.shape == "ambiguous":
        content.source.refuse(
            "the columns could be annotators with numbers for labels, or counts by class",
            fix="pass --format wide or --format counts",
        )
    return found is not None and found.shape == "wide"


def read(content: Content) -> Raw:
    """One vote per filled cell."""
    found = need_layout(content)
    frame = content.text(**{"\0item": found.item}, **{name: name for name in found.others})
    # By rows, as a person reads: the votes of the first item first.
    long = (
        frame.with_row_index("row")
        .unpivot(found.others, index=["\0item", "row"])
        .sort("row", maintain_order=True)
        .rename({"\0item": "item", "variable": "annotator", "value": "label"})
    )
    words = f"one row per item {found.item!r}, one column per annotator: {listed(found.others, 6)}"
    return Raw("votes", long, content.source, words, item=found.item, empty="empty cells")
