"""Runs that never were, in folders as ``credalearn train`` writes them."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from credalearn.app.facts import (
    AgreementFacts,
    AnnotationFacts,
    InputFacts,
    SplitFacts,
    TrainingOptions,
)
from credalearn.app.features import row_digests
from credalearn.app.run import Run, write_run
from credalearn.app.steps.set_coverage import certify_sets
from credalearn.conformal import Distance, Scale
from credalearn.guarantees import CertifyMethod, by_capacity, certify

NAMES = ("benign", "indeterminate", "malignant", "artifact")
SPLITS = {"train": 0.5, "calibration": 0.25, "test": 0.25}


def fake_run(
    folder: Path,
    *,
    classes: Sequence[str] = NAMES[:3],
    num_items: int = 1200,
    random_state: int = 0,
    sharpness: float = 4.0,
    method: str = "pocc",
    images: bool = False,
    item_names: Sequence[str] | None = None,
) -> Run:
    """A run on random items whose annotators disagree most where the model is least certain.

    Args:
        folder: Where; made with its parents.
        classes: Names of the classes.
        num_items: Items in all; half are trained on, a quarter each calibrates and tests.
        random_state: Of the numbers; the items of a number are the same for every sharpness.
        sharpness: How much the model knows: 4 is right on about nine of ten.
        method: Two heads for ``pocc``; one distribution and no set for others.
        images: Whether there is a folder of images, ``images`` beside the run.
        item_names: Names of the items instead of ``item-0000.png`` and so on.
    """
    noise = np.random.default_rng(random_state)
    num_classes = len(classes)
    real = sharpness * noise.gumbel(size=(num_items, num_classes))
    people = softmax(real + noise.normal(size=real.shape))
    votes = noise.multinomial(5, people).astype(float)
    votes[:, 0] -= (votes[:, 0] > 0) & (noise.random(num_items) < 0.3)  # some are read by four
    items = list(item_names or (f"item-{number:04d}.png" for number in range(num_items)))
    split = np.repeat(list(SPLITS), [round(share * num_items) for share in SPLITS.values()])
    top = votes == votes.max(1, keepdims=True)
    truth = np.where(top.sum(1) == 1, votes.argmax(1), -1)

    seen = real + 1.2 * noise.normal(size=real.shape)
    spread = 0.7 * np.abs(noise.normal(size=(num_items, 1))) if method == "pocc" else 0.0
    heads = np.stack([softmax(0.8 * (1 - 0.5 * spread) * seen), softmax(1.2 * seen)], axis=1)
    if method != "pocc":
        heads = heads[:, :1]
    names = np.array(classes, dtype=object)
    frame: dict[str, Any] = {"item": items, "split": split.tolist(), "group": [None] * num_items}
    frame |= {"truth": [names[k] if k >= 0 else None for k in truth]}
    frame |= {"digest": row_digests(real)}
    frame |= {f"n:{name}": votes[:, k] for k, name in enumerate(classes)}
    schema = {"group": pl.String, "truth": pl.String}
    table = pl.DataFrame(frame, schema_overrides=schema)

    folder.mkdir(parents=True, exist_ok=True)
    rows = np.flatnonzero(split != "train")
    pictures = folder.parent / "images"
    if images:
        pictures.mkdir(exist_ok=True)
        for row in np.flatnonzero(split == "test"):
            pixels = noise.integers(0, 256, size=(6, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((64, 48)).save(pictures / items[row])
    write_run(
        folder,
        facts(folder, classes, split, truth, votes, method, images, random_state),
        model_sha256="",
        annotations=long_votes(items, votes, classes),
        items=table,
        predictions=predictions(items, split, truth, votes, heads, names, rows),
    )
    return Run.load(folder)


def add_rule(
    run: Run,
    *,
    max_error: float | None = 0.1,
    capacity: float | None = None,
    confidence: float = 0.95,
    method: CertifyMethod = "sgr",
) -> Run:
    """Certify the run on its calibration items, as ``credalearn certify`` does."""
    table = run.predictions.filter(
        (pl.col("split") == "calibration") & pl.col("wrong").is_not_null()
    )
    values, wrong = table["score"].to_numpy(), table["wrong"].to_numpy()
    if capacity is not None:
        rule = by_capacity(values, wrong, defer=capacity, confidence=confidence)
    else:
        assert max_error is not None
        rule = certify(values, wrong, max_error=max_error, confidence=confidence, method=method)
    return run.with_guarantee(rule)


def with_facts(run: Run, **changed: Any) -> Run:
    """The run with other facts or tables, which belong together again; without certificates."""
    tables = {name: getattr(run, name) for name in ("annotations", "items", "predictions")}
    tables |= {k: v for k, v in changed.items() if isinstance(v, pl.DataFrame)}
    changed = {k: v for k, v in changed.items() if not isinstance(v, pl.DataFrame)}
    known = {each.name: getattr(run.facts, each.name) for each in fields(run.facts)}
    known.pop("sha256")
    known["annotations"] = changed.pop("annotation_facts", known["annotations"])
    write_run(run.path, known | changed, model_sha256=run.facts.sha256.model, **tables)
    for name in ("guarantee.json", "sets.json"):
        (run.path / name).unlink(missing_ok=True)
    return Run.load(run.path)


def without_test_items(run: Run, name: str) -> Run:
    """The run, as if nobody had found this class among the test items."""
    gone = (pl.col("split") == "test") & (pl.col("truth") == name)
    nothing = (pl.when(~gone.fill_null(False)).then(pl.col(each)) for each in ("truth", "wrong"))
    return with_facts(run, predictions=run.predictions.with_columns(*nothing))


def add_sets(
    run: Run,
    *,
    coverage: float = 0.9,
    distance: Distance = "box",
    scale: Scale = "relative-variance",
) -> Run:
    """Widen the run's sets on its calibration items, as ``credalearn certify`` does."""
    found = certify_sets(run, coverage, distance=distance, scale=scale)
    return run.with_sets(found.inflation)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(-1, keepdims=True)
    return shares


