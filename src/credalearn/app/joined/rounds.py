"""Rounds of annotations: a later one is read as what continues the first."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from credalearn.app.annotations import Annotations, read_annotations
from credalearn.app.annotations.fields import field_of
from credalearn.app.annotations.places import many
from credalearn.app.annotations.records import looks_like_json, read_json
from credalearn.app.items.inputs import find_images
from credalearn.app.items.names import unescaped
from credalearn.app.joined.merging import merge
from credalearn.app.tables.blocks import columns_of
from credalearn.errors import CredalError

_COLUMNS = ("annotator", "label", "weight", "question")
_TOLD_BY_CELLS = {"wide", "counts", "probabilities"}  # a damaged one may pass for another


def read_rounds(
    path: str | Path,
    later: Sequence[Path],
    asked: dict[str, Any],
    *,
    items: Sequence[str] = (),
    images: Path | None = None,
    conflicts: Literal["refuse", "newest", "add"] = "refuse",
) -> Annotations:
    r"""Annotations of a first round and of those after it, as one.

    Args:
        path: The first file.
        later: The others, in order.
        asked: Options of :func:`read_annotations`.
        items: Column or field that names the item in the later ones: none, one for all, or one
            for each. Without any it is the first file's, where a later one has it too.
        images: Folder of the images, where the items are images.
        conflicts: As for :func:`merge`.

    Raises:
        CredalError: If one cannot be read or merged, or there are more names than files.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("item,annotator,label\nx,ann,cat\ny,ann,dog\n")
        >>> _ = (folder / "b.csv").write_text("item,annotator,label\nx,bo,dog\n")
        >>> read_rounds(folder / "a.csv", [folder / "b.csv"], {}).counts().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    if items and not later:
        raise CredalError(
            f"--merge-item {items[0]} is about the files of --merge, and there are none. To fix: "
            "name them with --merge, or leave it out."
        )
    if len(items) not in (0, 1, len(later)):
        raise CredalError(
            f"--merge-item is said once for all of --merge or once for each; got {len(items)} for "
            f"{many(len(later), 'file')}. To fix: say it once, or {len(later)} times in that order."
        )
    found = read_annotations(path, **asked)
    for i, each in enumerate(later):
        item = items[min(i, len(items) - 1)] if items else None
        again = _read_round(each, found, asked, item=item, images=images)
        found = merge(found, again, conflicts=conflicts)
    return found


def _read_round(
    path: Path, first: Annotations, asked: dict[str, Any], *, item: str | None, images: Path | None
) -> Annotations:
    """Annotations that are to be merged with those of an earlier round.

    Columns that were named for the first round and are not here are found anew: ``defer`` writes
    ``item``, ``annotator`` and ``label``, whatever the first export calls them. So is a format in
    which the file cannot be read: votes may follow counts. The item's column is the one named for
    this round, else the first round's where it is here too. An item that goes by another name takes
    that of the first round: another name of the same image, or the name with the apostrophe that
    keeps a spreadsheet from running it.
    """
    # A round may hold votes for one class alone, so it is read with the classes of the first.
    known = {**asked, "classes": asked.get("classes") or first.classes}
    known["item"] = item or _first_item(path, first, asked)
    try:
        found = _read(path, known)
    except CredalError as error:
        raise CredalError(re.sub(r"(?<!\w)--item\b", "--merge-item", str(error))) from error
    return _renamed(found, _same_items(first, found, images))


def _first_item(path: Path, first: Annotations, asked: dict[str, Any]) -> str | None:
    """The column that was named for the first round, where this one has it too."""
    name: str | None = asked.get("item")
    if name is None or not _names_items(path, name):
        return None
    # Tools number their tasks as "id", beside the "item" that ``defer`` gave them.
    if name.casefold() == "id" and _names_items(path, "item"):
        return name if _names_items(first.source.path, "item") else None
    return name


def _names_items(path: Path, name: str) -> bool:
    """Whether a table has such a column, or JSON such a field among its first records."""
    try:
        with path.open("rb") as file:
            is_json = looks_like_json(file.read(4096))
        if not is_json:
            return holds(path, name)
        return any(field_of(each.value, name) is not None for each in read_json(path, None).head)
    except (OSError, CredalError):
        return True  # what is wrong with the file will be said


def _read(path: str | Path, known: dict[str, Any]) -> Annotations:
    """In the format that was asked for; else in the one that it is recognized to be in."""
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
        missing = [name for name in _COLUMNS if known.get(name) and not holds(path, known[name])]
        if not missing:
            raise
        return read_annotations(path, **{**known, **dict.fromkeys(missing)})


def holds(path: str | Path, name: str) -> bool:
    r"""Whether a table has such a column, or JSON such a text; true where it cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
        >>> _ = path.write_text("msg_id,label\na,cat\n")
        >>> holds(path, "msg_id"), holds(path, "item")
        (True, False)
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            is_json = looks_like_json(file.read(4096))
        if is_json:
            content = path.read_bytes()
            names = (name, name.rpartition(".")[2])  # as it stands, or the end of a path
            forms = [json.dumps(each, ensure_ascii=asc) for each in names for asc in (True, False)]
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
