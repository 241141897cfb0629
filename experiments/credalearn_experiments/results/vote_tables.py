"""Which rule, for how many votes: the records of a family of settings side by side.

Rows are a method and a rule, columns a number of votes; ``markdown``, ``latex`` and ``to_csv`` of
:mod:`credalearn_experiments.drawing` write the tables.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn_experiments.drawing import Column, ResultTable
from credalearn_experiments.drawing.tables import Value
from credalearn_experiments.records import Record
from credalearn_experiments.results.notes import plugin_notes
from credalearn_experiments.results.rehearsal import shortfalls
from credalearn_experiments.results.seeds import (
    check_one_kind,
    count_of_seeds,
    first_record,
    has,
    mean_of_every,
    records_in,
    runs_of,
)
from credalearn_experiments.settings.catalog import by_family, family_of
from credalearn_experiments.settings.votes import FAMILIES, Family, in_words

BySeed = Mapping[int, Record]
Cells = Mapping[str, Mapping[int | None, BySeed]]
"""``cells[row][number of votes][seed]``"""

# What can be shown against votes. Whether a set holds the votes is no contest: that of all
# distributions holds everything, so the two that say so are not marked.
METRICS: dict[str, Column] = {
    "accuracy": Column("accuracy", digits=2),
    "ece": Column("ECE", better="lower", digits=2),
    "auarc": Column("AUARC by each method's own score", digits=2),
    "auarc_top_probability": Column("AUARC by 1 − top probability", digits=2),
    "error_at_80": Column("error of the most certain 80 %", better="lower", digits=2),
    "error_at_90": Column("error of the most certain 90 %", better="lower", digits=2),
    "human_cross_entropy": Column(
        "cross-entropy to people's votes, nats", better="lower", percent=False, digits=3
    ),
    "human_error": Column("votes against the predicted class", better="lower", digits=2),
    "human_error_at_80": Column("votes against it, most certain 80 %", better="lower", digits=2),
    "human_error_at_90": Column("votes against it, most certain 90 %", better="lower", digits=2),
    "human_coverage": Column("items whose votes fit the set", marked=False, digits=1),
    "human_gap": Column(
        "votes' distance from the set", better="lower", marked=False, percent=False, digits=3
    ),
    "set_width_90": Column("set width at 90 % coverage", better="lower", percent=False, digits=3),
    "set_width_95": Column("set width at 95 % coverage", better="lower", percent=False, digits=3),
}


def row_name(rule: str, method: str) -> str:
    """What a row is called.

    Example:
        >>> row_name("idm", "pocc")
        'pocc, idm'
    """
    return f"{method}, {rule}"


def default_family(records: Iterable[Record]) -> str:
    """The first family that has records; the first of all where none has.

    Example:
        >>> record = Record(
        ...     setting="lidc-votes-3-idm", method="pocc", seed=1, metrics={"accuracy": 0.9}
        ... )
        >>> default_family([record]), default_family([])
        ('lidc-votes', 'cifar10h-votes')
    """
    return next(iter(_families_held(record.setting for record in records)), next(iter(FAMILIES)))


def family_cells(records: Iterable[Record], family: str) -> dict[str, dict[int | None, BySeed]]:
    """The records of a family by row, number of votes and seed, rows in the order of its rules.

    Args:
        records: Of any settings.
        family: A key of ``FAMILIES``.

    Raises:
        CredalError: If there is no such family or no record of it, or its runs differ in epochs, in
            the number of items or in the weights.

    Example:
        >>> record = Record(
        ...     setting="cifar10h-votes-3-idm", method="pocc", seed=1, metrics={"accuracy": 0.9}
        ... )
        >>> family_cells([record], "cifar10h-votes")["pocc, idm"][3][1].metrics["accuracy"]
        0.9
    """
    check_choice(family, FAMILIES, name="family")
    known, records = FAMILIES[family], list(records)
    held = {record.setting for record in records}
    cells: dict[str, dict[int | None, BySeed]] = {}
    for rule in known.rules:
        for number in known.numbers:
            name = known.setting_name(number, rule)
            for method, runs in runs_of(records, name).items() if name in held else ():
                cells.setdefault(row_name(rule, method), {})[number] = runs
    if not cells:
        others = " or ".join(_families_held(held))
        instead = f", or give --family {others}" if others else ""
        raise CredalError(
            f"there is no record of the family {family!r}; there are some of "
            f"{', '.join(by_family(held))}. "
            f"To fix: make some with `credalearn-experiments run '{family}-*'`{instead}."
        )
    check_one_kind(records_in(cells), f"the family {family!r}")
    return cells


def vote_table(cells: Cells, metric: str, family: str) -> ResultTable:
    """One metric: a row a method and rule, a column a number of votes, mean and deviation.

    Args:
        cells: What :func:`family_cells` returned.
        metric: A key of ``METRICS``.
        family: A key of ``FAMILIES``.

    Raises:
        CredalError: If there is no such metric, or no record has it.

    Example:
        >>> record = Record(
        ...     setting="cifar10h-votes-3-idm", method="pocc", seed=1, metrics={"accuracy": 0.9}
        ... )
        >>> cells = family_cells([record], "cifar10h-votes")
        >>> vote_table(cells, "accuracy", "cifar10h-votes").rows
        {'pocc, idm': {'3': (0.9, None)}}
    """
    check_choice(metric, METRICS, name="metric")
    if not has(cells, metric):
        held = ", ".join(name for name in METRICS if has(cells, name))
        raise CredalError(
            f"no record of the family {family!r} has the metric {metric!r}. To fix: take one of "
            f"{held}."
        )
    numbers = numbers_held(cells, FAMILIES[family])
    rows: dict[str, dict[str, Value]] = {
        row: {in_words(each): mean_of_every(by_number.get(each, {}), metric) for each in numbers}
        for row, by_number in cells.items()
    }
    columns = [replace(METRICS[metric], name=in_words(number)) for number in numbers]
    return ResultTable(columns, rows, corner="votes an item")


def vote_notes(cells: Cells, family: str) -> list[str]:
    """What must be said with every table of a family: seeds, a missing plugin, a rehearsal.

    Example:
        >>> record = Record(
        ...     setting="cifar10h-votes-3-idm", method="pocc", seed=1, metrics={"accuracy": 0.9}
        ... )
        >>> vote_notes(family_cells([record], "cifar10h-votes"), "cifar10h-votes")
        ['1 seed of every run. ± is over seeds, each with votes of its own unless all are used.']
    """
    counts = {
        (row, number): len(runs)
        for row, by_number in cells.items()
        for number, runs in by_number.items()
    }
    usual = Counter(counts.values()).most_common(1)[0][0]
    others: dict[tuple[int, int | None], list[str]] = {}
    for (row, number), count in counts.items():
        if count != usual:
            others.setdefault((count, number), []).append(row)
    but = [
        f"{count_of_seeds(count)} at {listed([in_words(number)])} of {'; '.join(rows)}."
        for (count, number), rows in others.items()
    ]
    seeds = " ".join([f"{count_of_seeds(usual)} of every run{', but' if but else '.'}", *but])
    lines = [f"{seeds} ± is over seeds, each with votes of its own unless all are used."]
    short = shortfalls(first_record(cells), FAMILIES[family].recipe.epochs)
    return [*lines, *plugin_notes(records_in(cells)), *(f"A rehearsal: {each}." for each in short)]


def numbers_held(
    cells: Mapping[str, Mapping[int | None, object]], family: Family
) -> list[int | None]:
    """The family's numbers of votes that any row has, in order.

    Example:
        >>> numbers_held({"a": {None: 1}, "b": {2: 1}}, FAMILIES["cifar10h-votes"])
        [2, None]
    """
    held = {number for by_number in cells.values() for number in by_number}
    return [number for number in family.numbers if number in held]


def _families_held(names: Iterable[str]) -> list[str]:
    """The families that settings of these names belong to."""
    return sorted({each for each in map(family_of, names) if each}, key=list(FAMILIES).index)


def listed(numbers: list[str]) -> str:
    """Numbers of votes in words.

    Example:
        >>> listed(["1"]), listed(["1", "2", "all"])
        ('1 vote', '1, 2 and all votes')
    """
    *before, last = numbers
    word = "vote" if numbers == ["1"] else "votes"
    return f"{', '.join(before)} and {last} {word}" if before else f"{last} {word}"
