"""``python -m credalearn``."""

from credalearn.app.cli import app
from credalearn.app.cli._command import one_message

with one_message("credalearn"):
    app()
