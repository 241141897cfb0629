"""What a command reads stays as it is: its output must be another file."""

from pathlib import Path

from credalearn.app.run.folder import RunFolder
from credalearn.app.run.staging import FILES
from credalearn.errors import CredalError

_OWN = (*FILES, "rule.json", "sets.json", "model/config.json")


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
    if _same(output, data):
        raise CredalError(f"{output} is the data itself. To fix: name another output.")


def refuse_overwriting_run(output: Path, *runs: RunFolder) -> None:
    """Refuse an output that a run was trained or calibrated on, or that is a file of the run.

    Raises:
        CredalError: If it is.

    Example:
        >>> from credalearn.app.run.examples import empty_run
        >>> refuse_overwriting_run(Path("decisions.csv"), empty_run())
    """
    for run in runs:
        if any(_same(output, path) for path in _learned_from(run)):
            how = "trained or calibrated" if "recalibrated_from" in run.facts else "trained"
            raise CredalError(
                f"{output} is what {run.path} was {how} on. To fix: name another output."
            )
        if any(_same(output, run.path / name) for name in _OWN):
            raise CredalError(f"{output} is a file of the run. To fix: name another output.")


def _learned_from(run: RunFolder) -> list[str]:
    """Annotations of every round, features, and what stands beside images."""
    paths = []
    for facts in (run.facts, run.facts.get("recalibrated_from") or {}):
        annotations, inputs = facts.get("annotations") or {}, facts.get("inputs") or {}
        paths += [annotations.get("path"), *(annotations.get("later") or ())]
        paths += [inputs.get("path"), *(inputs.get("later") or ()), inputs.get("table")]
    return [path for path in paths if path]


def _same(output: Path, path: str | Path) -> bool:
    return output.exists() and Path(path).exists() and output.samefile(path)
