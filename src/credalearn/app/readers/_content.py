"""What the readers look at, and what they return."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import polars as pl

from credalearn._formats import listed, shown
from credalearn.app import column_names
from credalearn.app._json_file import Record, text_of
from credalearn.app.facts import Kind
from credalearn.app.readers.options import ReaderOptions
from credalearn.app.sources import Source, texts
from credalearn.errors import CredalError

_INSIDE = ("data", "meta")  # where Label Studio and Prodigy keep the fields of the user
_MISSING = object()
ROW = "\0row"  # column of the row in the source; no column of the user's is called so
HEAD = 200  # rows or records by which a format is recognized


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """An opened source, the options, and the first rows as text."""

    source: Source
    options: ReaderOptions
    head: pl.DataFrame
    columns: tuple[str, ...]  # of records, their fields that are neither lists nor objects
    records: tuple[Record, ...]  # empty for a table

    @property
    def some_records(self) -> tuple[Record, ...]:
        """The first of them."""
        return self.records[:HEAD]

    def text(self, **columns: str) -> pl.DataFrame:
        """Columns of all rows as text, under other names; and the number of the row."""
        table = texts(self.source.read(columns.values()))
        renamed = (pl.col(column).alias(name) for name, column in columns.items())
        return table.select(renamed).with_row_index(ROW)

    def column(self, role: str, names: tuple[str, ...]) -> str | None:
        """The column of a role: the one that the options name, or one of a known name."""
        given: str | None = getattr(self.options, role)
        if given is not None:
            return self.source.column(given, option=role)
        return column_names.find(self.columns, names)

    def need(self, role: str, names: tuple[str, ...]) -> str:
        """The column of a role, which must be there."""
        found = self.column(role, names)
        if found is None:
            self.source.refuse(
                f"no column name looks like the {role}; the columns are {listed(self.columns, 20)}",
                fix=f"name it with {role}=",
            )
        return found

    def refuse_record(self, record: Record, rule: str) -> NoReturn:
        """Raise the error of a record that is not as the tool writes it."""
        raise CredalError(
            f"{self.source.path}, {record.place}: {rule}. To fix: export the file again."
        )

    def choose(self, questions: list[str]) -> str:
        """The one question, or the one that the options name."""
        wanted = self.options.question or self.options.label
        if wanted in questions:
            return wanted
        if wanted is None and len(questions) == 1:
            return questions[0]
        if not questions:
            self.source.refuse("nobody has answered", fix="export annotated tasks")
        rule = f"there are answers to {listed(questions)}"
        rule += f", not to {shown(wanted)}" if wanted else ""
        return self.source.refuse(rule, fix="choose one with question=")


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Columns of text as a reader found them, called as in ``Annotations``, to be tidied."""

    kind: Kind
    frame: pl.DataFrame  # with the number of the row in the source
    source: Source
    words: str  # what the reader recognized
    left_out: Mapping[str, int] = field(default_factory=dict)
    item: str | None = None  # column that names the item
    notes: tuple[str, ...] = ()
    empty: str = "empty"  # what an answer without a label is called
    places: tuple[str, ...] = ()  # where the rows are, if not as the source says

    def where(self, position: int) -> str:
        """Where a row of the frame is in the source."""
        if self.places:
            return self.places[position]
        return self.source.place(int(self.frame[ROW][position]))

    def refuse(self, position: int, rule: str, fix: str) -> NoReturn:
        """Raise the error of a wrong row."""
        where = f"{self.source.path}, {self.where(position)}"
        raise CredalError(f"{where}: {rule}. To fix: {fix}.")


def shares_of(
    content: Content,
    kind: Literal["counts", "probabilities"],
    items: Sequence[object],
    rows: Sequence[Mapping[str, Any]],
    words: str,
    item: str | None = None,
) -> Raw:
    """Counts or probabilities from records: the name of each item, and its numbers by class."""
    classes = dict.fromkeys(name for row in rows for name in row)
    if "item" in classes:
        content.source.refuse("no class can be called 'item'", fix="rename it in the file")
    columns = {"item": [text_of(each) for each in items]}
    columns |= {name: [text_of(row.get(name, 0)) for row in rows] for name in classes}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return Raw(kind, frame.with_row_index(ROW), content.source, words, item=item)


