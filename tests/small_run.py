"""A small finished run, made in a second, for the tests of what comes after training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import credalearn as cl
from credalearn.decide import DecisionRule
from credalearn.workflow.run.folder import RunFolder, write_json

CLASSES = ("cat", "dog", "=owl")
FEATURES = ("size", "weight", "seen")


def features(num_items: int, *, seed: int = 0) -> np.ndarray:
    """Three columns; the last is seconds since 1970, which float32 cannot tell apart."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(num_items, 3))
    values[:, 2] = 1.7e9 + 5 * values[:, 2]
    return values


def votes(values: np.ndarray, *, seed: int = 1) -> np.ndarray:
    """Five annotators, who disagree where the first two columns are near 0."""
    rng = np.random.default_rng(seed)
    logits = 3 * np.stack([values[:, 0], values[:, 1], -values[:, 0] - values[:, 1]], axis=1)
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    return np.array([rng.multinomial(5, share) for share in shares])


def make_run(
    folder: Path, *, method: str = "pocc", rule: bool = True, num_items: int = 120
) -> RunFolder:
    """Train on half of the items and write what ``credalearn train`` writes."""
    values = features(num_items)
    counts = votes(values)
    half = num_items // 2
    clf = cl.CredalClassifier(method, epochs=5, seed=0)
    clf.fit(values[:half], cl.from_votes(counts[:half]), classes=list(CLASSES))
    inputs = {"kind": "features", "path": "items.csv", "features": list(FEATURES)}
    return write_run(folder, clf, values, counts, inputs, rule=rule)


def make_image_run(folder: Path, images: np.ndarray, counts: np.ndarray) -> RunFolder:
    """A run on images, uint8 (N, 3, size, size)."""
    clf = cl.CredalClassifier(backbone="resnet18", epochs=1, seed=0, device="cpu")
    X = images.astype(np.float32)
    clf.fit(X[: len(X) // 2], cl.from_votes(counts[: len(X) // 2]), classes=list(CLASSES))
    inputs = {"kind": "images", "path": "pictures", "image_size": images.shape[2]}
    return write_run(folder, clf, X, counts, inputs, rule=True)


def write_run(
    folder: Path,
    clf: cl.CredalClassifier,
    X: np.ndarray,
    counts: np.ndarray,
    inputs: dict[str, Any],
    *,
    rule: bool,
) -> RunFolder:
    """The files of a run; the second half of the items is calibration and test."""
    folder.mkdir(parents=True, exist_ok=True)
    clf.save(folder / "model")
    half = len(X) // 2
    split = ["train"] * half + [("calibration", "test")[row % 2] for row in range(len(X) - half)]
    items = [f"item-{row}" for row in range(len(X))]
    truth = [CLASSES[index] for index in counts.argmax(1)]
    told = {"item": items, "split": split, "group": [None] * len(X), "truth": truth}
    told |= {f"n:{name}": counts[:, number] for number, name in enumerate(CLASSES)}
    table = pl.DataFrame(told)
    table.write_parquet(folder / "items.parquet")
    pred = clf.predict_credal(X[half:])
    index = pred.classes.numpy()
    row = np.arange(len(index))
    label = [CLASSES[each] for each in index]
    columns: dict[str, Any] = {
        "item": items[half:],
        "split": split[half:],
        "label": label,
        "probability": pred.probs.double().numpy()[row, index],
        "lower": pred.lower.double().numpy()[row, index],
        "upper": pred.upper.double().numpy()[row, index],
        "score": pred.score("lower-probability").double().numpy(),
        "mmi": pred.score("mmi").double().numpy(),
        "top_probability": pred.score("top-probability").double().numpy(),
        "truth": truth[half:],
        "wrong": [said != true for said, true in zip(label, truth[half:], strict=True)],
        "disagreement": 1 - counts[half:][row, index] / counts[half:].sum(1),
    }
    columns |= {f"p:{name}": pred.probs[:, k].double().numpy() for k, name in enumerate(CLASSES)}
    pl.DataFrame(columns).write_parquet(folder / "predictions.parquet")
    if rule:
        write_rule(folder, float(np.median(columns["score"])), len(index) // 2)
    sizes = {name: split.count(name) for name in ("train", "calibration", "test")}
    facts = {
        "classes": list(CLASSES),
        "created": "2026-11-15T12:00:00+00:00",
        "options": {"method": clf.method},
        "versions": {"credalearn": cl.__version__, "torch": "2.13.0", "python": "3.11"},
        "annotations": {
            "kind": "votes",
            "path": "votes.csv",
            "format": "long",
            "items": len(X),
            "annotators": 5,
        },
        "inputs": inputs,
        "splits": sizes | {"group": None},
        "truth": "majority",
        "label_rule": "relax",
        "method": clf.method,
        "backbone": clf.backbone,
        "epochs": clf.epochs,
        "seed": 0,
        "seconds": 1.0,
        "loss_curve": clf.loss_curve_,
    }
    write_json(folder / "run.json", facts)
    return RunFolder(folder)


def write_rule(folder: Path, threshold: float, num_items: int) -> None:
    """A rule that keeps half of the calibration items."""
    rule = DecisionRule(
        method="sgr",
        against="majority",
        threshold=threshold,
        num_items=num_items,
        kept=num_items // 2,
        errors=0.0,
        max_error=0.1,
        confidence=0.95,
        bound=0.09,
        bound_by="binomial",
    )
    write_json(folder / "rule.json", json.loads(rule.to_json()))
