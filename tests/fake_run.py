"""Runs that never were, in folders as ``credalearn train`` writes them."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from PIL import Image
from scipy.special import softmax

from credalearn import CredalPredictions, Run
from credalearn.app.facts import AnnotationFacts, InputFacts
from credalearn.app.features import row_digests
from credalearn.app.run_files import write_run
from credalearn.app.steps.certify import certify
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.app.steps.set_coverage import certify_sets
from credalearn.app.steps.train import TrainOptions, prediction_table, recorded_options

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

    A ``sharpness`` of 4 is right on nine of ten. Only ``pocc`` has sets; images are next to it.
    """
    noise = np.random.default_rng(random_state)
    num_classes = len(classes)
    real = sharpness * noise.gumbel(size=(num_items, num_classes))
    people = softmax(real + noise.normal(size=real.shape), axis=-1)
    votes = noise.multinomial(5, people).astype(float)
    votes[:, 0] -= (votes[:, 0] > 0) & (noise.random(num_items) < 0.3)  # some are read by four
    items = list(item_names or (f"item-{number:04d}.png" for number in range(num_items)))
    split = np.repeat(list(SPLITS), [round(share * num_items) for share in SPLITS.values()])
    top = votes == votes.max(1, keepdims=True)
    truth = np.where(top.sum(1) == 1, votes.argmax(1), -1)

    seen = real + 1.2 * noise.normal(size=real.shape)
    spread = 0.7 * np.abs(noise.normal(size=(num_items, 1))) if method == "pocc" else 0.0
    heads = np.stack(
        [softmax(0.8 * (1 - 0.5 * spread) * seen, axis=-1), softmax(1.2 * seen, axis=-1)], axis=1
    )
    heads = heads[split != "train", : 2 if method == "pocc" else 1]
    pictures = folder.parent / "images"
    if images:
        pictures.mkdir(parents=True, exist_ok=True)
        for row in np.flatnonzero(split == "test"):
            pixels = noise.integers(0, 256, size=(6, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((64, 48)).save(pictures / items[row])
        inputs = InputFacts(kind="images", path=str(pictures), image_size=64)
    else:
        inputs = InputFacts(kind="features", path="features.parquet", features=("size", "texture"))
    folder.mkdir(parents=True, exist_ok=True)
    table = {"item": items, "split": split.tolist(), "group": [None] * len(items)}
    table["truth"] = [classes[k] if k >= 0 else None for k in truth]
    table["digest"] = row_digests(real)
    table |= {f"n:{name}": votes[:, k].astype(float).tolist() for k, name in enumerate(classes)}
    rows = np.flatnonzero(split != "train")
    predictions = prediction_table(
        CredalPredictions.from_vertices(torch.from_numpy(heads)),
        [items[row] for row in rows],
        classes,
        split=split[rows],
        truth=truth[rows],
        counts=votes[rows],
    )
    tables = {
        "annotations": long_votes(items, votes, classes),
        "items": pl.DataFrame(table, schema_overrides={"group": pl.String, "truth": pl.String}),
        "predictions": predictions,
    }
    options = training_options(
        method=method, backbone="resnet18" if images else "mlp", random_state=random_state
    )
    write_run(folder, facts(classes, split, votes, inputs, options), tables, model_sha256="")
    return Run.load(folder)


def add_rule(run: Run, **options: Any) -> Run:
    """The run with a guarantee; by default at most 10 % of the kept items are wrong."""
    return certify(run, CertifyOptions(**options or {"max_error": 0.1})).run


def with_facts(run: Run, **changed: Any) -> Run:
    """The run with other facts or tables, which belong together again; without certificates."""
    tables = {name: getattr(run, name) for name in ("annotations", "items", "predictions")}
    tables |= {k: v for k, v in changed.items() if isinstance(v, pl.DataFrame)}
    changed = {k: v for k, v in changed.items() if not isinstance(v, pl.DataFrame)}
    known = {each.name: getattr(run.facts, each.name) for each in fields(run.facts)}
    known.pop("sha256")
    known["annotations"] = changed.pop("annotation_facts", known["annotations"])
    write_run(run.path, known | changed, tables, model_sha256=run.facts.sha256["model"])
    for name in ("guarantee.json", "sets.json", "requests.json"):
        (run.path / name).unlink(missing_ok=True)
    return Run.load(run.path)


def with_folds(run: Run, *, noise: float = 0.0) -> Run:
    """The run with predictions of its training items, made from those of other items."""
    trained, others = run.items.filter(split="train"), run.items.filter(pl.col("split") != "train")
    spoiled = noise * np.random.default_rng(0).normal(size=len(run.predictions))
    table = run.predictions.with_columns(
        split=pl.lit("out-of-fold"), item=trained["item"], score=pl.col("score") + spoiled
    )
    items = pl.concat([trained.with_columns(others.select(pl.col("^n:.*$"))), others])
    return with_facts(run, predictions=pl.concat([run.predictions, table]), items=items)


def grouped(run: Run, size: int) -> Run:
    """The same run, as if ``size`` items in a row were of one patient."""
    groups = pl.Series("group", [f"p{row // size}" for row in range(len(run.items))])
    return with_facts(run, items=run.items.with_columns(groups), group="patient")


def add_sets(run: Run, *, coverage: float = 0.9) -> Run:
    """Widen the run's sets on its calibration items, as ``credalearn certify`` does."""
    found = certify_sets(run, CertifyOptions(set_coverage=coverage, scale="relative-variance"))
    return run.keeping(sets=found.inflation)


def rows_of(run: Run, split: str) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Predictions of a split and the votes (N, K) on its items, row by row from the two tables."""
    known = {row["item"]: row for row in run.items.iter_rows(named=True)}
    rows = [row for row in run.predictions.iter_rows(named=True) if row["split"] == split]
    votes = [[known[row["item"]][f"n:{name}"] for name in run.classes] for row in rows]
    return rows, np.array(votes)


def long_votes(items: list[str], votes: np.ndarray, classes: Sequence[str]) -> pl.DataFrame:
    """One row per vote: the k-th vote of an item is the k-th annotator's."""
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
    classes: Sequence[str],
    split: np.ndarray,
    votes: np.ndarray,
    inputs: InputFacts,
    options: dict[str, Any],
) -> dict[str, Any]:
    """What ``run.json`` holds."""
    total = votes.sum(1)
    sizes = {name: int((split == name).sum()) for name in SPLITS}
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
            alpha=0.61,
            unanimous=float((votes.max(1) == total).mean()),
            tied=0.1,
            votes_per_item=(float(total.min()), float(np.median(total)), float(total.max())),
            confused=((classes[0], classes[1], 0.7),),
        ),
        "inputs": inputs,
        "splits": {name: number for name, number in sizes.items() if number},
        "truth": "majority",
        "options": options,
        "seconds": 12.5,
        "loss_curve": (1.1, 0.7, 0.5),
    }


def training_options(**changed: Any) -> dict[str, Any]:
    """What a model may have been trained with."""
    options = TrainOptions(labels="relax", method="pocc", backbone="mlp", epochs=20, batch_size=128)
    return recorded_options(options, images=False) | {"learning_rate": 1e-3} | changed
