"""Guarantees on real items: what is promised, broken and kept; and sets where the system acts.

The crowd data sets, split at random, by group where there are groups: the default learner is
selected and trained on one part and gives out-of-fold predictions, one part calibrates, one tests.

Shapes: N items, K classes.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from joblib import Parallel, delayed

import credalearn as cl
from credalearn._files import whole_file
from credalearn._formats import percent
from credalearn.conformal import Scale, score_strata
from credalearn.conformal.calibration import narrowest_scale
from credalearn.guarantees import CertifyMethod, DeferralScore, better_score
from credalearn_experiments.data.crowd_sets import CROWD_SETS, CrowdSet
from credalearn_experiments.data.folders import DataFolders

_SET_COVERAGE = 0.9
_METHODS: dict[str, CertifyMethod] = {
    "SGR": "sgr",
    "learn then test": "learn-then-test",
    "betting": "betting",
}
NAMES = ("LIDC", "CIFAR-10H, all votes", "ConvAbuse", "ArMIS")

_Values = dict[str, tuple[float, ...]]  # by method, and by kind of sets


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the results: means over splits."""

    data: str
    what: str  # the method, or the kind of sets
    promise: float
    splits: int
    broken: float  # share of the splits where the kept test items err more; of sets: the coverage
    kept: float  # share of the test items that is kept; of sets: coverage among kept items
    error: float  # among the kept test items; of sets: coverage among deferred items
    width: float = 0.0  # of sets: mean width of a class's interval


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
    X, new = data.features(data.train, data.others)
    groups = None if data.groups is None else data.groups[data.train]
    clf = cl.CredalClassifier(random_state=random_state, device="cpu")
    clf.fit(X, cl.from_votes(data.counts[data.train]), groups=groups)
    assert clf.out_of_fold_ is not None
    found, count = clf.predict_credal(new), len(data.split[1])
    parts = zip(
        (clf.out_of_fold_, found[:count], found[count:]),
        (data.counts, data.judged, data.judged),
        data.split,
        strict=True,
    )
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


def measure(name: str, folders: DataFolders, number: int, *, workers: int = 1) -> list[Line]:
    """Every method, then sets with one radius and by stratum, on random splits of one set."""
    jobs = (delayed(_measure_split)(name, folders, each) for each in range(1, number + 1))
    found: list[tuple[float, _Values]] = Parallel(n_jobs=workers)(jobs)
    max_error = found[0][0]
    return [
        Line(
            data=name,
            what=what,
            promise=_SET_COVERAGE if "sets" in what else max_error,
            splits=number,
            **dict(zip(("broken", "kept", "error", "width"), values, strict=True)),
        )
        for what in found[0][1]
        for values in [_mean([each[what] for _, each in found])]
    ]


def _measure_split(name: str, folders: DataFolders, seed: int) -> tuple[float, _Values]:
    torch.set_num_threads(1)  # this process is joblib's own
    data = CROWD_SETS[name](folders, seed)
    train, calibration, test = predict_parts(data, seed)
    names = get_args(DeferralScore)
    known = [train.items(each, by_group=True) for each in names]
    scores = {each: items["score"] for each, items in zip(names, known, strict=True)}
    score = better_score(scores, known[0]["wrong"])
    reference = cl.ScoredItems(**train.items(score, by_group=True))
    tested = test.items(score, by_group=False)
    found: _Values = {}
    for method, how in _METHODS.items():
        rule = cl.certify(
            **calibration.items(score, by_group=how == "betting"),
            max_error=data.max_error,
            method=how,
            reference=None if how == "sgr" else reference,
        )
        kept = rule.keeps(tested["score"])
        error = float(tested["wrong"][kept].mean()) if kept.any() else 0.0
        found[method] = (float(error > data.max_error), float(kept.mean()), error, 0.0)
    return data.max_error, found | _sets((train, calibration, test), rule, score)


def _mean(rows: list[tuple[float, ...]]) -> list[float]:
    """Means by column, of the splits that have a value."""
    found: list[float] = np.ma.masked_invalid(rows).mean(0).filled(np.nan).tolist()
    return found


def _sets(parts: Sequence[Part], rule: cl.Guarantee, score: DeferralScore) -> _Values:
    """Coverage of all, kept and deferred test items, and mean width: by version 0.1, and now."""
    scores = [part.score(score) for part in parts]
    edges = () if rule.expected_threshold is None else (rule.expected_threshold,)
    strata = [score_strata(each, edges) if edges else None for each in scores]
    train, calibration, test = parts
    scale = narrowest_scale(
        *(train.votes, train.sets.lower, train.sets.upper, train.sets.probs),
        coverage=_SET_COVERAGE,
        strata=strata[0],
    )
    kept = rule.keeps(scores[2])
    found = {}
    plain: Scale = "relative-variance"
    for name, how, (_, old, new) in (
        ("sets, one radius", plain, (None, None, None)),
        ("sets by stratum", scale, strata),
    ):
        fit = calibration.sets.inflation(calibration.votes, strata=old, scale=how)
        covered = test.sets.covers(test.votes, fit, strata=new).numpy()
        wide = test.sets.conformalize(fit, strata=new)
        shares = (float(covered[rows].mean()) if rows.any() else np.nan for rows in (kept, ~kept))
        width = float((wide.upper - wide.lower).mean())
        found[name] = (float(covered.mean()), *shares, width)
    return found


def table(path: Path) -> Iterator[str]:
    """The results as two tables in Markdown."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    yield "| items | promise | method | splits | broken on test items | kept | error among kept |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | ---: |"
    sets = [row for row in rows if "sets" in row["what"]]
    for row in (row for row in rows if row not in sets):
        cells = (percent(float(row[name])) for name in ("broken", "kept", "error"))
        head = f"| {row['data']} | {percent(float(row['promise']))} | {row['what']} |"
        yield f"{head} {row['splits']} | {' | '.join(cells)} |"
    yield ""
    yield "| items | sets | splits | covered | of the kept | of the deferred | mean width |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for row in sets:
        cells = (percent(float(row[name])) for name in ("broken", "kept", "error"))
        what = row["what"].removeprefix("sets").strip(", ")
        yield f"| {row['data']} | {what} | {row['splits']} | {' | '.join(cells)} | {row['width']} |"


def write(lines: list[Line], path: Path) -> None:
    """Keep the results, whole or not at all."""
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, Line.__slots__, lineterminator="\n")
        writer.writeheader()
        for each in lines:
            known = asdict(each)
            writer.writerow(
                {k: f"{x:.4g}" if isinstance(x, float) else x for k, x in known.items()}
            )
