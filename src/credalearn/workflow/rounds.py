"""A later round of annotations, read as what continues the first."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from credalearn.annotations import Annotations, read_annotations
from credalearn.annotations.records import looks_like_json
from credalearn.errors import CredalError
from credalearn.workflow.blocks import columns_of
from credalearn.workflow.inputs import find_images
from credalearn.workflow.item_names import unescaped

_COLUMNS = ("annotator", "label", "weight", "question")


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
    ``item``, ``annotator`` and ``label``, whatever the first export calls them. An item that goes
    by another name takes that of the first round: another name of the same image, or the name
    with the apostrophe that keeps a spreadsheet from running it.

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
    try:
        found = read_annotations(path, **known)
    except CredalError:
        missing = [name for name in _COLUMNS if known.get(name) and not _has(path, known[name])]
        if not missing:
            raise
        found = read_annotations(path, **{**known, **dict.fromkeys(missing)})
    return _renamed(found, _same_items(first, found, images))


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
