"""The command ``credalearn``: each command parses options and calls the verb of the same name."""

from typing import Annotated

import typer

from credalearn import __version__
from credalearn.app.cli._command import LazyCommand, one_message

COMMANDS = {  # in the order in which a team needs them
    "demo": "Run all steps on radiologists' votes about lung nodules; offline, under a minute.",
    "inspect": "Show what an export contains and where annotators disagree.",
    "train": "Train a model on annotated items; run again after a stop, it resumes.",
    "import": "Take another model's probabilities, to certify, defer and report them.",
    "certify": "Choose the threshold above which items are deferred, with a guarantee.",
    "predict": "Label items and decide which ones to defer to people.",
    "defer": "Write the deferred items, least certain first, for annotators.",
    "report": "Write a one-page HTML report about a run.",
    "export": "Write the model as ONNX, with its model card.",
    "recalibrate": "Check a model on newly annotated items and calibrate it on them.",
}

app = typer.Typer(
    help="Learn classifiers from annotators who disagree, and know when to ask a human.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _name, _text in COMMANDS.items():
    app.command(_name, help=_text, cls=LazyCommand)(lambda: None)


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


def main() -> None:
    """Run the command ``credalearn``."""
    with one_message("credalearn"):
        app()
