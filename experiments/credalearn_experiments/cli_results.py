"""The commands of ``credalearn-experiments`` that read records: tables and figures."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.errors import CredalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from credalearn_experiments.records import Record
    from credalearn_experiments.results.table import Table
    from credalearn_experiments.studies import Studies

RESULTS = Path(__file__).parents[1] / "results"  # the records that come with the package
DEFAULT_STORE = Path("store")
NAMES = "Names, or patterns such as 'cifar10h-votes-3-*'"
Names = Annotated[
    list[str] | None, typer.Argument(metavar="SETTING", help=f"{NAMES}; default: all.")
]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder that keeps the runs.")]
Records = Annotated[
    Path,
    typer.Option("--records", help="A store, or a folder of records.", show_default="our results"),
]
Workers = Annotated[int, typer.Option(min=1, help="Processes on this machine.")]
Methods = Annotated[
    list[str] | None, typer.Option(help="Only this one; repeatable. Members count as seeds.")
]
Do = Annotated[bool, typer.Option("--run", help="Do what is missing in the file.")]
Only = Annotated[str | None, typer.Option(help="Only tables with this in their title.")]


def table(
    names: Names = None,
    records: Records = RESULTS,
    method: Methods = None,
    balance: Annotated[
        list[str] | None, typer.Option(help="Method that BQS compares; repeatable.")
    ] = None,
    only: Only = None,
) -> None:
    """Print the tables of settings: accuracy, calibration, deferral, foreign images, sets."""
    from credalearn._checks import check_choice
    from credalearn_experiments.results.tables import setting_page

    found = _read(records, method)
    for name in balance or ():
        check_choice(name, dict.fromkeys(each.method for each in found), name="--balance")
    for name in _chosen(names, found):
        _print(setting_page(found, name, balance), only)
        print()


def differences(
    setting: Annotated[str, typer.Argument(help="Name of the setting.")],
    than: Annotated[
        str, typer.Option(help="Method to compare with, another setting, or a folder of records.")
    ],
    records: Records = RESULTS,
) -> None:
    """Print how much better methods are than one of them, or than in another setting, by seed."""
    from credalearn_experiments.results.differences import differences_page

    others = _read(Path(than)) if Path(than).is_dir() else None
    _print(differences_page(_read(records), setting, than, others))


def votes(
    records: Records = RESULTS,
    family: Annotated[str, typer.Option(help="Such as lidc-votes.")] = "cifar10h-votes",
    metric: Annotated[
        list[str] | None, typer.Option(help="Only this one; repeatable.", show_default="all")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A figure: .png, .svg or .pdf.")
    ] = None,
    row: Annotated[
        list[str] | None, typer.Option(help="Line of the figure; repeatable.", show_default="all")
    ] = None,
) -> None:
    """Compare label rules by the number of votes, and report which are worse than none."""
    from credalearn._checks import check_choice
    from credalearn_experiments.results.figures import vote_figure
    from credalearn_experiments.results.votes import family_cells, votes_page

    cells = family_cells(_read(records), family)
    page = votes_page(cells, family, metric)
    if output is not None:  # first: a reader that stops early (``| head``) ends the command
        for name in row or ():
            check_choice(name, cells, name="--row")
        vote_figure({name: cells[name] for name in row or cells}, family, output, metric)
    _print(page)


def rule(
    name: Annotated[str, typer.Argument(metavar="RULE", help="Such as relax-ties.")],
    method: Annotated[str, typer.Option(help="Method that learns from its labels.")] = "pocc-mean",
    records: Records = RESULTS,
) -> None:
    """Compare a label rule with softmax on soft labels in every family, with Holm's correction."""
    from credalearn_experiments.results.votes import rule_page

    _print(rule_page(_read(records), name, method))


def state(records: Records = RESULTS) -> None:
    """Print which of the paper's settings have runs, with how many seeds, or why not."""
    from credalearn_experiments.results.paper import read_reasons, state_page

    _print(state_page(_read(records), read_reasons(records)))


def compare(names: Names = None, records: Records = RESULTS) -> None:
    """Compare ours with every published figure that the records answer."""
    from credalearn_experiments.results.paper import compare, comparison_page

    found = _read(records)
    chosen = _chosen(names, found)
    _print(comparison_page(found, [x for x in compare(found) if x.published.setting in chosen]))


