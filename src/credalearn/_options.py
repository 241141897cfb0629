"""Options stated once: a dataclass field is the keyword, the check and the command option."""

from dataclasses import MISSING, field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from credalearn._checks import check_choice, check_number

_LIMITS = ("least", "most", "above", "below")


def option(
    default: Any,
    text: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    show_default: str | None = None,
    flags: tuple[str, ...] = (),
) -> Any:
    """A dataclass field with its default, its one-line help, its range and its command flags."""
    limits = {"least": least, "most": most, "above": above, "below": below}
    metadata = {"help": text, **limits, "show_default": show_default, "flags": flags}
    return field(default=default, metadata=metadata)


def same_option(owner: type[Any], name: str, **changes: Any) -> Any:
    """The option ``name`` of another dataclass; ``changes`` are ``default`` or metadata."""
    stated = next(each for each in fields(owner) if each.name == name)
    default = changes.pop("default", stated.default)
    assert default is not MISSING
    return field(default=default, metadata={**stated.metadata, **changes})


def check_options(options: Any) -> None:
    """Raise unless every field of a dataclass has its type and lies in its range."""
    hints = get_type_hints(type(options))
    for each in fields(options):
        value, kind = getattr(options, each.name), hints[each.name]
        parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        if value is None and NoneType in parts:
            continue
        parts = tuple(part for part in parts if part is not NoneType)
        if len(parts) == 1 and get_origin(parts[0]) is Literal:
            check_choice(value, get_args(parts[0]), name=each.name)
        elif parts in ((int,), (float,)):
            limits = {key: each.metadata.get(key) for key in _LIMITS}
            check_number(value, name=each.name, whole=parts == (int,), **limits)


def keywords(options: Any) -> dict[str, Any]:
    """The fields of a dataclass as keyword arguments, the values not copied."""
    return {each.name: getattr(options, each.name) for each in fields(options)}
