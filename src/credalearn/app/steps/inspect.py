"""``credalearn inspect``: what an export contains, and where people disagree."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from credalearn._formats import many, percent
from credalearn.app.annotations.agreement import (
    Annotator,
    annotation_facts,
    annotator_agreement,
    majority,
)
from credalearn.app.annotations.table import Annotations
from credalearn.app.facts import AnnotationFacts

_SHOWN = 3  # annotators and pairs of classes that a line names

# How ``from_statements`` reads what contradicts itself.
_READ_AS = {
    "second is top": "the second percentage is dropped",
    "second is larger": "both stay",
    "named but impossible": "the percentage stays",
    "above 100 %": "scaled to 100",
    "no other class, below 100 %": "scaled to 100",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What annotations contain, and what is worth a second look."""

    facts: AnnotationFacts
    classes: tuple[str, ...]
    unvoted: int  # items without a vote
    far: tuple[Annotator, ...]  # annotators who agree with the others on far fewer items
    notes: tuple[str, ...]  # what the reader found worth knowing

    def lines(self) -> list[str]:
        """At most eight lines for people."""
        facts = self.facts
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
            line += f", {many(self.unvoted, 'item')} without a vote" if self.unvoted else ""
            if facts.unanimous is None or facts.tied is None:
                line += ": no disagreement can be learned from single votes"
            else:
                alpha = "undefined" if facts.alpha is None else f"{facts.alpha:.3f}"
                line += f"; {percent(facts.unanimous)} unanimous, {percent(facts.tied)} tied; "
                line += f"Krippendorff's alpha {alpha}"
            lines.append(line)
            pairs = [f"{a} and {b} ({percent(share)})" for a, b, share in facts.confused[:_SHOWN]]
            if pairs:
                lines.append(f"most confused (share of disagreements): {', '.join(pairs)}")
        if self.far:
            far = [f"{each.name} ({each.agreed} of {each.compared})" for each in self.far]
            more = f" and {len(far) - _SHOWN} more" * (len(far) > _SHOWN)
            lines.append(f"rarely agree with the others: {', '.join(far[:_SHOWN])}{more}")
        lines += [f"note: {'; '.join(self.notes)}"] if self.notes else []
        counted = [f"{reason} {count:,}" for reason, count in facts.left_out.items()]
        return [*lines, f"not counted: {', '.join(counted)}"] if counted else lines


def inspect(annotations: Annotations) -> Inspection:
    """What annotations contain, and where people disagree."""
    kind = annotations.kind
    people = annotator_agreement(annotations) if kind == "votes" else ()
    silent = annotations.sparse_counts(weighted=False).sum(1) == 0
    return Inspection(
        facts=annotation_facts(annotations),
        classes=annotations.classes,
        unvoted=int(silent.sum()) if kind in ("votes", "counts") else 0,
        far=tuple(each for each in people if each.far),
        notes=(*annotations.source.notes, *filter(None, [count_conflicts(annotations)])),
    )


def count_conflicts(annotations: Annotations) -> str:
    """How often statements contradict themselves, and how that is read; empty if never."""
    if annotations.contains != "statements":
        return ""
    from credalearn.labels import statement_conflicts  # torch, which plain votes do not need

    found = statement_conflicts(*annotations.statements()[0], classes=annotations.classes)
    said = [f"{why} {count:,} ({_READ_AS[why]})" for why, count in found.items() if count]
    number = many(len(annotations.table), "statement")
    return f"contradictions in {number}: {', '.join(said)}" if said else ""


def consensus(annotations: Annotations) -> pl.DataFrame:
    """The class with the most votes on each item, null on a tie, with its share of the votes."""
    counts = annotations.sparse_counts()
    total, top = counts.sum(1), counts.max(1).toarray()
    labels = [annotations.classes[k] if k >= 0 else None for k in majority(counts)]
    share = np.divide(top, total, out=np.zeros_like(top), where=total > 0)
    columns = {"item": annotations.items, "label": labels, "votes": total, "share": share}
    return pl.DataFrame(columns, schema_overrides={"label": pl.String})
