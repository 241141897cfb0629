"""No output may replace a file that the command reads."""

from pathlib import Path

from credalearn.app.run import Run
from credalearn.app.staging import FILES
from credalearn.errors import CredalError

_OWN = (
    *(*FILES, "guarantee.json", "sets.json", "requests.json", "drift.json"),
    *("model/config.json", "model/model.safetensors"),
)


def refuse_overwriting(output: Path, data: object = None, *runs: Run) -> None:
    """Refuse an output that is an input of this command or of a run, or a file of the run."""
    if not output.exists():
        return
    used = {str(data)} if isinstance(data, str | Path) else set()
    for run in runs:
        used |= {str(run.path / name) for name in _OWN}
        for facts in (run.facts, run.training):
            used |= {facts.annotations.path, *facts.annotations.later}
            used |= {facts.inputs.path, *facts.inputs.later, facts.inputs.table or ""}
    if any(path and Path(path).exists() and output.samefile(path) for path in used):
        raise CredalError(
            f"{output} is an input of this command or of the run. To fix: choose another output."
        )
