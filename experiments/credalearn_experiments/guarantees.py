"""Guarantees on real items: what is promised, broken and kept; and sets where the system acts.

On random splits of the crowd data sets, by group where there are groups. Shapes: N items, K
classes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import torch
from joblib import Parallel, delayed

import credalearn as cl
from credalearn._formats import percent
from credalearn.conformal import Scale, score_strata
from credalearn.conformal._calibration import narrowest_scale
from credalearn.guarantees import CertifyMethod, DeferralScore, better_score
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders

_SET_COVERAGE = 0.9
_METHODS: dict[str, CertifyMethod]
_METHODS = {"SGR": "sgr", "learn then test": "learn-then-test", "betting": "betting"}
NAMES = ("LIDC", "CIFAR-10H, all votes", "ConvAbuse", "ArMIS")

# Of a method: the share of the splits where the kept test items err more than promised, the share
# of test items kept, and their error. Of sets: the coverage of all, kept and deferred test items,
# and the mean width of a class's interval.
_COLUMNS = ("broken", "kept", "error", "width")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Predictions of one part of a split, with what people said."""

    predicted: cl.CredalPredictions
    sets: cl.CredalPredictions  # the same about what people say
    votes: np.ndarray  # (N, K)
    truth: np.ndarray  # the right class, −1 for none, shape (N,)
    groups: np.ndarray | None

    def score(self, name: DeferralScore) -> np.ndarray:
        """An uncertainty by which items may be deferred."""
        return self.predicted.score(name).double().numpy()

    def items(self, score: DeferralScore, *, by_group: bool) -> dict[str, Any]:
        """Scores and errors of the items whose right class is known."""
        known, wrong = self.truth >= 0, self.predicted.classes.numpy() != self.truth
        own = self.groups[known] if by_group and self.groups is not None else None
        return {"score": self.score(score)[known], "wrong": wrong[known], "groups": own}


def predict_parts(data: CrowdSet, random_state: int) -> list[Part]:
    """Training items out of fold, calibration items and test items, by the default learner."""
    X, new = data.inputs
    clf = cl.CredalClassifier(random_state=random_state, device="cpu")
    clf.fit(X, data.labels, groups=data.train_groups)
    assert clf.out_of_fold_ is not None
    found, count = clf.predict_credal(new), len(data.split[1])
    predicted = (clf.out_of_fold_, found[:count], found[count:])
    parts = zip(predicted, (data.counts, data.judged, data.judged), data.split, strict=True)
    about_votes = clf.temperatures_["votes"] / clf.temperatures_["truth"]
    return [
        Part(
            pred,
            cl.CredalPredictions(pred.probs, pred.lower, pred.upper).temper(about_votes),
            votes[rows],
            data.truth[rows],
            None if data.groups is None else data.groups[rows],
        )
        for pred, votes, rows in parts
    ]


def measure(
    names: Iterable[str], folders: DataFolders, number: int, *, workers: int = 1
) -> pl.DataFrame:
    """Every method, then sets with one radius and by stratum: means over so many splits."""
    jobs = (delayed(_split_rows)(x, folders, each) for x in names for each in range(1, number + 1))
    rows = [row for split in Parallel(n_jobs=workers)(jobs) for row in split]
    splits = pl.DataFrame(rows).fill_nan(None)  # some split defers none
    cells = splits.group_by("data", "what", "promise", maintain_order=True)
    return cells.agg(pl.len().alias("splits"), pl.col(_COLUMNS).mean().round_sig_figs(4))


def _split_rows(name: str, folders: DataFolders, random_state: int) -> list[dict[str, Any]]:
    torch.set_num_threads(1)  # this process is joblib's own
    data = CROWD_SETS[name](folders, random_state)
    train, calibration, test = predict_parts(data, random_state)
    names = get_args(DeferralScore)
    known = [train.items(each, by_group=True) for each in names]
    scores = {each: items["score"] for each, items in zip(names, known, strict=True)}
    score = better_score(scores, known[0]["wrong"])
    reference = cl.ScoredItems(**train.items(score, by_group=True))
    tested = test.items(score, by_group=False)
    found = []
    for method, how in _METHODS.items():
        rule = cl.certify(
            **calibration.items(score, by_group=how == "betting"),
            max_error=data.max_error,
            method=how,
            reference=None if how == "sgr" else reference,
        )
        kept = rule.keeps(tested["score"])
        error = float(tested["wrong"][kept].mean()) if kept.any() else 0.0
        values = (float(error > data.max_error), float(kept.mean()), error, 0.0)
        found.append((method, data.max_error, *values))
    found += _sets((train, calibration, test), rule, score)
    return [
        dict(zip(("what", "promise", *_COLUMNS), x, strict=True)) | {"data": name} for x in found
    ]


def _sets(parts: Sequence[Part], rule: cl.Guarantee, score: DeferralScore) -> Iterator[Any]:
    """Coverage of all, kept and deferred test items, and mean width: by version 0.1, and now."""
    scores = [part.score(score) for part in parts]
    edges = () if rule.expected_threshold is None else (rule.expected_threshold,)
    strata = [score_strata(each, edges) if edges else None for each in scores]
    train, calibration, test = parts
    scale = narrowest_scale(train.sets, train.votes, coverage=_SET_COVERAGE, strata=strata[0])
    kept = rule.keeps(scores[2])
    contenders: dict[str, tuple[Scale, Sequence[Any]]]
    contenders = {
        "sets, one radius": ("relative-variance", (None, None, None)),
        "sets by stratum": (scale, strata),
    }
    for name, (how, (_, old, new)) in contenders.items():
        fit = calibration.sets.inflation(calibration.votes, strata=old, scale=how)
        covered = test.sets.covers(test.votes, fit, strata=new).numpy()
        wide = test.sets.conformalize(fit, strata=new)
        shares = (float(covered[rows].mean()) if rows.any() else np.nan for rows in (kept, ~kept))
        width = float((wide.upper - wide.lower).mean())
        yield name, _SET_COVERAGE, float(covered.mean()), *shares, width


def table(path: Path) -> Iterator[str]:
    """The results as two tables in Markdown."""
    rows = pl.read_csv(path).rows(named=True)
    yield "| items | promise | method | splits | broken on test items | kept | error among kept |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    sets = [row for row in rows if "sets" in row["what"]]
    for row in rows:
        cells = " | ".join(percent(row[name]) for name in ("broken", "kept", "error"))
        row["cells"] = f"{row['splits']} | {cells} |"
        if row not in sets:
            yield f"| {row['data']} | {percent(row['promise'])} | {row['what']} | {row['cells']}"
    yield ""
    yield "| items | sets | splits | covered | of the kept | of the deferred | mean width |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for row in sets:
        what = row["what"].removeprefix("sets").strip(", ")
        yield f"| {row['data']} | {what} | {row['cells']} {row['width']} |"
