"""The command ``credalearn``.

Nothing heavy is imported before a command needs it: ``--help`` answers at once.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from credalearn import __version__
from credalearn.cli import bench

app = typer.Typer(
    help="Learn classifiers from annotators who disagree, and know when to ask a human.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")


class Methods(StrEnum):
    """What the demo compares."""

    basic = "basic"
    all = "all"


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"credalearn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "demo-output"
    ),
    methods: Annotated[
        Methods, typer.Option(help="POCC beside plain softmax, or every method.")
    ] = Methods.basic,
    splits: Annotated[
        int | None,
        typer.Option(min=1, help="Random splits by patient.", show_default="10, or 5 for all"),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training data.")] = 40,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of everything random.")] = 0,
) -> None:
    """Train on radiologists' votes about lung nodules, defer the uncertain, save the results.

    Offline, on data in the package, in under a minute on two cores.
    """
    from credalearn.demo.run import run_demo

    splits = splits or (10 if methods is Methods.basic else 5)
    run_demo(output, methods=methods.value, num_splits=splits, epochs=epochs, seed=seed)


def main() -> None:
    """Run the command; what a user can mend ends with one message and exit code 2."""
    from credalearn.errors import CredalError, TrainingError

    try:
        app()
    except (CredalError, TrainingError, OSError) as error:
        print(f"credalearn: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("credalearn: stopped", file=sys.stderr)
        sys.exit(130)
