"""Small annotations for the examples in docstrings."""

from pathlib import Path

import polars as pl

from credalearn.app.annotations.table import Annotations, Source


def three_items() -> Annotations:
    """Three annotators agree about one item of three.

    Example:
        >>> three_items().counts().tolist()
        [[3.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
    """
    votes = [
        *[("x", "ann", "cat"), ("x", "bo", "cat"), ("x", "cy", "cat")],
        *[("y", "ann", "cat"), ("y", "bo", "dog"), ("z", "ann", "dog"), ("z", "cy", "cat")],
    ]
    table = pl.DataFrame(votes, schema=["item", "annotator", "label"], orient="row")
    table = table.with_columns(weight=pl.lit(1.0))
    source = Source(Path("votes.csv"), "long", "one row a vote", len(votes))
    return Annotations("votes", ("x", "y", "z"), ("cat", "dog"), table, source)
