"""The commands ``credalearn-experiments …`` that read records of finished runs: tables and figures."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from credalearn_experiments.drawing import ResultTable
    from credalearn_experiments.records import Record


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


NAMES = "Names, or patterns such as 'cifar10h-votes-3-*'"
Names = Annotated[
    list[str] | None, typer.Argument(metavar="SETTING", help=f"{NAMES}; all if none.")
]
StoreOption = Annotated[Path, typer.Option("--store", help="Folder that keeps the runs.")]
Records = Annotated[
    Path, typer.Option("--records", help="A store, or a folder of records such as results.")
]
Form = Annotated[
    Format,
    typer.Option(
        "--format",
        help="How it is written; csv is one CSV a table; for one table of all runs: bench records "
        "-o runs.csv.",
    ),
]
# What a title and a remark start with, so that a table's reader takes them for what they are.
_HEADS = {Format.markdown: "## ", Format.latex: "% ", Format.csv: "# "}
_COMMENTS = {Format.markdown: "", Format.latex: "% ", Format.csv: "# "}
DEFAULT_STORE = Path("store")
DEFAULT_RECORDS = Path("results")


def table(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="Only this one; may be repeated. Without an ensemble its members count as seeds.",
        ),
    ] = None,
    balance: Annotated[
        list[str] | None,
        typer.Option("--balance", help="Method among those that BQS compares; may be repeated."),
    ] = None,
    form: Form = Format.markdown,
) -> None:
    """Print the tables of settings, with the number of seeds and how ensembles were made."""
    from credalearn_experiments.results.notes import notes
    from credalearn_experiments.results.tables import setting_tables

    write = _writer(form)
    found, chosen = _of_methods(_records(records), method, names)
    compared = _compared(balance, found, chosen)
    for name, methods in compared.items():
        for title, each in setting_tables(found, name, compared=methods).items():
            print(f"{_HEADS[form]}{name}: {title}\n")
            print(write(each))
        for line in notes(found, name, compared=methods, asked=method):
            print(f"{_COMMENTS[form]}{line}")
        print()


def differences(
    setting: Annotated[str, typer.Argument(help="Its name.")],
    than: Annotated[
        str, typer.Option(help="Method that the others are set beside, or another setting.")
    ],
    records: Records = DEFAULT_RECORDS,
    form: Form = Format.markdown,
) -> None:
    """Say how much better methods are than one of them, or than in another setting, by seed."""
    from credalearn.errors import CredalError
    from credalearn_experiments.results import differences as paired
    from credalearn_experiments.results.notes import how_made
    from credalearn_experiments.results.seeds import own_runs, runs_of

    write = _writer(form)
    found = _records(records)
    runs = runs_of(found, setting)
    said = how_made(runs, setting)
    if than in runs:
        differing = paired.beside_method(runs, than)
    elif than != setting and than in {record.setting for record in found}:
        runs, other = own_runs(found, setting), own_runs(found, than)
        differing = paired.beside_setting(runs, other)
        said = list(dict.fromkeys([*said, *how_made(other, than)]))
    else:
        raise CredalError(
            f"--than names a method or another setting that has records; got {than!r}. To fix: "
            f"take one of {', '.join(runs)}, or another setting."
        )
    points, better = paired.difference_tables(differing)
    print(f"{_HEADS[form]}{setting} less {than}, paired by seed, ± the standard error\n")
    print(write(points))
    print(f"{_HEADS[form]}{setting}: seeds on which it is better than {than}\n")
    print(write(better))
    for line in (*said, paired.ABOUT):
        print(f"{_COMMENTS[form]}{line}")


def votes(
    records: Records = DEFAULT_RECORDS,
    family: Annotated[
        VoteFamily | None,
        typer.Option(
            help="Images, features of images, CIFAR-10N's own votes, or nodules.",
            show_default="the first with records",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Only this one; may be repeated.", show_default="all held"),
    ] = None,
    form: Form = Format.markdown,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A figure: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Set label rules side by side by the number of votes, and say which is worse than none."""
    from credalearn_experiments.results import vote_differences as paired
    from credalearn_experiments.results import vote_tables as tables
    from credalearn_experiments.results.seeds import has
    from credalearn_experiments.results.vote_figure import vote_figure

    write = _writer(form)
    held = _records(records)
    # The value: of the enumeration itself an error would show the repr.
    named = tables.default_family(held) if family is None else family.value
    cells = tables.family_cells(held, named)
    asked = metric or [name for name in tables.METRICS if has(cells, name)]
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
    if output is not None:
        print(f"{_COMMENTS[form]}{_figures(1, output)}")


def sets(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    form: Form = Format.markdown,
) -> None:
    """Set methods side by side at equal coverage: how wide their sets must be to hold votes."""
    from credalearn.errors import CredalError
    from credalearn_experiments.results.notes import notes
    from credalearn_experiments.results.set_tables import about_sets, set_table

    found = _records(records)
    having = [record for record in found if "set_width_90" in record.metrics]
    if not having and not names:
        raise CredalError(
            f"{records} holds no record with sizes of sets. To fix: run a setting whose items have "
            "held-out votes, such as cifar10h-features."
        )
    chosen = _chosen(names, found if names else having)
    write = _writer(form)
    for name, sizes in {name: set_table(found, name) for name in chosen}.items():
        print(f"{_HEADS[form]}{name}: sets at equal coverage of people's votes\n")
        print(write(sizes))
        for line in notes(found, name, compared=()):
            print(f"{_COMMENTS[form]}{line}")
        print()
    print(f"{_COMMENTS[form]}{about_sets(chosen)}")


