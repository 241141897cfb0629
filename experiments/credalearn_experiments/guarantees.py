"""Guarantees on real items: what is promised, broken and kept; and sets where the system acts.

Four sets of annotated items, each split at random, by group where there are groups: three fifths
train a logistic regression and give out-of-fold predictions, a fifth calibrates, a fifth tests.

Shapes: N items, K classes.
"""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import spmatrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import credalearn as cl
from credalearn._files import whole_file
from credalearn._formats import percent
from credalearn.app.nodules import load_nodules
from credalearn.conformal import score_strata
from credalearn.conformal.calibration import narrowest_scale
from credalearn.guarantees import CertifyMethod
from credalearn_experiments.data import DataFolders, load_task

_SET_COVERAGE = 0.9
_METHODS: dict[str, CertifyMethod] = {
    "SGR": "sgr",
    "learn then test": "learn-then-test",
    "betting": "betting",
}


@dataclass(frozen=True, slots=True, eq=False)
class Voted:
    """Items with inputs, votes and groups."""

    inputs: np.ndarray | spmatrix
    votes: np.ndarray  # (N, K)
    groups: np.ndarray | None
    max_error: float
    model: Callable[[], Any]


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


def _logistic() -> Any:
    return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(C=0.1, max_iter=2000))


def _sharp() -> Any:
    return LogisticRegression(C=3.0, max_iter=2000)


def load_voted(name: str, folders: DataFolders) -> Voted:
    """One of the four sets of items."""
    if name == "LIDC":
        nodules = load_nodules()
        return Voted(nodules.features, nodules.votes, nodules.patients, 0.2, _logistic)
    if name == "CIFAR-10H features":
        task = load_task("cifar10h-features", folders)
        assert task.train_counts is not None
        assert task.voted_inputs is not None
        assert task.voted_counts is not None
        inputs = torch.cat([task.train_inputs, task.voted_inputs]).numpy()
        votes = torch.cat([task.train_counts, task.voted_counts]).numpy()
        return Voted(inputs, votes, None, 0.05, _logistic)
    texts: list[str] = []
    said_by_class: list[list[int]] = []
    for part in ("train", "dev", "test"):
        file = f"lewidi/{name}_{part}.json.gz"
        path = folders.find(file, what=name, get="put the files of LeWiDi 2023 into lewidi/")
        for item in json.loads(gzip.decompress(path.read_bytes())).values():
            texts.append(item["text"])
            said = [int(each) for each in item["annotations"].split(",")]
            yes = sum(each < 0 for each in said) if name == "ConvAbuse" else sum(said)
            said_by_class.append([len(said) - yes, yes])
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    limit = 0.1 if name == "ConvAbuse" else 0.25
    return Voted(words.fit_transform(texts), np.array(said_by_class), None, limit, _sharp)


