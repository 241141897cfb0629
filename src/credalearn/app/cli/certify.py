"""The command ``certify``."""

from credalearn.app.cli._arguments import RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.certify import CertifyOptions
from credalearn.app.steps.certify import certify as certify_run


def certify(run: RunFolder, options: CertifyOptions) -> list[str]:
    """See ``steps.certify``."""
    return certify_run(Run.load(run), options).lines
