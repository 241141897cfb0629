"""``certify --set-coverage``: widen a run's sets to contain what people say about new items."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from scipy.stats import betabinom

from credalearn._formats import enumerated, listed, many, number, percent
from credalearn.app.features import item_column, item_names
from credalearn.app.item_stream import Batch
from credalearn.app.run import OUT_OF_FOLD, Run
from credalearn.app.sources import numbers, open_source, texts
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.app.steps.voted_items import VotedItems, voted_items
from credalearn.conformal import Inflation, Scale, score_strata
from credalearn.conformal._calibration import NARROW, narrowest_scale
from credalearn.conformal.inflation import rank_of
from credalearn.errors import CredalError
from credalearn.guarantees._bounds import interval
from credalearn.guarantees.guarantee import SCORE_WORDS
from credalearn.predictions import CredalPredictions

Values: TypeAlias = dict[str, str | None]  # by item, of the column of the strata
_CONFIDENCE = 0.95
_ENOUGH = 100  # items to choose a scale by
_CHOOSING = 1 / 3  # of the calibration items, where a run has no out-of-fold predictions,
_OUTSIDE = 20  # if so many of them will lie outside of their sets: 200 items at 90 %
_EDGE = 1e-3
LABEL = "label"
REST = "others"  # values with too few calibration items share a stratum
_PER_STRATUM = 50  # calibration items by score: fewer make sets wide, since ranks are rounded up
_MOST = 4  # strata by score where no threshold was expected


@dataclass(frozen=True, slots=True, eq=False)
class WidenedSets:
    """Predicted sets widened to contain vote shares, and what they contain of the test items."""

    inflation: Inflation  # by how much they are widened, and what that promises
    lower: np.ndarray  # lower bounds of the widened sets, shape (N, K)
    upper: np.ndarray  # upper bounds, shape (N, K)
    seen: int  # number of test items with enough votes to check
    covered: int  # number of those whose vote shares lie in the widened set
    width_before: float  # mean width of a class's interval on these, as predicted
    width_after: float  # the same when widened
    counted: bool = True  # whether the number of votes per item is known; otherwise only shares are
    kept: tuple[int, int] | None = None  # kept items: number seen, number covered
    left_out: int = 0  # calibration items with too few votes
    chose: int = 0  # calibration items that chose the scale, and calibrated nothing
    chosen_again: bool = False  # whether these items certified sets with other options before

    @property
    def saying_nothing(self) -> float:
        """Share of the test items with a class that may have any probability at all."""
        everything = (self.lower <= _EDGE) & (self.upper >= 1 - _EDGE)
        return float(everything.any(1).mean()) if len(everything) else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Clopper-Pearson interval of covered / seen."""
        missed, number = np.array([[self.seen - self.covered], [self.seen]])
        low, high = interval(missed, number, confidence=_CONFIDENCE, binary=True)
        return 1 - high.item(), 1 - low.item()

    @property
    def usual(self) -> tuple[float, float]:
        """Range of covered / seen in 19 of 20 draws of calibration and test items (Vovk, 2012)."""
        # The radius is the r-th smallest of n nonconformities, which ``interval`` ignores.
        rank = self.inflation.rank
        law = betabinom(self.seen, rank, self.inflation.items + 1 - rank)
        below = law.pmf(np.arange(self.seen + 1)).cumsum()
        ends = np.searchsorted(below, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
        low, high = (float(end) / self.seen for end in ends)
        return low, high

    @property
    def facts(self) -> dict[str, Any]:
        """Coverage, with its usual range, and widths on the test items."""
        names = ("seen", "covered", "width_before", "width_after")
        kept = dict(zip(("kept_seen", "kept_covered"), self.kept or (None, None), strict=True))
        usual = self.usual if self.seen else None
        return {name: getattr(self, name) for name in names} | kept | {"usual": usual}

    @property
    def short(self) -> bool:
        """Whether fewer items are covered than usual."""
        return self.seen > 0 and self.covered / self.seen < self.usual[0]

    @property
    def by_decision(self) -> str:
        """What is covered of the kept and of the deferred items; empty where all are one."""
        seen, covered = self.kept or (0, 0)
        if not 0 < seen < self.seen:
            return ""
        deferred = self.seen - seen
        share = percent((self.covered - covered) / deferred)
        together = "" if self.inflation.strata else "; the guarantee is about both together"
        return (
            f"Of {many(seen, 'kept item')} the widened sets contain {percent(covered / seen)}, and "
            f"of {many(deferred, 'deferred item')} {share}{together}."
        )

    @property
    def assumptions(self) -> list[str]:
        """What the promise about the sets assumes."""
        notes = [
            "Items are exchangeable with new ones, and new items have as many votes. The promise "
            "about sets is an average over calibration sets, not one about each item."
        ]
        if self.inflation.by in SCORE_WORDS:
            notes.append(
                f"Strata are divided at {enumerated([number(x) for x in self.inflation.edges])} "
                f"({SCORE_WORDS[self.inflation.by]}), fixed without the calibration labels."
            )
        return notes

    @property
    def lines(self) -> list[str]:
        """What to tell the user, in at most three lines."""
        notes = [self.inflation.sentence()]
        if self.left_out:
            what = "fewer than two votes" if self.counted else "no shares"
            were = "was" if self.left_out == 1 else "were"
            notes = [f"{notes[0]} {self.left_out:,} with {what} {were} left out."]
        if self.chose:
            notes[0] += f" {self.chose:,} others chose the scale of the widening."
        if self.chosen_again:
            notes[0] += " Sets were certified on these items with other options before: choosing "
            notes[0] += "the narrowest of several weakens what is promised."
        if not self.seen:
            return [*notes, "No test item has enough votes to check the widened sets on."]
        low, high = map(percent, self.usual)
        notes.append(
            f"The widened sets contain the vote shares of {percent(self.covered / self.seen)} of "
            f"{many(self.seen, 'test item')} (expected: {low} to {high}). A class's interval is "
            f"{self.width_after:.3g} wide on average; before widening, it was "
            f"{self.width_before:.3g}. {self.by_decision}".rstrip()
        )
        if self.short:
            notes[-1] += " Fewer than expected: do test items differ from calibration items?"
        if self.saying_nothing > 0.5:
            notes.append(
                f"{percent(self.saying_nothing)} of the test items' sets allow some class any "
                "share from 0 to 1: with few votes per item, or hard items, they say very little."
            )
        return notes


def certify_sets(run: Run, options: CertifyOptions) -> WidenedSets:
    """Calibrate by how much to widen predicted sets; nothing is written."""
    coverage, scale, distance = options.set_coverage, options.scale, options.distance
    assert coverage is not None
    if run.facts.annotations.kind == "bounds":
        raise CredalError(
            f"{run.path} was trained on stated bounds: there are no vote shares to cover. To fix: "
            "train on votes, counts or probabilities."
        )
    items = voted_items(run, "calibration")
    if not items.usable.any():
        raise CredalError(
            f"no calibration item of {run.path} has two or more votes, and one vote says nothing "
            "about shares. To fix: collect more votes per item and train again."
        )
    choosing, usable = items, items.usable
    if scale is None and distance == "box":
        choosing, usable = _choosing(run, items, coverage, split=options.stratum is None)
    by, edges = options.stratum or run.deferral_score, tuple[float, ...]()
    if options.stratum is None:
        edges = _score_edges(run, items.table["score"].to_numpy()[usable], coverage)
    values, left_out = _column_values(run, by, options.table), int((~items.usable).sum())
    if scale is None:
        scale = _narrowest(choosing, coverage, edges) if distance == "box" else "relative-variance"
    chose, items = int(items.usable.sum() - usable.sum()), replace(items, usable=usable)
    strata, chosen = _strata(run, items, by, edges, values, coverage), usable
    if strata is not None and not _enough(strata.count(REST), coverage):
        # Too few together, too: sets of such items contain everything.
        chosen = np.flatnonzero(usable)[[name != REST for name in strata]]
        strata = [name for name in strata if name != REST]
    found = items.predicted[chosen].inflation(
        items.observed[chosen], coverage=coverage, distance=distance, scale=scale, strata=strata
    )
    if found.vacuous:
        raise CredalError(
            "these sets cannot be certified, and nothing was changed. "
            f"{found.sentence()} To fix: annotate more items and recalibrate, or lower "
            f"set_coverage={coverage:g}."
        )
    if strata is not None:
        found = replace(found, by=by, edges=edges)
    if run.facts.group is not None:
        num_groups = len(np.unique(items.table["group"].to_numpy()[chosen].astype(str)))
        found = replace(found, group=run.facts.group, num_groups=num_groups)
    wide = widened(run, found, voted_items(run, "test"), values)
    asked, old = ("coverage", "distance", "scale", "by"), run.sets
    again = old is not None and any(getattr(old, x) != getattr(found, x) for x in asked)
    return replace(wide, left_out=left_out, chose=chose, chosen_again=again)


def _strata(
    run: Run,
    items: VotedItems,
    by: str,
    edges: tuple[float, ...],
    values: Values,
    coverage: float,
) -> list[str] | None:
    """Strata of the usable calibration items; those with too few items are put together."""
    if by in SCORE_WORDS and not edges:
        return None
    names = _strata_of_table(run, by, edges, items.table.filter(items.usable), values)
    if by in SCORE_WORDS:
        return names
    enough = {name for name, count in Counter(names).items() if _enough(count, coverage)}
    if not enough:
        raise CredalError(
            f"no value of {by!r} has enough calibration items for sets of its own. To fix: leave "
            "out stratum=, or annotate more items and recalibrate."
        )
    return [name if name in enough else REST for name in names]


def _enough(items: int, coverage: float) -> bool:
    return rank_of(items, coverage) <= items


def _choosing(
    run: Run, items: VotedItems, coverage: float, *, split: bool
) -> tuple[VotedItems, np.ndarray]:
    """The items that choose a scale, and which of the calibration items do not."""
    out_of_fold = voted_items(run, OUT_OF_FOLD)
    if out_of_fold.usable.sum() >= _ENOUGH:
        return out_of_fold, items.usable
    # A method given by name, or another model: some groups, drawn without a look at their votes.
    names = items.table["item" if run.facts.group is None else "group"].to_numpy().astype(str)
    known, group = np.unique(names, return_inverse=True)
    drawn = (np.random.default_rng(0).permutation(len(known)) < _CHOOSING * len(known))[group]
    part, rest = items.usable & drawn, items.usable & ~drawn
    if not split or part.sum() * (1 - coverage) < _OUTSIDE or rest.sum() < part.sum():
        return out_of_fold, items.usable
    return replace(items, usable=part), rest


def _narrowest(items: VotedItems, coverage: float, edges: tuple[float, ...]) -> Scale:
    """The scale with the narrowest sets, or the default where too few items choose it."""
    if items.usable.sum() < _ENOUGH:
        return "relative-variance"
    some = items.usable
    strata = score_strata(items.table["score"].to_numpy()[some], edges) if edges else None
    given, scales = (items.predicted[some], items.observed[some]), (*NARROW, "none")
    # The last for sets that are as wide as they must be.
    return narrowest_scale(*given, coverage=coverage, strata=strata, among=scales)


def widened(
    run: Run, inflation: Inflation, items: VotedItems, values: Values | None = None
) -> WidenedSets:
    """The items' sets, widened, and what they cover: of all items, and of those that are kept."""
    predicted, usable, guarantee = items.predicted, items.usable, run.guarantee
    strata = None
    if inflation.strata and inflation.by is not None:
        values = _column_values(run, inflation.by) if values is None else values
        strata = _strata_of_table(run, inflation.by, inflation.edges, items.table, values)
        strata = strata if inflation.by in SCORE_WORDS else _known(strata, inflation)
    wide = predicted.conformalize(inflation, strata=strata)
    seen = int(usable.sum())
    covered, before, after = np.zeros(seen, dtype=bool), 0.0, 0.0
    if seen:
        own = None if strata is None else np.array(strata)[usable].tolist()
        covered = predicted[usable].covers(items.observed[usable], inflation, strata=own).numpy()
        before, after = (float((s.upper - s.lower)[usable].mean()) for s in (predicted, wide))
    kept = None
    if guarantee is not None:
        scores, labels = items.table["score"].to_numpy(), items.table["label"].to_list()
        kept = guarantee.keeps(scores, labels)[usable]
    return WidenedSets(
        inflation=inflation,
        lower=wide.lower.numpy(),
        upper=wide.upper.numpy(),
        seen=seen,
        covered=int(covered.sum()),
        width_before=before,
        width_after=after,
        counted=items.counted,
        kept=None if kept is None else (int(kept.sum()), int(covered[kept].sum())),
    )


def _score_edges(run: Run, score: np.ndarray, coverage: float) -> tuple[float, ...]:
    """Scores between strata that no label of a calibration item has decided about."""
    least = max(_PER_STRATUM, math.ceil(2 * coverage / (1 - coverage)))
    expected = None if run.guarantee is None else run.guarantee.expected_threshold
    if expected is not None:
        kept = int((score <= expected).sum())
        return (expected,) if least <= kept <= len(score) - least else ()
    number = min(len(score) // least, _MOST)
    shares = np.arange(1, number) / max(number, 1)
    return tuple(np.unique(np.quantile(score, shares, method="lower")).tolist())


def _strata_of_table(
    run: Run, by: str, edges: tuple[float, ...], rows: pl.DataFrame, values: Values
) -> list[str]:
    """Strata of items of the run, by score, label or a column."""
    if by in SCORE_WORDS:
        return score_strata(rows[by.replace("-", "_")].to_numpy(), edges)
    if by == LABEL:
        return rows[LABEL].to_list()
    missing = [item for item in rows["item"] if item not in values]
    if missing:
        raise CredalError(
            f"no row with {by!r} for {many(len(missing), 'item')} of {run.path}: "
            f"{listed(missing, 3)}. To fix: pass the whole table with table=."
        )
    return [str(values[item]) for item in rows["item"]]


def strata_of_batch(
    run: Run, inflation: Inflation, predicted: CredalPredictions, label: pl.Series, batch: Batch
) -> list[str] | None:
    """Strata of new items; None where the sets have none."""
    by, inputs = inflation.by, run.facts.inputs
    if not inflation.strata or by is None:
        return None
    if by in SCORE_WORDS:
        return score_strata(predicted.score(by).double().numpy(), inflation.edges)
    if by == LABEL:
        return _known(label, inflation)
    if by in batch.extra.columns:
        return _known(texts(batch.extra.select(by)).to_series(), inflation)
    if by in inputs.features:
        values = batch.X[:, inputs.features.index(by)]
        if by in inputs.categories:
            return _known(values, inflation)
        return _known([None if math.isnan(x) else f"{x:g}" for x in values], inflation)
    raise CredalError(
        f"the sets of {run.path} are calibrated by {by!r}, and the data have no such column. To "
        "fix: add it, or certify the sets again without a stratum."
    )


def _known(values: Iterable[str | None], inflation: Inflation) -> list[str]:
    """The values that are strata; others count among the rest."""
    names = {each.name for each in inflation.strata}
    return [str(each) if str(each) in names else REST for each in values]


def _column_values(run: Run, column: str, table: Any = None) -> Values:
    """The values of a column of the inputs, as text; of a score and the label none."""
    if column in (*SCORE_WORDS, LABEL):
        return {}
    inputs, found = run.facts.inputs, Values()
    table = inputs.table or None if table is None else table
    paths = [inputs.path, *inputs.later] if table is None else [table]
    if table is None and not all(Path(each).exists() for each in paths):  # or was never a file
        raise CredalError(
            f"the column {column!r} was in {listed(paths)}, which is no file now. To fix: pass the "
            "table with table=."
        )
    for source in map(open_source, paths):
        name = source.column(column, option="stratum")
        named = item_column(source, (inputs.item,), (*inputs.features, name))
        block = source.read((named, name))
        values = block[name]
        if column in inputs.features and column not in inputs.categories:
            known = numbers(values, decimal_commas=True).fill_nan(None)
            values = known.map_elements(lambda x: f"{x:g}", pl.String)
        text = texts(values.to_frame()).to_series().str.strip_chars()
        found |= zip(item_names(source, block[named]), text, strict=True)
    return found
