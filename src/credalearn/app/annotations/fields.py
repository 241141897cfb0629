"""Fields of nested records that the user names: by a name, or by a path with dots."""

from collections.abc import Iterator, Mapping
from typing import Any

from credalearn._checks import nearest
from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.records import Records

_INSIDE = ("data", "meta")  # where Label Studio and Prodigy keep what the user gave them
_MISSING = object()


def field_of(record: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The field of this name, of this path, or of this name in ``data`` or ``meta``.

    Example:
        >>> record = {"text": "Hi", "meta": {"item": "x"}}
        >>> field_of(record, "text"), field_of(record, "meta.item"), field_of(record, "item")
        ('Hi', 'x', 'x')
    """
    for place in (record, *(record.get(each) for each in _INSIDE)):
        found = _at(place, name)
        if found is not _MISSING:
            return found
    return default


def check_field(content: Records, name: str | None, *, option: str) -> None:
    """Refuse a field that no record has.

    Raises:
        CredalError: With the fields that there are.
    """
    if name is None:
        return
    if any(field_of(each.value, name, _MISSING) is not _MISSING for each in content):
        return
    names = list(dict.fromkeys(each for record in content.head for each in _names(record.value)))
    called = {each: each for each in names}
    for each in names:
        place, _, last = each.rpartition(".")
        called.setdefault(last, last if place in _INSIDE else each)
    close = nearest(name, called)
    guess = called[close] if close else None
    fix = f"say --{option} {guess!r}" if guess else f"say with --{option} which of them it is"
    rule = f"no record has a field {shown(name)}; the fields are {listed(names, 20)}"
    refuse(content.path, "", rule, fix=fix)


def _names(record: Mapping[str, Any]) -> Iterator[str]:
    """Of what is no list and no object; of what an object holds, with a dot."""
    for name, value in record.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        yield from (f"{name}.{each}" for each, held in inner if not isinstance(held, dict | list))
        if not isinstance(value, dict | list):
            yield name


def _at(value: object, path: str) -> Any:
    """What stands at the path; a name may have dots itself."""
    if not isinstance(value, Mapping):
        return _MISSING
    if path in value:
        return value[path]
    first, dot, rest = path.partition(".")
    return _at(value.get(first), rest) if dot else _MISSING
