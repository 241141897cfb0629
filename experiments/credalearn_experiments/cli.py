"""The command ``credalearn-experiments``: list, run, measure and watch experiments.

The commands that read results are in :mod:`credalearn_experiments.cli_results`.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.app.cli._command import one_message
from credalearn_experiments.cli_results import COMMANDS, DEFAULT_STORE, NAMES, Names, StoreOption

if TYPE_CHECKING:
    from credalearn_experiments.runs import Run
    from credalearn_experiments.settings import Setting

app = typer.Typer(
    help="The paper's experiments and ours: run them, and compare them with the published figures.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
NamesToRun = Annotated[list[str], typer.Argument(metavar="SETTING", help=f"{NAMES}.")]
Seeds = Annotated[
    str | None,
    typer.Option(help="How many ('3' is 1 to 3), or which: '2-5', '1,4'.", show_default="all"),
]
Method = Annotated[list[str] | None, typer.Option("--method", help="Only this method; repeatable.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Instead of the setting's.")]
Limit = Annotated[
    int | None,
    typer.Option(min=2, help="Maximum number of training and of test items, for a rehearsal."),
]
Weights = Annotated[
    Path | None, typer.Option(help="Weights that pretrained networks start from; 'none': random.")
]
Data = Annotated[
    str | None,
    typer.Option(
        help=f"Folders of data sets, separated by {os.pathsep!r}.", show_default="$CREDALEARN_DATA"
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")]


@app.callback()
def read_plugins(
    context: typer.Context,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            envvar="CREDALEARN_PLUGIN",
            help="Python file with your own methods, tasks and settings; repeatable.",
        ),
    ] = None,
) -> None:
    """Register what the plugin files define, before any command."""
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
    every: Annotated[
        bool, typer.Option("--all", help="One line for every setting of a family.")
    ] = False,
) -> None:
    """Show the settings and how many networks they train."""
    from credalearn._formats import aligned
    from credalearn_experiments.runs import plan
    from credalearn_experiments.settings.catalog import family_of

    groups: dict[str, list[Setting]] = {}
    for setting in _settings(names, method, seeds, epochs):
        family = None if names or every else family_of(setting.name)
        groups.setdefault(f"{family}-K-RULE" if family else setting.name, []).append(setting)
    rows = [["setting", "network", "methods", "seeds", "epochs", "trainings"]]
    for name, group in groups.items():
        first = group[0]  # settings of a family share network, seeds and recipe
        methods = {each for setting in group for each in setting.methods}
        trainings = sum(not run.bases for run in plan(group))
        counts = (len(methods), len(first.seeds), first.recipe.epochs, trainings)
        rows.append([name, first.backbone.rpartition(":")[2], *map(str, counts)])
    print("\n".join(aligned(rows)))
    if any(len(group) > 1 for group in groups.values()):
        print("K is a number of votes per item and RULE a label rule; --all shows every setting.")


@app.command()
def run(
    context: typer.Context,
    names: NamesToRun,
    method: Method = None,
    seeds: Seeds = None,
    epochs: Epochs = None,
    limit: Limit = None,
    store: StoreOption = DEFAULT_STORE,
    data: Data = None,
    device: Device = "auto",
    side_by_side: Annotated[int, typer.Option(min=1, help="Models at once on a GPU.")] = 8,
    workers: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    ray: Annotated[
        str | None, typer.Option(help="Address of a running Ray cluster, or 'auto'.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Stop after this time, to be resumed.")
    ] = None,
    weights: Weights = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try runs again that failed before.")
    ] = False,
) -> None:
    """Do the runs that are not in the store yet; stop and start again at any time."""
    from credalearn_experiments.data import WITHOUT_FOLDER, DataFolders
    from credalearn_experiments.executor import execute
    from credalearn_experiments.runner import RunContext
    from credalearn_experiments.runs import plan
    from credalearn_experiments.store import Store

    settings = _settings(names, method, seeds, epochs)
    runs = plan(settings, limit=limit, weights=weights)
    folders = DataFolders.named(data)
    for setting in settings:
        if setting.task not in WITHOUT_FOLDER:
            folders.check_named(f"the data of {setting.name}")
    place = RunContext(  # paths are absolute: a worker of a cluster runs in another folder
        store=store.absolute(),
        data=folders.folders,
        device=device,
        weights=weights.absolute() if weights and weights.exists() else weights,
        side_by_side=side_by_side,
        plugins=context.obj,
    )
    try:
        execute(place, runs, workers=workers, ray=ray, minutes=minutes, retry_failed=retry_failed)
    except KeyboardInterrupt:
        print("stopped; the same command resumes the rest", file=sys.stderr)
        raise typer.Exit(130) from None
    kept = Store(store)
    states = {each: kept.state(each) for each in runs}
    done = list(states.values()).count("done")
    print(f"{done} of {len(runs)} runs are done in {store}")
    failed = [each for each, state in states.items() if state == "failed"]
    for each in failed:
        print(f"failed: {each.name}: {kept.failure(each)}", file=sys.stderr)
    if failed:
        print("To try them again, pass --retry-failed.", file=sys.stderr)
        raise typer.Exit(1)
    if done < len(runs):
        print("The same command resumes the rest.")


@app.command()
def measure(
    context: typer.Context,
    names: Names = None,
    store: StoreOption = DEFAULT_STORE,
    data: Data = None,
    device: Device = "auto",
    weights: Weights = None,
) -> None:
    """Measure finished runs again, for instance on foreign images that came later."""
    from credalearn_experiments.data import DataFolders
    from credalearn_experiments.runner import RunContext, Runner

    folders = DataFolders.named(data).folders
    place = RunContext(
        store=store, data=folders, device=device, weights=weights, plugins=context.obj
    )
    runner, count = Runner(place), 0
    for each in (each for runs in _stored_runs(store, names).values() for each in runs):
        if runner.store.state(each) == "done" and (lock := runner.store.claim(each)):
            try:
                runner.measure(each)
                count += 1
            finally:
                lock.release()
    print(f"{count} runs in {store} are measured again")


@app.command()
def status(names: Names = None, store: StoreOption = DEFAULT_STORE) -> None:
    """Show which runs are done, and how long the rest will take."""
    from credalearn_experiments.log import status_lines
    from credalearn_experiments.store import Store

    found = _stored_runs(store, names)
    if not found:
        print(f"There are no runs in {store}.")
    for name, runs in found.items():
        unknown = [f"{name}: unknown setting; pass the file that defines it as --plugin"]
        print("\n".join(status_lines(Store(store), runs) if runs else unknown))


for command in COMMANDS:
    app.command()(command)


def _settings(
    names: list[str] | None, method: list[str] | None, seeds: str | None, epochs: int | None
) -> "list[Setting]":
    """The settings of these names, all if None, narrowed as asked."""
    from credalearn_experiments.runs import parse_seeds
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


def _stored_runs(folder: Path, names: list[str] | None) -> "dict[str, list[Run]]":
    """By setting in the store, or of these names, its runs; none of an unknown setting."""
    from credalearn_experiments.settings.catalog import ALL_SETTINGS, spelled_out
    from credalearn_experiments.store import Store

    store = Store(folder)
    held = store.settings()
    chosen = spelled_out(names, held) if names else held
    return {name: store.runs(ALL_SETTINGS[name]) if name in ALL_SETTINGS else [] for name in chosen}


def main() -> None:
    """Run the command ``credalearn-experiments``."""
    with one_message("credalearn-experiments"):
        app()
