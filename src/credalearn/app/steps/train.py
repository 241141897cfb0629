"""``credalearn train``: a dataset into a run."""

import hashlib
import json
import platform
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
import torch

from credalearn import __version__
from credalearn._checks import check_choice
from credalearn._classifier_options import TABLE_BACKBONES
from credalearn._files import sha256_of
from credalearn._formats import listed, many
from credalearn._options import check_options, keywords, option, same_option
from credalearn.app._split import SPLITS
from credalearn.app.annotations.agreement import annotation_facts, majority
from credalearn.app.annotations.dawid_skene import dawid_skene
from credalearn.app.dataset import Dataset, DatasetOptions
from credalearn.app.labels import make_labels
from credalearn.app.run import OUT_OF_FOLD, Run
from credalearn.app.run_files import write_run
from credalearn.app.staging import MODEL, staged
from credalearn.app.steps.baselines import compare, find_leaks, one_truth
from credalearn.classifier import CredalClassifier
from credalearn.errors import CredalError
from credalearn.guarantees._truths import TRUTHS
from credalearn.labels import VoteRule
from credalearn.labels.votes import check_options as check_rule
from credalearn.methods import METHODS
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train._processes import find_device
from credalearn.train.training import Recipe

if TYPE_CHECKING:
    from credalearn.app.run import Predictor

Skill = Literal["equal", "dawid-skene"]
Augment = Literal["auto", "none", "crop", "crop-flip", "mixup", "cutmix"]

_MOST_CLASSES = 1_000  # with 5,000, labels and predictions of 20,000 items took 6 GB


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """Options of ``train``, in Python and on the command line."""

    labels: VoteRule = option("relax-ties", "Rule that turns votes into labels.")
    s: float = option(1.0, "Strength of the imprecise Dirichlet model (idm).", above=0)
    confidence: float = option(0.95, "Confidence level of the label rule.", above=0, below=1)
    skill: Skill = option("equal", "Whether votes count equally, or by the annotators' skill.")
    method: str = option(
        "auto",
        "Name of a method; auto selects a model for features, and is pocc-center, calibrated, for "
        "images.",
    )
    backbone: str | None = option(
        None,
        "Network: linear, mlp, resnet18, wrn-28-4, timm:NAME or torchvision:NAME.",
        show_default="selected for features, resnet18 for images",
    )
    calibrate: bool = option(False, "Calibrate the probabilities of a method given by name.")
    weights: Path | None = same_option(DatasetOptions, "weights")
    augment: Augment = option(
        "auto",
        "Random changes to the items in each epoch; mixup and cutmix also mirror images. auto: "
        "mixup for images if --method is auto, else none.",
    )
    epochs: int = same_option(Recipe, "epochs")
    learning_rate: float = same_option(Recipe, "learning_rate")
    batch_size: int = same_option(Recipe, "batch_size", least=2)
    random_state: int = same_option(Recipe, "random_state")
    device: str = option("auto", "Device of torch; auto is a GPU where there is one.")
    overwrite: bool = option(False, "Replace a run that has a guarantee or certified sets.")
    verbose: bool = field(default=False, metadata={})

    def __post_init__(self) -> None:
        check_options(self)
        check_rule(self.labels, s=self.s, confidence=self.confidence)
        check_choice(self.method, ("auto", *METHODS), name="method")


