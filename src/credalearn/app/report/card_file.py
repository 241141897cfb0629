"""The file of a model card: its name, and whether a file is one that credalearn wrote."""

from pathlib import Path

from credalearn.errors import CredalError

CARD = "MODEL_CARD.md"
CARD_MARK = "<!-- model card by credalearn -->"


def is_card(path: Path) -> bool:
    """Whether a file is a model card that credalearn wrote, by its first line."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline().rstrip() == CARD_MARK.encode()


def refuse_foreign_card(path: Path) -> None:
    """Refuse to replace a file that credalearn did not write.

    Raises:
        CredalError: If there is one.
    """
    if path.exists() and not is_card(path):
        raise CredalError(
            f"{path} exists and is not a model card of credalearn. To fix: rename it, or choose "
            "another file name."
        )
