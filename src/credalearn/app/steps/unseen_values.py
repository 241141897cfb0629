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

Unseen = Counter[tuple[str, str]]  # items, by feature and what is new about its value
_DEVIATIONS = 10  # of 100 training items none is further away, whatever the distribution
_FAR, _OTHERS = "far", "other values"
_MOST = 1000  # different values that are counted on their own, so that memory does not grow
_SHOWN = 3  # features, and values of a feature, that the warning names


def count_unseen(model: "Predictor", X: Features, names: Sequence[str], found: Unseen) -> None:
    """Add the items with such values; for models of tables, whose features have these names."""
    encoder = getattr(model, "_encoder", None)
    if not isinstance(encoder, TableEncoder):
        return
    layer: Any = model.model_.members[0].backbone.standardize  # type: ignore[union-attr]
    place = 0
    columns = zip(encoder.columns, Table.of(X).columns(list(names)), names, strict=True)
    for column, values, name in columns:
        is_text = values.dtype == object
        new = {}
        if column.values:
            texts = Counter(values.tolist()) if is_text else {"": len(values)}  # all are missing
            unseen = texts.keys() - set(column.values)
            new = {shown(text) if text else "missing": texts[text] for text in unseen}
        elif column.fill is not None and not is_text:
            missing = 0 if column.indicator else int(np.isnan(values).sum())
            mean, scale = layer.mean[place].item(), layer.scale[place].item()
            far = int((np.abs(values - mean) > _DEVIATIONS * scale).sum())
            new = {what: n for what, n in (("missing", missing), (_FAR, far)) if n}
        for what, count in new.items():
            own = (name, what) in found or len(found) < _MOST
            found[name, what if own else _OTHERS] += count
        place += len(column.names)


def unseen_warnings(found: Unseen) -> tuple[str, ...]:
    """One warning about all such values; none without any."""
    notes = []
    for name in dict.fromkeys(name for name, _ in found):
        own = Counter({what: count for (each, what), count in found.items() if each == name})
        far = own.pop(_FAR, 0)
        if own:
            values = [f"{what} ({many(count, 'item')})" for what, count in own.most_common(_SHOWN)]
            values += [many(len(own) - _SHOWN, "more value")] if len(own) > _SHOWN else []
            notes.append(f"{shown(name)} has values not seen in training: {', '.join(values)}")
        if far:
            away = f"more than {_DEVIATIONS} standard deviations from its mean in training"
            notes.append(f"{shown(name)} is {away} ({many(far, 'item')})")
    if not notes:
        return ()
    more = f"; {len(notes) - _SHOWN} more" if len(notes) > _SHOWN else ""
    return (
        f"Caution: {'; '.join(notes[:_SHOWN])}{more}. The model has not learned about such values. "
        "To fix: check the data, or recalibrate on such items.",
    )
