"""The commands ``credalearn bench …``: the experiments; those that read results are beside."""

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.cli import bench_results
from credalearn.cli.bench_results import DEFAULT_STORE, NAMES, Names, StoreOption
from credalearn.cli.stopping import told_when_stopped

if TYPE_CHECKING:
    from credalearn.bench.running.runs import Run
    from credalearn.bench.settings import Setting

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
        Path | None,
        typer.Option(
            envvar="CREDALEARN_PLUGIN",
            help="Python file with methods, tasks and settings of your own.",
        ),
    ] = None,
) -> None:
    """Make what the file registers known to the command that follows."""
    if plugin is not None:
        from credalearn.bench.plugins import load_plugin

        context.obj = plugin.absolute()
        load_plugin(context.obj)


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

    from credalearn.bench.settings.catalogue import family_of
    from credalearn.bench.settings.costs import (
        IMAGES_PER_SECOND,
        TRAINING_IMAGES,
        WITHOUT_GPU,
        gpu_minutes,
        trainings,
    )

    table = Table(Column("setting", no_wrap=True), "network", box=SIMPLE_HEAD)  # whole names
    for head in ("methods", "seeds", "epochs", "trainings", "GPU minutes"):
        table.add_column(head, justify="right")
    lines: dict[str, list[Setting]] = {}
    for setting in _settings(names, method, seeds, epochs):
        family = None if names or every else family_of(setting.name)
        lines.setdefault(f"{family}-K-RULE" if family else setting.name, []).append(setting)
    totals = [0, 0.0]
    unknown = False
    for name, settings in lines.items():
        count = sum(trainings(setting, independent) for setting in settings)
        gpu = settings[0].backbone not in WITHOUT_GPU
        known = settings[0].task in TRAINING_IMAGES and settings[0].backbone in IMAGES_PER_SECOND
        minutes = [gpu_minutes(each, independent) for each in settings] if gpu and known else []
        cost = sum(minutes)
        totals = [totals[0] + count, totals[1] + cost]
        unknown = unknown or (gpu and not known)
        table.add_row(
            name,
            settings[0].backbone.rpartition(":")[2],
            str(len({method for setting in settings for method in setting.methods})),
            str(len(settings[0].seeds)),
            str(settings[0].recipe.epochs),
            str(count),
            "none" if not gpu else "?" if not known else f"{cost:,.0f}" if cost >= 1 else "< 1",
        )
    table.add_section()
    together = "?" if unknown else f"{totals[1]:,.0f}"
    table.add_row("together", "", "", "", "", f"{totals[0]:,}", together)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    print(
        "Minutes are estimated: from measured runs of ResNet-18 on one H200, for other networks by "
        "their arithmetic, which is the least they take."
    )
    if any(len(settings) > 1 for settings in lines.values()):
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
    from credalearn.bench.data import WITHOUT_FOLDER, DataFolders
    from credalearn.bench.running.executors import execute
    from credalearn.bench.running.place import Place
    from credalearn.bench.running.runs import plan
    from credalearn.bench.running.store import Store
    from credalearn.errors import CredalError

    if not names:
        raise CredalError("name one setting or more; `credalearn bench list` shows them.")
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
        plugin=context.obj,
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
    from credalearn.bench.data import DataFolders
    from credalearn.bench.running.place import Place
    from credalearn.bench.running.work import measure as measure_runs

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
    from credalearn.bench.running.status import status_lines
    from credalearn.bench.settings.catalogue import ALL_SETTINGS
    from credalearn.bench.stored import unknown_settings

    held = _stored(names, method, seeds, store, epochs, limit, independent, weights)
    unknown = [] if names else unknown_settings(store, ALL_SETTINGS)
    if not held and not unknown:
        print(f"{store} holds no runs yet.")
    for runs in held:
        for line in status_lines(store, runs):
            print(line)
    for name in unknown:
        print(f"{name}: runs of a setting that is not known; --plugin names the file that has it")


for command in bench_results.COMMANDS:
    app.command()(command)


def _settings(
    names: list[str] | None, method: list[str] | None, seeds: str | None, epochs: int | None
) -> "list[Setting]":
    """The settings asked for, narrowed as asked."""
    from credalearn.bench.running.runs import parse_seeds
    from credalearn.bench.settings.catalogue import ALL_SETTINGS, settings_named

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
    from credalearn.bench.stored import stored_runs

    return [
        stored_runs(
            store, each, epochs=epochs, limit=limit, independent=independent, weights=weights
        )
        for each in _settings(names, method, seeds, None)
        if names or any((store / each.name).glob("*/seed-*/config.json"))
    ]
