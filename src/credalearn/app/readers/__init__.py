"""The readers, one file per format, and the function that finds the right one."""

from dataclasses import replace
from os import PathLike
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

from credalearn._checks import folded
from credalearn._formats import shown
from credalearn._options import options_of
from credalearn.app.annotations.merge import merge
from credalearn.app.annotations.table import Annotations
from credalearn.app.column_names import ITEM, find
from credalearn.app.readers import (
    argilla,
    doccano,
    ground_truth,
    label_studio,
    lewidi,
    mturk,
    nested,
    prodigy,
)
from credalearn.app.readers._content import HEAD, Content, field_of
from credalearn.app.readers._tidy import tidy
from credalearn.app.readers.options import ReaderOptions, RoundOptions
from credalearn.app.readers.tables import TABLES, Reader
from credalearn.app.sources import Source, open_source, texts
from credalearn.errors import CredalError

# In the order in which they look at a content: formats with fields of their own come first.
_NESTED: dict[str, ModuleType] = {  # which read the records of JSON
    "label-studio": label_studio,
    "ground-truth": ground_truth,
    "argilla": argilla,
    "prodigy": prodigy,
    "lewidi": lewidi,
    "nested": nested,
    "doccano": doccano,
}
_ASKING = ("label-studio", "argilla", "ground-truth")  # where a label is the answer to a question
READERS: dict[str, Reader] = {
    **{name: (each.recognize, each.read) for name, each in _NESTED.items()},
    "mturk": (mturk.recognize, mturk.read),
    "label-studio-csv": (label_studio.recognize_csv, label_studio.read_csv),
    **TABLES,
}


def read_annotations(source: str | PathLike[str] | Any, **options: Any) -> Annotations:
    """Read annotations, recognizing by the content which tool wrote them.

    ====================  ==========================================================================
    format                what it is
    ====================  ==========================================================================
    ``long``              CSV, Parquet or JSON Lines, one row per vote: ``task, worker, label``
    ``wide``              one row per item, one column per annotator; an empty cell is no vote
    ``counts``            one row per item, one column per class: the number of votes
    ``probabilities``     one row per item, one column per class
    ``bounds``            ``item, label, at_least``
    ``statements``        ``item, annotator, top, top_percent, second, second_percent, impossible``
    ``label-studio``      its JSON; ``label-studio-csv``: its CSV and JSON-MIN
    ``argilla``           its records, JSON, JSON Lines or Parquet, nested or flat
    ``prodigy``           the JSON Lines of ``db-out``
    ``mturk``             batch results, CSV
    ``ground-truth``      SageMaker's manifest or consolidation, with the answers of all workers
    ``lewidi``            the JSON of Learning with Disagreements
    ``doccano``           JSON Lines
    ``nested``            JSON with counts or a list of labels in each record, as in ChaosNLI
    ====================  ==========================================================================

    Names are trimmed and brought into Unicode's form NFC; a label 1.0 is the label 1. A canceled,
    skipped, rejected or empty answer is counted in ``source.left_out`` and is no vote.

    Args:
        source: Path of the export; or a pandas or polars table; or an array (items, classes) of
            counts or probabilities, with ``format``.
        **options: Fields of :class:`~credalearn.app.readers.options.RoundOptions`: ``item``,
            ``annotator``, ``label``, ``weight``, ``question``, ``classes``, ``map``, ``unsure``,
            ``missing``, ``format``, ``encoding``, ``delimiter`` and ``repeats``; ``merge`` (paths
            or tables of later rounds), ``merge_item`` and ``merge_conflicts``.

    Returns:
        Items, classes and the table of what people said.

    Raises:
        CredalError: In one line: the file, the place, the value and the remedy.

    Example:
        >>> votes = [("x", "ann", "cat"), ("x", "bo", "dog"), ("y", "ann", "cat")]
        >>> table = pl.DataFrame(votes, schema=["task", "worker", "label"], orient="row")
        >>> found = read_annotations(table)
        >>> found.items, found.classes, found.counts().tolist()
        (('x', 'y'), ('cat', 'dog'), [[1.0, 1.0], [1.0, 0.0]])
    """
    if isinstance(source, np.ndarray) and source.ndim == 2:
        names = [str(number) for number in range(source.shape[1])]
        rows = pl.Series("item", range(len(source))).cast(pl.String)
        source = pl.from_numpy(source, schema=names).insert_column(0, rows)
    asked = options_of("read_annotations", RoundOptions, options)
    found = _read(_opened(source, asked), asked)
    for each in asked.merge:
        again = read_later(each, found, item=asked.merge_item)
        found = merge(found, again, conflicts=asked.merge_conflicts)
    sources = [each for each, _ in found.source.tables]
    for name in asked.ignore:
        if not any(_has(each, name) for each in sources):
            sources[0].column(name, option="ignore")
    return found


