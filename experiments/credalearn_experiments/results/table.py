"""One table type, written as Markdown. Names are escaped: no name can break a table."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from credalearn._formats import escape_markdown

Value = tuple[float, float | None] | str | None
"""Mean and spread (None: not printed), a text that is printed as it is, or None for a dash."""


@dataclass(frozen=True, slots=True)
class Column:
    """One metric and how it is printed."""

    name: str
    better: Literal["higher", "lower"] = "higher"
    marked: bool = True  # best and second value, with an arrow in the head
    percent: bool = True  # shares are printed in percent
    digits: int = 1
    text: bool = False  # on the left, as words are

    @property
    def head(self) -> str:
        """Name, unit and arrow."""
        unit = " (%)" if self.percent else ""
        arrow = f" {'↑↓'[self.better == 'lower']}" if self.marked else ""
        return f"{self.name}{unit}{arrow}"

    def number(self, share: float) -> str:
        """In the scale and digits of the column; never a minus before zero."""
        return f"{(100 if self.percent else 1) * share:z.{self.digits}f}"


def plain(name: str, *, digits: int = 1, text: bool = False) -> Column:
    """Numbers or texts that are neither shares nor better or worse."""
    return Column(name, marked=False, percent=False, digits=digits, text=text)


@dataclass(frozen=True, slots=True)
class Table:
    """A value for every row and column; what a row lacks is printed as a dash."""

    title: str
    columns: Sequence[Column]
    rows: Mapping[str, Mapping[str, Value]]
    corner: str = "method"  # above the names of the rows


_MARKS = ("**{}**", "<u>{}</u>")  # best, second


def _cells(table: Table, column: Column) -> list[str]:
    """One column as text, its head first; values that are printed alike share a mark."""
    values = [row.get(column.name) for row in table.rows.values()]
    means = [column.number(x[0]) if isinstance(x, tuple) else x for x in values]
    marks: dict[str, str] = {}
    if column.marked and len(means) - means.count(None) > 1:  # one alone is not the best
        distinct = {mean for mean in means if mean is not None}
        ranked = sorted(distinct, key=float, reverse=column.better == "higher")
        marks = dict(zip(ranked, _MARKS, strict=False))
    cells = [escape_markdown(column.head)]
    for value, mean in zip(values, means, strict=True):
        spread = value[1] if isinstance(value, tuple) else None
        # A hyphen inside a name stays one.
        text = "–" if mean is None else re.sub(r"(?<!\w)-(?=\d)", "−", mean)
        text = marks.get(mean or "", "{}").format(text)
        cells.append(text + ("" if spread is None else f" ± {column.number(spread)}"))
    return cells


def markdown(table: Table) -> str:
    """GitHub's Markdown: best in bold, second underlined."""
    names = [escape_markdown(name) for name in (table.corner, *table.rows)]
    columns = [names, *(_cells(table, column) for column in table.columns)]
    head, *body = zip(*columns, strict=True)
    rule = [":--", *(":--" if column.text else "--:" for column in table.columns)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *body))


def page(parts: Iterable[Table | str]) -> str:
    """Tables below their titles, and notes, one per line."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(f"- {part}")
        else:
            lines += [*([""] if lines and lines[-1] else []), f"### {part.title}", ""]
            lines += [*markdown(part).splitlines(), ""]
    return "\n".join(lines)
