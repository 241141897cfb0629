"""``python -m credalearn_experiments``."""

from credalearn_experiments.cli import main

main()