def compare(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv file, one figure a row.")
    ] = None,
) -> None:
    """Set ours beside every published figure that the records can answer."""
    from credalearn._files import check_file, whole_file
    from credalearn_experiments.results import compare as comparison

    if output is not None:
        check_file(output, (".csv",))
    found = _records(records)
    rows = comparison.compare(found)
    if names:
        chosen = _chosen(names, found)
        rows = [row for row in rows if row.setting in chosen]
    if output is not None:  # first: a reader that stops early (``| head``) ends the command
        with whole_file(output) as partial:
            partial.write_text(comparison.comparison_csv(rows), encoding="utf-8")
    print(comparison.comparison_markdown(found, rows))
    if output is not None:
        print(_figures(len(rows), output))


def figures(
    names: Names = None,
    records: Records = DEFAULT_RECORDS,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder.")] = Path("figures"),
    form: Annotated[Picture, typer.Option("--format", help="How it is written.")] = Picture.png,
) -> None:
    """Draw rejection curves, balanced scores, significance and ours against the published."""
    from credalearn._files import NotWrittenError
    from credalearn.errors import CredalError
    from credalearn_experiments.results import figures as draw

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
            except NotWrittenError:  # the next one could not be written either
                raise
            except CredalError as error:
                print(f"no {path.name}: {error}", file=sys.stderr)
            else:
                drawn += 1
    print(_figures(drawn, output))


def records(
    store: StoreOption = DEFAULT_STORE,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder, or a .csv file with a row a run.")
    ] = Path("results"),
) -> None:
    """Copy the records of a store's finished runs, without predictions and weights."""
    from credalearn._files import whole_file
    from credalearn_experiments.records import copy_records
    from credalearn_experiments.results.records_csv import records_csv

    found = _records(store)
    if output.suffix.lower() == ".csv":
        with whole_file(output) as partial:
            partial.write_text(records_csv(found), encoding="utf-8")
    else:
        copy_records(found, output)
    print(f"{len(found)} record{'' if len(found) == 1 else 's'} in {output}")


COMMANDS = (table, differences, votes, sets, compare, figures, records)


def _figures(count: int, output: Path) -> str:
    """How many were written, and where."""
    return f"{count} figure{'' if count == 1 else 's'} in {output}"


def _writer(form: Format) -> "Callable[[ResultTable], str]":
    from credalearn_experiments.drawing import latex, markdown, to_csv

    return {Format.markdown: markdown, Format.latex: latex, Format.csv: to_csv}[form]


def _chosen(names: list[str] | None, found: "list[Record]") -> list[str]:
    """Settings that were named or fit a pattern; unless any was, those there are records of.

    Then without the families of vote settings, dozens each, which `bench votes` shows.
    """
    from credalearn_experiments.settings.catalog import ALL_SETTINGS, family_of, spelled_out

    held = {record.setting for record in found}
    ordered = [name for name in ALL_SETTINGS if name in held]
    ordered += sorted(held - ALL_SETTINGS.keys())
    if names:
        return spelled_out(names, ordered)
    return [name for name in ordered if family_of(name) is None] or ordered


def _of_methods(
    found: "list[Record]", methods: list[str] | None, names: list[str] | None
) -> "tuple[list[Record], list[str]]":
    """The records of methods that were named, all unless any was, and the settings chosen.

    Settings that have records, but none of these methods, are left out.
    """
    from credalearn.errors import CredalError

    if not methods:
        return found, _chosen(names, found)
    settings = _chosen(names, found) if names else []
    # Of settings without any record another message tells.
    there = [record for record in found if record.setting in settings] or found
    held = dict.fromkeys(record.method for record in there)
    for method in methods:
        if method not in held:
            raise CredalError(
                f"--method {method!r} has no record{_but_in(method, found, names)}. To fix: take "
                f"one of {', '.join(held)}."
            )
    kept = [record for record in found if record.method in methods]
    lacking = {record.setting for record in found} - {record.setting for record in kept}
    chosen = settings or _chosen(None, kept)
    return kept, [name for name in chosen if name not in lacking]


def _but_in(method: str, found: "list[Record]", names: list[str] | None) -> str:
    """In which of the settings named a method has no record, and which others have some."""
    from credalearn.app.annotations.places import listed
    from credalearn_experiments.settings.catalog import by_family

    others = by_family({record.setting for record in found if record.method == method})
    told = f" in {', '.join(names)}" if names else ""
    return f"{told}; it has in {listed(others, 3)}" if others else told


def _compared(
    asked: list[str] | None, found: "list[Record]", settings: list[str]
) -> "dict[str, list[str] | None]":
    """By setting, the methods of --balance that have runs there; None unless any was named."""
    from credalearn.errors import CredalError
    from credalearn_experiments.results.seeds import runs_of

    if asked is None:
        return dict.fromkeys(settings)
    held = {name: runs_of(found, name) for name in settings}
    every = dict.fromkeys(method for runs in held.values() for method in runs)
    for method in asked:
        if method not in every:
            raise CredalError(
                f"--balance {method!r} has no run in these settings. To fix: take one of "
                f"{', '.join(every)}."
            )
    return {name: [method for method in asked if method in runs] for name, runs in held.items()}


def _records(folder: Path) -> "list[Record]":
    """The records of a folder, one or more; what is damaged is named."""
    from credalearn.errors import CredalError
    from credalearn_experiments.records import read_records

    if folder == DEFAULT_RECORDS and not folder.is_dir():
        raise CredalError(
            f"records are read from a folder; there is none at {folder}. To fix: give "
            f"--records {DEFAULT_STORE} for the runs of `credalearn-experiments run`, or name another."
        )
    found = read_records(folder)
    for line in found.damaged:
        print(f"left out: {line}", file=sys.stderr)
    if not found.records:
        raise CredalError(
            f"{folder} holds no record of a finished run. To fix: name another folder, or make "
            "some with `credalearn-experiments run`."
        )
    return list(found.records)
