"""The command ``export``."""

from credalearn.app.cli._arguments import RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.export import ExportOptions
from credalearn.app.steps.export import export as export_model


def export(run: RunFolder, options: ExportOptions) -> list[str]:
    """See ``steps.export``."""
    loaded = Run.load(run)
    return [*loaded.warnings, *export_model(loaded, options).lines]
