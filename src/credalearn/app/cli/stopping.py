"""What a command says that its user stops, with Ctrl-C: typer itself says nothing."""

import sys
from collections.abc import Callable
from functools import wraps


def told_when_stopped(step: Callable[..., None], *, left: str = "") -> Callable[..., None]:
    """The same command; stopped, it says so on standard error and ends with exit code 130.

    Args:
        step: The command; it may say what is left of its work: ``KeyboardInterrupt(left)``.
        left: What is left of it otherwise.
    """

    @wraps(step)
    def command(*given: object, **options: object) -> None:
        try:
            step(*given, **options)
        except KeyboardInterrupt as stop:
            what = str(stop) or left
            print(f"credalearn: stopped{what and '; '}{what}", file=sys.stderr)
            sys.exit(130)

    return command
