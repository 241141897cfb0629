"""The options of the readers, stated once."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from credalearn._formats import listed
from credalearn._options import check_options, option
from credalearn.app.annotations.table import Conflicts
from credalearn.errors import CredalError

_Tables = Literal["long", "wide", "counts", "probabilities", "bounds", "statements"]
_Tools = Literal["label-studio", "label-studio-csv", "argilla", "prodigy", "mturk", "ground-truth"]
Format = Literal[_Tables, _Tools, "lewidi", "doccano", "nested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions:
    """How annotations are read; what is None is found from the content."""

    item: str | None = option(None, "Column or field that names the item; 'meta.id' in JSON.")
    annotator: str | None = option(None, "Column or field that names the annotator.")
    label: str | None = option(None, "Column or field with the label.")
    weight: str | None = option(None, "Column with the weight of a vote.")
    question: str | None = option(None, "Which question, if there are several.")
    classes: tuple[str, ...] | None = option(
        None, "A class; repeat for each, in order. Other labels are refused."
    )
    map: tuple[str, ...] = option(
        (), "Classes of labels, such as '-3,-2,-1=abusive 0,1=fine'; may be repeated."
    )
    ignore: tuple[str, ...] = option(
        (), "Column of a wide table that is not an annotator's; may be repeated."
    )
    elsewhere: tuple[str, ...] = field(default=(), metadata={})  # likewise, and need not be there
    unsure: tuple[str, ...] = option((), "A label that means 'I do not know'; may be repeated.")
    missing: tuple[str, ...] = option((), "A label that means 'no answer'; may be repeated.")
    format: Format | None = option(None, "Name of the format.", show_default="recognized")
    encoding: str | None = option(None, "Encoding of a text file.", show_default="recognized")
    delimiter: str | None = option(None, "Delimiter of a CSV file.", show_default="recognized")
    repeats: Literal["refuse", "last"] = option(
        "refuse", "If an annotator's votes on one item differ: refuse, or use the last."
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.classes is not None and len(set(self.classes)) < 2:
            raise CredalError(
                f"classes must name two or more; got {listed(self.classes)}. To fix: name every "
                "class by itself."
            )


def refuse_reading(options: ReaderOptions) -> None:
    """Refuse options of readers for annotations that are read already; ``item`` has other uses."""
    names = [each.name for each in fields(ReaderOptions) if each.name != "item"]
    none = ReaderOptions()
    given = [f"{x}=" for x in names if getattr(options, x) != getattr(none, x)]
    if given:
        raise CredalError(
            f"Leave out {' and '.join(given)}, as the votes are read already. To fix: pass them to "
            "read_annotations."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions(ReaderOptions):
    """How annotations of several rounds are read and merged."""

    merge: tuple[Path, ...] | Any = option((), "Export of a later round; may be repeated.")
    merge_item: str | None = option(
        None, "Column or field that names the item in later rounds.", show_default="--item"
    )
    merge_conflicts: Conflicts = option(
        "refuse",
        "If two rounds differ: refuse, use the newest (the file named last), or add counts.",
    )
