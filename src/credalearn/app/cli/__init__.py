"""The command ``credalearn``.

Nothing heavy is imported before a command needs it: ``--help`` answers at once.
"""

import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from credalearn import __version__
from credalearn.app.cli import learning, recalibrating, steps
from credalearn.app.cli._command import LazyCommand
from credalearn.app.cli.stopping import told_when_stopped

app = typer.Typer(
    help="Learn classifiers from annotators who disagree, and know when to ask a human.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# In the order in which a team comes to them.
for step in (
    learning.inspect,
    *steps.STEPS,
    recalibrating.recalibrate,
):
    app.command()(told_when_stopped(step, left=""))
app.command("train", help="Train a model on annotated items.", cls=LazyCommand)(lambda: None)


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
@partial(
    told_when_stopped,
    left="finished files stay in the output folder, and the same command makes them all anew",
)
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path(
        "demo-output"
    ),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training data.")] = 40,
    random_state: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Of everything random.")
    ] = 0,
) -> None:
    """Go from radiologists' votes about lung nodules to certified decisions and a report.

    Offline, on data in the package, in under a minute on two cores.
    """
    from credalearn.app.demo import run_way

    run_way(output, epochs=epochs, random_state=random_state)


def main() -> None:
    """Run the command ``credalearn``."""
    run_app(app, name="credalearn")


def run_app(app: typer.Typer, *, name: str) -> None:
    """Run the command; what a user can mend ends with one message and exit code 2."""
    from credalearn.errors import CredalError, TrainingError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a letter that it cannot show becomes \u00e9
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except (CredalError, TrainingError, OSError) as error:
        if os.environ.get("RANK", "0") == "0":  # of processes that train together, one speaks
            print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        sys.exit(130)
