"""Studies on a CPU: what they measure, in one CSV file, and tables and differences of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import torch
from joblib import Parallel, delayed

from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.results.differences import Difference
from credalearn_experiments.results.table import Column, Table, Value

Score = tuple[str, str, float]  # learner, metric and value
Study = Callable[[str, int, DataFolders], Iterable[Score]]  # given the data, or a cell, and a seed
Studies = Mapping[str, tuple[Study, Iterable[str]]]  # each with its cells
Row = tuple[str, str, str, int, str, float]

COLUMNS = ("study", "data", "learner", "seed", "metric", "value")


def run_studies(
    studies: Studies, path: Path, folders: DataFolders, seeds: Sequence[int], workers: int = 1
) -> Iterator[str]:
    """Do what is missing in the file, study by study and seed by seed; a line for each."""
    done = set(read_scores(path).select("study", "data", "seed").unique().rows())
    wanted = [
        (s, cell, seed) for s, (_, cells) in studies.items() for seed in seeds for cell in cells
    ]
    jobs = (
        delayed(_rows)(studies[each[0]][0], *each, folders) for each in wanted if each not in done
    )
    for found in Parallel(n_jobs=workers, return_as="generator_unordered")(jobs):
        new = pl.DataFrame(found, schema=COLUMNS, orient="row")
        table = pl.concat([read_scores(path), new]) if path.exists() else new
        table.sort(COLUMNS).write_csv(path, float_precision=6)
        yield ", ".join(map(str, found[0][:2])) + f", seed {found[0][3]}"


def _rows(study: Study, name: str, cell: str, seed: int, folders: DataFolders) -> list[Row]:
    torch.set_num_threads(1)  # this process is joblib's own
    return [(name, cell, x, seed, metric, value) for x, metric, value in study(cell, seed, folders)]


def read_scores(path: Path) -> pl.DataFrame:
    """The scores in a CSV file; none if there is no file."""
    return pl.read_csv(path) if path.exists() else pl.DataFrame(schema=COLUMNS)


def by_seed(scores: pl.DataFrame, name: str, metric: str, data: str | None = None) -> np.ndarray:
    """One value per seed of a learner, or of a pair "one less another", paired by seed and data.

    They are means over data if none is named.
    """
    asked = {"metric": metric} | ({} if data is None else {"data": data})
    found, *other = (scores.filter(learner=each, **asked) for each in name.split(" less "))
    if other:
        both = found.join(other[0], on=["data", "seed"])
        found = both.with_columns(value=pl.col("value") - pl.col("value_right"))
    return found.group_by("seed").agg(pl.col("value").mean()).sort("seed")["value"].to_numpy()


def value_of(scores: pl.DataFrame, name: str, metric: str, data: str | None = None) -> Value:
    """Mean ± standard deviation of a learner; of a pair, mean ± 95 % (Student's t over seeds)."""
    values = by_seed(scores, name, metric, data)
    if " less " not in name:
        return (float(values.mean()), float(values.std())) if len(values) else None
    found = Difference.of(values) if len(values) else None
    return None if found is None or found.margin is None else (found.mean, found.margin)


def score_table(
    title: str,
    scores: pl.DataFrame,
    columns: Sequence[Column],
    names: Iterable[str],
    metric: str | None = None,
) -> Table:
    """Learners, or pairs "one less another"; columns are data, or metrics if none is named."""
    names = tuple(names)
    marked = not any(" less " in name for name in names)
    columns = [replace(each, marked=each.marked and marked) for each in columns]
    places = {
        each.name: (each.name,) if metric is None else (metric, each.name) for each in columns
    }
    rows = {
        name: {column: value_of(scores, name, *place) for column, place in places.items()}
        for name in names
    }
    return Table(title, columns, rows, corner="learner")
