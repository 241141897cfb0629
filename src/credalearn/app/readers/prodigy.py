"""Prodigy: JSON Lines with ``answer`` (accept, reject, ignore) and who gave it.

``accept`` lists the chosen options. Without it the record asks whether ``label`` fits: to reject
the file's only label is a vote against it. A class is the option's text; where an id has two texts
or a text two ids, all go by their ids.
"""

from collections.abc import Iterator

from credalearn._formats import shown
from credalearn.app._json_file import Record, text_of
from credalearn.app.readers._content import Content, Raw, Votes, field_of

_ANSWERS = ("accept", "reject", "ignore")
# Of an item: an id of the user's, or else the hash of what was shown.
_NAMES = ("meta.id", "meta.item_id", "id", "item_id", "_input_hash", "_task_hash", "image", "text")
_OWN = ("_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id")


def recognize(content: Content) -> bool:
    """Records whose ``answer`` is one of Prodigy's, with one of its own fields."""
    return any(
        record.value.get("answer") in _ANSWERS and any(name in record.value for name in _OWN)
        for record in content.some_records
        if isinstance(record.value.get("answer"), str)
    )


def read(content: Content) -> Raw:
    """One vote per accepted answer."""
    votes = Votes(content)
    texts = _texts(content)
    offered = {record.value["label"].strip() for record in content.records if _is_binary(record)}
    for record in content.records:
        value, answer = record.value, record.value.get("answer")
        item = votes.item(record, *_NAMES)
        who = value.get("_annotator_id") or value.get("_session_id")
        if content.options.annotator:
            who = field_of(value, content.options.annotator)
        if answer not in _ANSWERS:
            rule = f"an answer must be accept, reject or ignore; got {shown(answer)}"
            content.refuse_record(record, rule)
        if answer == "ignore":
            votes.left_out["skipped"] += 1
        elif answer == "reject" and _is_binary(record) and len(offered) == 1:
            votes.add(record, item, who, f"not {value['label'].strip()}")
        elif answer == "reject":
            votes.left_out["rejected"] += 1
        else:
            votes.add(record, item, who, _accepted(content, record, texts))
    named = ", options by their texts" if any(k != v for k, v in texts.items()) else ""
    return votes.raw("Prodigy's JSON Lines", named)


def _is_binary(record: Record) -> bool:
    """Whether the record asks if one label fits."""
    return "accept" not in record.value and isinstance(record.value.get("label"), str)


def _accepted(content: Content, record: Record, texts: dict[str, str]) -> object:
    accepted = record.value.get("accept")
    if accepted is None:
        if record.value.get("label") is None:
            content.refuse_record(record, "an accepted record must have accept or label")
        return record.value["label"]
    if not isinstance(accepted, list):
        content.refuse_record(record, f"accept must be a list; got {shown(accepted)}")
    return [texts.get(text_of(each) or "", each) for each in accepted]


def _texts(content: Content) -> dict[str, str]:
    """The text of each option by its id; empty if a text has two ids, or if the user names ids."""
    pairs = {pair for record in content.records for pair in _options(record)}
    texts = dict(pairs)
    named = (*(content.options.classes or ()), *content.options.unsure)
    by_id = any(each in texts and each not in texts.values() for each in named)
    return {} if by_id or len({*texts.values()}) < len(pairs) else texts


def _options(record: Record) -> Iterator[tuple[str, str]]:
    """The id and the text of each option; its id again if it has no text."""
    options = record.value.get("options")
    for each in options if isinstance(options, list) else ():
        name = text_of(each.get("id")) if isinstance(each, dict) else None
        if name:
            text = each.get("text")
            yield name, (text.strip() if isinstance(text, str) else "") or name
