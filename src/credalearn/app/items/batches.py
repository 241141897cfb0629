"""Items on their way to a model, some at a time.

Shapes: N items of a batch, D features, S pixels.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some items.

    Args:
        items: Their names, text, N.
        X: Inputs as the model takes them, shape (N, D) or (N, 3, S, S).
        extra: Other columns of the table, as they are, or of images their ``image`` (the path
            within the folder); and the column ``DIGEST``, by which items are known again.
    """

    items: pl.Series
    X: np.ndarray
    extra: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The items of a file or folder, in batches, any number of times.

    Args:
        path: The file or folder.
        batches: Starts from the beginning at each call.
        ignored: Columns that are no features of this model.
        broken: Why images could not be read, by item; filled while batches are read.
        row_names: Whether the items are called by their row, and so all different.
        commas: Features in which decimal commas are read.
        named: The column that names the items, as the file calls it.
    """

    path: Path
    batches: Callable[[], Iterator[Batch]]
    ignored: tuple[str, ...] = ()
    broken: dict[str, str] = field(default_factory=dict)
    row_names: bool = False
    commas: tuple[str, ...] = ()
    named: str = "item"


def broken_lines(broken: Mapping[str, str]) -> list[str]:
    """What to tell of images that could not be read: the first five and why, and how many.

    Example:
        >>> broken_lines({"a": "a.png: cut short"})
        ['a: a.png: cut short', 'left out: 1 images that cannot be read']
    """
    told = [f"{name}: {why}" for name, why in list(broken.items())[:5]]
    return [*told, f"left out: {len(broken):,} images that cannot be read"] if broken else []


def rebatched(batches: Iterator[Batch], rows: int) -> Iterator[Batch]:
    """The same items, exactly ``rows`` at a time until the last.

    Example:
        >>> def batch(*names: str) -> Batch:
        ...     return Batch(pl.Series(names), np.zeros((len(names), 1)), pl.DataFrame())
        >>> parts = rebatched(iter([batch("a"), batch("b", "c", "d")]), 2)
        >>> [part.items.to_list() for part in parts]
        [['a', 'b'], ['c', 'd']]
    """
    waiting: list[Batch] = []
    for batch in batches:
        waiting.append(batch)
        while sum(len(each.items) for each in waiting) >= rows:
            whole = _joined(waiting)
            yield _part(whole, 0, rows)
            waiting = [_part(whole, rows, len(whole.items))] if len(whole.items) > rows else []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        pl.concat([each.items for each in batches]),
        np.concatenate([each.X for each in batches]),
        pl.concat([each.extra for each in batches]),
    )


def _part(batch: Batch, start: int, stop: int) -> Batch:
    return Batch(batch.items[start:stop], batch.X[start:stop], batch.extra[start:stop])
