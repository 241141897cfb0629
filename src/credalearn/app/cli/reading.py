"""The options of the commands that read an export: stated once, taken as one argument."""

import inspect
from collections.abc import Callable, Collection
from enum import Enum
from functools import wraps
from typing import Any

from credalearn.app.cli import options

Reading = dict[str, Any]  # what ``read_annotations`` takes

# By the field of ``credalearn.app.annotations.asked.Asked``: the option and its default.
READING: dict[str, tuple[Any, Any]] = {
    "item": (options.Item, None),
    "annotator": (options.Annotator, None),
    "label": (options.Label, None),
    "weight": (options.Weight, None),
    "question": (options.Question, None),
    "classes": (options.Classes, None),
    "unsure": (options.Unsure, None),
    "format": (options.Form, None),
    "encoding": (options.Encoding, None),
    "delimiter": (options.Delimiter, None),
    "repeats": (options.RepeatedVotes, options.Repeats.refuse),
}


def reads_export(
    command: Callable[..., None], *, without: Collection[str] = ()
) -> Callable[..., None]:
    """The same command with the options of a reader after its own.

    Args:
        command: Takes them as ``reading``.
        without: Those that it has no use for.

    Raises:
        CredalError: If several classes are given as one, with commas between them.

    Example:
        >>> @reads_export
        ... def count(export: str, *, reading: Reading) -> None:
        ...     print(export, reading["item"], reading["repeats"])
        >>> count(export="votes.csv", item="id")
        votes.csv id refuse
    """
    own = inspect.signature(command)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in READING.items()
        if name not in without
    ]

    @wraps(command)
    def reading(**given: Any) -> None:
        asked = {each.name: given.pop(each.name, each.default) for each in more}
        command(**given, reading=_as_read(asked))

    kept = [each for name, each in own.parameters.items() if name != "reading"]
    # typer asks for both: the order and the defaults, and the types.
    reading.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
    reading.__annotations__ = {each.name: each.annotation for each in (*kept, *more)}
    return reading


def _as_read(asked: Reading) -> Reading:
    """As ``read_annotations`` takes it."""
    from credalearn.errors import CredalError

    classes = asked.get("classes")
    if classes is not None and len(classes) == 1 and "," in classes[0]:
        repeated = " ".join(f"--classes {name.strip()}" for name in classes[0].split(","))
        raise CredalError(
            f"--classes takes one class; got {classes[0]!r}. To fix: repeat it: {repeated}."
        )
    asked["unsure"] = asked["unsure"] or ()
    return {name: each.value if isinstance(each, Enum) else each for name, each in asked.items()}
