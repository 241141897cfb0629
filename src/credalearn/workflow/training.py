"""``credalearn train``: annotations and inputs into a run.

Shapes: N items, K classes.
"""

import hashlib
import json
import platform
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from credalearn import __version__
from credalearn.annotations import Annotations
from credalearn.annotations.places import listed
from credalearn.errors import CredalError
from credalearn.estimator import CredalClassifier
from credalearn.workflow.folder import RunFolder, write_json
from credalearn.workflow.inputs import FeatureTable
from credalearn.workflow.inspecting import annotation_facts
from credalearn.workflow.item_columns import ItemColumns
from credalearn.workflow.joining import Prepared, prepare
from credalearn.workflow.options import TrainOptions
from credalearn.workflow.predicted import write_tables
from credalearn.workflow.splits import SPLITS
from credalearn.workflow.staging import MODEL, check_place, staged


def train_run(
    output: str | Path,
    annotations: Annotations,
    inputs: FeatureTable | Path,
    options: TrainOptions,
    *,
    columns: ItemColumns | None = None,
    verbose: bool = True,
) -> RunFolder:
    """Train on annotated items and write a run.

    Killed and called again with the same arguments it goes on from its last epoch. An older run in
    the same place stays until the new one is whole.

    Args:
        output: Folder of the run.
        annotations: What people said.
        inputs: Features, or the folder of images.
        options: How.
        columns: Groups, splits and true classes of images; features have their own.
        verbose: Show progress on standard error.

    Raises:
        CredalError: If items, classes or options do not fit, or the run cannot be written.
        TrainingError: If the loss is not finite.
    """
    started = time.monotonic()
    output = Path(output)
    check_place(output)
    _check_backbone(inputs, options)
    prepared = prepare(annotations, inputs, options, columns=columns)
    split = np.array(prepared.split)
    _check_classes(annotations, prepared, split)
    with staged(output) as folder:
        clf = _fitted(folder, annotations, prepared, split, options, verbose=verbose)
        clf.save(folder / MODEL)
        write_tables(folder, annotations, prepared, clf)
        facts = data_facts(annotations, inputs, prepared, options, columns=columns)
        facts |= _model_facts(clf, options) | {"label_diameter": _diameter(prepared, split)}
        seconds = round(time.monotonic() - started, 2)
        write_json(folder / "run.json", facts | {"seconds": seconds})
    return RunFolder(output)


def _check_backbone(inputs: FeatureTable | Path, options: TrainOptions) -> None:
    if isinstance(inputs, Path) and options.backbone == "mlp":
        raise CredalError(
            f"the backbone 'mlp' takes numbers and {inputs} holds images. To fix: give --backbone "
            "resnet18 or another for images, or their embeddings as --features."
        )


def _check_classes(annotations: Annotations, prepared: Prepared, split: np.ndarray) -> None:
    """Every class must be seen in training, or the model can never say it."""
    seen = prepared.counts[split == "train"].sum(0) > 0
    if seen.all():
        return
    missing = [name for name, ok in zip(annotations.classes, seen, strict=True) if not ok]
    elsewhere = int((prepared.counts[:, annotations.classes.index(missing[0])] > 0).sum())
    named, path = listed(missing, 3), annotations.source.path
    if not elsewhere:
        raise CredalError(
            f"no item with inputs was called {named} in {path}. To fix: leave that class out of "
            "--classes, or collect some."
        )
    raise CredalError(
        f"no item of the training split was called {named} in {path}, and {elsewhere:,} of the "
        "others were. To fix: leave that class out, collect more of it, or take another --seed."
    )


def _fitted(
    folder: Path,
    annotations: Annotations,
    prepared: Prepared,
    split: np.ndarray,
    options: TrainOptions,
    *,
    verbose: bool,
) -> CredalClassifier:
    chosen = split == "train"
    X, labels = prepared.X[chosen], prepared.labels[torch.from_numpy(np.flatnonzero(chosen))]
    # Another checkpoint for other data or options: those start anew and not with an error.
    told = json.dumps([asdict(options), annotations.classes])
    digest = hashlib.sha256(told.encode())
    for array in (X, labels.lower.numpy(), labels.reference.numpy()):
        digest.update(np.ascontiguousarray(array).data)
    clf = CredalClassifier(
        options.method,
        backbone=options.backbone or ("resnet18" if prepared.X.ndim == 4 else "mlp"),
        epochs=options.epochs,
        seed=options.seed,
        checkpoint=folder / f"resume-{digest.hexdigest()[:16]}.safetensors",
        verbose=verbose,
    )
    clf.fit(X, labels, classes=list(annotations.classes))
    return clf


def data_facts(
    annotations: Annotations,
    inputs: FeatureTable | Path,
    prepared: Prepared,
    options: TrainOptions,
    *,
    columns: ItemColumns | None = None,
) -> dict[str, Any]:
    """What ``run.json`` says of the items: whence they are, and how they were split.

    Args:
        annotations: What people said.
        inputs: Features, or the folder of images.
        prepared: The two together.
        options: How they were brought together.
        columns: What stands beside images.
    """
    features = None if isinstance(inputs, Path) else inputs
    return {
        "classes": list(annotations.classes),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "credalearn": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "annotations": annotation_facts(annotations),
        "inputs": {
            "kind": "images" if features is None else "features",
            "path": str(inputs if features is None else features.path),
            "later": [] if features is None else [str(path) for _, path in features.later],
            "features": None if features is None else features.names,
            "image_size": options.image_size if features is None else None,
            "left_out": prepared.left_out,
            "unreadable": prepared.broken,
            "matched": prepared.matched,
            "table": None if columns is None else str(columns.path),
        },
        "splits": {
            **{name: prepared.split.count(name) for name in SPLITS if name in prepared.split},
            "group": options.group,
        },
        "later_items": prepared.later,
        "truth": "gold" if options.gold else "majority",
    }


def _model_facts(clf: CredalClassifier, options: TrainOptions) -> dict[str, Any]:
    """What ``run.json`` says of the model and how it was trained."""
    return {
        "options": asdict(options),
        "label_rule": options.labels,
        "method": options.method,
        "backbone": clf.backbone,
        "epochs": options.epochs,
        "seed": options.seed,
        "loss_curve": clf.loss_curve_,
    }


def _diameter(prepared: Prepared, split: np.ndarray) -> float:
    """Mean diameter of the sets that were learnt from: 0 for points, 1 for everything."""
    rows = torch.from_numpy(np.flatnonzero(split == "train"))
    return round(float(prepared.labels[rows].diameter().mean()), 4)
