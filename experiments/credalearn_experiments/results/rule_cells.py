"""One label rule in every family, against softmax on soft labels, with Holm's correction."""

from collections.abc import Mapping, Sequence

from credalearn._formats import many
from credalearn.errors import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.differences import CONFIDENCE, Difference
from credalearn_experiments.results.table import Column, Table, Value
from credalearn_experiments.results.votes import differences, family_cells
from credalearn_experiments.settings.catalog import family_of
from credalearn_experiments.settings.votes import FAMILIES

_COLUMNS = (
    Column("seeds", marked=False, percent=False, digits=0),
    Column("difference", marked=False, digits=2),
    Column("p", marked=False, percent=False, digits=4),
    Column("p, Holm", marked=False, percent=False, digits=4),
    Column("verdict", marked=False, percent=False, text=True),
)


def rule_page(records: Sequence[Record], rule: str, method: str) -> list[Table | str]:
    """Every cell of a method and a rule: a family and a number of votes per item."""
    row = f"{method}, {rule}"
    held = {family_of(record.setting) for record in records}
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
    notes = [f"{verdict_counts(cells, adjusted)}"]
    return [Table(title, _COLUMNS, rows, corner="family, votes per item"), *notes]


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """P-values adjusted by Holm (1979): the chance of any false rejection is at most the level.

    The i-th smallest of m is multiplied by m − i + 1; none is below a smaller one, or above 1.
    """
    adjusted, least = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        least = max(least, min(1.0, (len(p_values) - place) * p))
        adjusted[name] = least
    return {name: adjusted[name] for name in p_values}


def verdict_counts(cells: Mapping[str, Difference], adjusted: Mapping[str, float]) -> str:
    """In how many cells it is better or worse, before and after the correction."""
    parts = []
    for verdict in ("better", "worse"):
        found = [name for name, each in cells.items() if each.verdict == verdict]
        kept = [name for name in found if adjusted[name] < 1 - CONFIDENCE]
        parts.append(f"{verdict} in {len(found)}, after Holm's correction in {len(kept)}")
    return f"Of {many(len(cells), 'cell')}: {'; '.join(parts)}."
