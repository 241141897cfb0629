"""Label rules by the number of votes in a family of settings, and one rule in every family."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from credalearn._checks import check_choice
from credalearn._formats import enumerated, many
from credalearn.errors import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.balance import run_notes
from credalearn_experiments.results.differences import CONFIDENCE, Difference
from credalearn_experiments.results.seeds import (
    BySeed,
    check_one_kind,
    has,
    mean_of_every,
    runs_of,
    seeds,
)
from credalearn_experiments.results.table import Column, Table, Value, plain
from credalearn_experiments.settings.catalog import BASELINE, FAMILIES, FAMILY_OF, in_words

Cells = Mapping[str, Mapping[str, BySeed]]
"""``cells[row][number of votes, or "all"][seed]``"""

# The set of all distributions contains every vote, so the two metrics of that are not marked.
_percents, _numbers = partial(Column, digits=2), partial(Column, percent=False, digits=3)
METRICS: dict[str, Column] = {
    "accuracy": _percents("accuracy"),
    "ece": _percents("ECE", "lower"),
    "ece_tempered": _percents("ECE after one temperature", "lower"),
    "auarc": _percents("AUARC by each method's own score"),
    "auarc_top_probability": _percents("AUARC by 1 − top probability"),
    "error_at_80": _percents("error of the most certain 80 %", "lower"),
    "error_at_90": _percents("error of the most certain 90 %", "lower"),
    "human_cross_entropy": _numbers("cross-entropy to people's votes, nats", "lower"),
    "human_error": _percents("votes against the predicted class", "lower"),
    "human_error_at_80": _percents("votes against it, most certain 80 %", "lower"),
    "human_error_at_90": _percents("votes against it, most certain 90 %", "lower"),
    "human_coverage": Column("items whose votes fit the set", marked=False),
    "human_gap": _numbers("votes' distance from the set", "lower", marked=False),
    "set_width_90": _numbers("set width at 90 % coverage", "lower"),
    "set_width_95": _numbers("set width at 95 % coverage", "lower"),
}
_CORNER = "votes per item"
_DIFFERENCES = "accuracy minus that of softmax on soft labels, paired by seed, ± its standard error"
_VERDICTS = ("worse", "no clear difference", "better", "too few seeds")
_ABOUT = (
    "Worse is a mean difference of at least 0.1 points below 0 whose 95 % interval (Student's t "
    "for the paired seeds, three or more) lies below 0; better likewise above; no clear "
    "difference is everything else, which does not mean equal. A loss that is not excluded lies "
    "in the interval: the largest is its lower end, here that of the group's worst cell. No "
    "correction is made for the number of cells: of those without any difference, up to one in 20 "
    "is called worse or better."
)


def family_cells(records: Iterable[Record], family: str) -> dict[str, dict[str, BySeed]]:
    """The records of a family by row, number of votes and seed, rows in the order of its rules."""
    check_choice(family, FAMILIES, name="family")
    known, records = FAMILIES[family], list(records)
    held = {record.setting for record in records}
    cells: dict[str, dict[str, BySeed]] = {}
    for rule in known.rules:
        for number in known.numbers:
            name = known.setting_name(number, rule)
            for method, runs in runs_of(records, name).items() if name in held else ():
                cells.setdefault(f"{method}, {rule}", {})[in_words(number)] = runs
    if not cells:
        raise CredalError(
            f"there is no record of the family {family!r}. To fix: use another --family, or make "
            f"some with `credalearn-experiments run '{family}-*'`."
        )
    check_one_kind(cells, f"the family {family!r}")
    return cells


def votes_page(
    cells: Cells, family: str, metrics: Sequence[str] | None = None
) -> list[Table | str]:
    """One table per metric; below the accuracy, differences from softmax on soft labels."""
    parts: list[Table | str] = []
    for metric in metrics or [name for name in METRICS if has(cells, name)]:
        parts.append(vote_table(cells, metric, family))
        found = differences(cells) if metric == "accuracy" else {}
        if found:
            columns = [Column(number, digits=2) for number in numbers_of(found, family)]
            title = f"{family}: {_DIFFERENCES}"
            rows = {row: {n: each.value for n, each in x.items()} for row, x in found.items()}
            table = Table(title, columns, rows, corner=_CORNER)
            parts += [table, *verdicts(found), _ABOUT]
    return [*parts, _seed_note(cells), *run_notes(cells)]


def vote_table(cells: Cells, metric: str, family: str) -> Table:
    """Mean and deviation of one metric."""
    check_choice(metric, [name for name in METRICS if has(cells, name)], name="metric")
    rows = {
        row: {number: mean_of_every(runs, metric) for number, runs in by_number.items()}
        for row, by_number in cells.items()
    }
    columns = [replace(METRICS[metric], name=number) for number in numbers_of(cells, family)]
    return Table(f"{family}: {METRICS[metric].name}", columns, rows, corner=_CORNER)


def numbers_of(cells: Mapping[str, Mapping[str, object]], family: str) -> list[str]:
    """The family's numbers of votes that any row has, in order."""
    held = {number for by_number in cells.values() for number in by_number}
    return [name for name in map(in_words, FAMILIES[family].numbers) if name in held]


