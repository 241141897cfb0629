"""``credalearn inspect``: what an export contains, and where people disagree."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from credalearn._formats import many, percent
from credalearn._options import Options, option
from credalearn.app.annotations.agreement import (
    Annotator,
    annotation_facts,
    far_annotators,
    majority,
)
from credalearn.app.annotations.table import Annotations
from credalearn.app.facts import AnnotationFacts, Printed
from credalearn.app.table_writer import check_output, write_frames

if TYPE_CHECKING:
    from credalearn.app.steps.rules import RuleComparison

_SHOWN = 3  # annotators and pairs of classes that a line names

# How ``from_statements`` reads what contradicts itself.
_READ_AS = {
    "second is top": "with one class twice (the second percentage is dropped)",
    "second is larger": "with more for the second class than for the top class (both stay)",
    "named but impossible": "with a percentage for an impossible class (it stays)",
    "above 100 %": "with more than 100 % (scaled to 100 %)",
    "no other class, below 100 %": "with less than 100 % and no other class (scaled to 100 %)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions(Options):
    """Options of ``inspect``, in Python and on the command line."""

    rules: bool = option(False, "Compare label rules on held-out votes.")
    output: Path | None = option(
        None, "Table of consensus labels, or of rules with --rules.", flags=("--output", "-o")
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Inspection(Printed):
    """What annotations contain, and what is worth a second look."""

    annotations: AnnotationFacts
    classes: tuple[str, ...]
    far: tuple[Annotator, ...]  # annotators who agree with the others on far fewer items
    notes: tuple[str, ...]  # what the reader found worth knowing
    rules: "RuleComparison | None"  # None if not asked for
    output: Path | None  # the table that was written; None if not asked for
    table: pl.DataFrame  # consensus labels, or the comparison of rules

    @property
    def facts(self) -> dict[str, Any]:
        """The same as :attr:`lines`, for programs."""
        names = ("classes", "far", "notes", "output")
        found = asdict(self.annotations) | {name: getattr(self, name) for name in names}
        return found | ({} if self.rules is None else {"rules": self.table.to_dicts()})

    @property
    def lines(self) -> list[str]:
        """What the command prints."""
        lines = self._lines() if self.rules is None else [self._lines()[0], *self.rules.lines()]
        return lines if self.output is None else [*lines, f"Wrote {self.output}."]

    def _lines(self) -> list[str]:
        """What the annotations contain, in at most eight lines."""
        facts = self.annotations
        people = f"{many(facts.annotators, 'annotator')}, " if facts.annotators else ""
        votes = facts.kind if facts.votes is None else many(int(facts.votes), "vote")
        named = ", ".join(self.classes[:12]) + ", …" * (len(self.classes) > 12)
        classes = f"{many(len(self.classes), 'class', 'classes')}: {named}"
        lines = [
            f"{facts.path}: {facts.format}",
            f"{many(facts.items, 'item')}, {people}{votes}, {classes}",
        ]
        if facts.votes_per_item is not None:
            fewest, median, most = facts.votes_per_item
            unit = "vote" if median == 1 else "votes"
            line = f"{median:g} {unit} per item ({fewest:g} to {most:g})"
            line += f", {many(facts.unvoted, 'item')} without a vote" if facts.unvoted else ""
            if facts.unanimous is None or facts.tied is None:
                line += ": no disagreement can be learned from single votes"
            else:
                alpha = "undefined" if facts.alpha is None else f"{facts.alpha:.3f}"
                line += f"; {percent(facts.unanimous)} unanimous, {percent(facts.tied)} tied "
                line = f"{line}{facts.of_several}".rstrip() + f"; Krippendorff's alpha {alpha}"
            lines.append(line)
            pairs = [f"{a} and {b} ({percent(share)})" for a, b, share in facts.confused[:_SHOWN]]
            if pairs:
                lines.append(f"most confused (share of disagreements): {', '.join(pairs)}")
        return [*lines, *self.remarks]

    @property
    def remarks(self) -> list[str]:
        """What is worth a second look before training, which ``train`` prints, too."""
        lines = []
        if self.far:
            far = [f"{each.name} ({each.agreed} of {each.compared})" for each in self.far]
            more = f" and {len(far) - _SHOWN} more" * (len(far) > _SHOWN)
            lines.append(f"rarely agree with the others: {', '.join(far[:_SHOWN])}{more}")
        lines += [f"note: {'; '.join(self.notes)}"] if self.notes else []
        counted = [f"{count:,} {why}" for why, count in self.annotations.left_out.items()]
        return [*lines, f"not counted: {', '.join(counted)}"] if counted else lines


def inspect(annotations: Annotations, options: InspectOptions | None = None) -> Inspection:
    """What annotations contain, and where people disagree; consensus labels, or rules compared."""
    options, kind, compared = options or InspectOptions(), annotations.kind, None
    if options.output is not None:  # before the work
        check_output(options.output, data=annotations.source.path)
    if options.rules:
        from credalearn.app.steps.rules import compare_rules  # imports torch

        compared = compare_rules(annotations)
    table = consensus(annotations) if compared is None else compared.table()
    if options.output is not None:
        write_frames(options.output, iter([table]), table.schema)
    return Inspection(
        annotations=annotation_facts(annotations),
        classes=annotations.classes,
        far=far_annotators(annotations) if kind == "votes" else (),
        notes=(*annotations.source.notes, *filter(None, [count_conflicts(annotations)])),
        rules=compared,
        output=options.output,
        table=table,
    )


def count_conflicts(annotations: Annotations) -> str:
    """How often statements contradict themselves, and how that is read; empty if never."""
    if annotations.contains != "statements":
        return ""
    from credalearn.labels import statement_conflicts  # torch, which plain votes do not need

    found = statement_conflicts(*annotations.statements()[0], classes=annotations.classes)
    said = [f"{count:,} {_READ_AS[why]}" for why, count in found.items() if count]
    number = many(len(annotations.table), "statement")
    return f"contradictory, of {number}: {', '.join(said)}" if said else ""


def consensus(annotations: Annotations) -> pl.DataFrame:
    """The class with the most votes on each item, null on a tie, with its share of the votes."""
    counts = annotations.sparse_counts()
    total, top = counts.sum(1), counts.max(1).toarray()
    labels = [annotations.classes[k] if k >= 0 else None for k in majority(counts)]
    share = np.divide(top, total, out=np.zeros_like(top), where=total > 0)
    columns = {"item": annotations.items, "label": labels, "votes": total, "share": share}
    return pl.DataFrame(columns, schema_overrides={"label": pl.String})
