"""Which column of a table people read to label its items."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from credalearn._checks import folded
from credalearn.app.annotations.places import listed, shown
from credalearn.app.items.checked import check_columns
from credalearn.app.steps.predicting import SCHEMA
from credalearn.errors import CredalError

_LETTERS = 20  # of a text, on average: names, classes and dates are shorter


def text_column(
    path: Path,
    frame: pl.DataFrame,
    asked: str | None = None,
    *,
    named: str = "item",
    features: Sequence[str] = (),
) -> str | None:
    """The column asked for, else the one called text, else the only one that holds texts.

    Texts have more than twenty letters on average, and most of them a space.

    Args:
        path: Where the table was read.
        frame: The items, with the columns of ``SCHEMA`` and others.
        asked: What the user named, if anything.
        named: What the table calls the column ``item``.
        features: Columns of the table that the model sees, which are not in the frame.

    Returns:
        Its name in the frame, maybe ``item``; None where no column is text, or more than one may
        be.

    Raises:
        CredalError: If there is no such column, or it is a feature.

    Example:
        >>> said = ["The wound is red and wet.", "Where can I park my car?"]
        >>> frame = pl.DataFrame({"item": ["a", "b"], "site": ["x", "y"], "message": said})
        >>> text_column(Path("new.csv"), frame)
        'message'
        >>> text_column(Path("new.csv"), frame, "site")
        'site'
        >>> text_column(Path("new.csv"), frame, "id", named="id")
        'item'
    """
    others = other_columns(frame)
    if asked is not None:
        if asked in features and asked != named:
            raise CredalError(
                f"the column {shown(asked)} of {path} is a feature of the model: up to thirty of "
                "them stand in a table beside the text in Label Studio. To fix: name the column "
                "of the text, or leave out --text."
            )
        check_columns(path, [named, *others], [asked])
        return "item" if asked == named else asked
    called = sorted((name for name in others if folded(name) == "text"), key=lambda x: x != "text")
    texts = called[:1] or [name for name in others if _holds_texts(frame[name])]
    if not texts and _holds_texts(frame["item"]):
        return "item"
    return texts[0] if len(texts) == 1 else None


def names_alone(path: Path, frame: pl.DataFrame, *, decided: bool) -> str:
    """What to tell where annotators would see no more than the names of the items.

    Args:
        path: Where the table was read.
        frame: The items, with the columns of ``SCHEMA`` and others.
        decided: Whether the table is what ``predict`` wrote.

    Example:
        >>> names_alone(Path("new.npz"), pl.DataFrame({"item": ["a"]}), decided=False)
        'annotators see the names of the items alone. To fix: give a table with a column of texts'
    """
    others = other_columns(frame)
    if others:
        fix = f"name the column that they read with --text; there are {listed(others)}"
    elif decided:
        fix = f"give the table of features in place of {path}, or add a column of texts to it"
    else:
        fix = "give a table with a column of texts"
    return f"annotators see the names of the items alone. To fix: {fix}"


def other_columns(frame: pl.DataFrame) -> list[str]:
    """Those beside what was predicted.

    Example:
        >>> other_columns(pl.DataFrame({"item": ["a"], "score": [0.5], "site": ["x"]}))
        ['site']
    """
    return [name for name in frame.columns if name not in SCHEMA]


def _holds_texts(column: pl.Series) -> bool:
    texts = column.drop_nulls()
    if texts.dtype != pl.String or texts.is_empty():
        return False
    spaced = texts.str.strip_chars().str.contains(r"\s").sum()
    return bool(texts.str.len_chars().sum() > _LETTERS * len(texts) and 2 * spaced > len(texts))
