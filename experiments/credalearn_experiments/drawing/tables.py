r"""Result tables as Markdown, LaTeX and CSV: methods in rows, metrics in columns.

Every text from outside is escaped: a name can neither break a table nor run in a spreadsheet.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from credalearn._escape import escape_csv, escape_latex, escape_markdown
from credalearn.errors import CredalError

Value = tuple[float, float | None] | None
"""Mean and how far it spreads; a spread of None is not printed, None alone is a dash."""

Mark = Literal["best", "second"]


@dataclass(frozen=True, slots=True)
class Column:
    """One metric and how it is printed.

    Args:
        name: For instance ``ACC``.
        better: Whether a higher or a lower value is better.
        marked: Whether best and second are marked, with an arrow in the head; not where a value
            is no merit of its own, such as the coverage of sets of any size.
        percent: Whether shares are printed in per cent.
        digits: Digits after the point, 0 or more.

    Raises:
        CredalError: If ``better`` is neither, or the digits are negative.

    Example:
        >>> Column("ECE", better="lower").digits
        1
    """

    name: str
    _: KW_ONLY
    better: Literal["higher", "lower"] = "higher"
    marked: bool = True
    percent: bool = True
    digits: int = 1

    def __post_init__(self) -> None:
        if self.better not in ("higher", "lower") or self.digits < 0:
            raise CredalError(
                "better must be 'higher' or 'lower', and digits 0 or more; column "
                f"{self.name!r} has better={self.better!r}, digits={self.digits}."
            )


@dataclass(frozen=True, slots=True)
class Cell:
    """One value as it is printed.

    Args:
        mean: In the column's scale and digits.
        std: Likewise, or None.
        mark: ``best`` or ``second`` of its column, or None.

    Example:
        >>> Cell("87.0", "0.4", mark="best").mean
        '87.0'
    """

    mean: str
    std: str | None = None
    _: KW_ONLY
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A value, or none, for every method and metric.

    Args:
        columns: The metrics, one or more.
        rows: ``rows[method][metric]`` is ``(mean, std)``, ``(mean, None)`` or None, for every
            method and for just the metrics of the columns.
        corner: What stands above the names of the methods.
        spread: What the second numbers are, as CSV calls them.

    Raises:
        CredalError: If the table has no row or column, two columns share a name, a row has other
            metrics, or a number is not finite.

    Example:
        >>> table = ResultTable(
        ...     [Column("ACC"), Column("ECE", better="lower")],
        ...     {"POCC": {"ACC": (0.87, 0.004), "ECE": (0.029, 0.003)},
        ...      "EDL": {"ACC": (0.85, 0.004), "ECE": None}},
        ... )
        >>> table.cells["EDL"]
        (Cell(mean='85.0', std='0.4', mark='second'), None)
    """

    columns: Sequence[Column]
    rows: Mapping[str, Mapping[str, Value]]
    _: KW_ONLY
    corner: str = "method"
    spread: str = "std"

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names or not self.rows or len(set(names)) < len(names):
            raise CredalError(
                "a table needs one row or more and one column or more, each with its own name; "
                f"got columns {names} and rows {list(self.rows)}."
            )
        for method, row in self.rows.items():
            if set(row) != set(names):
                raise CredalError(
                    f"every row must have the columns {names}; row {method!r} has {list(row)}. "
                    "To fix: give None where there is no value."
                )
            for name in names:
                _check(method, name, row[name])
        # Copies: what was checked stays as it was.
        object.__setattr__(self, "columns", tuple(self.columns))
        rows = {method: {name: row[name] for name in names} for method, row in self.rows.items()}
        object.__setattr__(self, "rows", rows)

    @property
    def cells(self) -> dict[str, tuple[Cell | None, ...]]:
        """By method, the values as they are printed, in the order of the columns.

        Of two values or more in a marked column the best and the second are marked; values that
        are printed alike share the mark.
        """
        by_column = [self._column_cells(column) for column in self.columns]
        return dict(zip(self.rows, zip(*by_column, strict=True), strict=True))

    def _column_cells(self, column: Column) -> list[Cell | None]:
        printed = [_printed(row[column.name], column) for row in self.rows.values()]
        # Ranked as printed, so that what looks equal is marked alike.
        means = {text[0] for text in printed if text is not None}
        ranked = sorted(means, key=float, reverse=column.better == "higher")
        marks: dict[str, Mark] = {}
        if column.marked and len(printed) - printed.count(None) > 1:  # one alone is best of none
            marks.update(zip(ranked, ("best", "second"), strict=False))
        return [None if text is None else Cell(*text, mark=marks.get(text[0])) for text in printed]


