"""Options stated once: a dataclass field is the keyword, the check and the command option."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from credalearn._checks import check_choice, check_number, nearest
from credalearn.errors import CredalError

T = TypeVar("T")

_LIMITS = ("least", "most", "above", "below")
_PLAIN: dict[Any, tuple[Any, str]] = {  # what is accepted, in types and in words
    bool: (bool, "True or False"),
    str: (str, "text"),
    Path: ((str, PathLike), "a path"),
}


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
    """The option ``name`` of another dataclass; ``changes`` are metadata."""
    stated = next(each for each in fields(owner) if each.name == name)
    return field(default=stated.default, metadata={**stated.metadata, **changes})


def check_options(options: Any) -> None:
    """Raise unless every field of a dataclass has its type and lies in its range.

    A text is accepted for a path, and one value or a list for a tuple.
    """
    hints = get_type_hints(type(options))
    for each in fields(options):
        name, value, kind = each.name, getattr(options, each.name), hints[each.name]
        parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        if Any in parts and get_origin(parts[0]) is tuple:  # paths or tables
            several = () if value is None else value
            several = several if isinstance(several, tuple | list) else (several,)
            object.__setattr__(options, name, tuple(several))
        if Any in parts or (value is None and NoneType in parts):
            continue
        (kind,) = (part for part in parts if part is not NoneType)
        if get_origin(kind) is Literal:
            check_choice(value, get_args(kind), name=name)
        elif kind in (int, float):
            limits = {key: each.metadata.get(key) for key in _LIMITS}
            check_number(value, name=name, whole=kind is int, **limits)
        elif get_origin(kind) is tuple:
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, tuple | list) or any(not isinstance(x, str) for x in texts):
                raise CredalError(f"{name} must be text, or a list of texts; got {value!r}.")
            object.__setattr__(options, name, tuple(texts))
        else:
            accepted, rule = _PLAIN[kind]
            if not isinstance(value, accepted):
                raise CredalError(f"{name} must be {rule}; got {value!r}.")
            object.__setattr__(options, name, kind(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options that are checked when they are made."""

    def __post_init__(self) -> None:
        check_options(self)


def options_of(verb: str, kind: type[T], given: dict[str, Any]) -> T:
    """The keywords that ``verb`` was called with, as its options; an unknown one is a TypeError."""
    return all_options_of(verb, (kind,), given)[0]


def all_options_of(verb: str, kinds: Sequence[Any], given: dict[str, Any]) -> list[Any]:
    """The same where they are of several kinds: each takes those that it has."""
    names = [[each.name for each in fields(kind)] for kind in kinds]
    known = list(dict.fromkeys(chain(*names)))
    for name in given:
        if name not in known:
            near = nearest(name, known)
            fix = f"take one of {', '.join(known)}" if near is None else f"write {near}"
            raise TypeError(f"{verb} has no option {name}. To fix: {fix}.")
    mine = [{name: given[name] for name in own if name in given} for own in names]
    return [kind(**each) for kind, each in zip(kinds, mine, strict=True)]


def keywords(options: Any) -> dict[str, Any]:
    """The fields of a dataclass as keyword arguments, the values not copied."""
    return {each.name: getattr(options, each.name) for each in fields(options)}