def train(data: Dataset, folder: str | Path, options: TrainOptions | None = None) -> Run:
    """Train on annotated items and write a run."""
    started = time.monotonic()
    if not isinstance(data, Dataset):
        raise CredalError(
            f"data must be a credalearn.Dataset; got {type(data).__name__}. To fix: pass "
            "Dataset(read_annotations(votes), …)."
        )
    options, output = options or TrainOptions(), Path(folder)
    data = data.split() if data.part is None else data
    rows = np.flatnonzero(data.part == "train")
    _check_classes(data, rows)
    labels = training_labels(data, rows, options)
    data = judged_by_skill(data) if options.skill == "dawid-skene" else data
    frozen = data.inputs.is_frozen
    images = data.inputs.kind == "images" and not frozen
    used = recorded_options(options, images=images)
    if images and used["backbone"] in ("auto", *TABLE_BACKBONES):
        raise CredalError(
            f"the backbone {used['backbone']!r} takes vectors, not images. To fix: choose a "
            "network for images, such as resnet18, or pass features=."
        )
    with staged(output, overwrite=options.overwrite) as partial:
        clf = CredalClassifier(
            used["method"],
            backbone=used["backbone"],
            encoder="tfidf" if data.inputs.encoder == "tfidf" else "auto",
            weights=None if frozen else options.weights,
            calibrate=used["calibrate"],
            epochs=options.epochs,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            augment=used["augment"],
            device=options.device,
            random_state=options.random_state,
            checkpoint=partial / f"resume-{_digest(data, rows, labels, used)}.safetensors",
            verbose=options.verbose,
        )
        classes = list(data.annotations.classes)
        groups = None if data.groups is None else np.array(data.groups, dtype=object)[rows]
        right = one_truth(data, rows, labels)
        clf.fit(data.X[rows], labels, classes=classes, groups=groups, truth=right)
        leaks: dict[str, float] = {}
        if data.inputs.kind == "features":
            truth = data.truth[rows]
            truth = truth if (truth >= 0).any() else majority(data.counts[rows])
            leaks = find_leaks(data.X[rows], truth, data.inputs.features)
        clf.save(partial / MODEL)
        digest = json.loads((partial / MODEL / "config.json").read_text())["weights_sha256"]
        facts = data_facts(data) | {
            "options": used,
            "loss_curve": tuple(clf.loss_curve_),
            "model": "" if clf.choice_ is None else clf.choice_.words,
            "temperatures": {name: round(each, 4) for name, each in clf.temperatures_.items()},
            "comparison": compare(data, rows, labels, clf, right),
            "leaks": leaks,
            "label_diameter": round(float(labels.diameter().mean()), 4),
            "seconds": round(time.monotonic() - started, 2),
        }
        write_run(partial, facts, run_tables(data, clf), model_sha256=digest)
    return Run.load(output)


def trained_lines(
    run: Run, scores: dict[str, float], *, known: Container[str] = ()
) -> Iterator[str]:
    """What the command prints in the end; ``known``: reasons printed before."""
    facts, folder = run.facts, run.path
    for why, count in facts.inputs.left_out.items():
        if why not in known:
            yield f"Left out: {many(count, 'item')} {why}"
    yield from facts.advice
    yield from facts.comparison.lines if facts.comparison is not None else ()
    if scores:
        yield (
            f"{many(int(scores['items']), 'test item')}: cross-entropy "
            f"{scores['cross_entropy']:.3f} to the votes; micro-F1 (accuracy) "
            f"{scores['micro_f1']:.3f} against {TRUTHS[run.truth]}, "
            f"{many(int(scores['judged_items']), 'item')}"
        )
    yield f"Wrote {folder}: {facts.trained}."
    yield f"Next: credalearn certify {folder} --max-error 0.10"


def judged_by_skill(data: Dataset) -> Dataset:
    """The dataset whose truth is the class that Dawid and Skene's model of all votes favors."""
    if data.options.gold is not None:
        return data
    posterior, voted = dawid_skene(data.annotations, data.items), data.counts.sum(1) > 0
    return data.with_values(
        truth=np.where(voted, posterior.argmax(1), -1), truth_source="dawid-skene"
    )


def training_labels(data: Dataset, rows: np.ndarray, options: TrainOptions) -> CredalSet:
    """Labels of the training items, which depend on the votes about these alone."""
    posterior, items = None, [data.items[row] for row in rows]
    if options.skill == "dawid-skene":
        posterior = dawid_skene(data.annotations, items, alone=True)
    return make_labels(
        data.annotations,
        data.counts[rows],
        options.labels,
        s=options.s,
        confidence=options.confidence,
        posterior=posterior,
        items=items,
    )


def run_tables(data: Dataset, clf: "Predictor") -> dict[str, pl.DataFrame]:
    """Annotations, items, and predictions by models that are new to them."""
    assert data.part is not None
    held_out = np.flatnonzero(data.part != "train")
    found = [(held_out, data.part[held_out], clf.predict_credal(data.X[held_out]))]
    if clf.out_of_fold_ is not None:
        rows = np.flatnonzero(data.part == "train")
        found.append((rows, np.full(len(rows), OUT_OF_FOLD), clf.out_of_fold_))
    predictions = pl.concat(
        prediction_table(
            predicted,
            [data.items[row] for row in rows],
            data.annotations.classes,
            split=split,
            truth=data.truth[rows],
            counts=None if data.annotations.kind == "bounds" else data.counts[rows],
        )
        for rows, split, predicted in found
    )
    tables = {"annotations": data.annotations.table, "items": data.item_table()}
    return tables | {"predictions": predictions}


