"""Values of new items that training did not have: other texts, gaps, and numbers far away."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credalearn._formats import many, shown
from credalearn._table_encoder import Table, TableEncoder
from credalearn.app.features import Features

if TYPE_CHECKING:
    from credalearn.app.run import Predictor

_FAR = "farther from its mean than any value in training"
_MISSING = "missing, unlike in training"
_MOST = 1000  # different values that are counted on their own, so that memory does not grow
_SHOWN = 3


def count_unseen(
    model: "Predictor",
    X: Features,
    names: Sequence[str],
    trained: int,
    found: Counter[tuple[str, str]],
) -> None:
    """Count the items by feature and what is new about it; for models of tables."""
    encoder = getattr(model, "_encoder", None)
    if not names or not isinstance(encoder, TableEncoder):
        return
    layer: Any = model.model_.members[0].backbone.standardize  # type: ignore[union-attr]
    # None of n values is more than √(n − 1) standard deviations from their mean (Samuelson, 1968).
    mean, far = layer.mean.tolist(), (max(trained, 2) ** 0.5 * layer.scale).tolist()
    columns, place = Table.of(X).columns(list(names)), 0
    for column, values, name in zip(encoder.columns, columns, names, strict=True):
        new, is_text = Counter[str](), values.dtype == object
        if column.values:  # a column that is all missing contains numbers
            for text, count in Counter(values if is_text else [""] * len(values)).items():
                what = f"{shown(text)}, not seen in training" if text else _MISSING
                new[what] = 0 if text in column.values else count
        elif column.fill is not None and not is_text:
            new[_MISSING] = 0 if column.indicator else int(np.isnan(values).sum())
            new[_FAR] = int((np.abs(values - mean[place]) > far[place]).sum())
        for what, count in (+new).items():
            own = (name, what) in found or len(found) < _MOST
            found[name, what if own else "a text not seen in training"] += count
        place += len(column.names)


def unseen_warnings(found: Counter[tuple[str, str]]) -> tuple[str, ...]:
    """One warning about all such values; none without any."""
    if not found:
        return ()
    notes = [
        f"{shown(name)} is {what} ({many(count, 'item')})"
        for (name, what), count in found.most_common(_SHOWN)
    ]
    notes += [f"{len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else []
    said = "; ".join(notes)
    return (f"Caution: {said}. To fix: check the data, or recalibrate on such items.",)
