"""What a command reads stays as it is: its output must be another file."""

from pathlib import Path

from credalearn.app.run import Run
from credalearn.app.staging import FILES
from credalearn.errors import CredalError

_OWN = (*FILES, "guarantee.json", "sets.json", "model/config.json")


def refuse_overwriting(output: Path, data: object) -> None:
    """Refuse an output that is the data itself, by whatever name or link.

    Raises:
        CredalError: If it is.

    """
    if _same(output, data):
        raise CredalError(f"{output} is the data itself. To fix: name another output.")


def refuse_overwriting_run(output: Path, *runs: Run) -> None:
    """Refuse an output that a run was trained or calibrated on, or that is a file of the run.

    Raises:
        CredalError: If it is.

    """
    for run in runs:
        if any(_same(output, path) for path in _learned_from(run)):
            how = "trained or calibrated" if run.facts.recalibrated_from else "trained"
            raise CredalError(
                f"{output} is what {run.path} was {how} on. To fix: name another output."
            )
        if any(_same(output, run.path / name) for name in _OWN):
            raise CredalError(f"{output} is a file of the run. To fix: name another output.")


def _learned_from(run: Run) -> list[str]:
    """Annotations of every round, features, and the table next to images."""
    paths = []
    for facts in (run.facts, run.training):
        paths += [facts.annotations.path, *facts.annotations.later]
        paths += [facts.inputs.path, *facts.inputs.later, facts.inputs.table or ""]
    return [path for path in paths if path]


def _same(output: Path, path: object) -> bool:
    if not isinstance(path, str | Path):  # a table in memory
        return False
    return output.exists() and Path(path).exists() and output.samefile(path)
