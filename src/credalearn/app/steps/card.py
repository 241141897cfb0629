"""The model card: what a trained model is, was trained on, promises and does not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from credalearn._escape import escape_markdown
from credalearn._files import whole_file
from credalearn.app.facts import RunFacts, TrainingFacts, TrainingOptions
from credalearn.app.report.card_file import CARD, CARD_MARK, refuse_foreign_card
from credalearn.app.run import Run
from credalearn.app.staging import MODEL
from credalearn.app.steps.exporting import OUTPUTS
from credalearn.app.steps.recalibrating import lost_group
from credalearn.guarantees.truths import LACKING, TRUTHS
from credalearn.metrics import accuracy, auarc, ece


def card_places(run: Run, onnx: Path) -> tuple[Path, Path]:
    """Where the model cards of an export are: beside the ONNX file, and in the model's folder.

    Raises:
        CredalError: If something is there that credalearn did not write.
    """
    places = onnx.with_suffix(".md"), run.path / MODEL / CARD
    for path in places:
        refuse_foreign_card(path)
    return places


def write_card(run: Run, path: Path) -> None:
    """Write the model card of a run.

    Raises:
        CredalError: If something else is there, or it cannot be written.
    """
    refuse_foreign_card(path)
    with whole_file(path) as partial:
        partial.write_text(card(run), encoding="utf-8")


def card(run: Run) -> str:
    """The text of the card, Markdown; every value from outside is escaped."""
    facts = run.facts
    parts = [
        CARD_MARK,
        f"# {_said(run.path.resolve().name)}",
        "A classifier that returns, for each item, a set of probabilities over the classes: its "
        "bounds tell how sure the label is, and its rule which items to give to a human.",
        "## Model",
        _table(_model_rows(run)),
        "## Input and outputs of the ONNX model",
        *_onnx(run),
        *_data(run),
        "## Quality on the test items",
        *_quality(run),
        "## Rule",
        *_rule(run),
        *_sets(run),
        "## Limits",
        *_limits(run),
        "## Versions",
        _table(facts.versions),
    ]
    return "\n\n".join(parts) + "\n"


def _model_rows(run: Run) -> dict[str, Any]:
    facts, inputs, training = run.facts, run.facts.inputs, run.training
    names = inputs.features
    takes = (
        f"RGB images of {inputs.image_size} × {inputs.image_size} pixels, channels first, "
        "values from 0 to 255: files were turned upright as their EXIF says "
        "(PIL.ImageOps.exif_transpose), gray values of 16 bits scaled from 65535 to 255, "
        "converted to RGB, and then scaled to that size by Pillow's bilinear filter"
        if run.takes_images
        else f"{len(names)} features: {', '.join(names)}"
    )
    return {
        "classes": ", ".join(run.classes),
        "takes": takes,
        "method": facts.method,
        "network": facts.options.backbone,
        "labels": (
            "bounds as people stated them"
            if training.said == "bounds"
            else f"{training.said} by the rule {facts.label_rule}"
        ),
        **_training_rows(facts.options),
        "epochs": facts.options.epochs,
        "random_state": facts.options.random_state,
        "trained": training.created,
    }


def _onnx(run: Run) -> list[str]:
    """What goes into an exported model, and what comes out."""
    inputs = run.facts.inputs
    size = inputs.image_size
    takes = (
        ("images", f"float32 (N, 3, {size}, {size})", "see “takes” above")
        if run.takes_images
        else ("features", f"float64 (N, {len(inputs.features)})", "in the order above, raw")
    )
    rows = [takes, *((name, *told) for name, told in OUTPUTS.items())]
    lines = [f"| `{name}` | {shape} | {holds} |" for name, shape, holds in rows]
    told = f"The input is `{takes[0]}`, the rest are outputs: N items, V heads, K classes."
    return [told, "\n".join(["| name | shape | holds |", "| --- | --- | --- |", *lines])]


def _training_rows(asked: TrainingOptions) -> dict[str, Any]:
    """How it was trained."""
    rows: dict[str, Any] = {}
    if asked.weights is not None:
        rows["started from"] = f"{asked.weights} (sha256 {asked.weights_sha256})"
    if asked.augment != "none":
        rows["augmentation"] = asked.augment
    return rows | {"learning rate": asked.learning_rate, "batch size": asked.batch_size}


def _data(run: Run) -> list[str]:
    """On what the model was trained, and on what else it was calibrated again."""
    facts, training = run.facts, run.training
    if not facts.recalibrated_from:
        return ["## Data", _table(_data_rows(facts))]
    trained = replace(training.splits, calibration=0, test=0)
    return [
        "## Data of the training",
        _table({"run": training.path, **_data_rows(replace(training, splits=trained))}),
        "## Data of the calibration",
        f"The model was calibrated again, {_said(facts.created)}, and not trained on these.",
        _table(_data_rows(facts)),
    ]


def _data_rows(facts: RunFacts | TrainingFacts) -> dict[str, Any]:
    votes, splits, agreement = facts.annotations, facts.splits, facts.annotations.agreement
    rows: dict[str, Any] = {
        "annotations": votes.path,
        "format": votes.format,
        "items": votes.items,
        "annotators": votes.annotators,
        "votes": votes.votes,
        "Krippendorff's alpha": agreement and agreement.alpha,
        "unanimous share": agreement and agreement.unanimous,
        "inputs": facts.inputs.path,
    }
    rows |= {f"{name} items": number for name, number in splits.sizes.items()}
    rows["items of later exports, only trained on"] = facts.later_items or None
    rows["kept together by"] = splits.group
    left_out = {**votes.left_out, **facts.inputs.left_out}
    rows["left out"] = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or None
    return {name: value for name, value in rows.items() if value is not None}


def _quality(run: Run) -> list[str]:
    test = run.predictions.filter(pl.col("split") == "test")
    known = test.filter(pl.col("truth").is_in(list(run.classes)))
    if not len(known):
        return ["No test item has a truth to compare with."]
    probs = known.select(f"p:{name}" for name in run.classes).to_numpy()
    place = {name: number for number, name in enumerate(run.classes)}
    y = [place[name] for name in known["truth"]]
    score = known["score"].to_numpy()
    rows = {
        "accuracy": f"{accuracy(probs, y):.4f}",
        "expected calibration error (10 bins)": f"{ece(probs, y):.4f}",
        "area under the accuracy–rejection curve": f"{auarc(probs, y, score):.4f}",
        "items": len(known),
    }
    if len(known) < len(test):
        rows[f"left out: {LACKING[run.truth]}"] = len(test) - len(known)
    return [f"Against {TRUTHS[run.truth]}.", _table(rows)]


def _rule(run: Run) -> list[str]:
    rule = run.guarantee
    if rule is None:
        return ["No threshold has been certified: nothing is promised about the predictions."]
    lines = [_said(rule.sentence())]
    if rule.threshold is not None:
        of_each = ", one of each group," if rule.one_per_group else ""
        lines.append(
            f"Predict where the score, 1 − lower probability of the label, is at most "
            f"{_said(rule.threshold)}; defer the rest. Of the {rule.num_items + rule.left_out:,} "
            f"calibration items{of_each} it predicts {rule.coverage:.1%}.".replace("%.", " %.")
        )
    return lines


def _sets(run: Run) -> list[str]:
    found = run.sets
    if found is None:
        return []
    lines = ["## Widened sets", _said(found.sentence())]
    if not found.vacuous:
        lines.append(
            f"The bounds of each class are moved outwards by {found.radius:.4g}, in units of the "
            f"scale {_said(found.scale)} (distance {_said(found.distance)}): `set_lower` and "
            "`set_upper` of `credalearn predict`. The "
            "promise is about the shares of as many votes, not about the distribution behind "
            "them. An exported model does not widen its sets."
        )
    return lines


def _limits(run: Run) -> list[str]:
    rule = run.guarantee
    about = "all predicted items together"
    if rule is not None and rule.one_per_group:
        about = "one item, drawn at random, of each group, over all of these that are predicted"
    limits = [
        f"It knows {len(run.classes)} classes and gives every item one of them, also an item of "
        "none.",
        f"Right and wrong here are against {TRUTHS[run.truth]}; people can be wrong together.",
        "What is promised holds for items drawn like the calibration items: from other sources or "
        "later times, calibrate again on new items (`credalearn recalibrate`).",
        f"The promise is about {about}, not about each class or group.",
    ]
    limits += [f"{_said(each[0].upper() + each[1:])}." for each in lost_group(run)]
    return ["\n".join(f"- {each}" for each in limits)]


def _table(rows: dict[str, Any]) -> str:
    lines = [f"| {_said(name)} | {_said(value)} |" for name, value in rows.items()]
    return "\n".join(["| | |", "| --- | --- |", *lines])


def _said(value: object) -> str:
    """A value in the card: escaped, on one line."""
    return escape_markdown(f"{value:.6g}" if isinstance(value, float) else str(value))
