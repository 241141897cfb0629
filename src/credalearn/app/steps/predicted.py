"""The tables of a run: its items, and what is predicted of those it was not trained on.

Shapes: N items, K classes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from credalearn.app.annotations import Annotations
from credalearn.app.joined.joining import Prepared
from credalearn.estimator import CredalClassifier
from credalearn.predictions import CredalPredictions


def make_tables(
    annotations: Annotations,
    prepared: Prepared,
    clf: CredalClassifier,
    *,
    trained: pl.DataFrame | None = None,
) -> dict[str, pl.DataFrame]:
    """The tables of a run: annotations, items, and predictions of those not trained on.

    Args:
        annotations: What people said.
        prepared: The items.
        clf: Predicts.
        trained: Rows of items that were trained on in another run.
    """
    split = np.array(prepared.split)
    held_out = np.flatnonzero(split != "train")
    predictions = prediction_table(
        clf.predict_credal(prepared.X[held_out]),
        [prepared.items[row] for row in held_out],
        annotations.classes,
        split=split[held_out],
        truth=prepared.truth[held_out],
        counts=None if annotations.kind == "bounds" else prepared.counts[held_out],
    )
    items = item_table(annotations.classes, prepared, split)
    if trained is not None:
        items = pl.concat([items, trained], how="diagonal")
    return {"annotations": annotations.table, "items": items, "predictions": predictions}


def prediction_table(
    predicted: CredalPredictions,
    items: Sequence[str],
    classes: Sequence[str],
    *,
    split: np.ndarray,
    truth: np.ndarray,
    counts: np.ndarray | None,
) -> pl.DataFrame:
    """Predictions as the table that :class:`Run` describes.

    Args:
        predicted: Of N items.
        items: Their names.
        classes: Names of the classes.
        split: Name of the split of each item.
        truth: Index of the true class, −1 where there is none.
        counts: Votes or shares by class, shape (N, K); None where nobody voted, but stated bounds.

    Example:
        >>> from credalearn import CredalPredictions
        >>> pred = CredalPredictions.from_vertices([[[0.2, 0.8], [0.4, 0.6]]])
        >>> table = prediction_table(pred, ["x"], ["cat", "dog"], split=np.array(["test"]),
        ...                          truth=np.array([0]), counts=np.array([[3.0, 1.0]]))
        >>> table.select("label", "score", "wrong", "disagreement").row(0)
        ('dog', 0.3999999761581421, True, 0.75)
    """
    index = predicted.classes.numpy()
    row = np.arange(len(index))
    names = np.array(classes, dtype=object)
    known = truth >= 0
    columns: dict[str, Any] = {
        "item": list(items),
        "split": split.tolist(),
        "label": names[index].tolist(),
        "probability": predicted.probs.double().numpy()[row, index],
        "lower": predicted.lower.double().numpy()[row, index],
        "upper": predicted.upper.double().numpy()[row, index],
        "score": predicted.score("lower-probability").double().numpy(),
        "mmi": predicted.score("mmi").double().numpy(),
        "top_probability": predicted.score("top-probability").double().numpy(),
        "truth": [name if ok else None for name, ok in zip(names[truth], known, strict=True)],
        "wrong": [bool(w) if ok else None for w, ok in zip(index != truth, known, strict=True)],
        "disagreement": _disagreement(index, counts),
    }
    parts = {"p": predicted.probs, "lower": predicted.lower, "upper": predicted.upper}
    if predicted.vertices is not None and predicted.vertices.shape[1] > 1:
        heads = predicted.vertices.unbind(1)
        parts |= {f"v{number}": head for number, head in enumerate(heads)}
    for part, values in parts.items():
        for number, name in enumerate(classes):
            columns[f"{part}:{name}"] = values[:, number].double().numpy()
    return pl.DataFrame(columns, schema_overrides={"truth": pl.String, "wrong": pl.Boolean})


def item_table(classes: Sequence[str], prepared: Prepared, split: np.ndarray) -> pl.DataFrame:
    """All items as the table that :class:`Run` describes."""
    groups = prepared.groups
    columns: dict[str, Any] = {
        "item": prepared.items,
        "split": split.tolist(),
        "group": [None] * len(split) if groups is None else [str(group) for group in groups],
        "truth": [classes[index] if index >= 0 else None for index in prepared.truth],
        "digest": prepared.digests,
    }
    columns |= {f"n:{name}": prepared.counts[:, number] for number, name in enumerate(classes)}
    return pl.DataFrame(columns, schema_overrides={"group": pl.String, "truth": pl.String})


def _disagreement(index: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Share of an item's votes that are not for its label, NaN without votes, shape (N,)."""
    if counts is None:
        return np.full(len(index), np.nan)
    total = counts.sum(1)
    agree = np.divide(
        counts[np.arange(len(index)), index],
        total,
        out=np.full_like(total, np.nan),
        where=total > 0,
    )
    share: np.ndarray = 1 - agree
    return share
