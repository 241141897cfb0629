"""Where data files lie: folders that the user names, never a download."""

import os
from collections.abc import Sequence
from pathlib import Path

from credalearn.errors import CredalError

DATA_VARIABLE = "CREDALEARN_DATA"


class MissingDataError(CredalError):
    """A file or folder of data that is not there; one that is there but damaged is another error.

    Example:
        >>> issubclass(MissingDataError, CredalError)
        True
    """


class DataFolders:
    """The folders that hold data sets, in the order in which they are searched.

    Args:
        folders: Folders that exist; the first that holds a file wins. None at all will do where
            the data come with the package.

    Raises:
        CredalError: If one of them does not exist.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "votes.npy").write_bytes(b"")
        >>> DataFolders([folder]).find("votes.npy", what="votes", get="write some").name
        'votes.npy'
    """

    __slots__ = ("folders",)

    folders: tuple[Path, ...]

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(Path(folder) for folder in folders)
        for folder in self.folders:
            if not folder.is_dir():
                raise CredalError(
                    f"a data folder must exist; {str(folder)!r} does not. "
                    f"To fix: create it, or name another by --data or {DATA_VARIABLE}."
                )

    @classmethod
    def named(cls, option: str | Path | None = None) -> "DataFolders":
        """The folders that ``option`` names, else those of the variable ``CREDALEARN_DATA``.

        Either may hold several, with ``os.pathsep`` between them (a colon; a semicolon on
        Windows).

        Raises:
            CredalError: If a folder does not exist.
        """
        text = os.environ.get(DATA_VARIABLE, "") if option is None else str(option)
        names = [name for name in text.split(os.pathsep) if name]
        return cls([Path(name).expanduser() for name in names])

    def check_named(self, what: str) -> None:
        """Refuse to look for something where no folder is named.

        Raises:
            MissingDataError: If there is none.
        """
        if not self.folders:
            raise MissingDataError(
                f"{what} cannot be read: no data folder is named. To fix: give --data FOLDER, or "
                f"set the environment variable {DATA_VARIABLE}."
            )

    def look(self, *names: str) -> Path | None:
        """The first of the alternative relative paths that exists in a folder, or nothing."""
        for folder in self.folders:
            for name in names:
                if (folder / name).exists():
                    return folder / name
        return None

    def find(self, *names: str, what: str, get: str) -> Path:
        """The first of the alternative relative paths that exists in a folder.

        Args:
            *names: Alternatives, each the relative path of a file or a folder.
            what: What is looked for, for the message.
            get: How to get it, for the message.

        Raises:
            MissingDataError: If no folder holds any of them.
        """
        self.check_named(what)
        found = self.look(*names)
        if found is None:
            wanted = " or ".join(names)
            places = ", ".join(str(folder) for folder in self.folders)
            raise MissingDataError(f"{what} is missing: no {wanted} in {places}. To fix: {get}.")
        return found

    def __repr__(self) -> str:
        return f"DataFolders({[str(folder) for folder in self.folders]})"
