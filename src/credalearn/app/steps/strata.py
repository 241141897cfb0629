"""Strata of a run's sets: by score, by predicted class, or by a column of the inputs."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from credalearn._formats import listed
from credalearn.app.features import item_column, item_names
from credalearn.app.item_stream import Batch
from credalearn.app.run import Run
from credalearn.app.sources import open_source, texts
from credalearn.conformal import Inflation, score_strata
from credalearn.errors import CredalError
from credalearn.guarantees.deferral_score import SCORE_WORDS
from credalearn.predictions import CredalPredictions

LABEL = "label"
REST = "others"  # values with too few calibration items share a stratum
_PER_STRATUM = 50  # calibration items by score: fewer make sets wide, since ranks are rounded up
_MOST = 4  # strata by score where no threshold was expected


def score_edges(run: Run, score: np.ndarray) -> tuple[float, ...]:
    """Scores between strata that no label of a calibration item has decided about."""
    expected = None if run.guarantee is None else run.guarantee.expected_threshold
    if expected is not None:
        kept = int((score <= expected).sum())
        return (expected,) if _PER_STRATUM <= kept <= len(score) - _PER_STRATUM else ()
    number = min(len(score) // _PER_STRATUM, _MOST)
    shares = np.arange(1, number) / max(number, 1)
    return tuple(np.unique(np.quantile(score, shares, method="lower")).tolist())


def strata_of_table(
    run: Run, inflation: Inflation, held_out: pl.DataFrame, table: Any = None
) -> list[str] | None:
    """Strata of held-out items; None where the sets have none."""
    by = inflation.by
    if not inflation.strata or by is None:
        return None
    if by in SCORE_WORDS:
        return score_strata(held_out[by.replace("-", "_")].to_numpy(), inflation.edges)
    items = held_out["item"].to_list()
    return _known(
        held_out[LABEL] if by == LABEL else column_values(run, by, items, table), inflation
    )


def strata_of_batch(
    run: Run, inflation: Inflation, predicted: CredalPredictions, label: pl.Series, batch: Batch
) -> list[str] | None:
    """Strata of new items; None where the sets have none."""
    by, features = inflation.by, run.facts.inputs.features
    if not inflation.strata or by is None:
        return None
    if by in SCORE_WORDS:
        return score_strata(predicted.score(by).double().numpy(), inflation.edges)
    if by == LABEL:
        return _known(label, inflation)
    if by in batch.extra.columns:
        return _known(texts(batch.extra.select(by)).to_series(), inflation)
    if by in features:
        return _known([f"{value:g}" for value in batch.X[:, features.index(by)]], inflation)
    raise CredalError(
        f"the sets of {run.path} are calibrated by {by!r}, and the data have no such column. To "
        "fix: add it, or certify the sets again without --stratum."
    )


def _known(values: Iterable[str | None], inflation: Inflation) -> list[str]:
    """The values that are strata; others count among the rest."""
    names = {each.name for each in inflation.strata}
    return [str(each) if str(each) in names else REST for each in values]


def column_values(run: Run, column: str, items: list[str], table: Any = None) -> list[str | None]:
    """The values of a column of the inputs, as text, for these items."""
    inputs = run.facts.inputs
    paths = [inputs.table] if inputs.table else [inputs.path, *inputs.later]
    found: dict[str, str | None] = {}
    for each in paths if table is None else [table]:
        source = open_source(each)
        name = source.column(column, option="stratum")
        named = item_column(source, (inputs.item,), (*inputs.features, name))
        block = source.read(dict.fromkeys((named, name)))
        values = block[name]
        if column in inputs.features:
            values = values.cast(pl.Float64).map_elements(lambda x: f"{x:g}", pl.String)
        text = texts(values.to_frame()).to_series()
        found |= zip(item_names(source, block[named]), text, strict=True)
    missing = [item for item in items if item not in found]
    if missing:
        raise CredalError(
            f"{len(missing):,} items of {run.path} have no row with {column!r}: "
            f"{listed(missing, 3)}. To fix: pass the table that has them with --table."
        )
    return [found[item] for item in items]
