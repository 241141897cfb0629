"""``python -m credalearn``."""

from credalearn.app.cli import main

main()
