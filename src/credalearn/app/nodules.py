"""The radiologists' ratings of lung nodules that ship with the package.

The table, its license (CC BY 3.0) and its attribution are in ``nodules.csv``;
``scripts/build_lidc.py`` builds it from LIDC-IDRI.

Shapes: N nodules, D features, K = 3 classes.
"""

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

CLASSES = ("benign", "indeterminate", "malignant")
_FIRST_FEATURE = 5  # after nodule, patient and the three votes


@dataclass(frozen=True, slots=True, eq=False)
class Nodules:
    """Lung nodules that three or four radiologists rated."""

    features: np.ndarray  # size and shape of the outlines, and other ratings, shape (N, D)
    feature_names: tuple[str, ...]  # D names
    votes: np.ndarray  # how many readers called it benign, indeterminate, malignant, shape (N, 3)
    patients: np.ndarray  # whose nodule it is, shape (N,): split by this

    @property
    def majority(self) -> np.ndarray:
        """Index of the class with most votes, shape (N,); the lowest index among equals."""
        return self.votes.argmax(1)

    @property
    def has_majority(self) -> np.ndarray:
        """Whether one class has more votes than any other, shape (N,), bool."""
        ranked = np.sort(self.votes, axis=1)
        return ranked[:, -1] > ranked[:, -2]


def load_nodules() -> Nodules:
    """Read the table in the package."""
    text = files("credalearn.app").joinpath("nodules.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    names, *rows = csv.reader(lines)
    return Nodules(
        features=np.array([row[_FIRST_FEATURE:] for row in rows], dtype=np.float64),
        feature_names=tuple(names[_FIRST_FEATURE:]),
        votes=np.array([row[2:_FIRST_FEATURE] for row in rows], dtype=np.int64),
        patients=np.array([row[1] for row in rows]),
    )
