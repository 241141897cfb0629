"""A file of annotations into the canonical table, whatever tool wrote it."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from credalearn._checks import nearest
from credalearn.app.annotations.asked import Asked, Repeats
from credalearn.app.annotations.columns import refuse_predictions
from credalearn.app.annotations.csv_tables import read_csv
from credalearn.app.annotations.fields import check_field, field_of
from credalearn.app.annotations.foreign import refuse_foreign
from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.raw import Raw, check_text, text_of
from credalearn.app.annotations.records import Records, from_dicts, looks_like_json, read_json
from credalearn.app.annotations.table import Annotations
from credalearn.app.annotations.text_tables import Table, from_columns, read_parquet
from credalearn.app.annotations.tidy_shares import tidy_bounds, tidy_shares
from credalearn.app.annotations.tidy_votes import tidy_votes
from credalearn.app.readers import READERS, Content
from credalearn.errors import CredalError

_TIDY = {
    "votes": tidy_votes,
    "counts": tidy_shares,
    "probabilities": tidy_shares,
    "bounds": tidy_bounds,
}


def read_annotations(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    item: str | None = None,
    annotator: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    question: str | None = None,
    classes: Sequence[str] | None = None,
    unsure: Sequence[str] = (),
    encoding: str | None = None,
    delimiter: str | None = None,
    repeats: Repeats = "refuse",
) -> Annotations:
    r"""Read annotations, recognizing the tool that wrote them by the content of the file.

    ====================  ==========================================================================
    format                what it is
    ====================  ==========================================================================
    ``long``              CSV, Parquet or JSON Lines, one row a vote: ``task, worker, label``
    ``wide``              one row an item, one column an annotator; an empty cell is no vote
    ``counts``            one row an item, one column a class: how many chose it
    ``probabilities``     one row an item, one column a class
    ``bounds``            ``item, label, at_least``
    ``label-studio``      its JSON; ``label-studio-csv``: its CSV and JSON-MIN
    ``argilla``           flat records, JSON Lines or Parquet
    ``prodigy``           ``db-out``'s JSON Lines
    ``mturk``             batch results, CSV
    ``ground-truth``      SageMaker's manifest or consolidation, with all workers' answers
    ``lewidi``            the JSON of learning with disagreements
    ``doccano``           JSON Lines
    ====================  ==========================================================================

    Names are trimmed and brought into Unicode's form NFC, a label 1.0 is the label 1. A cancelled,
    skipped, rejected or empty answer is counted in ``source.left_out`` and is no vote.

    Args:
        path: The file.
        format: One of the above; None: the first that recognizes the content.
        item: Column or field that names the item; in nested JSON perhaps a path, ``meta.item``.
        annotator: Column or field that names the annotator.
        label: Column or field with the label.
        weight: Column with the weight of a vote.
        question: Which question, where there are several.
        classes: The classes, in the order wanted; any other label is refused.
        unsure: Labels that say "I do not know": the item stays, the vote is for nothing.
        encoding: Of a text file; None: found from its bytes.
        delimiter: Of a table in text; None: the comma, semicolon, tab or bar that fits.
        repeats: Where one annotator votes twice on an item and differently: ``"refuse"``, or the
            ``"last"`` in the file counts; ``source.left_out`` says how many it replaces.

    Raises:
        CredalError: In one line: file, line, value and the nearest fix.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
        >>> _ = path.write_text("task;worker;label\nx;ann;cat\nx;bo;dog\ny;ann;cat\n")
        >>> found = read_annotations(path)
        >>> found.items, found.classes, found.counts().tolist()
        (('x', 'y'), ('cat', 'dog'), [[1.0, 1.0], [1.0, 0.0]])
        >>> print(found.source.words.replace(" (", "; "))
        one row a vote: item 'task', annotator 'worker', label 'label'; semicolon-separated table,
        UTF-8)
    """
    asked = Asked(
        item=item,
        annotator=annotator,
        label=label,
        weight=weight,
        question=question,
        classes=None if classes is None else _names(classes),
        unsure=_names(unsure),
        encoding=encoding,
        delimiter=delimiter,
        format=format,
        repeats=repeats,
    )
    if repeats not in get_args(Repeats):
        raise CredalError(f"repeats is 'refuse' or 'last'; got {shown(repeats)}. To fix: say one.")
    if format is not None and format not in READERS:
        guess = nearest(format, READERS)
        fix = f"say {guess!r}" if guess else f"say one of {listed(list(READERS), 20)}"
        raise CredalError(f"there is no format {shown(format)}. To fix: {fix}.")
    if asked.classes is not None and len(set(asked.classes)) < 2:
        held = listed(asked.classes)
        fix = "name every class, each by itself"
        raise CredalError(f"there must be two classes or more; got {held}. To fix: {fix}.")
    path = Path(path)
    try:
        content = _open(path, asked)
        name, raw = _read(path, content, format, asked)
        return _TIDY[raw.kind](raw, path, name, asked)
    except OSError as error:
        reason = error.strerror or str(error)
        fix = "check the name of the file and that you may read it"
        refuse(path, "", f"the file cannot be read ({reason})", fix=fix)


def _names(given: Sequence[str]) -> tuple[str, ...]:
    """A text is one name, not its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def _open(path: Path, asked: Asked) -> Content:
    """A table or records, by how the file begins."""
    if path.is_dir():
        files = sorted(each.name for each in path.iterdir() if each.is_file())
        held = f"; it holds {listed(files, 3)}" if files else " and it is empty"
        refuse(path, "", f"this is a folder{held}", fix=_files_to_name(path, files))
    if not path.exists():
        near = nearest(path.name, (each.name for each in _beside(path)))
        fix = f"did you mean {str(path.with_name(near))!r}" if near else "check the name"
        refuse(path, "", "there is no such file", fix=fix)
    with path.open("rb") as file:
        start = file.read(4096)
    if not start:
        refuse(path, "", "the file is empty", fix="export the annotations again")
    if start.startswith(b"PAR1"):
        rows = read_parquet(path)
        return rows if isinstance(rows, Table) else from_dicts(path, "Parquet", rows)
    if looks_like_json(start):
        return read_json(path, asked.encoding)
    refuse_foreign(path, start)
    return read_csv(path, asked.encoding, asked.delimiter)


