"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Export = Annotated[Path, typer.Argument(help="Export of the annotation tool, or a table of votes.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a run.")]
Data = Annotated[Path, typer.Argument(help="Table or array of features, or a folder of images.")]
NewRun = Annotated[Path, typer.Option("--output", "-o", help="Folder of the new run.")]
