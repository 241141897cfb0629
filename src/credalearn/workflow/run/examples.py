"""A run for the examples in docstrings."""

import tempfile
from pathlib import Path

from credalearn.workflow.run.folder import RunFolder, write_json


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
        "annotations": {"kind": "votes"},
        "inputs": {"kind": "features", "features": ["size"]},
        "splits": {"group": "patient"},
        "method": "pocc",
        "label_rule": "relax-ties",
        "backbone": "mlp",
        "epochs": 1,
        "seed": 0,
    }
    write_json(folder / "run.json", facts)
    return RunFolder(folder)
