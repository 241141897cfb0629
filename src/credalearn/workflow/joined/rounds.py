"""Rounds of annotations: a later one is read as what continues the first."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from credalearn.annotations import Annotations, read_annotations
from credalearn.annotations.records import looks_like_json
from credalearn.errors import CredalError
from credalearn.workflow.items.inputs import find_images
from credalearn.workflow.items.names import unescaped
from credalearn.workflow.joined.merging import merge
from credalearn.workflow.tables.blocks import columns_of

_COLUMNS = ("annotator", "label", "weight", "question")
_TOLD_BY_CELLS = {"wide", "counts", "probabilities"}  # a damaged one may pass for another


def read_rounds(
    path: str | Path,
    later: Sequence[Path],
    asked: dict[str, Any],
    *,
    item: str | None = None,
    images: Path | None = None,
    conflicts: Literal["refuse", "newest", "add"] = "refuse",
) -> Annotations:
    r"""Annotations of a first round and of those after it, as one.

    Args:
        path: The first file.
        later: The others, in order.
        asked: Options of :func:`read_annotations`.
        item: Column or field that names the item in the later ones.
        images: Folder of the images, where the items are images.
        conflicts: As for :func:`merge`.

    Raises:
        CredalError: If one cannot be read or merged.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("item,annotator,label\nx,ann,cat\ny,ann,dog\n")
        >>> _ = (folder / "b.csv").write_text("item,annotator,label\nx,bo,dog\n")
        >>> read_rounds(folder / "a.csv", [folder / "b.csv"], {}).counts().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    found = read_annotations(path, **asked)
    for each in later:
        again = read_round(each, found, asked, item=item, images=images)
        found = merge(found, again, conflicts=conflicts)
    return found


def read_round(
    path: str | Path,
    first: Annotations,
    asked: dict[str, Any],
    *,
    item: str | None = None,
    images: Path | None = None,
) -> Annotations:
    r"""Annotations that are to be merged with those of an earlier round.

    Columns that were named for the first round and are not here are found anew: ``defer`` writes
    ``item``, ``annotator`` and ``label``, whatever the first export calls them. So is a format in
    which the file cannot be read: votes may follow counts. An item that goes by another name takes
    that of the first round: another name of the same image, or the name with the apostrophe that
    keeps a spreadsheet from running it.

    Args:
        path: The file.
        first: The earlier round; its classes hold unless others are asked for.
        asked: Options of :func:`read_annotations` for the first round.
        item: Column or field that names the item here.
        images: Folder of the images, where the items are images.

    Raises:
        CredalError: If it cannot be read.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("id,who,what\n=x,ann,cat\ny,ann,dog\n")
        >>> _ = (folder / "b.csv").write_text("item,annotator,label\n'=x,bo,dog\n")
        >>> named = {"annotator": "who", "label": "what"}
        >>> first = read_annotations(folder / "a.csv", **named)
        >>> read_round(folder / "b.csv", first, named).items
        ('=x',)
    """
    # A round may hold votes for one class alone, so it is read with the classes of the first.
    known = {**asked, "classes": asked.get("classes") or first.classes, "item": item}
    found = _read(path, known)
    return _renamed(found, _same_items(first, found, images))


def _read(path: str | Path, known: dict[str, Any]) -> Annotations:
    """In the format that was asked for; else in the one that it is recognised to be in."""
    form = known.get("format")
    try:
        return _with_its_columns(path, known)
    except CredalError as error:
        if form is None:
            raise
        as_asked = error
    try:
        found = _with_its_columns(path, {**known, "format": None})
    except CredalError as error:
        if str(error) == str(as_asked):
            raise
        raise CredalError(f"{as_asked} Read without --format {form}: {error}") from error
    if {form, found.source.format} <= _TOLD_BY_CELLS:
        raise as_asked
    return found


def _with_its_columns(path: str | Path, known: dict[str, Any]) -> Annotations:
    """By the columns that were named, or without those that are not there."""
    try:
        return read_annotations(path, **known)
    except CredalError:
        missing = [name for name in _COLUMNS if known.get(name) and not _has(path, known[name])]
        if not missing:
            raise
        return read_annotations(path, **{**known, **dict.fromkeys(missing)})


def _has(path: str | Path, name: str) -> bool:
    """Whether a table has such a column, or JSON such a text."""
    path = Path(path)
    try:
        content = path.read_bytes()
        if looks_like_json(content[:4096]):
            forms = (json.dumps(name), json.dumps(name, ensure_ascii=False))
            return any(form.encode() in content for form in forms)
        return name.casefold() in (column.casefold() for column in columns_of(path))
    except (OSError, CredalError):
        return True  # what is wrong with the file has been said


def _same_items(first: Annotations, second: Annotations, images: Path | None) -> dict[str, str]:
    """The first round's name of items of the second that have another here."""
    known = set(first.items)
    found = {
        name: unescaped(name)
        for name in second.items
        if name not in known and unescaped(name) in known
    }
    if images is None:
        return found
    strangers = [name for name in second.items if name not in known and name not in found]
    if not strangers:
        return found
    owner = {file: name for name, file in find_images(images, first.items).items()}
    files = find_images(images, strangers)
    return found | {name: owner[file] for name, file in files.items() if file in owner}


def _renamed(annotations: Annotations, names: dict[str, str]) -> Annotations:
    """With other names of items; two items never become one, which training then refuses."""
    taken = set(annotations.items)
    chosen: dict[str, str] = {}
    for name, wanted in names.items():
        if wanted not in taken:
            chosen[name] = wanted
            taken.add(wanted)
    if not chosen:
        return annotations
    item = pl.col("item").cast(pl.String).replace(chosen)
    return Annotations(
        annotations.kind,
        tuple(chosen.get(name, name) for name in annotations.items),
        annotations.classes,
        annotations.table.with_columns(item),
        annotations.source,
    )
