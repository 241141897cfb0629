"""The file of a model card: its name, and whether one is credalearn's own."""

from pathlib import Path

from credalearn.errors import CredalError

CARD = "MODEL_CARD.md"  # in the folder of the model
CARD_MARK = "<!-- model card by credalearn -->"


def is_card(path: Path) -> bool:
    """Whether a file is a model card that credalearn wrote, by its first line.

    Raises:
        CredalError: If it cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "MODEL_CARD.md"
        >>> _ = path.write_text("# My model")
        >>> is_card(path)
        False
    """
    if not path.is_file():
        return False
    try:
        return path.read_text(encoding="utf-8", errors="replace").startswith(CARD_MARK)
    except OSError as error:
        raise CredalError(f"{path} cannot be read: {error.strerror or error}.") from error


def refuse_foreign_card(path: Path) -> None:
    """Refuse the place of a model card where something else is.

    Raises:
        CredalError: If something is there that credalearn did not write.

    Example:
        >>> import tempfile
        >>> refuse_foreign_card(Path(tempfile.mkdtemp()) / "MODEL_CARD.md")
    """
    if path.exists() and not is_card(path):
        raise CredalError(
            f"{path} is there already and no model card of credalearn's. To fix: rename it, or "
            "name another file."
        )