class Votes:
    """Votes collected one by one from records."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._row_of = {id(each.value): row for row, each in enumerate(content.records)}
        self._rows: list[tuple[str | None, str | None, str | None, int]] = []
        self._places: list[str] = []
        self.fields: dict[str, None] = {}  # that name the items; "" is the key
        self.left_out: Counter[str] = Counter()  # answers that are not votes, by reason

    def add(self, record: Record, item: object, annotator: object, label: object) -> None:
        """A vote; a list of one label is that label, an empty one keeps the item without a vote."""
        if isinstance(label, list | tuple):
            if len(label) > 1:
                self.left_out["with several classes"] += 1
                return
            label = label[0] if label else None
        for name, value in (("item", item), ("annotator", annotator), ("label", label)):
            if isinstance(value, dict | list | tuple):
                self._content.refuse_record(
                    record, f"the {name} must be a text or a number; got {shown(value)}"
                )
        row = self._row_of[id(record.value)]
        self._rows.append((text_of(item), text_of(annotator), text_of(label), row))
        self._places.append(record.place)

    def item(self, record: Record, *names: str) -> object:
        """The item's name, in the field asked for or in the first of these; else by its key."""
        asked = self._content.options.item
        for name in (asked,) if asked is not None else names:
            value = field_of(record.value, name)
            if value is not None:
                self.fields[name] = None
                return value
        self.fields[""] = None
        return record.key

    def raw(self, tool: str, more: str = "", notes: tuple[str, ...] = ()) -> Raw:
        """All of them."""
        named = " or ".join(repr(each) if each else "by its key" for each in self.fields)
        words = f"{tool}: item {named}{more}"
        schema = dict.fromkeys(("item", "annotator", "label"), pl.String) | {ROW: pl.Int64}
        frame = pl.DataFrame(self._rows, schema=schema, orient="row")
        source, left_out, places = self._content.source, dict(self.left_out), tuple(self._places)
        # What names the items here must name them in ``predict`` too.
        names = (f"{at}{name}" for at in ("data.", "", "meta.") for name in self.fields)
        item = next((x for x in names if x in source.columns and len(self.fields) == 1), None)
        return Raw("votes", frame, source, words, left_out, item, notes=notes, places=places)


def field_of(record: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The field of this name or path, in the record or in its ``data`` or ``meta``."""
    for place in (record, *(record.get(each) for each in _INSIDE)):
        found = _at(place, name)
        if found is not _MISSING:
            return found
    return default


def _at(value: object, path: str) -> Any:
    if not isinstance(value, Mapping):
        return _MISSING
    if path in value:
        return value[path]
    first, dot, rest = path.partition(".")
    return _at(value.get(first), rest) if dot else _MISSING


def chosen(content: Content, answer: Any, question: str | None) -> Iterator[str]:
    """The classes in an answer of a form of Amazon's, perhaps under the name of the question."""
    if isinstance(answer, list):
        for each in answer:
            yield from chosen(content, each, None)
    elif not isinstance(answer, Mapping):
        text = text_of(answer) or ""
        yield from [text] if text.strip() else []
    elif question is not None and question in answer:
        yield from chosen(content, answer[question], None)
    elif "label" in answer or "labels" in answer:
        yield from chosen(content, answer.get("label", answer.get("labels")), None)
    elif all(isinstance(value, bool) for value in answer.values()):
        yield from (str(name) for name, value in answer.items() if value)
    elif len(answer) == 1 and question is None:
        yield from chosen(content, next(iter(answer.values())), None)
    else:
        yield from chosen(content, answer[content.choose(list(answer))], None)
