"""What a set is worth: statements of people, and the width of guaranteed sets, with their rivals.

Both studies are linear or on small networks and run on a CPU. Shapes: N items, K classes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from joblib import Parallel, delayed
from scipy.stats import t as student
from torch import Tensor

import credalearn as cl
from credalearn._folds import Items, make_folds
from credalearn._formats import percent
from credalearn._selection import LinearPath, linear_path
from credalearn._targets import truth_of
from credalearn._temperature import fit_temperature, log_probs, temper
from credalearn.conformal.calibration import narrowest_scale
from credalearn.methods.taught import STRETCHES, narrowest, stretched
from credalearn.metrics import accuracy, ece
from credalearn_experiments.data.cifar import CIFAR10_CLASSES, split_in_two
from credalearn_experiments.data.crowd_sets import CROWD_SETS, read_cifar10s, voted_features
from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.evaluation import tempered_ece
from credalearn_experiments.results.table import Column, Table, Value

Score = tuple[str, str, str, int, str, float]
_COLUMNS = ("study", "data", "learner", "seed", "metric", "value")

# Statements: CIFAR-10S on features, judged by people's votes on the other images.

CELLS = {
    f"{people} {'person' if people == 1 else 'people'}, {images:,} images": (people, images)
    for people in (1, 2, 6)
    for images in (100, 300, 1000)
}
STATED = {
    "softmax, top classes": ("top", (2,)),
    "softmax, authors' soft labels": ("soft", (2,)),
    "softmax, centers of statements": ("stated", (2,)),
    "POCC, statements": ("stated", (0, 1)),
    "POCC, statements, center head": ("stated", (0, 1, 2)),
    "POCC, relaxed soft labels": ("soft", (0, 1)),
    "POCC, relaxed soft labels, center head": ("soft", (0, 1, 2)),
}
PAIRS = (
    "POCC, statements less softmax, centers of statements",
    "POCC, statements less softmax, authors' soft labels",
    "POCC, relaxed soft labels less softmax, authors' soft labels",
    "POCC, relaxed soft labels, center head less softmax, authors' soft labels",
)
_STATED_METRICS = (
    Column("accuracy"),
    Column("ECE", better="lower"),
    Column("ECE, tempered", better="lower"),
    Column("cross-entropy to people", better="lower", percent=False, digits=3),
    Column("the same, tempered", better="lower", percent=False, digits=3),
)


def statement_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Every label and method on one draw of images and people."""
    num_people, num_images = CELLS[cell]
    X, judged = voted_features(folders)
    stated = read_cifar10s("human_soft_labels_data", folders)
    authors = read_cifar10s("cifar10s_t2clamp_redist10", folders)
    names, images = list(stated), np.array([int(name) for name in stated])
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(images))[:num_images]
    who = [random.permutation(len(stated[names[place]]))[:num_people] for place in chosen]
    drawn = [(names[place], rows) for place, rows in zip(chosen, who, strict=True)]
    people = [[stated[name][each] for each in rows] for name, rows in drawn]
    said = [[each["Most Probable Class"].lower() for each in some] for some in people]
    labels = {
        "top": cl.from_votes([[tops.count(name) for name in CIFAR10_CLASSES] for tops in said]),
        "soft": cl.relax(np.stack([np.array(authors[name])[rows].mean(0) for name, rows in drawn])),
        "stated": stated_sets(people),
    }
    test = np.setdiff1d(np.arange(len(X)), images)
    votes = torch.from_numpy(judged[test] / judged[test].sum(1, keepdims=True))
    right = torch.from_numpy(judged[test].argmax(1))
    train, new = X[images[chosen]], torch.from_numpy(X[test])
    heads = {name: _heads(train, sets, new, seed) for name, sets in labels.items()}
    for learner, (name, own) in STATED.items():
        probs = heads[name][:, own].mean(1)
        values = (
            accuracy(probs, right),
            ece(probs, right),
            tempered_ece(probs, right),
            _cross_entropy(probs, votes),
            _tempered_cross_entropy(probs, votes),
        )
        for column, value in zip(_STATED_METRICS, values, strict=True):
            yield "statements", cell, learner, seed, column.name, value


