"""What a command reads stays as it is: its output must be another file."""

from pathlib import Path

from credalearn.errors import CredalError


def refuse_overwriting(output: Path, data: str | Path) -> None:
    """Refuse an output that is the data itself, by whatever name or link.

    Raises:
        CredalError: If it is.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "votes.csv").write_text("item,label")
        >>> refuse_overwriting(folder / "table.csv", folder / "votes.csv")
    """
    if output.exists() and Path(data).exists() and output.samefile(data):
        raise CredalError(f"{output} is the data itself. To fix: name another output.")
