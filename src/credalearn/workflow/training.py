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
import polars as pl
import torch

from credalearn import __version__
from credalearn.annotations import Annotations
from credalearn.annotations.places import listed
from credalearn.errors import CredalError
from credalearn.estimator import CredalClassifier
from credalearn.files import whole_file
from credalearn.workflow.folder import RunFolder, write_json
from credalearn.workflow.inputs import FeatureTable
from credalearn.workflow.inspecting import annotation_facts
from credalearn.workflow.item_columns import ItemColumns
from credalearn.workflow.joining import Prepared, prepare
from credalearn.workflow.options import TrainOptions
from credalearn.workflow.predicted import item_table, prediction_table
from credalearn.workflow.splits import SPLITS
from credalearn.workflow.staging import check_place, staged


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
        clf.save(folder / "model")
        held_out = np.flatnonzero(split != "train")
        predictions = prediction_table(
            clf.predict_credal(prepared.X[held_out]),
            [prepared.items[row] for row in held_out],
            annotations.classes,
            split=split[held_out],
            truth=prepared.truth[held_out],
            counts=None if annotations.kind == "bounds" else prepared.counts[held_out],
        )
        items = item_table(annotations.classes, prepared, split)
        _write(folder / "annotations.parquet", annotations.table)
        _write(folder / "items.parquet", items)
        _write(folder / "predictions.parquet", predictions)
        facts = _facts(annotations, inputs, prepared, split, clf, options)
        facts["inputs"]["table"] = None if columns is None else str(columns.path)
        facts["label_diameter"] = _diameter(prepared, split)
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


def _facts(
    annotations: Annotations,
    inputs: FeatureTable | Path,
    prepared: Prepared,
    split: np.ndarray,
    clf: CredalClassifier,
    options: TrainOptions,
) -> dict[str, Any]:
    """What ``run.json`` says."""
    features = None if isinstance(inputs, Path) else inputs
    return {
        "classes": list(annotations.classes),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": asdict(options),
        "versions": {
            "credalearn": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "annotations": annotation_facts(annotations),
        "inputs": {
            "kind": "images" if features is None else "features",
            "path": str(inputs if features is None else features.path),
            "features": None if features is None else features.names,
            "image_size": options.image_size if features is None else None,
            "left_out": prepared.left_out,
            "unreadable": prepared.broken,
            "matched": prepared.matched,
        },
        "splits": {name: int((split == name).sum()) for name in SPLITS} | {"group": options.group},
        "later_items": prepared.later,
        "truth": "gold" if options.gold else "majority",
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


def _write(path: Path, table: pl.DataFrame) -> None:
    with whole_file(path) as partial:
        table.write_parquet(partial)
