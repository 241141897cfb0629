"""What the user asked of a reader."""

from dataclasses import dataclass
from typing import Literal

Repeats = Literal["refuse", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Options of a reader; what is None is found from the content.

    Args:
        item: Column or field that names the item.
        annotator: Column or field that names the annotator.
        label: Column or field with the label.
        weight: Column with the weight of a vote.
        question: Which question, where the export holds answers to several.
        classes: The classes, in the order wanted; others are refused.
        unsure: Labels that say "I do not know": votes for nothing.
        encoding: Of a text file.
        delimiter: Of a table in a text file.
        format: The reader's name; None: it was recognized.
        repeats: What happens where one annotator votes twice on an item and differently.
    """

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    weight: str | None = None
    question: str | None = None
    classes: tuple[str, ...] | None = None
    unsure: tuple[str, ...] = ()
    encoding: str | None = None
    delimiter: str | None = None
    format: str | None = None
    repeats: Repeats = "refuse"
