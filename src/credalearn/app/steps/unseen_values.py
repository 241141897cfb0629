"""Values of new items that training did not have: other texts, gaps, and numbers far away."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from credalearn._formats import many, shown
from credalearn._table_encoder import Table, TableEncoder
from credalearn.app.features import Features

if TYPE_CHECKING:
    from credalearn.app.run import Predictor, Run

_OUTSIDE = "outside the range of training"
_MISSING = "missing, unlike in training"
_MOST = 1000  # different values that are counted on their own, so that memory does not grow
_SHOWN = 3


def count_unseen(
    run: "Run", model: "Predictor", X: Features, found: Counter[tuple[str, str]]
) -> None:
    """Count the items by feature and what is new about it; for models of tables."""
    names, encoder = run.facts.inputs.features, getattr(model, "_encoder", None)
    if not names or not isinstance(encoder, TableEncoder):
        return
    layer: Any = model.model_.members[0].backbone.standardize  # type: ignore[union-attr]
    # Of n numbers none is more than √n standard deviations from their mean, whatever they are.
    mean, most = layer.mean.tolist(), (layer.scale * run.training.splits["train"] ** 0.5).tolist()
    columns, place = Table.of(X).columns([*names]), 0
    for column, values, name in zip(encoder.columns, columns, names, strict=True):
        new, is_text = Counter[str](), values.dtype == object
        if column.values:  # a column that is all missing contains numbers
            for text, count in Counter(values if is_text else [""] * len(values)).items():
                what = f"{shown(text)}, not seen in training" if text else _MISSING
                new[what] = 0 if text in column.values else count
        elif column.fill is not None and not is_text:
            new[_MISSING] = 0 if column.indicator else int(np.isnan(values).sum())
            new[_OUTSIDE] = int((np.abs(values - mean[place]) > most[place]).sum())
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
