"""The names that one item goes by: in an export, as a file, in a table from a spreadsheet."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from credalearn._escape import escape_csv
from credalearn.errors import CredalError

How = Literal["path", "path in the address", "file name"]
_Index = dict[str, list[Path]]
UPLOAD = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio's, before the name of an uploaded file


class ImageNames:
    """Image files by the names that exports give them.

    Args:
        files: Paths below the folder.
        folder: That folder.

    Example:
        >>> names = ImageNames([Path("img/a/1.png"), Path("img/b/2.png")], Path("img"))
        >>> names.find("a/1.png"), names.find("/data/upload/3/1a2b3c4d-2.png")
        ((PosixPath('img/a/1.png'), 'path'), (PosixPath('img/b/2.png'), 'file name'))
    """

    def __init__(self, files: Sequence[Path], folder: Path) -> None:
        # By the whole path, by it without its end, and by all that a file may be called.
        self._exact: _Index = {}
        self._paths: _Index = {}
        self._names: _Index = {}
        # The first and the last again, the ends in small letters.
        self._exact_small: _Index = {}
        self._names_small: _Index = {}
        for file in files:
            path, name = (nfc(x) for x in (file.relative_to(folder).as_posix(), file.name))
            stems = [each.removesuffix(file.suffix) for each in (path, name)]
            self._exact.setdefault(path, []).append(file)
            self._exact_small.setdefault(_small_end(path), []).append(file)
            self._paths.setdefault(stems[0], []).append(file)
            for each in {path, name, *stems}:
                self._names.setdefault(each, []).append(file)
            for each in {_small_end(path), _small_end(name)}:
                self._names_small.setdefault(each, []).append(file)

    def find(self, item: str) -> tuple[Path, How] | None:
        """The file of an item and by what it was found; None if there is none.

        Raises:
            CredalError: If two files fit it equally well.
        """
        for how, name in _readings(item):
            fits = self._fits(nfc(name), by_path=how != "file name")
            if len(fits) > 1:
                raise CredalError(
                    f"item {item!r} fits {len(fits)} images: {fits[0]} and {fits[1]}. To fix: name "
                    "items by their path within the folder."
                )
            if fits:
                return fits[0], how
        return None

    def _fits(self, name: str, *, by_path: bool) -> list[Path]:
        """The files that a name means, the most literal: img.png is img.PNG if nothing else."""
        literal = (self._exact, self._paths) if by_path else (self._names,)
        for index in literal:
            if name in index:
                return index[name]
        small = self._exact_small if by_path else self._names_small
        return small.get(_small_end(name), [])


def nfc(name: str) -> str:
    """A name in Unicode's form NFC, as annotations have it; folders from a Mac have another.

    Example:
        >>> nfc("cafe\u0301") == "caf\u00e9"
        True
    """
    return unicodedata.normalize("NFC", name)


def unescaped(text: str) -> str:
    """What :func:`escape_csv` was given: without the apostrophe before a formula.

    Example:
        >>> unescaped("'=1+1"), unescaped("'tis")
        ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and escape_csv(text[1:]) == text else text


def _small_end(name: str) -> str:
    """IMG.PNG as IMG.png."""
    before, dot, end = name.rpartition(".")
    return f"{before}{dot}{end.lower()}" if dot else name


def _readings(item: str) -> Iterator[tuple[How, str]]:
    """What the name may mean, the most literal first."""
    whole = item.replace("\\", "/")
    bare, _, query = whole.partition("?")
    given = [unquote(part[2:]) for part in query.split("&") if part.startswith("d=")]
    yield "path", whole
    for path in given:
        yield "path in the address", path
    texts = list(dict.fromkeys((*given, bare, unquote(bare), whole)))
    for text in texts:
        # The longest path that is known: exports often carry the folders of another machine.
        parts = text.split("/")
        for start in range(len(parts)):
            yield "file name", "/".join(parts[start:])
    for text in texts:
        name = text.rpartition("/")[2]
        if UPLOAD.match(name):
            yield "file name", UPLOAD.sub("", name)