def _files_to_name(folder: Path, files: list[str]) -> str:
    """One; or, of a folder with a file a person, as doccano's export unpacks, how all are read."""
    people = [str(folder / name) for name in files if name.endswith(".jsonl")]
    if len(people) < 2:
        return "name one file, the export itself"
    first, *others = map(shlex.quote, people)
    merged = " ".join(f"--merge {name}" for name in others[:2]) + " …" * (len(others) > 2)
    return (
        f"name one file, the export itself; if each holds one person's labels, say {first} "
        f"{merged}, where items that the first lacks are only trained on, or make one table of "
        "all, as the README shows"
    )


def _beside(path: Path) -> list[Path]:
    try:
        return list(path.parent.iterdir())
    except OSError:
        return []


def _read(path: Path, content: Content, name: str | None, asked: Asked) -> tuple[str, Raw]:
    """By the reader asked for, or the first that recognizes the content."""
    if name is not None:
        nested = READERS[name].nested
        if nested == isinstance(content, Table):
            if nested:
                fix = "give the tool's own export, or another format"
                refuse(path, "", f"{name} is a format of JSON; this is a table", fix=fix)
            assert isinstance(content, Records)
            content = _flat(content, asked)
        return _by(name, content, asked)
    if isinstance(content, Records):
        for known, reader in READERS.items():
            if reader.nested and reader.recognize(content, asked):
                return _by(known, content, asked)
        content = _flat(content, asked)
    refuse_predictions(content)
    for known, reader in READERS.items():
        if reader.recognize(content, asked):
            return _by(known, content, asked)
    return _by("long", content, asked)  # which says what is missing


def _by(name: str, content: Content, asked: Asked) -> tuple[str, Raw]:
    if isinstance(content, Records):
        check_field(content, asked.item, option="item")
    return name, READERS[name].read(content, asked)


def _flat(content: Records, asked: Asked) -> Table:
    """Records as a table, without the fields that hold lists or objects: those are no labels."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for line, key, value in content:
        own = key is None or not _nested(value.get("id", []))
        rows.append(value if own else {**value, "id": key})
        lines.append(line)
    # By columns, as most cells are text: twice as fast as by rows.
    names = dict.fromkeys(name for row in rows for name in row if name)
    flat = [n for n in names if any(n in row and not _nested(row[n]) for row in rows)]
    if not flat:
        rule = "the records hold no text and no number of their own"
        refuse(content.path, f"line {lines[0]}", rule, fix="export the file again")
    columns = {
        name: [c if type(c := row.get(name)) is str else _cell(c) for row in rows] for name in flat
    }
    for name in (asked.item, asked.annotator, asked.label):
        if name is not None and name not in names:
            cells = [_cell(field_of(row, name)) for row in rows]
            columns |= {name: cells} if any(cell is not None for cell in cells) else {}
    try:
        return from_columns(content.path, content.words, columns, lines)
    except UnicodeEncodeError:
        for i, line in enumerate(lines):
            for name, cells in columns.items():
                for text in (name, cells[i]) if cells[i] is not None else ():
                    check_text(content.path, line, text)
        raise


def _cell(value: object) -> str | None:
    return None if _nested(value) else text_of(value)


def _nested(value: object) -> bool:
    return isinstance(value, dict | list)
