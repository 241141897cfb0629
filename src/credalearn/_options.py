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
    """A dataclass field with its default, its one-line help and its range.

    Args:
        default: Default value.
        text: Help, one line.
        least: Smallest value allowed.
        most: Largest value allowed.
        above: The value must be greater than this.
        below: The value must be less than this.
        show_default: What the help shows as the default, where the value says too little.
        flags: Names on the command line, where ``--name-of-the-field`` is not the right one.
    """
    limits = {"least": least, "most": most, "above": above, "below": below}
    metadata = {"help": text, **limits, "show_default": show_default, "flags": flags}
    return field(default=default, metadata=metadata)


def same_option(owner: type[Any], name: str, **changes: Any) -> Any:
    """The option ``name`` of another dataclass: same default, help and range.

    Args:
        owner: The dataclass that states the option.
        name: Name of its field.
        changes: What differs here: ``default`` or a key of the metadata, such as ``help``.
    """
    stated = next(each for each in fields(owner) if each.name == name)
    default = changes.pop("default", stated.default)
    assert default is not MISSING
    return field(default=default, metadata={**stated.metadata, **changes})


def check_options(options: Any) -> None:
    """Check every field of a dataclass against its type and range.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Options:
        ...     confidence: float = option(0.95, "Confidence level.", above=0, below=1)
        >>> check_options(Options(95))
        Traceback (most recent call last):
        credalearn.errors.CredalError: confidence must be above 0 and below 1; got 95. To fix: write
        95 % as 0.95.
    """
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
