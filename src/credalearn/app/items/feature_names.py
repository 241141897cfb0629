"""Which columns a model sees, and which of them may tell it what people said."""

from collections.abc import Iterator, Sequence

from credalearn._checks import folded
from credalearn.app.annotations.columns import ANNOTATOR, LABEL
from credalearn.app.annotations.places import listed

TRUTH = ("gold", "goldlabel", "groundtruth", "label", "truelabel", "truth")
_GUESSED = ("majority", "target")
_MOST = 8


def feature_lines(
    names: Sequence[str], *, asked: Sequence[str | None] = (), classes: Sequence[str] = ()
) -> Iterator[str]:
    """What to tell the user of the features' names.

    Args:
        names: Of the features.
        asked: Columns that the user named for something else: the label, the group, …
        classes: Names of the classes; a number is none here, as embeddings have columns 0, 1, ….

    Example:
        >>> for line in feature_lines(["size", "Label"]):
        ...     print(line)
        features: size, Label
        a leak? called like votes, annotators or classes: 'Label'. To fix: --drop what tells votes
    """
    cut = len(names) if len(names) <= _MOST else _MOST - 2
    more = "" if cut == len(names) else f" and {len(names) - cut:,} more"
    yield f"features: {', '.join(names[:cut])}{more}"
    told = {*LABEL, *ANNOTATOR, *TRUTH, *_GUESSED, *(folded(name) for name in asked if name)}
    told |= {folded(name) for name in classes if not name.isdecimal()}
    leaks = [name for name in names if folded(name) in told]
    if leaks:
        called = f"called like votes, annotators or classes: {listed(leaks)}"
        yield f"a leak? {called}. To fix: --drop what tells votes"
