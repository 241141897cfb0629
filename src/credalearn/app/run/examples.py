"""A run for the examples in docstrings."""

import tempfile
from pathlib import Path

import polars as pl

from credalearn.app.run.folder import RunFolder, write_json


def empty_run() -> RunFolder:
    """A run that says what it is, without items and without a model, in a new folder.

    Example:
        >>> empty_run().group
        'patient'
    """
    folder = Path(tempfile.mkdtemp())
    facts = {
        "classes": ["cat", "dog"],
        "created": "2026-01-02T03:04:05+00:00",
        "versions": {},
        "annotations": {"kind": "votes"},
        "inputs": {"kind": "features", "path": "items.csv", "features": ["size"]},
        "splits": {"group": "patient"},
        "truth": "majority",
        "method": "pocc",
        "label_rule": "relax-ties",
        "backbone": "mlp",
        "epochs": 1,
        "random_state": 0,
        "options": {
            "s": 1.0,
            "confidence": 0.95,
            "skill": "equal",
            "weights": None,
            "augment": "none",
            "learning_rate": 0.001,
            "batch_size": 128,
        },
    }
    columns = ("item", "split", "group", "truth", "digest")
    pl.DataFrame(schema=dict.fromkeys(columns, pl.String)).write_parquet(folder / "items.parquet")
    write_json(folder / "run.json", facts)
    return RunFolder(folder)
