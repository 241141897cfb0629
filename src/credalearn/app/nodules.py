"""The radiologists' ratings of lung nodules that ship with the package.

The table, its license (CC BY 3.0) and its attribution are in ``nodules.csv``;
``scripts/build_lidc.py`` builds it from LIDC-IDRI.
"""

from importlib.resources import files

import polars as pl

CLASSES = ("benign", "indeterminate", "malignant")
BESIDE = ("nodule", "patient", *CLASSES)  # what is not a feature


def load_nodules() -> pl.DataFrame:
    """One row per nodule: number, patient (split by this), readers by class, and features."""
    content = files("credalearn.app").joinpath("nodules.csv").read_bytes()
    table = pl.read_csv(content, comment_prefix="#")
    return table.with_columns(pl.exclude(BESIDE).cast(pl.Float64))
