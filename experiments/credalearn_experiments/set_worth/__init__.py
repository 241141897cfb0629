"""What a set is worth: statements, mixed items and the width of sets, next to their rivals.

All studies are linear or on small networks and run on a CPU.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import torch
from joblib import Parallel, delayed

from credalearn_experiments.data.folders import DataFolders
from credalearn_experiments.set_worth.few_votes import CALIBRATIONS, few_votes_scores
from credalearn_experiments.set_worth.images import (
    IMAGE_CELLS,
    STATED_CELLS,
    image_scores,
    scratch_scores,
    stated_image_scores,
)
from credalearn_experiments.set_worth.networks import (
    MIXED_DATA,
    SMOOTHINGS,
    mixing_scores,
    smoothing_scores,
)
from credalearn_experiments.set_worth.scores import Score
from credalearn_experiments.set_worth.statements import CELLS, statement_scores
from credalearn_experiments.set_worth.widths import WIDTH_CELLS, width_scores

_COLUMNS = ("study", "data", "learner", "seed", "metric", "value")
STUDIES: dict[str, tuple[Callable[..., Iterator[Score]], Mapping[str, Any]]] = {
    "statements": (statement_scores, CELLS),
    "mixing": (mixing_scores, MIXED_DATA),
    "smoothing": (smoothing_scores, SMOOTHINGS),
    "widths": (width_scores, WIDTH_CELLS),
    "few votes": (few_votes_scores, CALIBRATIONS),
    "images": (image_scores, IMAGE_CELLS),
    "from scratch": (scratch_scores, IMAGE_CELLS),
    "statements on images": (stated_image_scores, STATED_CELLS),
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