def figures(
    names: Names = None,
    records: Records = RESULTS,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder.")] = Path("figures"),
    method: Methods = None,
) -> None:
    """Draw rejection curves, balanced scores and foreign images by score."""
    from credalearn._formats import many
    from credalearn_experiments.results.figures import FIGURES

    found = _read(records, method)
    drawn = 0
    for name in _chosen(names, found):
        for kind, draw in FIGURES.items():
            path = output / f"{name}-{kind}.png"
            try:
                draw(found, name, path)
                drawn += 1
            except CredalError as error:
                print(f"no {path.name}: {error}", file=sys.stderr)
    print(f"{many(drawn, 'figure')} in {output}")
    raise typer.Exit(0 if drawn else 1)


def records(
    store: StoreOption = DEFAULT_STORE,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder, or .csv.", show_default="our results")
    ] = RESULTS,
) -> None:
    """Copy the records of a store's finished runs, without predictions and weights."""
    from credalearn._formats import many
    from credalearn_experiments.records import copy_records, write_table

    found = _read(store)
    (write_table if output.suffix.lower() == ".csv" else copy_records)(found, output)
    print(f"{many(len(found), 'record')} in {output}")


def learners(run: Do = False, workers: Workers = 1, only: Only = None) -> None:
    """Compare the default learner with logistic regression and named methods on crowd data."""
    from credalearn_experiments.learners import STUDIES, learners_page

    wanted = range(1, 11) if run else ()
    _print(learners_page(_scores(STUDIES, "learners.csv", wanted, workers)), only)


def set_worth(
    run: Do = False,
    workers: Workers = 1,
    output: Annotated[Path | None, typer.Option("-o", help="Also draw the figure here.")] = None,
    only: Only = None,
) -> None:
    """Compare kinds of labels, statements, learned bounds and few votes with their rivals."""
    from credalearn_experiments.set_worth.page import STUDIES, set_worth_figure, set_worth_page

    wanted = range(2, 12) if run else ()  # the methods were written with seed 1
    scores = _scores(STUDIES, "set_worth.csv", wanted, workers)
    if output is not None:
        set_worth_figure(scores, output)
    _print(set_worth_page(scores, _read(RESULTS)), only)


def guarantees(
    splits: Annotated[
        int | None, typer.Option(min=1, help="Measure again, on so many random splits.")
    ] = None,
    workers: Workers = 1,
) -> None:
    """Print what is promised, broken and kept on four sets of annotated items."""
    from credalearn_experiments.data import DataFolders
    from credalearn_experiments.guarantees import NAMES, measure, table

    file = RESULTS / "guarantees_on_data.csv"
    if splits is not None:
        measure(NAMES, DataFolders.named(), splits, workers=workers).write_csv(file)
    print("\n".join(table(file)))


COMMANDS = (
    *(state, table, differences, votes, rule, compare, figures, records),
    *(learners, set_worth, guarantees),
)


def _read(folder: Path, methods: "Sequence[str] | None" = None) -> "list[Record]":
    """The records of a folder, of these methods if any; damaged files are reported."""
    from credalearn._checks import check_choice
    from credalearn_experiments.records import read_records

    found = read_records(folder)
    for line in found.damaged:
        print(f"left out: {line}", file=sys.stderr)
    if not found.records:
        raise CredalError(
            f"there is no record of a finished run in {folder}. To fix: name another folder, or "
            "make some with `credalearn-experiments run`."
        )
    for name in methods or ():
        check_choice(name, {record.method for record in found.records}, name="--method")
    return [record for record in found.records if not methods or record.method in methods]


def _scores(studies: "Studies", name: str, seeds: "Sequence[int]", workers: int) -> "pl.DataFrame":
    """The scores in a file of our results, after doing what is missing for these seeds."""
    from credalearn_experiments.data import DataFolders
    from credalearn_experiments.studies import read_scores, run_studies

    file = RESULTS / name
    for line in run_studies(studies, file, DataFolders.named(), seeds, workers) if seeds else ():
        print(line, file=sys.stderr, flush=True)
    return read_scores(file)


def _chosen(names: list[str] | None, found: "Sequence[Record]") -> list[str]:
    """The settings that are named or fit a pattern; by default all but those of families."""
    from credalearn_experiments.settings.catalog import ALL_SETTINGS, FAMILY_OF, spelled_out

    held = {record.setting for record in found}
    ordered = [name for name in ALL_SETTINGS if name in held] + sorted(held - ALL_SETTINGS.keys())
    if not names:
        return [name for name in ordered if name not in FAMILY_OF] or ordered
    return spelled_out(names, ordered, "setting with records")


def _print(parts: "Iterable[Table | str]", only: str | None = None) -> None:
    from credalearn_experiments.results.table import page

    parts = list(parts)
    titles = [part.title for part in parts if not isinstance(part, str)]
    if only and not any(only in title for title in titles):
        raise CredalError(f"no table has {only!r} in its title; there are {titles}.")
    print(page([x for x in parts if isinstance(x, str) or not only or only in x.title]))
