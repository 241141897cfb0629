"""The items that a trained model is to predict, a batch at a time, checked on the way."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from credalearn._formats import shown
from credalearn.app.encoders import open_encoder
from credalearn.app.features import (
    Features,
    feature_columns,
    feature_values,
    item_column,
    item_names,
    row_digests,
)
from credalearn.app.images import IMAGE_SUFFIXES, check_readable, image_files, nfc, read_images
from credalearn.app.run import Run
from credalearn.app.sources import open_source
from credalearn.app.texts import join_texts, text_digests
from credalearn.errors import CredalError

_TEXTS = 2000  # encoded at a time: a text has a thousand terms
# With a larger share of inputs that several items have, a new item may have another's by chance.
_SHARED_INPUTS = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some items."""

    items: pl.Series  # their names, text, N
    X: Features  # inputs as the model takes them, shape (N, D), (N, 3, S, S) or, texts, (N,)
    digests: list[str]  # of the inputs, to recognize items
    extra: pl.DataFrame  # other columns and those of the text; ``image``, the path of an image


@dataclass(frozen=True, slots=True, eq=False)
class ItemStream:
    """The items of a table or folder, once."""

    name: str  # what messages call it
    batches: Iterator[Batch]  # the items
    place: Callable[[int], str]  # from a row to where it is, such as ``"items.csv, line 7"``
    ignored: tuple[str, ...] = ()  # columns that are not features of the model
    unreadable: dict[str, str] = field(default_factory=dict)  # why not, by item
    unseen: Counter[tuple[str, str]] = field(default_factory=Counter)  # as ``unseen_values`` counts


def open_items(run: Run, data: Any, *, item: str | None = None) -> ItemStream:
    """The items in ``data``, as the run's model takes them."""
    stream = _images(run, data) if run.takes_images else _table(run, data, item)
    if not run.facts.inputs.is_frozen:
        return stream
    encode = open_encoder(run.facts.inputs)
    batches = (replace(each, X=encode(np.asarray(each.X))) for each in stream.batches)
    return replace(stream, batches=batches)


def _table(run: Run, data: Any, item: str | None) -> ItemStream:
    facts, inputs = run.facts, run.facts.inputs
    if inputs.kind == "texts" and isinstance(data, list | tuple):
        data = pl.DataFrame({"item": map(str, range(len(data))), inputs.texts[0]: data})
    source = open_source(data)
    columns = [source.column(name, option=None) for name in inputs.texts]
    columns = columns or feature_columns(source, inputs.features)
    if item is not None:
        item = source.column(item, option="item")
    beside = (facts.group, facts.gold, facts.split, *inputs.dropped)
    others = [name for name in (*columns, *beside) if name and name != item]
    named = item_column(source, (item, inputs.item), others)
    ignored = tuple(name for name in source.columns if name not in {*columns, named})

    def batches() -> Iterator[Batch]:
        row = 0
        most = _TEXTS if inputs.texts else sys.maxsize
        for block in (part for each in source.blocks() for part in each.iter_slices(most)):
            items, table = item_names(source, block[named], start=row), block.select(columns)
            if inputs.texts:
                X: Features = join_texts(table, inputs.texts)
                extra = block.select(ignored, **dict(zip(inputs.texts, table, strict=True)))
                yield Batch(items, X, text_digests(X), extra)
            else:
                X = feature_values(source, table, items, categories=inputs.categories, start=row)
                yield Batch(items, X, row_digests(X), block.select(ignored))
            row += len(block)
        if not row:
            source.refuse("the table has no rows", fix="add the items")

    return ItemStream(str(source.path), batches(), source.where, ignored)


def _images(run: Run, data: Any) -> ItemStream:
    folder = Path(data) if isinstance(data, str | Path) else None
    if folder is None or not folder.is_dir():
        raise CredalError(
            f"the model takes images, and {shown(str(data))} is not a folder. To fix: pass the "
            "folder of the images."
        )
    files = image_files(folder)
    size = run.facts.inputs.image_size or 0
    trained = run.items["item"].head(100)
    with_suffix = any(name.lower().endswith(IMAGE_SUFFIXES) for name in trained)
    unreadable: dict[str, str] = {}

    def named(file: Path) -> str:
        within = file.relative_to(folder)
        return nfc((within if with_suffix else within.with_suffix("")).as_posix())

    def batches() -> Iterator[Batch]:
        for read in read_images(files, size):
            unreadable.update({named(file): x for file, x in read if isinstance(x, str)})
            check_readable(list(unreadable.values()), len(files))
            good = {file: x for file, x in read if not isinstance(x, str)}
            if good:
                pixels, digests = zip(*good.values(), strict=True)
                items = pl.Series("item", [named(file) for file in good], dtype=pl.String)
                paths = pl.DataFrame({"image": [x.relative_to(folder).as_posix() for x in good]})
                yield Batch(items, np.stack(pixels).astype(np.float32), list(digests), paths)

    place = lambda row: f"{folder}, image {row + 1}"  # noqa: E731
    return ItemStream(str(folder), batches(), place, unreadable=unreadable)


def known_items(run: Run, *splits: str) -> Callable[[Iterable[str], Iterable[str]], list[bool]]:
    """Which items are in these splits, by the digest of their input; if many share it, by name."""
    own = run.items.filter(pl.col("split").is_in(splits)).select("item", "digest")
    known, contents, digests = set(own.iter_rows()), set(own["digest"]), run.items["digest"]
    if not run.takes_images:
        shared = set(digests.filter(digests.is_duplicated()))
        by_chance = len(shared) > _SHARED_INPUTS * digests.n_unique()
        contents -= contents if by_chance else shared
    return lambda items, digests: [
        pair[1] in contents or pair in known for pair in zip(items, digests, strict=True)
    ]
