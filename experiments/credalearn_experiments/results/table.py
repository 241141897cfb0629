"""One table type, written as Markdown, LaTeX or CSV.

Names are escaped: no name can break a table, or run in a spreadsheet.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from credalearn.app._escape import escape_csv, escape_latex, escape_markdown

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

    def head(self, escape: Callable[[str], str] = str, arrows: Sequence[str] = "↑↓") -> str:
        """Name, unit and arrow."""
        unit = escape(" (%)") if self.percent else ""
        arrow = f" {arrows[self.better == 'lower']}" if self.marked else ""
        return f"{escape(self.name)}{unit}{arrow}"

    def number(self, share: float) -> str:
        """In the scale and digits of the column; never a minus before zero."""
        return f"{(100 if self.percent else 1) * share:z.{self.digits}f}"


@dataclass(frozen=True, slots=True)
class Table:
    """A value for every row and column; what a row lacks is printed as a dash."""

    title: str
    columns: Sequence[Column]
    rows: Mapping[str, Mapping[str, Value]]
    corner: str = "method"  # above the names of the rows


@dataclass(frozen=True, slots=True)
class _Style:
    """How names, heads and numbers are written."""

    escape: Callable[[str], str]
    arrows: Sequence[str]
    dash: str
    minus: str
    spread: str
    marks: tuple[str, str]  # best, second


_MARKDOWN = _Style(escape_markdown, "↑↓", "–", "−", " ± ", ("**{}**", "<u>{}</u>"))
_LATEX = _Style(
    escape_latex,
    *((r"$\uparrow$", r"$\downarrow$"), "--", "$-$", r" $\pm$ "),
    marks=(r"\textbf{{{}}}", r"\underline{{{}}}"),
)


def _grid(table: Table, style: _Style) -> list[list[str]]:
    """Head and rows as text; values that are printed alike share a mark."""
    columns = [[style.escape(name) for name in (table.corner, *table.rows)]]
    for column in table.columns:
        values = [row.get(column.name) for row in table.rows.values()]
        means = [column.number(x[0]) if isinstance(x, tuple) else x for x in values]
        marks: dict[str, str] = {}
        if column.marked and len(means) - means.count(None) > 1:  # one alone is not the best
            distinct = {mean for mean in means if mean is not None}
            ranked = sorted(distinct, key=float, reverse=column.better == "higher")
            marks = dict(zip(ranked, style.marks, strict=False))
        cells = [column.head(style.escape, style.arrows)]
        for value, mean in zip(values, means, strict=True):
            spread = value[1] if isinstance(value, tuple) else None
            # A hyphen inside a name stays one.
            text = style.dash if mean is None else re.sub(r"(?<!\w)-(?=\d)", style.minus, mean)
            text = marks.get(mean or "", "{}").format(text)
            cells.append(text + ("" if spread is None else style.spread + column.number(spread)))
        columns.append(cells)
    return [list(line) for line in zip(*columns, strict=True)]


def markdown(table: Table) -> str:
    """GitHub's Markdown: best in bold, second underlined."""
    head, *body = _grid(table, _MARKDOWN)
    rule = [":--", *(":--" if column.text else "--:" for column in table.columns)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *body))


def latex(table: Table) -> str:
    """A LaTeX ``tabular`` with the rules of the package booktabs."""
    head, *body = (rf"{' & '.join(line)} \\" for line in _grid(table, _LATEX))
    sides = "".join("l" if column.text else "r" for column in table.columns)
    begin = rf"\begin{{tabular}}{{l{sides}}}"
    return "\n".join(
        [begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
    )


def to_csv(table: Table) -> str:
    """The numbers in CSV, neither scaled nor marked; every column is followed by its spread."""
    names = [column.name for column in table.columns]
    heads = [table.corner, *(head for name in names for head in (name, f"{name} ±"))]
    rows: list[list[str | float | None]] = []
    for name, row in table.rows.items():
        values = [row.get(each) for each in names]
        pairs = [x if isinstance(x, tuple) else (x, None) for x in values]
        rows.append([name, *(each for pair in pairs for each in pair)])
    return csv_text([heads, *rows])


def csv_text(rows: Iterable[Iterable[str | float | None]]) -> str:
    """Rows as CSV; None is an empty field."""
    file = io.StringIO()
    safe = ([escape_csv(x) if isinstance(x, str) else x for x in row] for row in rows)
    csv.writer(file, lineterminator="\n").writerows(safe)
    return file.getvalue()


# By name: how tables are written, and what titles and notes start with.
_FORMS: dict[str, tuple[Callable[[Table], str], str, str]] = {
    "markdown": (markdown, "### ", "- "),
    "latex": (latex, "% ", "% "),
    "csv": (to_csv, "# ", "# "),
}


def page(parts: Iterable[Table | str], form: str = "markdown") -> str:
    """Tables below their titles, and notes, one per line."""
    write, title, note = _FORMS[form]
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(f"{note}{part}")
        else:
            lines += [*([""] if lines and lines[-1] else []), f"{title}{part.title}", ""]
            lines += [*write(part).splitlines(), ""]
    return "\n".join(lines)