def differences(cells: Cells) -> dict[str, dict[str, Difference]]:
    """Each row's accuracy minus that of softmax on soft labels, where they share a seed."""
    rule, method = BASELINE
    baseline = cells.get(f"{method}, {rule}", {})
    found: dict[str, dict[str, Difference]] = {}
    for row, by_number in cells.items():
        for number, runs in by_number.items() if by_number is not baseline else ():
            each = Difference.paired(runs, baseline.get(number, {}), "accuracy")
            if each is not None:
                found.setdefault(row, {})[number] = each
    return found


def verdicts(found: Mapping[str, Mapping[str, Difference]]) -> list[str]:
    """One line per row: at how many votes it is worse than the baseline, better, or neither."""
    lines = []
    for row, by_number in found.items():
        parts = []
        for verdict in _VERDICTS:
            group = {n: each for n, each in by_number.items() if each.verdict == verdict}
            loss = max((-100 * x.interval[0] for x in group.values() if x.interval), default=0)
            excluded = f" (a loss of up to {loss:.2f} points is not excluded)"
            if group:
                parts.append(f"{verdict} at {_votes(group)}{excluded if loss >= 0.005 else ''}")
        lines.append(f"{row}: {'; '.join(parts)}.")
    return lines


def _seed_note(cells: Cells) -> str:
    """The usual number of seeds, and where it differs."""
    counts = {(row, n): len(runs) for row, by_n in cells.items() for n, runs in by_n.items()}
    usual = Counter(counts.values()).most_common(1)[0][0]
    others: dict[tuple[int, str], list[str]] = {}
    for (row, number), count in counts.items():
        if count != usual:
            others.setdefault((count, number), []).append(row)
    but = [
        f"{seeds(count)} at {_votes([number])} of {'; '.join(rows)}."
        for (count, number), rows in others.items()
    ]
    text = " ".join([f"{seeds(usual)} of every run{', but' if but else '.'}", *but])
    return f"{text} ± is over seeds, each with different votes unless all votes are used."


def _votes(numbers: Iterable[str]) -> str:
    words = list(numbers)
    return f"{enumerated(words)} {'vote' if words == ['1'] else 'votes'}"


_COLUMNS = (
    plain("seeds", digits=0),
    Column("difference", marked=False, digits=2),
    *(plain("p", digits=4), plain("p, Holm", digits=4)),
    plain("verdict", text=True),
)


def rule_page(records: Sequence[Record], rule: str, method: str) -> list[Table | str]:
    """Every cell of a method and a rule: a family and a number of votes per item."""
    row = f"{method}, {rule}"
    held = {FAMILY_OF.get(record.setting) for record in records}
    cells = {
        f"{family}, {number}": each
        for family in FAMILIES
        if family in held
        for number, each in differences(family_cells(records, family)).get(row, {}).items()
    }
    if not cells:
        raise CredalError(
            f"there is no record of {row!r} next to softmax on soft labels. To fix: use another "
            "rule or --method; `credalearn-experiments votes` shows those of a family."
        )
    adjusted = holm({name: x.p_value for name, x in cells.items() if x.p_value is not None})
    rows: dict[str, dict[str, Value]] = {
        name: {
            "seeds": (each.seeds, None),
            "difference": each.value,
            "p": None if each.p_value is None else (each.p_value, None),
            "p, Holm": (adjusted[name], None) if name in adjusted else None,
            "verdict": each.verdict,
        }
        for name, each in cells.items()
    }
    title = f"{row}: accuracy minus that of softmax on soft labels, paired by seed, ± its error"
    parts = []
    for verdict in ("better", "worse"):
        found = [name for name, each in cells.items() if each.verdict == verdict]
        kept = [name for name in found if adjusted[name] < 1 - CONFIDENCE]
        parts.append(f"{verdict} in {len(found)}, after Holm's correction in {len(kept)}")
    note = f"Of {many(len(cells), 'cell')}: {'; '.join(parts)}."
    return [Table(title, _COLUMNS, rows, corner="family, votes per item"), note]


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """P-values adjusted by Holm (1979): the chance of any false rejection is at most the level."""
    adjusted, least = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p_values) - place) * p))
        adjusted[name] = least
    return {name: adjusted[name] for name in p_values}
