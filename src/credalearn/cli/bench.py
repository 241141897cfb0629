"""The commands ``credalearn bench …``: the experiments, from the list to the comparison."""

import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from credalearn.bench.records import Record
    from credalearn.bench.runs import Run
    from credalearn.bench.setting import Setting

app = typer.Typer(
    help="The paper's experiments and ours: list, run, and compare with the published figures.",
    no_args_is_help=True,
)


class Picture(StrEnum):
    """How a figure is written."""

    png = "png"
    svg = "svg"
    pdf = "pdf"


class Format(StrEnum):
    """How a table is written."""

    markdown = "markdown"
    latex = "latex"
    csv = "csv"


class VoteFamily(StrEnum):
    """Settings that differ in the number of votes and in the rule."""

    cifar10h = "cifar10h-votes"
    features = "cifar10h-features-votes"
    cifar10n = "cifar10n-votes"
    lidc = "lidc-votes"


_NAMES = "Names, or patterns such as 'cifar10h-votes-3-*'"
Names = Annotated[
    list[str] | None, typer.Argument(metavar="SETTING", help=f"{_NAMES}; all if none.")
]
NamesToRun = Annotated[
    list[str] | None, typer.Argument(metavar="SETTING", help=f"{_NAMES}; one or more.")
]
NamesHeld = Annotated[
    list[str] | None,
    typer.Argument(metavar="SETTING", help=f"{_NAMES}; all that the store holds if none."),
]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder that keeps the runs.")]
Records = Annotated[
    Path,
    typer.Option(
        *("--records", "--results", "--store"),
        help="A store, or a folder of records such as results.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(help="How many ('3' is 1 to 3), or which: '2-5', '1,4'.", show_default="all"),
]
Method = Annotated[
    list[str] | None, typer.Option("--method", help="Only this one; may be repeated.")
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Instead of the setting's.")]
Limit = Annotated[int | None, typer.Option(min=2, help="Items to train and to test on, at most.")]
Independent = Annotated[
    bool, typer.Option("--independent-members", help="Five networks of its own for each ensemble.")
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
# What a title and a remark start with, so that a table's reader takes them for what they are.
_HEADS = {Format.markdown: "## ", Format.latex: "% ", Format.csv: "# "}
_COMMENTS = {Format.markdown: "", Format.latex: "% ", Format.csv: "# "}
DEFAULT_STORE = Path("store")
DEFAULT_RECORDS = Path("results")


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

    from credalearn.bench.catalogue import family_of
    from credalearn.bench.costs import WITHOUT_GPU, gpu_minutes, trainings

    table = Table(Column("setting", no_wrap=True), "network", box=SIMPLE_HEAD)  # whole names
    for head in ("methods", "seeds", "epochs", "trainings", "GPU minutes"):
        table.add_column(head, justify="right")
    lines: dict[str, list[Setting]] = {}
    for setting in _settings(names, method, seeds, epochs):
        family = None if names or every else family_of(setting.name)
        lines.setdefault(f"{family}-K-RULE" if family else setting.name, []).append(setting)
    totals = [0, 0.0]
    for name, settings in lines.items():
        count = sum(trainings(setting, independent) for setting in settings)
        gpu = settings[0].backbone not in WITHOUT_GPU
        cost = sum(gpu_minutes(setting, independent) for setting in settings) if gpu else 0.0
        totals = [totals[0] + count, totals[1] + cost]
        table.add_row(
            name,
            settings[0].backbone.rpartition(":")[2],
            str(len({method for setting in settings for method in setting.methods})),
            str(len(settings[0].seeds)),
            str(settings[0].recipe.epochs),
            str(count),
            (f"{cost:,.0f}" if cost >= 1 else "< 1") if gpu else "none",
        )
    table.add_section()
    table.add_row("together", "", "", "", "", f"{totals[0]:,}", f"{totals[1]:,.0f}")
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    print("Minutes are estimated, from measured images a second of ResNet-18 on one H200.")
    if any(len(settings) > 1 for settings in lines.values()):
        print(
            "K is a number of votes an item and RULE a label rule: --all shows a line for each. "
            "Commands take patterns, such as 'cifar10h-votes-3-*'."
        )


@app.command()
def run(
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
    from credalearn.bench.data import IN_THE_PACKAGE, DataFolders
    from credalearn.bench.executors import execute
    from credalearn.bench.place import Place
    from credalearn.bench.runs import plan
    from credalearn.bench.store import Store
    from credalearn.errors import CredalError

    if not names:
        raise CredalError("name one setting or more; `credalearn bench list` shows them.")
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    settings = _settings(names, method, seeds, epochs)
    runs = plan(settings, independent=independent, limit=limit, weights=weights)
    folders = DataFolders.named(data)
    for setting in settings:
        if setting.task not in IN_THE_PACKAGE:
            folders.check_named(f"the data of {setting.name}")
    place = Place(
        store,
        folders.folders,
        device=device,
        weights=weights,
        side_by_side=side_by_side,
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
    from credalearn.bench.place import Place
    from credalearn.bench.work import measure as measure_runs

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
    from credalearn.bench.status import status_lines

    held = _stored(names, method, seeds, store, epochs, limit, independent, weights)
    if not held:
        print(f"{store} holds no runs yet.")
    for runs in held:
        for line in status_lines(store, runs):
            print(line)


@app.command()
def table(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    balance: Annotated[
        list[str] | None,
        typer.Option("--balance", help="Method among those that BQS compares; may be repeated."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.markdown,
) -> None:
    """Print the tables of settings, with the number of seeds and how ensembles were made."""
    from credalearn.bench.notes import notes
    from credalearn.bench.tables import setting_tables
    from credalearn.report import latex, markdown, to_csv

    write = {Format.markdown: markdown, Format.latex: latex, Format.csv: to_csv}[form]
    found = _records(records)
    for name in _chosen(names, found):
        for title, each in setting_tables(found, name, compared=balance).items():
            print(f"{_HEADS[form]}{name}: {title}\n")
            print(write(each))
        for line in notes(found, name, compared=balance):
            print(f"{_COMMENTS[form]}{line}")
        print()


@app.command()
def votes(
    records: Records = DEFAULT_RECORDS,
    family: Annotated[
        VoteFamily, typer.Option(help="Images, features of images, or CIFAR-10N's own votes.")
    ] = VoteFamily.cifar10h,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Only this one; may be repeated.", show_default="all held"),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.markdown,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A figure: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Set label rules side by side by the number of votes, and say which is worse than none."""
    from credalearn.bench import vote_differences as paired
    from credalearn.bench import vote_tables as tables
    from credalearn.bench.vote_figure import vote_figure
    from credalearn.report import latex, markdown, to_csv

    write = {Format.markdown: markdown, Format.latex: latex, Format.csv: to_csv}[form]
    named = family.value  # of the enumeration itself an error would show the repr
    cells = tables.family_cells(_records(records), named)
    asked = metric or [name for name in tables.METRICS if tables.has(cells, name)]
    written = {name: tables.vote_table(cells, name, named) for name in asked}
    if output is not None:  # first: a reader that stops early (``| head``) ends the command
        vote_figure(cells, named, output, metrics=metric)
    for name, table in written.items():
        print(f"{_HEADS[form]}{named}: {tables.METRICS[name].name}\n")
        print(write(table))
        found = paired.differences(cells) if name == "accuracy" else {}
        if found:
            print(f"{_HEADS[form]}{named}: {paired.TITLE}\n")
            print(write(paired.difference_table(found, named)))
            for line in (*paired.verdicts(found), paired.NOISE):
                print(f"{_COMMENTS[form]}{'- ' if form is Format.markdown else ''}{line}")
            print()
    for line in tables.vote_notes(cells, named):
        print(f"{_COMMENTS[form]}{line}")


@app.command()
def sets(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    form: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.markdown,
) -> None:
    """Set methods side by side at equal coverage: how wide their sets must be to hold votes."""
    from credalearn.bench.notes import notes
    from credalearn.bench.set_tables import ABOUT, set_sizes_of, write_set_sizes
    from credalearn.errors import CredalError

    found = _records(records)
    having = [record for record in found if "set_width_90" in record.metrics]
    if not having and not names:
        raise CredalError(
            f"{records} holds no record with sizes of sets. To fix: run a setting whose items have "
            "held-out votes, such as cifar10h-features."
        )
    chosen = _chosen(names, found if names else having)
    for name, sizes in {name: set_sizes_of(found, name) for name in chosen}.items():
        print(f"{_HEADS[form]}{name}: sets at equal coverage of people's votes\n")
        print(write_set_sizes(sizes, form=form.value))
        for line in notes(found, name, compared=()):
            print(f"{_COMMENTS[form]}{line}")
        print()
    print(f"{_COMMENTS[form]}{ABOUT}")


@app.command()
def compare(
    records: Records = DEFAULT_RECORDS,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv file, one figure a row.")
    ] = None,
) -> None:
    """Set ours beside every published figure that the records can answer."""
    from credalearn.bench import compare as comparison
    from credalearn.files import whole_file

    found = _records(records)
    rows = comparison.compare(found)
    if output is not None:  # first: a reader that stops early (``| head``) ends the command
        with whole_file(output) as partial:
            partial.write_text(comparison.comparison_csv(rows), encoding="utf-8")
    print(comparison.comparison_markdown(found, rows))
    if output is not None:
        print(f"{len(rows)} figures in {output}")


@app.command()
def figures(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder.")] = Path("figures"),
    form: Annotated[Picture, typer.Option("--format", help="How it is written.")] = Picture.png,
) -> None:
    """Draw rejection curves, balanced scores, significance and ours against the published."""
    from credalearn.bench import figures as draw
    from credalearn.errors import CredalError

    found = _records(records)
    drawn = 0
    for name in _chosen(names, found):
        kinds = {
            "rejection": draw.rejection_figure,
            "balance": draw.balance_figure,
            "significance": draw.significance_figure,
            "published": draw.published_figure,
        }
        for kind, function in kinds.items():
            path = output / f"{name}-{kind}.{form}"
            try:
                function(found, name, path)
            except CredalError as error:
                print(f"no {path.name}: {error}", file=sys.stderr)
            else:
                drawn += 1
    print(f"{drawn} figures in {output}")


@app.command()
def records(
    store: StoreOption = DEFAULT_STORE,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder.")] = Path("results"),
) -> None:
    """Copy the records of a store's finished runs, without predictions and weights."""
    from credalearn.bench.records import copy_records

    found = _records(store)
    copy_records(found, output)
    print(f"{len(found)} records in {output}")


def _settings(
    names: list[str] | None, method: list[str] | None, seeds: str | None, epochs: int | None
) -> "list[Setting]":
    """The settings asked for, narrowed as asked."""
    from credalearn.bench.catalogue import ALL_SETTINGS, settings_named
    from credalearn.bench.runs import parse_seeds

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
    from credalearn.bench.status import stored_runs

    return [
        stored_runs(
            store, each, epochs=epochs, limit=limit, independent=independent, weights=weights
        )
        for each in _settings(names, method, seeds, None)
        if names or (store / each.name).is_dir()
    ]


def _chosen(names: list[str] | None, found: "list[Record]") -> list[str]:
    """Settings that were named or fit a pattern; unless any was, those there are records of.

    Then without the families of vote settings, dozens each, which `bench votes` shows.
    """
    from credalearn.bench.catalogue import ALL_SETTINGS, family_of, spelled_out

    held = {record.setting for record in found}
    ordered = [name for name in ALL_SETTINGS if name in held]
    ordered += sorted(held - ALL_SETTINGS.keys())
    if names:
        return spelled_out(names, ordered)
    return [name for name in ordered if family_of(name) is None] or ordered


def _records(folder: Path) -> "list[Record]":
    """The records of a folder, one or more; what is damaged is named."""
    from credalearn.bench.records import read_records
    from credalearn.errors import CredalError

    found = read_records(folder)
    for line in found.damaged:
        print(f"left out: {line}", file=sys.stderr)
    if not found.records:
        raise CredalError(
            f"{folder} holds no record of a finished run. To fix: name another folder, or make "
            "some with `credalearn bench run`."
        )
    return list(found.records)
