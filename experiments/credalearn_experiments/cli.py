"""The command ``credalearn-experiments``: list and run experiments, and what reads results."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.app.cli._command import one_message
from credalearn_experiments import cli_results
from credalearn_experiments.cli_results import DEFAULT_STORE, NAMES, Names, StoreOption, Workers

if TYPE_CHECKING:
    from credalearn_experiments.settings import Setting

app = typer.Typer(
    help="The paper's experiments and ours: run them, and compare them with the published figures.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
def list_settings(names: Names = None, store: StoreOption = DEFAULT_STORE) -> None:
    """Show the settings, how many networks they train, and how many runs are done."""
    from credalearn._formats import aligned
    from credalearn_experiments.runs import plan
    from credalearn_experiments.settings.catalog import ALL_SETTINGS, FAMILY_OF, settings_named
    from credalearn_experiments.store import Store

    groups: dict[str, list[Setting]] = {}
    for setting in settings_named(names) if names else ALL_SETTINGS.values():
        family = None if names else FAMILY_OF.get(setting.name)
        groups.setdefault(f"{family}-K-RULE" if family else setting.name, []).append(setting)
    rows = [["setting", "network", "methods", "seeds", "epochs", "trainings", "runs", "done"]]
    for name, group in groups.items():
        first = group[0]  # settings of a family share network, seeds and recipe
        methods = {each for setting in group for each in setting.methods}
        runs = plan(group)
        trainings = sum(not run.bases for run in runs)
        done = sum(Store(store).done(setting.name) for setting in group)
        counts = (len(methods), len(first.seeds), first.recipe.epochs, trainings, len(runs), done)
        rows.append([name, first.backbone.rpartition(":")[2], *map(str, counts)])
    print("\n".join(aligned(rows)))
    if any(len(group) > 1 for group in groups.values()):
        note = "K is a number of votes per item and RULE a label rule;"
        print(f"{note} list '*' shows every setting.")


@app.command()
def run(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="SETTING", help=f"{NAMES}.")],
    method: Annotated[list[str] | None, typer.Option(help="Only this method; repeatable.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="How many ('3' is 1 to 3), or which: '2-5'.", show_default="all"),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the setting's.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=2, help="Maximum number of training and of test items, for a rehearsal."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")] = "auto",
    side_by_side: Annotated[int, typer.Option(min=1, help="Models at once on a GPU.")] = 8,
    workers: Workers = 1,
    ray: Annotated[
        str | None, typer.Option(help="Address of a running Ray cluster, or 'auto'.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Stop after this time, to be resumed.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Weights that pretrained networks start from; 'none': random."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Train nothing; measure finished runs again."),
    ] = False,
) -> None:
    """Do the runs that are not in the store yet; stop and start again at any time."""
    from credalearn_experiments.data import DataFolders
    from credalearn_experiments.executor import execute
    from credalearn_experiments.runner import RunContext, Runner
    from credalearn_experiments.runs import parse_seeds, plan
    from credalearn_experiments.settings.catalog import settings_named
    from credalearn_experiments.store import Store

    numbers = () if seeds is None else parse_seeds(seeds)
    chosen = [
        setting.narrowed(epochs=epochs, seeds=numbers, methods=tuple(method or ()))
        for setting in settings_named(names)
    ]
    runs = plan(chosen, limit=limit, weights=weights)
    place = RunContext(  # paths are absolute: a worker of a cluster runs in another folder
        store=store.absolute(),
        data=DataFolders.named().folders,
        device=device,
        weights=weights.absolute() if weights and weights.exists() else weights,
        side_by_side=side_by_side,
        plugins=context.obj,
    )
    if measure:
        print(f"{Runner(place).measure_again(runs)} runs in {store} are measured again")
        return
    try:
        execute(place, runs, workers=workers, ray=ray, minutes=minutes)
    except KeyboardInterrupt:
        print("stopped; the same command resumes the rest", file=sys.stderr)
        raise typer.Exit(130) from None
    kept = Store(store)
    states = [kept.state(each) for each in runs]
    done, failed = states.count("done"), "failed" in states
    print(f"{done} of {len(runs)} runs are done in {store}")
    for each, state in zip(runs, states, strict=True):
        if state == "failed":
            print(f"failed: {each.name}: {kept.failure(each)}", file=sys.stderr)
    if failed:
        print(f"To try them again, delete their folders in {store}.", file=sys.stderr)
        raise typer.Exit(1)
    if done < len(runs):
        print("The same command resumes the rest.")


for command in cli_results.COMMANDS:
    app.command()(command)


def main() -> None:
    """Run the command ``credalearn-experiments``."""
    with one_message("credalearn-experiments"):
        app()
