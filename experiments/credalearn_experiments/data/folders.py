"""Folders with data files, which the user names; nothing is downloaded."""

import os
from dataclasses import dataclass
from pathlib import Path

from credalearn.errors import CredalError

DATA_VARIABLE = "CREDALEARN_DATA"


class MissingDataError(CredalError):
    """A file or folder of data is missing; a damaged one is another error."""


@dataclass(frozen=True, slots=True)
class DataFolders:
    """The folders that contain data sets, in the order in which they are searched."""

    folders: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for folder in self.folders:
            if not folder.is_dir():
                raise CredalError(
                    f"a data folder must exist; {str(folder)!r} does not. To fix: create it, or "
                    f"pass another as --data or {DATA_VARIABLE}."
                )

    @classmethod
    def named(cls, option: str | None = None) -> "DataFolders":
        """The folders of the option, or of ``CREDALEARN_DATA``; several with ``os.pathsep``."""
        text = os.environ.get(DATA_VARIABLE, "") if option is None else option
        return cls(
            tuple(Path(name).expanduser().absolute() for name in text.split(os.pathsep) if name)
        )

    def check_named(self, what: str) -> None:
        """Refuse to look for something where no folder is named."""
        if not self.folders:
            raise MissingDataError(
                f"{what} cannot be read: no data folder is named. To fix: pass --data FOLDER, or "
                f"set the environment variable {DATA_VARIABLE}."
            )

    def look(self, *names: str) -> Path | None:
        """The first of these relative paths that exists in a folder, or None."""
        paths = (folder / name for folder in self.folders for name in names)
        return next((path for path in paths if path.exists()), None)

    def find(self, *names: str, what: str, get: str) -> Path:
        """As :meth:`look`, or a ``MissingDataError`` with what is missing and how to get it."""
        self.check_named(what)
        found = self.look(*names)
        if found is None:
            wanted, places = " or ".join(names), ", ".join(map(str, self.folders))
            raise MissingDataError(f"{what} is missing: no {wanted} in {places}. To fix: {get}.")
        return found
