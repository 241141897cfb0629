"""The model card: what a model is, was trained on, guarantees and does not guarantee."""

from pathlib import Path

from credalearn._files import whole_file
from credalearn.app.facts import RunFacts, TrainingFacts
from credalearn.app.report.card_file import CARD, refuse_foreign_card
from credalearn.app.report.held_out import HeldOut
from credalearn.app.report.quality import Quality
from credalearn.app.report.render import render_markdown
from credalearn.app.run import Run
from credalearn.app.staging import MODEL
from credalearn.app.steps.export import OUTPUTS
from credalearn.app.steps.recalibrate import lost_group
from credalearn.guarantees.truths import LACKING, TRUTHS


def card_places(run: Run, onnx: Path) -> tuple[Path, Path]:
    """Where the model cards of an export go: next to the ONNX file, and to the model's folder.

    Raises:
        CredalError: If a file is there that credalearn did not write.
    """
    places = onnx.with_suffix(".md"), run.path / MODEL / CARD
    for path in places:
        refuse_foreign_card(path)
    return places


def write_card(run: Run, path: Path) -> None:
    """Write the model card of a run.

    Raises:
        CredalError: If another file is there, or it cannot be written.
    """
    refuse_foreign_card(path)
    text = card(run)
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def card(run: Run) -> str:
    """The model card of a run, Markdown."""
    sources: list[tuple[str, RunFacts | TrainingFacts]] = [("Data", run.facts)]
    if run.facts.recalibrated_from:
        sources = [("Training data", run.training), ("Calibration data", run.facts)]
    judged = run.predictions.filter(split="test")["truth"].is_not_null().any()
    return render_markdown(
        "card.md.j2",
        name=run.path.resolve().name,
        run=run,
        facts=run.facts,
        guarantee=run.guarantee,
        sets=run.sets,
        sources=sources,
        quality=Quality.of(HeldOut.of(run), None) if judged else None,
        truth=TRUTHS[run.truth],
        lacking=LACKING[run.truth],
        outputs=OUTPUTS,
        doubts=lost_group(run),
        left_out=_left_out,
    )


def _left_out(data: RunFacts | TrainingFacts) -> str:
    counts = data.annotations.left_out | data.inputs.left_out
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
