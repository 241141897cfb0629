"""The names that one item goes by: in an export, as a file, in a table from a spreadsheet."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from credalearn.errors import CredalError
from credalearn.escape import escape_csv

How = Literal["path", "path in the address", "file name"]
_UPLOAD = re.compile(r"^[0-9a-f]{8}-(?=.)")  # Label Studio's, before the name of an uploaded file


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
        self._exact = {file.relative_to(folder).as_posix(): file for file in files}
        self._paths: dict[str, list[Path]] = {}
        self._names: dict[str, list[Path]] = {}
        for path, file in self._exact.items():
            self._paths.setdefault(path.removesuffix(file.suffix), []).append(file)
            for name in {path, path.removesuffix(file.suffix), file.name, file.stem}:
                self._names.setdefault(name, []).append(file)

    def find(self, item: str) -> tuple[Path, How] | None:
        """The file of an item and by what it was found; None if there is none.

        Raises:
            CredalError: If two files fit it equally well.
        """
        for how, name in _readings(item):
            if how != "file name" and name in self._exact:
                return self._exact[name], how
            fits = (self._names if how == "file name" else self._paths).get(name, [])
            if len(fits) > 1:
                raise CredalError(
                    f"item {item!r} fits {len(fits)} images: {fits[0]} and {fits[1]}. To fix: name "
                    "items by their path within the folder."
                )
            if fits:
                return fits[0], how
        return None


def unescaped(text: str) -> str:
    """What :func:`escape_csv` was given: without the apostrophe before a formula.

    Example:
        >>> unescaped("'=1+1"), unescaped("'tis")
        ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and escape_csv(text[1:]) == text else text


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
        if _UPLOAD.match(name):
            yield "file name", _UPLOAD.sub("", name)
