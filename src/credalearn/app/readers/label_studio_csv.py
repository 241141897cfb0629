"""Label Studio's CSV and JSON-MIN: one row per annotation, with the data and the answers."""

from credalearn._checks import folded
from credalearn._formats import listed
from credalearn.app.column_names import LABEL, find
from credalearn.app.readers._content import Content, Raw
from credalearn.app.readers.label_studio import ITEM_FIELDS

_OWN = ("annotator", "annotation_id", "lead_time")
_BESIDE = ("id", *_OWN, "created_at", "updated_at", "agreement", "project", "task", "comment")


def recognize(content: Content) -> bool:
    """A table with Label Studio's own columns."""
    return set(_OWN) <= set(content.columns)


def read(content: Content) -> Raw:
    """One vote per row."""
    fields = [name for name in content.columns if name not in _BESIDE]
    images = [name for name in fields if folded(name) in ITEM_FIELDS and folded(name) != "text"]
    item = content.column("item", ()) or (images[0] if images else "id")
    who = content.column("annotator", ("annotator",)) or "annotator"
    label = content.options.label or content.options.question or find(fields, LABEL)
    if label is None:
        others = [name for name in fields if name != item and folded(name) not in ITEM_FIELDS]
        if len(others) != 1:
            content.source.refuse(
                f"several columns could be the answer: {listed(others or fields)}",
                fix="name it with --label",
            )
        label = others[0]
    label = content.source.column(label, option="label")
    frame = content.text(item=item, annotator=who, label=label).with_row_index("row")
    several = frame["label"].fill_null("").str.starts_with('{"choices"')
    words = f"Label Studio's CSV: item {item!r}, label {label!r}"
    left_out = {"several classes": int(several.sum())}
    frame = frame.filter(~several)
    return Raw("votes", frame, content.source, words, left_out, item=item)
