"""Credal labels of annotated items, made by the library."""

from collections.abc import Sequence

import numpy as np

from credalearn.app.annotations.table import Annotations, check_unweighted
from credalearn.errors import CredalError
from credalearn.labels import VoteRule, at_least, from_posterior, from_statements, from_votes
from credalearn.sets import CredalSet

_OF_SHARES = ("relax", "relax-ties", "precise")  # rules that need no number of votes


def make_labels(
    annotations: Annotations,
    values: np.ndarray,
    rule: VoteRule,
    *,
    s: float = 1.0,
    confidence: float = 0.95,
    posterior: np.ndarray | None = None,
    items: Sequence[str] | None = None,
) -> CredalSet:
    """Credal labels of items (all if not named): by the rule, or as people stated them."""
    if annotations.contains == "statements":
        stated, places = annotations.statements(items)
        return from_statements(*stated, classes=annotations.classes, items=places)
    if annotations.kind == "bounds":
        return at_least(values)
    total = values.sum(1)
    if posterior is not None:
        return from_posterior(posterior, total, rule=rule, s=s, confidence=confidence)
    if rule not in _OF_SHARES:
        rules = ", ".join(_OF_SHARES)
        if annotations.kind == "probabilities":
            raise CredalError(
                f"the label rule {rule!r} counts votes; {annotations.source.path} contains "
                f"probabilities. To fix: choose one of {rules}."
            )
        instead = f", or choose one of {rules}"
        check_unweighted(annotations, f"the label rule {rule!r} counts votes", instead=instead)
    if annotations.kind != "probabilities" and (values == values.round()).all():
        return from_votes(values, rule=rule, s=s, confidence=confidence)
    voted = total[:, None] > 0
    filled = np.where(voted, values, 1.0)
    return from_posterior(filled / filled.sum(1, keepdims=True), total, rule=rule)
