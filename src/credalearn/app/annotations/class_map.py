"""Labels that are read as classes: ``-3,-2,-1=abusive 0,1=fine``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from credalearn._formats import listed, shown
from credalearn.app.annotations.table import Annotations
from credalearn.errors import CredalError


def parse_map(given: Sequence[str]) -> dict[str, str]:
    """The class of each label; a text with several ``=`` has one group per word."""
    groups: dict[str, str] = {}
    split = ([text] if text.count("=") == 1 else text.split() for text in given)
    for group in (each for several in split for each in several):
        labels, _, name = (part.strip() for part in group.rpartition("="))
        for label in (each.strip() for each in labels.split(",")):
            if not label or not name or groups.setdefault(label, name) != name:
                raise CredalError(
                    f"a map must be labels, = and their class, each label once; got {shown(group)}."
                    " To fix: write it as '-3,-2,-1=abusive 0,1=fine', or each class by itself."
                )
    return groups


def map_classes(
    annotations: Annotations, groups: Mapping[str, str], classes: Sequence[str] | None
) -> Annotations:
    """The annotations with classes in place of their labels, and how many votes each has."""
    names = tuple(classes or dict.fromkeys(groups.values()))
    if set(names) != set(groups.values()) or len(names) < 2:
        raise CredalError(
            f"the map must lead to {listed(names)}, at least two classes; it leads to "
            f"{listed(sorted(set(groups.values())))}. To fix: correct map= or classes=."
        )
    table, label = annotations.table, pl.col("label").replace_strict(groups, return_dtype=pl.String)
    if annotations.kind == "votes":
        table = table.with_columns(label)
    elif annotations.kind == "bounds":  # bounds of different labels add up
        columns = table.columns
        table = table.with_columns(label).group_by("item", "label", maintain_order=True).sum()
        table = table.select(columns)
    else:
        of_class = {name: [each for each in groups if groups[each] == name] for name in names}
        sums = [pl.sum_horizontal(each).alias(name) for name, each in of_class.items()]
        table = table.select("item", *sums)
    found = Annotations(annotations.kind, annotations.items, names, table, annotations.source)
    said = [
        f"{name}: {count:,.10g} ({', '.join(each for each in groups if groups[each] == name)})"
        for name, count in zip(names, found.sparse_counts().sum(0), strict=True)
    ]
    notes = (*annotations.source.notes, f"votes by class: {', '.join(said)}")
    return replace(found, source=replace(annotations.source, notes=notes))
