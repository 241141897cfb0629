"""``python -m credalearn``."""

from credalearn.cli import main

main()
