"""The readers, each in a file of its own, in the order in which they look at a content."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.raw import Raw
from credalearn.app.annotations.records import Records
from credalearn.app.annotations.text_tables import Table
from credalearn.app.readers import (
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

Content = Table | Records


@dataclass(frozen=True, slots=True)
class Reader:
    """How one format is read.

    Args:
        recognize: What it sees in a content, in words; None if it is not its format.
        read: The columns.
        nested: Whether it reads the records of JSON, lists and objects in them; else a table.
    """

    recognize: Callable[[Content, Asked], str | None]
    read: Callable[[Content, Asked], Raw]
    nested: bool = False


READERS = {  # formats with fields of their own before those told by common names
    "label-studio": Reader(label_studio.recognize, label_studio.read, nested=True),
    "ground-truth": Reader(ground_truth.recognize, ground_truth.read, nested=True),
    "mturk": Reader(mturk.recognize, mturk.read),
    "label-studio-csv": Reader(label_studio.recognize_csv, label_studio.read_csv),
    "bounds": Reader(bounds.recognize, bounds.read),
    "long": Reader(long.recognize, long.read),
    # After "long", as a table of its questions is no votes.
    "argilla": Reader(argilla.recognize, argilla.read, nested=True),
    "prodigy": Reader(prodigy.recognize, prodigy.read, nested=True),
    "lewidi": Reader(lewidi.recognize, lewidi.read, nested=True),
    "doccano": Reader(doccano.recognize, doccano.read, nested=True),
    "counts": Reader(partial(shares.recognize, kind="counts"), partial(shares.read, kind="counts")),
    "probabilities": Reader(
        partial(shares.recognize, kind="probabilities"), partial(shares.read, kind="probabilities")
    ),
    "wide": Reader(wide.recognize, wide.read),
}
