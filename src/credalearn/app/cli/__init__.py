"""The command ``credalearn``: each command parses options and calls the verb of the same name."""

from typing import Annotated

import typer

from credalearn import __version__
from credalearn.app.cli._command import LazyCommand, one_message
from credalearn.app.cli.commands import COMMANDS

app = typer.Typer(
    help="Learn classifiers from annotators who disagree, and know when to ask a human.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name, _function in COMMANDS.items():
    app.command(_name, help=_function.__doc__, cls=LazyCommand)(lambda: None)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    if version:
        print(f"credalearn {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command ``credalearn``."""
    with one_message("credalearn"):
        app()
