"""The model card: what a trained model is, was trained on, promises and does not."""

from pathlib import Path
from typing import Any

import polars as pl

from credalearn.errors import CredalError
from credalearn.files import whole_file
from credalearn.metrics import accuracy, auarc, ece
from credalearn.report.escape import escape_markdown
from credalearn.workflow.folder import RunFolder

_MARK = "<!-- model card by credalearn -->"
_NAMES = ("README.md", "MODEL_CARD.md")  # the second where the first is somebody else's


def write_card(run: RunFolder, folder: str | Path) -> Path:
    """Write the model card of a run into a folder; returns its path.

    It is ``README.md``, or ``MODEL_CARD.md`` where there is a README of another hand.

    Raises:
        CredalError: If the folder cannot be written to.
    """
    folder = Path(folder)
    path = folder / _NAMES[0]
    try:
        if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(
            _MARK
        ):
            path = folder / _NAMES[1]
        with whole_file(path) as partial:
            partial.write_text(card(run), encoding="utf-8")
    except OSError as error:
        raise CredalError(
            f"the model card cannot be written to {path}: {error.strerror or error}."
        ) from error
    return path


def card(run: RunFolder) -> str:
    """The text of the card, Markdown; every value from outside is escaped."""
    facts = run.facts
    parts = [
        _MARK,
        f"# {_said(run.path.resolve().name)}",
        "A classifier that returns, for each item, a set of probabilities over the classes: its "
        "bounds tell how sure the label is, and its rule which items to give to a human.",
        "## Model",
        _table(_model_rows(run, facts)),
        "## Data",
        _table(_data_rows(facts)),
        "## Quality on the test items",
        *_quality(run),
        "## Rule",
        *_rule(run),
        *_sets(run),
        "## Limits",
        *_limits(run, facts),
        "## Versions",
        _table(facts.get("versions", {})),
    ]
    return "\n\n".join(parts) + "\n"


def _model_rows(run: RunFolder, facts: dict[str, Any]) -> dict[str, Any]:
    inputs = facts["inputs"]
    names = inputs.get("features")
    takes = (
        f"images of {inputs['image_size']} × {inputs['image_size']} pixels"
        if inputs["kind"] == "images"
        else f"{len(names or ())} features: {', '.join(names or ())}"
    )
    return {
        "classes": ", ".join(run.classes),
        "takes": takes,
        "method": facts["method"],
        "network": facts["backbone"],
        "labels": f"votes by the rule {facts['label_rule']}",
        "epochs": facts["epochs"],
        "seed": facts["seed"],
        "trained": facts["created"],
    }


def _data_rows(facts: dict[str, Any]) -> dict[str, Any]:
    votes, splits = facts.get("annotations") or {}, facts["splits"]
    agreement = votes.get("agreement") or {}
    rows: dict[str, Any] = {
        "annotations": votes.get("path"),
        "format": votes.get("format"),
        "items": votes.get("items"),
        "annotators": votes.get("annotators"),
        "votes": votes.get("votes"),
        "Krippendorff's alpha": agreement.get("alpha"),
        "unanimous share": agreement.get("unanimous"),
        "inputs": facts["inputs"].get("path"),
    }
    rows |= {f"{name} items": splits[name] for name in ("train", "calibration", "test")}
    rows["kept together by"] = splits.get("group")
    left_out = {**(votes.get("left_out") or {}), **(facts["inputs"].get("left_out") or {})}
    rows["left out"] = ", ".join(f"{count} {reason}" for reason, count in left_out.items()) or None
    return {name: value for name, value in rows.items() if value is not None}


def _quality(run: RunFolder) -> list[str]:
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
        rows["left out, their votes tie"] = len(test) - len(known)
    against = "gold labels" if run.facts["truth"] == "gold" else "the majority of the annotators"
    return [f"Against {against}.", _table(rows)]


def _rule(run: RunFolder) -> list[str]:
    rule = run.rule
    if rule is None:
        return ["No threshold has been certified: nothing is promised about the predictions."]
    lines = [_said(rule["statement"])]
    if rule["threshold"] is not None:
        lines.append(
            f"Predict where the score, 1 − lower probability of the label, is at most "
            f"{_said(rule['threshold'])}; defer the rest. Of the calibration items it predicts "
            f"{rule['coverage']:.1%}.".replace("%.", " %.")
        )
    return lines


def _sets(run: RunFolder) -> list[str]:
    found = run.sets
    if found is None:
        return []
    lines = ["## Widened sets", _said(found.statement)]
    if not found.vacuous:
        lines.append(
            f"The bounds of each class are moved outwards by {found.radius:.4g}, in units of the "
            f"scale {_said(found.scale)}: `set_lower` and `set_upper` of `credalearn predict`. The "
            "promise is about the shares of as many votes, not about the distribution behind "
            "them. An exported model does not widen its sets."
        )
    return lines


def _limits(run: RunFolder, facts: dict[str, Any]) -> list[str]:
    truth = "gold labels" if facts["truth"] == "gold" else "the majority of the annotators"
    limits = [
        f"It knows {len(run.classes)} classes and gives every item one of them, also an item of "
        "none.",
        f"Right and wrong here mean {truth}, which may themselves be mistaken.",
        "What is promised holds for items drawn like the calibration items: from other sources or "
        "later times, certify again on new items.",
        "The promise is about all predicted items together, not about each class or group.",
    ]
    return ["\n".join(f"- {each}" for each in limits)]


def _table(rows: dict[str, Any]) -> str:
    lines = [f"| {_said(name)} | {_said(value)} |" for name, value in rows.items()]
    return "\n".join(["| | |", "| --- | --- |", *lines])


def _said(value: object) -> str:
    """A value in the card: escaped, on one line."""
    return escape_markdown(f"{value:.6g}" if isinstance(value, float) else str(value))
