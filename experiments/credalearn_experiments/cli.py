"""The commands ``credalearn-experiments …``: the experiments; those that read results are beside."""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.app.cli.stopping import told_when_stopped
from credalearn_experiments import cli_results
from credalearn_experiments.cli_results import DEFAULT_STORE, NAMES, Names, StoreOption

if TYPE_CHECKING:
    from credalearn_experiments.running.runs import Run
    from credalearn_experiments.settings import Setting

app = typer.Typer(
    help="The paper's experiments and ours: list, run, and compare with the published figures.",
    no_args_is_help=True,
)
NamesToRun = Annotated[
    list[str] | None, typer.Argument(metavar="SETTING", help=f"{NAMES}; one or more.")
]
NamesHeld = Annotated[
    list[str] | None,
    typer.Argument(metavar="SETTING", help=f"{NAMES}; all that the store holds if none."),
]
Seeds = Annotated[
    str | None,
    typer.Option(help="How many ('3' is 1 to 3), or which: '2-5', '1,4'.", show_default="all"),
]
Method = Annotated[
    list[str] | None, typer.Option("--method", help="Only this one; may be repeated.")
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Instead of the setting's.")]
Limit = Annotated[
    int | None,
    typer.Option(min=2, help="Items to train and to test on, at most; foreign images an eighth."),
]
Independent = Annotated[
    bool, typer.Option("--independent-members", help="Networks of its own for each ensemble.")
]
Weights = Annotated[
    Path | None,
    typer.Option(help="State dict that pretrained networks start from; 'none': random."),
]
Data = Annotated[
    str | None,
    typer.Option(
        help=f"Folders of data sets, with {os.pathsep!r} between them.",
        show_default="the variable CREDALEARN_DATA",
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")]


@app.callback()
def read_plugin(
    context: typer.Context,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="CREDALEARN_PLUGIN",
            help="Python file with methods, tasks and settings of your own; may be repeated.",
        ),
    ] = None,
) -> None:
    """Make what the files register known to the command that follows."""
    context.obj = tuple(path.absolute() for path in plugin or ())
    if context.obj:
        from credalearn_experiments.plugins import load_plugin

        for path in context.obj:
            load_plugin(path)


@app.command("list")
def list_settings(
    names: Names = None,
    method: Method = None,
    seeds: Seeds = None,
    epochs: Epochs = None,
    independent: Independent = False,
    every: Annotated[
        bool, typer.Option("--all", help="Every setting of a family on a line of its own.")
    ] = False,
) -> None:
    """Show the settings, what they train and what that would cost on one H200 GPU."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Column, Table

    from credalearn_experiments.settings.costs import cost_lines

    lines = cost_lines(
        _settings(names, method, seeds, epochs), independent, by_family=not names and not every
    )
    table = Table(Column("setting", no_wrap=True), "network", box=SIMPLE_HEAD)  # whole names
    for head in ("methods", "seeds", "epochs", "trainings", "GPU minutes"):
        table.add_column(head, justify="right")
    for line in lines:
        counts = (line.methods, line.seeds, line.epochs, line.trainings)
        table.add_row(
            line.name, line.backbone.rpartition(":")[2], *map(str, counts), _minutes(line.minutes)
        )
    table.add_section()
    known = [line.minutes for line in lines if line.minutes is not None]
    total = f"{sum(known):,.0f}" if len(known) == len(lines) else "?"
    table.add_row("together", "", "", "", "", f"{sum(line.trainings for line in lines):,}", total)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    print(
        "Minutes are estimated: from measured runs of ResNet-18 on one H200, for other networks by "
        "their arithmetic, which is the least they take."
    )
    if any(line.settings > 1 for line in lines):
        print(
            "K is a number of votes an item and RULE a label rule: --all shows a line for each. "
            "Commands take patterns, such as 'cifar10h-votes-3-*'."
        )


@app.command()
@partial(
    told_when_stopped,
    left="what is done is kept, and the same command goes on where it stopped",
)
def run(
    context: typer.Context,
    names: NamesToRun = None,
    method: Method = None,
    seeds: Seeds = None,
    epochs: Epochs = None,
    limit: Limit = None,
    store: StoreOption = DEFAULT_STORE,
    data: Data = None,
    device: Device = "auto",
    side_by_side: Annotated[int, typer.Option(min=1, help="Models at once on a GPU.")] = 8,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    ray: Annotated[bool, typer.Option("--ray", help="Every run a task of Ray.")] = False,
    ray_address: Annotated[
        str | None, typer.Option(help="Of a running cluster; without it one is started here.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Stop after so long, to be resumed.")
    ] = None,
    independent: Independent = False,
    weights: Weights = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed before.")
    ] = False,
) -> None:
    """Do the runs that the store does not hold yet; stop and start again as you like."""
    from credalearn.errors import CredalError
    from credalearn_experiments.data import WITHOUT_FOLDER, DataFolders
    from credalearn_experiments.running.executors import execute
    from credalearn_experiments.running.place import Place
    from credalearn_experiments.running.runs import plan
    from credalearn_experiments.running.store import Store

    if not names:
        raise CredalError(
            "bench run takes one setting or more; got none. To fix: name some of those that "
            "`credalearn-experiments list` shows."
        )
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    settings = _settings(names, method, seeds, epochs)
    runs = plan(settings, independent=independent, limit=limit, weights=weights)
    folders = DataFolders.named(data)
    for setting in settings:
        if setting.task not in WITHOUT_FOLDER:
            folders.check_named(f"the data of {setting.name}")
    place = Place(
        store,
        folders.folders,
        device=device,
        weights=weights,
        side_by_side=side_by_side,
        plugins=context.obj,
    )
    execute(
        place,
        runs,
        workers=workers,
        ray=ray,
        ray_address=ray_address,
        deadline=deadline,
        retry_failed=retry_failed,
    )
    kept = Store(store)
    states = [kept.state(each) for each in runs]
    print(f"{states.count('done')} of {len(runs)} runs are done in {store}")
    for each, state in zip(runs, states, strict=True):
        if state == "failed":
            print(f"failed: {each.name}: {kept.failure(each)}", file=sys.stderr)
    if "failed" in states:
        print("To fix: mend what they say and give --retry-failed.", file=sys.stderr)
        raise typer.Exit(1)
    if states.count("done") < len(runs):
        print("Not all: give the same command again to go on.")


@app.command()
def measure(
    names: NamesHeld = None,
    method: Method = None,
    seeds: Seeds = None,
    epochs: Epochs = None,
    limit: Limit = None,
    store: StoreOption = DEFAULT_STORE,
    data: Data = None,
    device: Device = "auto",
    independent: Independent = False,
    weights: Weights = None,
) -> None:
    """Measure finished runs once more, as on foreign images that came later; train nothing."""
    from credalearn_experiments.data import DataFolders
    from credalearn_experiments.running.place import Place
    from credalearn_experiments.running.work import measure as measure_runs

    held = _stored(names, method, seeds, store, epochs, limit, independent, weights)
    runs = [run for runs in held for run in runs]
    place = Place(store, DataFolders.named(data).folders, device=device, weights=weights)
    count = measure_runs(place.bench(), runs)
    print(f"{count} of {len(runs)} runs were done in {store} and are measured once more")


@app.command()
def status(
    names: NamesHeld = None,
    method: Method = None,
    seeds: Seeds = None,
    epochs: Epochs = None,
    limit: Limit = None,
    store: StoreOption = DEFAULT_STORE,
    independent: Independent = False,
    weights: Weights = None,
) -> None:
    """Show how far the runs are and how long the rest will take."""
    from credalearn_experiments.running.status import status_lines
    from credalearn_experiments.settings.catalog import ALL_SETTINGS
    from credalearn_experiments.stored import unknown_settings

    held = _stored(names, method, seeds, store, epochs, limit, independent, weights)
    unknown = [] if names else unknown_settings(store, ALL_SETTINGS)
    if not held and not unknown:
        print(f"{store} holds no runs yet.")
    for runs in held:
        for line in status_lines(store, runs):
            print(line)
    for name in unknown:
        print(f"{name}: runs of a setting that is not known; --plugin names the file that has it")


for command in cli_results.COMMANDS:
    app.command()(command)


def _minutes(minutes: float | None) -> str:
    """The cost of a line: of an estimate no more than it says."""
    if minutes is None:
        return "?"
    return f"{minutes:,.0f}" if minutes >= 1 else "< 1" if minutes else "none"


def _settings(
    names: list[str] | None, method: list[str] | None, seeds: str | None, epochs: int | None
) -> "list[Setting]":
    """The settings asked for, narrowed as asked."""
    from credalearn_experiments.running.runs import parse_seeds
    from credalearn_experiments.settings.catalog import ALL_SETTINGS, settings_named

    chosen = settings_named(names) if names else list(ALL_SETTINGS.values())
    return [
        setting.narrowed(
            epochs=epochs,
            seeds=None if seeds is None else parse_seeds(seeds),
            methods=None if method is None else tuple(method),
        )
        for setting in chosen
    ]


def _stored(
    names: list[str] | None,
    method: list[str] | None,
    seeds: str | None,
    store: Path,
    epochs: int | None,
    limit: int | None,
    independent: bool,
    weights: Path | None,
) -> "list[list[Run]]":
    """The runs of each setting asked for; without names, of each that the store has runs of."""
    from credalearn_experiments.stored import stored_runs

    return [
        stored_runs(
            store, each, epochs=epochs, limit=limit, independent=independent, weights=weights
        )
        for each in _settings(names, method, seeds, None)
        if names or any((store / each.name).glob("*/seed-*/config.json"))
    ]


def main() -> None:
    """Run the command; what a user can fix ends with one message and exit code 2."""
    from credalearn.app.cli import run_app

    run_app(app, name="credalearn-experiments")
