"""``credalearn train``: annotations and inputs into a run.

Shapes: N items, K classes.
"""

import hashlib
import json
import platform
import time
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from credalearn import __version__
from credalearn.app.annotations import Annotations
from credalearn.app.annotations.places import listed
from credalearn.app.facts import InputFacts, SplitFacts, TrainingOptions
from credalearn.app.items.columns import ItemColumns
from credalearn.app.items.inputs import FeatureTable
from credalearn.app.joined.joining import Prepared, prepare
from credalearn.app.joined.labeling import training_labels
from credalearn.app.joined.options import TrainOptions
from credalearn.app.joined.splits import SPLITS
from credalearn.app.run import Run, write_run
from credalearn.app.staging import MODEL, check_place, staged
from credalearn.app.steps.inspecting import annotation_facts
from credalearn.app.steps.predicted import make_tables
from credalearn.errors import CredalError
from credalearn.estimator import CredalClassifier
from credalearn.nets import BACKBONE_NAMES, build_backbone, known_backbone
from credalearn.sets import CredalSet
from credalearn.train.device import find_device

# Options that choose items or truths: the items that are trained on name the checkpoint themselves.
_BESIDE = ("group", "gold", "split", "skip_missing")


def train_run(
    output: str | Path,
    annotations: Annotations,
    inputs: FeatureTable | Path,
    options: TrainOptions,
    *,
    columns: ItemColumns | None = None,
    overwrite: bool = False,
    verbose: bool = True,
) -> Run:
    """Train on annotated items and write a run.

    Killed and called again with the same arguments it goes on from its last epoch. An older run in
    the same place stays until the new one is whole, and for good if it has a rule or sets.

    Args:
        output: Folder of the run.
        annotations: What people said.
        inputs: Features, or the folder of images.
        options: How.
        columns: Groups, splits and true classes of images; features have their own.
        overwrite: Replace an older run even if it has a rule or sets.
        verbose: Show progress on standard error.

    Raises:
        CredalError: If items, classes or options do not fit, or the run cannot be written or would
            replace a rule or sets.
        TrainingError: If the loss is not finite.
    """
    started = time.monotonic()
    output = Path(output)
    check_place(output, overwrite=overwrite)
    find_device(options.device)
    _check_network(inputs, options)
    told = options.told()
    prepared = prepare(annotations, inputs, options, columns=columns)
    labels = training_labels(annotations, prepared, options)
    trained = np.array(prepared.split) == "train"
    _check_classes(annotations, prepared, trained)
    with staged(output, overwrite=overwrite) as folder:
        classes, X = annotations.classes, prepared.X[trained]
        clf = _fitted(folder, classes, X, labels, options, told, verbose=verbose)
        clf.save(folder / MODEL)
        facts = data_facts(annotations, inputs, prepared, options, columns=columns)
        facts |= {
            "options": _training_options(clf, told),
            "loss_curve": tuple(clf.loss_curve_),
            "label_diameter": _diameter(labels),
            "seconds": round(time.monotonic() - started, 2),
        }
        digest = json.loads((folder / MODEL / "config.json").read_text())["weights_sha256"]
        tables = make_tables(annotations, prepared, clf)
        write_run(folder, facts, model_sha256=digest, **tables)
    return Run.load(output)


def _check_network(inputs: FeatureTable | Path, options: TrainOptions) -> None:
    """Refuse what does not go together, before thousands of images are read."""
    backbone = _backbone(options, images=isinstance(inputs, Path))
    if not known_backbone(backbone):
        raise CredalError(
            f"the backbone must be one of {BACKBONE_NAMES}; got {backbone!r}. To fix: name one of "
            "them with --backbone, or leave it out."
        )
    shape: tuple[int, ...]
    if isinstance(inputs, Path):
        shape = (3, options.image_size, options.image_size)
        if options.backbone == "mlp":
            raise CredalError(
                f"the backbone 'mlp' takes numbers and {inputs} holds images. To fix: give "
                "--backbone resnet18 or another for images, or their embeddings as --features."
            )
    else:
        shape = (len(inputs.names),)
        if options.augment != "none":
            raise CredalError(
                f"--augment {options.augment} changes images, and {inputs.path} holds numbers. To "
                "fix: leave it out."
            )
    if options.weights is not None:
        build_backbone(backbone, shape, weights=options.weights)


def _backbone(options: TrainOptions, *, images: bool) -> str:
    return options.backbone or ("resnet18" if images else "mlp")


def _check_classes(annotations: Annotations, prepared: Prepared, trained: np.ndarray) -> None:
    """Every class must be seen in training, or the model can never say it."""
    seen = prepared.counts[trained].sum(0) > 0
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
        "others were. To fix: leave that class out, collect more of it, or choose another "
        "--random-state."
    )


def _fitted(
    folder: Path,
    classes: tuple[str, ...],
    X: np.ndarray,
    labels: CredalSet,
    options: TrainOptions,
    told: dict[str, Any],
    *,
    verbose: bool,
) -> CredalClassifier:
    # Another checkpoint for other data or options: those start anew and not with an error.
    asked = {name: value for name, value in told.items() if name not in _BESIDE}
    asked["device"] = find_device(options.device).type  # which the checkpoint itself insists on
    digest = hashlib.sha256(json.dumps([asked, classes]).encode())
    for array in (X, labels.lower.numpy(), labels.reference.numpy()):
        digest.update(np.ascontiguousarray(array).data)
    clf = CredalClassifier(
        options.method,
        backbone=_backbone(options, images=X.ndim == 4),
        weights=options.weights,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        augment=options.augment,
        device=options.device,
        random_state=options.random_state,
        checkpoint=folder / f"resume-{digest.hexdigest()[:16]}.safetensors",
        verbose=verbose,
    )
    clf.fit(X, labels, classes=list(classes))
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
    sizes = {name: prepared.split.count(name) for name in SPLITS}
    return {
        "classes": annotations.classes,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "credalearn": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "annotations": annotation_facts(annotations),
        "inputs": InputFacts(
            kind="images" if features is None else "features",
            path=str(inputs if features is None else features.path),
            later=() if features is None else tuple(str(path) for _, path in features.later),
            item=None if features is None else features.item,
            features=() if features is None else tuple(features.names),
            dropped=() if features is None else tuple(features.dropped),
            image_size=options.image_size if features is None else None,
            left_out=prepared.left_out,
            unreadable=prepared.broken,
            matched=prepared.matched,
            table=None if columns is None else str(columns.path),
        ),
        "splits": SplitFacts(**sizes, group=options.group, gold=options.gold, split=options.split),
        "later_items": prepared.later,
        "truth": "gold" if options.gold else "majority",
    }


def _training_options(clf: CredalClassifier, told: dict[str, Any]) -> TrainingOptions:
    names = {each.name for each in fields(TrainingOptions)}
    asked = {name: value for name, value in told.items() if name in names}
    return TrainingOptions(**asked | {"backbone": clf.backbone})


def _diameter(labels: CredalSet) -> float:
    """Mean diameter of the sets that were learned from: 0 for points, 1 for everything."""
    return round(float(labels.diameter().mean()), 4)