def prediction_table(
    predicted: CredalPredictions,
    items: Sequence[str],
    classes: Sequence[str],
    *,
    split: np.ndarray,
    truth: np.ndarray,
    counts: np.ndarray | None,
) -> pl.DataFrame:
    """Predictions of N items as the table that :class:`Run` describes; truth is −1 for none."""
    index, names = predicted.classes.numpy(), np.array(classes, dtype=object)
    row = np.arange(len(index))
    agree = np.full(len(index), np.nan)
    if counts is not None:
        total = counts.sum(1)
        np.divide(counts[row, index], total, out=agree, where=total > 0)
    parts = {"p": predicted.probs, "lower": predicted.lower, "upper": predicted.upper}
    scores = {"score": "lower-probability", "mmi": "mmi", "top_probability": "top-probability"}
    columns: dict[str, Any] = {"item": list(items), "split": split.tolist()}
    columns["label"] = names[index].tolist()
    for name, values in zip(("probability", "lower", "upper"), parts.values(), strict=True):
        columns[name] = values.double().numpy()[row, index]
    columns |= {name: predicted.score(each).double().numpy() for name, each in scores.items()}
    columns["truth"] = [None if t < 0 else names[t] for t in truth]
    columns["wrong"] = [None if t < 0 else bool(i != t) for i, t in zip(index, truth, strict=True)]
    columns["disagreement"] = 1 - agree
    if predicted.vertices is not None and predicted.vertices.shape[1] > 1:
        heads = predicted.vertices.unbind(1)
        parts |= {f"v{number}": head for number, head in enumerate(heads)}
    for part, values in parts.items():
        for number, name in enumerate(classes):
            columns[f"{part}:{name}"] = values[:, number].double().numpy()
    return pl.DataFrame(columns, schema_overrides={"truth": pl.String, "wrong": pl.Boolean})


def data_facts(data: Dataset) -> dict[str, Any]:
    """What ``run.json`` records about the items."""
    assert data.part is not None
    sizes = {name: int((data.part == name).sum()) for name in SPLITS}
    options, found = data.options, annotation_facts(data.annotations)
    versions = {"credalearn": __version__, "torch": torch.__version__}
    gold = options.gold if options.gold is None or isinstance(options.gold, str) else "a table"
    return {
        "classes": data.annotations.classes,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions | {"python": platform.python_version()},
        "annotations": replace(found, items=found.items or len(data.items)),
        "inputs": data.inputs,
        "splits": {name: number for name, number in sizes.items() if number},
        "group": options.group,
        "gold": gold,
        "split": options.split,
        "later_items": int(data.later.sum()),
        "truth": data.truth_source,
    }


def recorded_options(options: TrainOptions, *, images: bool) -> dict[str, Any]:
    """What ``run.json`` records about the options."""
    asked = keywords(options)
    for name in ("overwrite", "verbose"):  # which change nothing in a run
        del asked[name]
    asked["backbone"] = options.backbone or ("resnet18" if images else "auto")
    best = images and options.method == "auto"  # the recipe that experiments/docs recommends
    if best:
        asked |= {"method": "pocc-center", "calibrate": True}
    if options.augment == "auto":
        asked["augment"] = "mixup" if best else "none"
    weights = options.weights
    asked["weights"] = None if weights is None else str(weights)
    asked["weights_sha256"] = None if weights is None else sha256_of(weights)
    return asked


def _digest(data: Dataset, rows: np.ndarray, labels: CredalSet, used: dict[str, Any]) -> str:
    """Names the checkpoint: with other data or options training starts over."""
    device = find_device(used["device"]).type
    asked = json.dumps([used | {"device": device}, data.annotations.classes])
    digest = hashlib.sha256(asked.encode())
    digest.update("".join(data.digests[row] for row in rows).encode())
    for array in (labels.lower.numpy(), labels.reference.numpy()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _check_classes(data: Dataset, rows: np.ndarray) -> None:
    """Every class must occur in training, or the model can never predict it."""
    number = len(data.annotations.classes)
    if number > _MOST_CLASSES:
        raise CredalError(
            f"{data.annotations.source.path} has {number:,} classes; train takes at most "
            f"{_MOST_CLASSES:,}, as each prediction keeps bounds for every class. To fix: merge "
            "rare classes with map=."
        )
    seen = data.counts[rows].sum(0) > 0
    missing = [name for name, ok in zip(data.annotations.classes, seen, strict=True) if not ok]
    if missing:
        stated = data.annotations.contains == "statements"  # which cannot be mapped
        merge = "" if stated else ", merge it into another class with map="
        raise CredalError(
            f"no training item of {data.annotations.source.path} has a vote for "
            f"{listed(missing, 3)}. To fix: leave out its votes with missing={missing[0]!r}{merge}"
            ", or choose another random_state=."
        )
