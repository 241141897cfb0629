"""The readers, each in a file of its own, in the order in which they look at a content."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from credalearn.annotations.asked import Asked
from credalearn.annotations.raw import Raw
from credalearn.annotations.readers import (
    argilla,
    bounds,
    doccano,
    ground_truth,
    label_studio,
    lewidi,
    long,
    mturk,
    prodigy,
    shares,
    wide,
)
from credalearn.annotations.records import Records
from credalearn.annotations.text_tables import Table

Content = Table | Records


@dataclass(frozen=True, slots=True)
class Reader:
    """How one format is read.

    Args:
        recognise: What it sees in a content, in words; None if it is not its format.
        read: The columns.
        nested: Whether it reads the records of JSON, lists and objects in them; else a table.
    """

    recognise: Callable[[Content, Asked], str | None]
    read: Callable[[Content, Asked], Raw]
    nested: bool = False


READERS = {  # formats with fields of their own before those told by common names
    "label-studio": Reader(label_studio.recognise, label_studio.read, nested=True),
    "ground-truth": Reader(ground_truth.recognise, ground_truth.read, nested=True),
    "mturk": Reader(mturk.recognise, mturk.read),
    "label-studio-csv": Reader(label_studio.recognise_csv, label_studio.read_csv),
    "bounds": Reader(bounds.recognise, bounds.read),
    "long": Reader(long.recognise, long.read),
    # After "long", as a table of its questions is no votes.
    "argilla": Reader(argilla.recognise, argilla.read, nested=True),
    "prodigy": Reader(prodigy.recognise, prodigy.read, nested=True),
    "lewidi": Reader(lewidi.recognise, lewidi.read, nested=True),
    "doccano": Reader(doccano.recognise, doccano.read, nested=True),
    "counts": Reader(partial(shares.recognise, kind="counts"), partial(shares.read, kind="counts")),
    "probabilities": Reader(
        partial(shares.recognise, kind="probabilities"), partial(shares.read, kind="probabilities")
    ),
    "wide": Reader(wide.recognise, wide.read),
}