def predictions(
    items: list[str],
    split: np.ndarray,
    truth: np.ndarray,
    votes: np.ndarray,
    heads: np.ndarray,
    names: np.ndarray,
    rows: np.ndarray,
) -> pl.DataFrame:
    """The table of predictions; see :class:`Run`."""
    heads, votes, truth = heads[rows], votes[rows], truth[rows]
    middle, lower, upper = heads.mean(1), heads.min(1), heads.max(1)
    label = middle.argmax(1)
    place = (np.arange(len(rows)), label)
    known = truth >= 0
    columns: dict[str, Any] = {
        "item": [items[row] for row in rows],
        "split": split[rows].tolist(),
        "label": names[label].tolist(),
        "probability": middle[place],
        "lower": lower[place],
        "upper": upper[place],
        "score": 1 - lower[place],
        "mmi": np.abs(heads[:, 0] - heads[:, -1]).sum(1) / 2,
        "top_probability": 1 - middle.max(1),
        "truth": [names[k] if ok else None for k, ok in zip(truth, known, strict=True)],
        "wrong": [bool(w) if ok else None for w, ok in zip(truth != label, known, strict=True)],
        "disagreement": 1 - votes[place] / votes.sum(1),
    }
    parts = {"p": middle, "lower": lower, "upper": upper}
    if heads.shape[1] > 1:
        parts |= {f"v{number}": heads[:, number] for number in range(heads.shape[1])}
    for part, values in parts.items():
        columns |= {f"{part}:{name}": values[:, k] for k, name in enumerate(names)}
    return pl.DataFrame(columns, schema_overrides={"truth": pl.String, "wrong": pl.Boolean})


def long_votes(items: list[str], votes: np.ndarray, classes: Sequence[str]) -> pl.DataFrame:
    """A row a vote: the k-th vote of an item is the k-th annotator's."""
    rows, columns = np.nonzero(votes)
    times = votes[rows, columns].astype(int)
    rows, columns = np.repeat(rows, times), np.repeat(columns, times)
    first = np.searchsorted(rows, np.arange(len(items)))
    table = {
        "item": [items[row] for row in rows],
        "annotator": [f"reader-{number}" for number in np.arange(len(rows)) - first[rows]],
        "label": [classes[int(column)] for column in columns],
        "weight": np.ones(len(rows)),
    }
    return pl.DataFrame(table)


def facts(
    folder: Path,
    classes: Sequence[str],
    split: np.ndarray,
    truth: np.ndarray,
    votes: np.ndarray,
    method: str,
    images: bool,
    random_state: int,
) -> dict[str, Any]:
    """What ``run.json`` holds."""
    pairs = [(a, b) for a in range(len(classes)) for b in range(a)]
    both = {(a, b): float((votes[:, a] * votes[:, b]).sum()) for a, b in pairs}
    total = sum(both.values())
    confused = [
        (classes[b], classes[a], both[a, b] / total)
        for a, b in sorted(pairs, key=lambda pair: -both[pair])[:10]
    ]
    an_item = votes.sum(1)
    agreement = AgreementFacts(
        alpha=0.61,
        unanimous=float((votes.max(1) == an_item).mean()),
        tied=float((truth < 0).mean()),
        votes_per_item=(float(an_item.min()), float(np.median(an_item)), float(an_item.max())),
        confused=tuple(confused),
    )
    sizes: dict[str, Any] = {name: int((split == name).sum()) for name in SPLITS}
    return {
        "classes": tuple(classes),
        "created": "2026-01-02T03:04:05+00:00",
        "versions": {"credalearn": "0.1.0", "torch": "2.13.0", "python": "3.11.9"},
        "annotations": AnnotationFacts(
            kind="votes",
            path="readings.csv",
            format="a long table: item, annotator, label",
            items=len(votes),
            annotators=5,
            votes=int(votes.sum()),
            left_out={"skipped": 12, "cancelled": 3},
            agreement=agreement,
        ),
        "inputs": InputFacts(
            kind="images" if images else "features",
            path=str(folder.parent / "images") if images else "features.parquet",
            features=() if images else ("size", "texture"),
            image_size=64 if images else None,
        ),
        "splits": SplitFacts(**sizes),
        "truth": "majority",
        "options": training_options(
            method=method, backbone="resnet18" if images else "mlp", random_state=random_state
        ),
        "seconds": 12.5,
        "loss_curve": (1.1, 0.7, 0.5),
    }


def training_options(**changed: Any) -> TrainingOptions:
    """What a model may have been trained with."""
    options: dict[str, Any] = {
        "labels": "relax",
        "s": 1.0,
        "confidence": 0.95,
        "skill": "equal",
        "method": "pocc",
        "backbone": "mlp",
        "epochs": 20,
        "learning_rate": 1e-3,
        "batch_size": 128,
        "augment": "none",
        "random_state": 0,
    }
    return TrainingOptions(**options | changed)
