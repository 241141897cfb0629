"""See ``credalearn.app.annotations.table``."""

from credalearn.app.annotations.table import Annotations, check_unweighted


def refuse_weights(annotations: Annotations, *, rule: str, instead: str) -> None:
    """See ``check_unweighted``."""
    check_unweighted(annotations, rule, instead=instead)
