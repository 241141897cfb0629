"""The command ``certify``."""

from collections.abc import Iterator
from typing import Any

from credalearn.app.cli._command import RunFolder
from credalearn.app.run import Run
from credalearn.app.steps.certify import certify as certify_run
from credalearn.app.steps.certify_options import CertifyOptions


def certify(run: RunFolder, options: CertifyOptions) -> Iterator[str | dict[str, Any]]:
    """See ``steps.certify``."""
    found = certify_run(Run.load(run), options)
    yield from found.lines
    if options.explain:
        yield from found.assumptions
    yield {"warnings": found.run.warnings, **found.facts}