def stated_sets(people: Sequence[Sequence[Mapping[str, Any]]]) -> cl.CredalSet:
    """The statements of CIFAR-10S's people about each image as sets."""
    rows = [(item, each) for item, some in enumerate(people) for each in some]

    def named(field: str) -> list[str | None]:
        names = [each[field].lower() for _, each in rows]
        return [None if name == "no" else name for name in names]

    def percents(field: str) -> list[float]:
        return [np.nan if each[field] is None else each[field] for _, each in rows]

    return cl.from_statements(
        named("Most Probable Class"),
        percents("Most Probable Class Prob"),
        named("Second Most Probable Class"),
        percents("Second Most Probable Class Prob"),
        [[name.lower() for name in each["Impossible Class(es)"]] for _, each in rows],
        classes=CIFAR10_CLASSES,
        items=[item for item, _ in rows],
    )


def _path(
    X: Any, labels: cl.CredalSet, groups: np.ndarray | None, seed: int
) -> tuple[Items, LinearPath]:
    """The items, and linear models of their folds with a selected penalty."""
    sets = labels.to(dtype=torch.float64)
    inputs = torch.from_numpy(X) if isinstance(X, np.ndarray) else X
    items = Items(inputs, sets, truth_of(sets, None, np.arange(sets.num_classes)))
    folds = make_folds(items.truth, groups, random_state=seed)
    return items, linear_path(items, folds, sets.reference, lambda *_: None)


def _heads(train: np.ndarray, labels: cl.CredalSet, new: Tensor, seed: int) -> Tensor:
    """Probabilities (N, 3, K) of a pessimist, an optimist and a center with a selected penalty."""
    items, path = _path(train, labels, None, seed)
    problem, soft = items.problem(items.inputs), items.labels.reference
    center = problem.fit(lambda _: soft, path.penalty, path.centers[0])
    network = problem.network(problem.fit_credal(items.labels, path.penalty, center))
    with torch.no_grad():
        probs: Tensor = network(new.float()).double().softmax(2)
    return probs


def _cross_entropy(probs: Tensor, votes: Tensor) -> float:
    return float(-(votes * log_probs(probs)).sum(1).mean())


