"""Annotations made by hand, for tests."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from credalearn.app.annotations.table import Annotations, Origin
from credalearn.app.facts import Kind

Vote = tuple[str, str | None, str | None]  # item, annotator, label


def votes_of(
    votes: Sequence[Vote],
    *,
    items: tuple[str, ...] | None = None,
    classes: tuple[str, ...] | None = None,
    weight: float = 1.0,
) -> Annotations:
    """Votes; items and classes are those of the votes unless given."""
    schema = dict.fromkeys(("item", "annotator", "label"), pl.String)
    table = pl.DataFrame(votes, schema=schema, orient="row").with_columns(weight=pl.lit(weight))
    items = items or tuple(dict.fromkeys(item for item, _, _ in votes))
    classes = classes or tuple(sorted({label for _, _, label in votes if label is not None}))
    origin = Origin(Path("votes.csv"), "long", "by hand")
    return Annotations("votes", items, classes, table, origin)


def shares_of(kind: Kind, classes: tuple[str, ...], **rows: list[float]) -> Annotations:
    """Counts or probabilities by item."""
    columns = {name: [float(row[k]) for row in rows.values()] for k, name in enumerate(classes)}
    table = pl.DataFrame({"item": list(rows), **columns})
    origin = Origin(Path(f"{kind}.csv"), kind, "by hand")
    return Annotations(kind, tuple(rows), classes, table, origin)


def bounds_of(*bounds: tuple[str, str, float]) -> Annotations:
    """Lower bounds: item, label, at least."""
    table = pl.DataFrame(bounds, schema=["item", "label", "at_least"], orient="row")
    items, classes = (tuple(table[name].unique(maintain_order=True)) for name in ("item", "label"))
    origin = Origin(Path("bounds.csv"), "bounds", "by hand")
    return Annotations("bounds", items, classes, table, origin)


def crowd(num_items: int, *, bad: int = 0) -> list[Vote]:
    """Four people who agree 90 % of the time, and one who is always wrong on the first items."""
    dice = np.random.default_rng(0)
    votes: list[Vote] = []
    for i in range(num_items):
        truth = int(dice.integers(3))
        for who in "abcd":
            label = truth if dice.random() < 0.9 else int(dice.integers(3))
            votes.append((f"i{i}", who, str(label)))
        if i < bad:
            votes.append((f"i{i}", "bad", str((truth + 1) % 3)))
    return votes


def three_items() -> Annotations:
    """Three annotators who agree about one item of three."""
    return votes_of(
        [
            *[("x", "ann", "cat"), ("x", "bo", "cat"), ("x", "cy", "cat")],
            *[("y", "ann", "cat"), ("y", "bo", "dog"), ("z", "ann", "dog"), ("z", "cy", "cat")],
        ]
    )
