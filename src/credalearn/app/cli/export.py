"""The command ``export``."""

from dataclasses import asdict
from typing import Any

from credalearn.app.cli._command import RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.export import ExportOptions
from credalearn.app.steps.export import export as export_model


def export(run: RunFolder, options: ExportOptions) -> list[str | dict[str, Any]]:
    """See ``steps.export``."""
    loaded = Run.load(run)
    found = export_model(loaded, options)
    return [*loaded.warnings, *found.lines, {"warnings": loaded.warnings, **asdict(found)}]