def _tempered_cross_entropy(probs: Tensor, votes: Tensor) -> float:
    """Each half of the items, tempered by the other half; the mean of both."""
    costs = []
    for rest, test in permutations(split_in_two(len(probs), len(probs) // 2)):
        tempered = temper(probs[test], fit_temperature(probs[rest], votes[rest]))
        costs.append(_cross_entropy(tempered, votes[test]))
    return sum(costs) / 2


# Widths: sets that cover 90 % of people's votes, on items that nothing else was chosen by.

BOUNDS, CENTER = "learned bounds", "its center ± f·√(p(1 − p))"
WIDTH_CELLS = {
    f"{data}, {kind}": (data, kind)
    for kind, more in (("linear", ("ConvAbuse", "ArMIS")), ("network", ()))
    for data in ("LIDC", "CIFAR-10H, 3 votes", "CIFAR-10H, all votes", *more)
}
SOFTMAX, DEFAULT = "one softmax ± f·√(p(1 − p))", "default of the package"
HULL, WIDE_HULL = "hull of the teachers", "hull of the teachers, stretched by f"
DISTILLED = "distilled POCC"
WIDTH_LEARNERS = (BOUNDS, CENTER, SOFTMAX, HULL, WIDE_HULL, DISTILLED, DEFAULT)
_FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


def width_scores(cell: str, seed: int, folders: DataFolders) -> Iterator[Score]:
    """Every contender on one split: a third of the calibration items chooses for the rivals."""
    name, kind = WIDTH_CELLS[cell]
    data = CROWD_SETS[name](folders, seed)
    X, new = data.features(data.train, data.others)
    labels = cl.from_votes(data.counts[data.train])
    groups = None if data.groups is None else data.groups[data.train]
    observed = torch.from_numpy(data.counts[data.others])
    count = len(data.split[1])
    parts = np.split(np.arange(len(observed)), [count // 3, count])

    def fit(method: str, backbone: str = "linear" if kind == "linear" else "mlp") -> Any:
        clf = cl.CredalClassifier(method, backbone=backbone, random_state=seed, device="cpu")
        return clf.fit(X, labels, groups=groups).predict_credal(new, meaning="votes")

    def stretched_best(center: Tensor, ends: Tensor, factors: Any = STRETCHES) -> Any:
        """Boxes (N, 2, K) around a center, times the factor that the items to choose by prefer."""
        some = partial(stretched, center[parts[0]], ends[parts[0]])
        return stretched(center, ends, narrowest(some, observed[parts[0]], factors))

    def spread(center: Tensor) -> Any:
        gaps = (center * (1 - center)).clamp(min=0).sqrt()
        return stretched_best(center, torch.stack([center - gaps, center + gaps], 1), _FACTORS)

    bounds = fit("credal-bounds")
    found = {BOUNDS: bounds, CENTER: spread(bounds.probs), DISTILLED: fit("pocc-distilled")}
    if kind == "linear":
        hull = _fold_hull(X, labels, new, groups, seed)
        found[DEFAULT] = fit("auto", "auto")
    else:
        found[SOFTMAX] = spread(fit("softmax").probs)
        hull = fit("deep-ensemble")
    found[HULL] = hull
    found[WIDE_HULL] = stretched_best(hull.probs, torch.stack([hull.lower, hull.upper], 1))
    for learner, boxes in found.items():
        some, calibration, test = (boxes[rows] for rows in parts)
        scale: Any = "none"
        if learner == DEFAULT:
            bounded = (some.lower, some.upper, some.probs)
            scale = narrowest_scale(observed[parts[0]], *bounded, coverage=0.9)
        inflation = calibration.inflation(observed[parts[1]], scale=scale)
        wide = test.conformalize(inflation)
        covered = test.covers(observed[parts[2]], inflation).double().mean()
        yield "widths", cell, learner, seed, "width", float((wide.upper - wide.lower).mean())
        yield "widths", cell, learner, seed, "coverage", float(covered)


def _fold_hull(
    X: Any, labels: cl.CredalSet, new: Any, groups: np.ndarray | None, seed: int
) -> cl.CredalPredictions:
    """The hull of the linear models of the folds, which teach the learned bounds."""
    _, path = _path(X, labels, groups, seed)
    softmax = cl.methods.METHODS["softmax"]
    given = torch.from_numpy(new).float() if isinstance(new, np.ndarray) else new
    points = [
        cl.methods.Model(softmax, (problem.network([head]),), {}, 0).predict(given).probs
        for problem, head in zip(path.problems, path.centers, strict=True)
    ]
    return cl.CredalPredictions.from_vertices(torch.stack(points, 1))


# Running, files and tables.

STUDIES: dict[str, tuple[Callable[..., Iterator[Score]], Mapping[str, Any]]] = {
    "statements": (statement_scores, CELLS),
    "widths": (width_scores, WIDTH_CELLS),
}


def run_studies(
    path: Path, folders: DataFolders, *, seeds: Sequence[int], workers: int
) -> Iterator[str]:
    """Do what is missing in the file, study by study and seed by seed; a line for each."""
    done = set(read_scores(path).select(_COLUMNS[0], "data", "seed").unique().rows())
    wanted = [
        (s, cell, seed) for s, (_, cells) in STUDIES.items() for seed in seeds for cell in cells
    ]
    jobs = (delayed(_scores)(*each, folders) for each in wanted if each not in done)
    for found in Parallel(n_jobs=workers, return_as="generator_unordered")(jobs):
        new = pl.DataFrame(found, schema=_COLUMNS, orient="row")
        table = pl.concat([read_scores(path), new]) if path.exists() else new
        table.sort(_COLUMNS).write_csv(path, float_precision=6)
        yield ", ".join(map(str, found[0][:2])) + f", seed {found[0][3]}"


def _scores(study: str, cell: str, seed: int, folders: DataFolders) -> list[Score]:
    torch.set_num_threads(1)  # this process is joblib's own
    return list(STUDIES[study][0](cell, seed, folders))


def read_scores(path: Path) -> pl.DataFrame:
    """The scores in a CSV file; none if there is no file."""
    return pl.read_csv(path) if path.exists() else pl.DataFrame(schema=_COLUMNS)


def _values(scores: pl.DataFrame, data: str | None, learner: str, metric: str) -> np.ndarray:
    """One value per seed; the mean over all data if none is named."""
    own = scores.filter(pl.col("learner") == learner, pl.col("metric") == metric)
    own = own if data is None else own.filter(pl.col("data") == data)
    return own.group_by("seed").agg(pl.col("value").mean()).sort("seed")["value"].to_numpy()


def _spread(values: np.ndarray, rival: np.ndarray | None = None) -> Value:
    """Mean and deviation; with a rival the paired difference ± its 95 % interval (Student's t)."""
    if not len(values) or (rival is not None and not len(rival)):
        return None
    if rival is None:
        return float(values.mean()), float(values.std())
    gap = values - rival
    error = gap.std(ddof=1) / len(gap) ** 0.5
    return float(gap.mean()), float(student.ppf(0.975, len(gap) - 1) * error)


def set_worth_page(scores: pl.DataFrame) -> Iterator[Table | str]:
    """Statements, then widths, each with paired differences to the precise rivals."""
    said, wide = (scores.filter(pl.col("study") == name) for name in STUDIES)

    def table(
        title: str, columns: Sequence[Column], names: Iterable[str], value: Callable[..., Value]
    ) -> Table:
        rows = {name: {c.name: value(name, c.name) for c in columns} for name in names}
        return Table(title, columns, rows, corner="learner")

    plain = [replace(each, marked=False) for each in _STATED_METRICS]
    yield table(
        *("Statements: mean over nine cells", _STATED_METRICS, STATED),
        lambda name, metric: _spread(_values(said, None, name, metric)),
    )
    yield table(
        *("Statements: paired differences, mean over nine cells", plain, PAIRS),
        lambda pair, x: _spread(*(_values(said, None, name, x) for name in pair.split(" less "))),
    )
    yield table(
        *("Statements: accuracy", [Column(cell) for cell in CELLS], STATED),
        lambda name, cell: _spread(_values(said, cell, name, "accuracy")),
    )
    cells = [Column(cell, better="lower", percent=False, digits=3) for cell in WIDTH_CELLS]
    yield table(
        *("Mean width of sets that cover 90 % of votes", cells, WIDTH_LEARNERS),
        lambda name, cell: _spread(_values(wide, cell, name, "width")),
    )
    plain = [replace(each, marked=False) for each in cells]
    yield table(
        *("Width of learned bounds less that of each rival", plain, WIDTH_LEARNERS[1:]),
        lambda name, cell: _spread(*(_values(wide, cell, x, "width") for x in (BOUNDS, name))),
    )
    covered = wide.filter(pl.col("metric") == "coverage").group_by("data", "learner")
    shares = covered.agg(pl.col("value").mean())["value"].to_numpy()
    yield f"Mean coverage over seeds: {percent(shares.min())} to {percent(shares.max())}."
    for name, found in (("Statements", said), ("Widths", wide)):
        counts = found.group_by("data").agg(pl.col("seed").n_unique())["seed"].to_numpy()
        yield f"{name}: {counts.min()} seeds; mean ± standard deviation; differences ± 95 %."
