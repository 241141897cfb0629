"""The model card: what a model is, was trained on, guarantees and does not guarantee."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from credalearn.app.facts import RunFacts
from credalearn.app.report.baseline import baseline
from credalearn.app.report.evaluation import HeldOut
from credalearn.app.report.render import environment
from credalearn.app.run import Run
from credalearn.errors import CredalError
from credalearn.guarantees._truths import LACKING, TRUTHS
from credalearn.guarantees.guarantee import SCORE_WORDS

_MARK = b"<!-- model card by credalearn -->"  # the first line of the template


def check_card(path: Path) -> None:
    """Refuse to replace a file that credalearn did not write."""
    if path.exists() and not (path.is_file() and path.read_bytes().startswith(_MARK)):
        raise CredalError(
            f"{path} exists and is not a model card of credalearn. To fix: rename it, or choose "
            "another file name."
        )


def write_card(
    run: Run, path: Path, outputs: Mapping[str, tuple[str, str]], encoded: Sequence[str] = ()
) -> None:
    """Write the model card of a run."""
    check_card(path)
    text = card(run, outputs, encoded)
    with run.writing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def card(run: Run, outputs: Mapping[str, tuple[str, str]], encoded: Sequence[str] = ()) -> str:
    """The model card of a run, Markdown; ``encoded`` are the features made of a table's columns."""
    sources: list[tuple[str, RunFacts]] = [("Data", run.facts)]
    if run.facts.recalibrated_from:
        sources = [("Training data", run.training), ("Calibration data", run.facts)]
    judged = run.predictions.filter(split="test")["truth"].is_not_null().any()
    return (
        environment(html=False)
        .get_template("card.md.j2")
        .render(
            run=run,
            facts=run.facts,
            guarantee=run.guarantee,
            sets=run.sets,
            score_words=SCORE_WORDS[run.deferral_score],
            rival=baseline(run, run.guarantee) if run.guarantee else None,
            sources=sources,
            tested=HeldOut.of(run) if judged else None,
            truth=TRUTHS[run.truth],
            lacking=LACKING[run.truth],
            outputs=outputs,
            encoded=encoded,
            left_out=lambda data: ", ".join(
                f"{count:,} {reason}"
                for reason, count in (data.annotations.left_out | data.inputs.left_out).items()
            ),
        )
    )