def markdown(table: ResultTable) -> str:
    """The table in GitHub's Markdown: best in bold, second underlined.

    Example:
        >>> rows = {"POCC": {"ACC": (0.87, 0.004)}, "EDL": {"ACC": (0.85, None)}}
        >>> print(markdown(ResultTable([Column("ACC")], rows)))
        | method | ACC (%) ↑ |
        | :-- | --: |
        | POCC | **87.0** ± 0.4 |
        | EDL | <u>85.0</u> |
        <BLANKLINE>
    """
    marks = {"best": "**{}**", "second": "<u>{}</u>", None: "{}"}

    def show(cell: Cell | None) -> str:
        if cell is None:
            return "–"
        mean = marks[cell.mark].format(cell.mean.replace("-", "−"))
        return mean if cell.std is None else f"{mean} ± {cell.std}"

    head, *body = _grid(table, show, escape_markdown, arrows=("↑", "↓"))
    rule = [":--", *["--:"] * len(table.columns)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *body))


def latex(table: ResultTable) -> str:
    r"""The table as a LaTeX ``tabular`` with the rules of the package booktabs.

    Example:
        >>> rows = {"POCC": {"ACC": (0.87, 0.004)}, "EDL": {"ACC": (0.85, None)}}
        >>> print(latex(ResultTable([Column("ACC")], rows)))
        \begin{tabular}{lr}
        \toprule
        method & ACC (\%) $\uparrow$ \\
        \midrule
        POCC & \textbf{87.0} $\pm$ 0.4 \\
        EDL & \underline{85.0} \\
        \bottomrule
        \end{tabular}
        <BLANKLINE>
    """
    marks = {"best": r"\textbf", "second": r"\underline"}

    def show(cell: Cell | None) -> str:
        if cell is None:
            return "--"
        mean = cell.mean.replace("-", "$-$")
        mean = mean if cell.mark is None else f"{marks[cell.mark]}{{{mean}}}"
        return mean if cell.std is None else rf"{mean} $\pm$ {cell.std}"

    arrows = (r"$\uparrow$", r"$\downarrow$")
    head, *body = (
        rf"{' & '.join(line)} \\" for line in _grid(table, show, escape_latex, arrows=arrows)
    )
    lines = [rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*lines, *body, r"\bottomrule", r"\end{tabular}", ""])


def to_csv(table: ResultTable) -> str:
    """The numbers as they were given, in CSV: neither scaled nor rounded (12 digits) nor marked.

    Two fields a metric, mean and spread, empty where there is none; of a metric without any spread
    one field. A text that a spreadsheet would run as a formula gets an apostrophe in front.

    Example:
        >>> rows = {"POCC": {"ACC": (0.87, 0.004), "net": (2, None)},
        ...         "EDL": {"ACC": None, "net": (-2, None)}}
        >>> print(to_csv(ResultTable([Column("ACC"), Column("net")], rows)))
        method,ACC mean,ACC std,net
        POCC,0.87,0.004,2
        EDL,,,-2
        <BLANKLINE>
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    spreads = {
        name
        for row in table.rows.values()
        for name, value in row.items()
        if value is not None and value[1] is not None
    }
    heads = [table.corner]
    for column in table.columns:
        name = column.name
        heads += [f"{name} mean", f"{name} {table.spread}"] if name in spreads else [name]
    writer.writerow([escape_csv(text) for text in heads])
    for method, row in table.rows.items():
        numbers: list[float | None] = []
        for name, value in row.items():
            numbers += (value or (None, None))[: 2 if name in spreads else 1]
        shown = ["" if number is None else f"{number:z.12g}" for number in numbers]
        writer.writerow([escape_csv(method), *shown])
    return file.getvalue()


def _grid(
    table: ResultTable,
    show: Callable[[Cell | None], str],
    escape: Callable[[str], str],
    *,
    arrows: tuple[str, str],
) -> list[list[str]]:
    """Head and rows as text."""
    head = [escape(table.corner)]
    for column in table.columns:
        unit = escape(" (%)") if column.percent else ""
        arrow = f" {arrows[column.better == 'lower']}" if column.marked else ""
        head.append(f"{escape(column.name)}{unit}{arrow}")
    return [head, *([escape(name), *map(show, cells)] for name, cells in table.cells.items())]


def _check(method: str, metric: str, value: Value) -> None:
    if value is None:
        return
    try:
        mean, std = value
        right = math.isfinite(mean) and (std is None or 0 <= std < math.inf)
    except (TypeError, ValueError):  # not two, or not numbers
        right = False
    if not right:
        raise CredalError(
            "a value must be (mean, std), (mean, None) or None, finite, with std 0 or more; "
            f"rows[{method!r}][{metric!r}] is {value!r}. To fix: give None for no value."
        )


def _printed(value: Value, column: Column) -> tuple[str, str | None] | None:
    """Mean and deviation in the column's scale and digits; z: never a minus before zero."""
    if value is None:
        return None
    scale = 100 if column.percent else 1
    mean, std = value
    digits = f"z.{column.digits}f"
    return format(scale * mean, digits), None if std is None else format(scale * std, digits)
