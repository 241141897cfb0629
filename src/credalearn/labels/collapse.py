"""Labels reduced to their top class, as if nobody had disagreed.

Shapes: N items, K classes.
"""

from torch.nn.functional import one_hot

from credalearn.labels.checks import check_sets
from credalearn.labels.soft import precise
from credalearn.sets import CredalSet, LowerBounds


def collapse(labels: CredalSet) -> LowerBounds:
    """Precise one-hot labels on the top class of each set's ``reference``; ties: lowest index.

    What a method learns from when disagreement is thrown away.

    Raises:
        CredalError: If the labels are no sets.

    Example:
        >>> from credalearn.labels import from_votes
        >>> collapse(from_votes([[1, 3], [2, 2]])).lower
        tensor([[0., 1.],
                [1., 0.]])
    """
    check_sets(labels)
    reference = labels.reference
    return precise(one_hot(reference.argmax(1), labels.num_classes).to(reference.dtype))
