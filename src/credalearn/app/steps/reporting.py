"""``credalearn report``: the folder of a run into one HTML page."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from credalearn import __version__
from credalearn._files import check_file, whole_file
from credalearn.app.items.inputs import find_images
from credalearn.app.items.thumbnails import thumbnail
from credalearn.app.outputs import refuse_overwriting_run
from credalearn.app.report import (
    Compared,
    HeldOut,
    build_page,
    render_page,
    walk,
)
from credalearn.app.report.shown import gallery_rows
from credalearn.app.run import Run
from credalearn.app.steps.recalibrating import lost_group
from credalearn.app.steps.tested import (
    read_disagreement,
    read_label_sets,
    read_rule,
    read_test_items,
    read_widened,
)


def write_report(
    run: Run,
    *,
    others: Sequence[Run] = (),
    images: Path | None = None,
    output: Path | None = None,
    title: str | None = None,
    now: datetime | None = None,
) -> Path:
    """Write the page of a run, and say where it is.

    Args:
        run: The run.
        others: Runs to compare it with.
        images: Folder of the items' images; unless given, the one the run was trained on.
        output: The file, HTML by its suffix; ``report.html`` in the run's folder unless given.
        title: The heading.
        now: The date the page bears.

    Raises:
        CredalError: If a file of a run cannot be read, no test item has a truth, a folder of
            images was given and is not there, or the output is no HTML or a file of a run.
    """
    other = "name another file with --output"
    path = check_file(output or run.path / "report.html", (".html", ".htm"), other=other)
    refuse_overwriting_run(path, run, *others)
    held_out, rule, facts = read_test_items(run), read_rule(run), run.facts
    score = held_out.deferring
    rows = gallery_rows(held_out, score, rule.threshold if rule else None)
    shown = [held_out.items[row] for row in rows]
    tested = [held_out, *map(read_test_items, others)]
    compared = compare_runs([run, *others], tested, rule.max_error if rule else None)
    labels = read_label_sets(run, held_out)
    certify = f"credalearn certify {shlex.quote(str(run.path))}"
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M %Z")
    page = build_page(
        held_out,
        rule,
        read_disagreement(run),
        labels,
        title=title or f"Predict or defer: {run.path.resolve().name}",
        command=f"{certify} --max-error 0.10",
        widened=compared[0].widened,
        widen_command=f"{certify} --set-coverage 0.90" if labels.rule else "",
        group=run.group,
        doubts=lost_group(run),
        compared=compared,
        same_items=all(set(each.items) == set(held_out.items) for each in tested),
        images=_thumbnails(run, shown, images),
        provenance=provenance(run, made),
    )
    again = ", calibrated again on new items" if facts.recalibrated_from else ""
    subtitle = f"{len(held_out.classes)} classes, trained with {facts.method}{again}; "
    subtitle += f"page made {made}"
    text = render_page(page, subtitle=subtitle, generator=f"credalearn {__version__}")
    with whole_file(path, other=other) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def images_gone(run: Run) -> Path | None:
    """The folder of the run's images if it is there no more: a page then has no pictures."""
    folder = Path(run.facts.inputs.path)
    return folder if run.takes_images and not folder.is_dir() else None


def compare_runs(
    runs: Sequence[Run], tested: Sequence[HeldOut], target: float | None
) -> list[Compared]:
    """Each run's numbers on its test items.

    Args:
        runs: The runs.
        tested: The test items of each.
        target: The error at which their coverage is compared, if any.
    """
    found = []
    names = [run.path.resolve().name for run in runs]
    for run, held_out, name in zip(runs, tested, names, strict=True):
        rule = read_rule(run)
        score = held_out.deferring
        threshold = rule.threshold if rule else None
        rows = np.zeros(len(held_out.items), dtype=np.int64)
        taken = walk(held_out, score, rows, 1, threshold=threshold)
        certified = rule is not None and rule.certified and threshold is not None
        found.append(
            Compared(
                name=name if names.count(name) == 1 else str(run.path),
                method=run.facts.method,
                accuracy=held_out.accuracy,
                ece=held_out.reliability.ece,
                auarc=held_out.auarc(score),
                reached=None if target is None else taken.coverage_at(target),
                certified=taken.coverage(taken.position(threshold or 0.0)) if certified else None,
                walk=taken,
                widened=read_widened(run),
            )
        )
    return found


def provenance(run: Run, made: str) -> list[tuple[str, str]]:
    """How a run came about, as names and values for people."""
    facts, training = run.facts, run.training
    options, earlier = facts.options, facts.recalibrated_from
    rows = {
        "page made": made,
        "model trained": training.created,
        "model trained in": earlier and earlier.path,
        "model trained on": earlier and earlier.annotations.path,
        "calibrated again": earlier and facts.created,
        "annotations": _joined(facts.annotations.path, facts.annotations.format),
        "inputs": _joined(facts.inputs.path, facts.inputs.kind),
        "items of later exports, only trained on": training.later_items or None,
        "split by": facts.splits.group,
        "method": options.method,
        "label rule": options.labels,
        "network": options.backbone,
        "epochs": options.epochs,
        "random_state": options.random_state,
        "seconds of training": facts.seconds,
        "versions": ", ".join(f"{k} {v}" for k, v in facts.versions.items()),
        "options": ", ".join(f"{key}={value}" for key, value in asdict(options).items()),
    }
    return [(name, str(value)) for name, value in rows.items() if value not in (None, "")]


def _joined(path: str, kind: str) -> str:
    return f"{path} ({kind})" if kind else path


def _thumbnails(run: Run, shown: Sequence[str], folder: Path | None) -> dict[str, str]:
    """Thumbnails of the items shown, from the folder given or the one of the training."""
    if folder is None:
        if not run.takes_images or images_gone(run) is not None:
            return {}
        folder = Path(run.facts.inputs.path)
    pictures = ((item, thumbnail(path)) for item, path in find_images(folder, shown).items())
    return {item: uri for item, uri in pictures if uri is not None}
