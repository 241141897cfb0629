"""The least certain of many items, found in one pass: what a team has the time to look at."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from credalearn.app.tables.blocks import blocks
from credalearn.app.tables.writing import write_frames


def defer_least_certain(
    frames: Iterator[pl.DataFrame], schema: dict[str, type[pl.DataType]], count: int
) -> Iterator[pl.DataFrame]:
    """The same frames with a ``decision``: defer for as many as asked, predict for the others.

    Which they are is known at the end alone, so the frames wait in a temporary file. Of items with
    equal scores the first are deferred.

    Args:
        frames: With a column ``score``.
        schema: Name and type of each column.
        count: How many to defer, 0 or more; all where there are fewer.

    Example:
        >>> frame = pl.DataFrame({"score": [0.2, 0.7, 0.7, 0.1]})
        >>> found = defer_least_certain(iter([frame]), {"score": pl.Float64}, 1)
        >>> next(found)["decision"].to_list()
        ['predict', 'defer', 'predict', 'predict']
    """
    scores, rows = np.empty(0), np.empty(0, np.int64)
    done = 0

    def seen() -> Iterator[pl.DataFrame]:
        nonlocal scores, rows, done
        for frame in frames:
            scores = np.append(scores, frame["score"].to_numpy())
            rows = np.append(rows, np.arange(done, done + len(frame)))
            least = np.argsort(-scores, kind="stable")[:count]
            scores, rows = scores[least], rows[least]
            done += len(frame)
            yield frame

    with TemporaryDirectory(prefix="credalearn-") as folder:
        path = Path(folder) / "predicted.parquet"
        write_frames(path, seen(), schema)
        start = 0
        for block in blocks(path):
            deferred = np.isin(np.arange(start, start + len(block)), rows)
            decision = pl.Series("decision", np.where(deferred, "defer", "predict"), pl.String)
            yield block.with_columns(decision)
            start += len(block)