def read_votes(source: Any, options: ReaderOptions, *, usual: str | None = None) -> Annotations:
    """Annotations next to other inputs: ``item`` may name a column that only those have.

    ``usual`` names the items where no column has a name that the readers know.
    """
    opened = _opened(source, options)
    if options.item is not None and not _has(opened, options.item):
        options = replace(options, item=None)
    if options.item is None and usual in opened.columns and find(opened.columns, ITEM) is None:
        options = replace(options, item=usual)
    return _read(opened, options)


def read_later(
    source: str | PathLike[str] | Any, first: Annotations, *, item: str | None = None
) -> Annotations:
    """Annotations of a later round or of another split, as they continue the first."""
    options = first.source.reading or ReaderOptions()
    opened = _opened(source, options, called="the table of later votes")
    kept: dict[str, Any] = {
        role: None if (name := getattr(options, role)) is None or not _has(opened, name) else name
        for role in ("item", "annotator", "label", "weight", "question")
    }
    # Tools number their tasks as "id", next to the "item" that ``defer`` gave them.
    if kept["item"] == "id" and _has(opened, "item") and first.source.item != "item":
        kept["item"] = "item"
    kept |= {"item": item} if item is not None else {}
    later = replace(options, **kept, classes=options.classes or first.classes)
    try:
        return _read(opened, later)
    except CredalError:
        if options.format is None:
            raise
        return _read(opened, replace(later, format=None))


def _opened(data: Any, options: ReaderOptions, *, called: str = "the table of votes") -> Source:
    how = {"encoding": options.encoding, "delimiter": options.delimiter}
    return open_source(data, **how, called=called)


def _read(source: Source, options: ReaderOptions) -> Annotations:
    """By the reader asked for, or the first that recognizes the content."""
    if any("\0" in name for name in source.columns):
        source.refuse("a column's name contains a null character", fix="rename it")
    try:
        empty = pl.DataFrame(schema=dict.fromkeys(source.columns, pl.String))
        head = texts(next(source.blocks(), empty).head(HEAD) if source.columns else empty)
        content = Content(source, options, head, source.columns, source.records)
        name: str | None = options.format
        likely = [each for each in READERS if content.records or each not in _NESTED]
        found = (each for each in likely if READERS[each][0](content))
        name = name or next(found, "long")
        if name in _NESTED and not content.records:
            source.refuse(f"{name} is JSON, and this is a table", fix="pass another format=")
        for role in ("item", "annotator", "label", "weight"):
            asked = getattr(options, role)
            question = role == "label" and name in _ASKING and options.question in (None, asked)
            if asked is not None and not question and not _has(source, asked):
                source.column(asked, option=role)
        return tidy(READERS[name][1](content), name, options)
    except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON can escape
        raise CredalError(
            f"{source.path}: {shown(error.object)} is not valid Unicode text. To fix: export the "
            "file again as UTF-8."
        ) from error


def _has(source: Source, name: str) -> bool:
    """Whether a table has a column of about that name, or fields of one; or some record a field."""
    columns = {folded(part) for each in source.columns for part in (each, each.partition(".")[0])}
    values = (field_of(each.value, name) for each in source.records)
    return folded(name) in columns or any(value is not None for value in values)