NAMES = ("LIDC", "CIFAR-10H features", "ConvAbuse", "ArMIS")


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Predicted probabilities and votes of the three parts of one split."""

    probs: dict[str, np.ndarray]
    votes: dict[str, np.ndarray]
    groups: dict[str, np.ndarray | None]

    def items(self, part: str, *, by_group: bool) -> dict[str, Any]:
        """Scores and errors of the items that have a single most-voted class."""
        probs, votes, groups = self.probs[part], self.votes[part], self.groups[part]
        known = (votes == votes.max(1, keepdims=True)).sum(1) == 1
        wrong = probs.argmax(1) != votes.argmax(1)
        own = None if groups is None or not by_group else groups[known]
        return {"score": (1 - probs.max(1))[known], "wrong": wrong[known], "groups": own}


def splits(data: Voted, number: int) -> Iterator[Split]:
    """Random splits, by group where there are groups."""
    names = np.arange(len(data.votes)) if data.groups is None else data.groups
    units = np.unique(names)
    for random_state in range(number):
        shuffled = np.random.default_rng(random_state).permutation(units)
        ends = (len(units) * 3 // 5, len(units) * 4 // 5)
        parts = zip(("train", "calibration", "test"), np.split(shuffled, ends), strict=True)
        rows = {part: np.flatnonzero(np.isin(names, chosen)) for part, chosen in parts}
        train = rows["train"]
        y = data.votes[train].argmax(1)
        folds: Any = (
            KFold(4, shuffle=True, random_state=0) if data.groups is None else GroupKFold(4)
        )
        probs = {
            "train": cross_val_predict(
                data.model(), data.inputs[train], y, cv=folds, method="predict_proba",
                groups=None if data.groups is None else data.groups[train],
            )
        }  # fmt: skip
        model = data.model().fit(data.inputs[train], y)
        for part in ("calibration", "test"):
            probs[part] = model.predict_proba(data.inputs[rows[part]])
        groups = {p: None if data.groups is None else data.groups[r] for p, r in rows.items()}
        yield Split(probs, {part: data.votes[each] for part, each in rows.items()}, groups)


def measure(name: str, folders: DataFolders, number: int) -> list[Line]:
    """Every method, then sets with one radius and by stratum, on one set of items."""
    data = load_voted(name, folders)
    found: dict[str, list[tuple[float, ...]]] = {}
    for split in splits(data, number):
        reference = cl.ScoredItems(**split.items("train", by_group=True))
        tested = split.items("test", by_group=False)
        for method, how in _METHODS.items():
            rule = cl.certify(
                **split.items("calibration", by_group=how == "betting"),
                max_error=data.max_error,
                method=how,
                reference=None if how == "sgr" else reference,
            )
            kept = rule.keeps(tested["score"])
            error = tested["wrong"][kept].mean() if kept.any() else 0.0
            row = (float(error > data.max_error), kept.mean(), error, 0.0)
            found.setdefault(method, []).append(row)
        for what, values in _sets(split, rule).items():
            found.setdefault(what, []).append(values)
    return [
        Line(
            data=name,
            what=what,
            promise=_SET_COVERAGE if "sets" in what else data.max_error,
            splits=number,
            **dict(zip(("broken", "kept", "error", "width"), _mean(rows), strict=True)),
        )
        for what, rows in found.items()
    ]


def _mean(rows: list[tuple[float, ...]]) -> list[float]:
    """Means by column, of the splits that have a value."""
    found: list[float] = np.ma.masked_invalid(rows).mean(0).filled(np.nan).tolist()
    return found


def _sets(split: Split, rule: cl.Guarantee) -> dict[str, tuple[float, ...]]:
    """Coverage of all, kept and deferred test items, and mean width: before and now."""
    parts = {part: cl.CredalPredictions.from_probs(each) for part, each in split.probs.items()}
    score = {part: 1 - each.max(1) for part, each in split.probs.items()}
    edges = () if rule.expected_threshold is None else (rule.expected_threshold,)
    strata = {part: score_strata(each, edges) if edges else None for part, each in score.items()}
    train, old, new = (parts[part] for part in ("train", "calibration", "test"))
    scale = narrowest_scale(
        *(split.votes["train"], train.lower, train.upper, train.probs),
        coverage=_SET_COVERAGE,
        strata=strata["train"],
    )
    kept = rule.keeps(score["test"])
    found = {}
    for name, options, own in (
        ("sets, one radius", {}, dict.fromkeys(strata)),
        ("sets by stratum", {"scale": scale}, strata),
    ):
        fit = old.inflation(split.votes["calibration"], strata=own["calibration"], **options)  # type: ignore[arg-type]
        covered = new.covers(split.votes["test"], fit, strata=own["test"]).numpy()
        wide = new.conformalize(fit, strata=own["test"])
        shares = (covered[rows].mean() if rows.any() else np.nan for rows in (kept, ~kept))
        found[name] = (covered.mean(), *shares, float((wide.upper - wide.lower).mean()))
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
