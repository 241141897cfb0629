"""The command ``certify``."""

from credalearn.app.cli._arguments import RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.certify import certify as certify_run
from credalearn.app.steps.certify_options import CertifyOptions


def certify(run: RunFolder, options: CertifyOptions) -> list[str]:
    """See ``steps.certify``."""
    found = certify_run(Run.load(run), options)
    told = [*found.run.warnings, *found.lines][:8]
    return [*told, *found.assumptions] if options.explain else told
