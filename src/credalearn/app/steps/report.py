"""The ``report`` verb: a one-page HTML report about a run."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import polars as pl

from credalearn import __version__
from credalearn._formats import listed
from credalearn._options import Options, option
from credalearn.app.annotations.dawid_skene import dawid_skene
from credalearn.app.annotations.table import Annotations, Origin
from credalearn.app.facts import Printed, RunFacts
from credalearn.app.labels import make_labels
from credalearn.app.report.card import write_card
from credalearn.app.report.evaluation import HeldOut
from credalearn.app.report.page import build_page
from credalearn.app.report.render import render_page
from credalearn.app.run import Run
from credalearn.app.steps.voted_items import voted_items
from credalearn.app.table_writer import check_output
from credalearn.errors import CredalError
from credalearn.guarantees._truths import HAVING, LACKING, TRUTHS
from credalearn.labels import PROMISING, VoteRule
from credalearn.labels.votes import USING
from credalearn.theory import RiskProfile, risk_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """Options of ``report``, in Python and on the command line."""

    images: Path | None = option(
        None, "Folder of the items' images.", show_default="the folder used for training"
    )
    output: Path | None = option(
        None, "HTML file to write.", show_default="RUN/report.html", flags=("--output", "-o")
    )
    title: str | None = option(None, "Heading of the page.")
    items: bool = option(True, "Show the least certain items, with their names and images.")


@dataclass(frozen=True, slots=True, repr=False)
class ReportResult(Printed):
    """A written report."""

    path: Path  # the HTML file
    missing_images: Path | None = None  # the folder used for training, if it no longer exists
    without_sets: str = ""  # why the page does not show certified sets

    @property
    def lines(self) -> tuple[str, ...]:
        """What the command prints."""
        notes = [f"The page does not show the widened sets: {self.without_sets}."]
        notes = notes if self.without_sets else []
        if self.missing_images is not None:
            missing = f"{self.missing_images} no longer exists, so the page has no pictures"
            notes.append(f"{missing}. To fix: pass images=.")
        return (*notes, f"Wrote {self.path}: open it in a browser.")


def report(
    run: Run, options: ReportOptions | None = None, others: Sequence[Run] = ()
) -> ReportResult:
    """Write the page of a run."""
    options = options or ReportOptions()
    for each in others:
        if each.classes != run.classes:
            raise CredalError(
                f"runs on one page must have the same classes; {run.path} has "
                f"{listed(run.classes)}, {each.path} has {listed(each.classes)}. To fix: write one "
                "page for each."
            )
    path = options.output or run.path / "report.html"
    path = check_output(path, run, *others, suffixes=(".html", ".htm"))
    held_out = HeldOut.of(run)
    risk = label_risk(run, held_out)
    if not options.items and risk.why_not:  # which may name an item
        risk = replace(risk, why_not="the labels of the test items allow none.")
    images, missing = options.images, None
    if options.items and images is None and run.takes_images:
        images = Path(run.facts.inputs.path)
        images, missing = (images, None) if images.is_dir() else (None, images)
    sets, without = None, ""
    if run.sets is not None:
        from credalearn.app.steps.set_coverage import widened

        try:
            sets = widened(run, run.sets, voted_items(run, "test"))
        except CredalError as error:  # the column of their strata is not at hand
            without = error.reason
    page = build_page(
        run, held_out, widened=sets, others=others, images=images, items=options.items
    )
    text = render_page(
        page=page,
        title=options.title or f"Predict or defer: {run.path.resolve().name}",
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M %Z"),
        risk=risk,
        wide=sets,
        line=None if risk.profile is None else risk_line(risk.profile, risk.guess),
        run=run,
        facts=run.facts,
        options={} if run.facts.imported else _used_options(run.facts),
        run_path=shlex.quote(str(run.path)),
        promising=PROMISING,
        truth=TRUTHS[run.truth],
        truths=TRUTHS,
        having=HAVING[run.truth],
        lacking=LACKING[run.truth],
        version=__version__,
    )
    with run.writing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    if run.facts.imported:  # a trained run gets its card with the exported model
        write_card(run, run.path / "MODEL_CARD.md", {})
    return ReportResult(path, missing, without)


def _used_options(facts: RunFacts) -> dict[str, Any]:
    """The options of training that the model depends on."""
    unused = {name for name, rules in USING.items() if facts.options["labels"] not in rules}
    if facts.model:  # selected, with settings of its own
        unused |= {"epochs", "learning_rate", "batch_size"}
    return {name: value for name, value in facts.options.items() if name not in unused}


def risk_line(profile: RiskProfile, guess: float) -> dict[str, Any]:
    """Places on a line from 0, in percent of its length; an infinite risk lies at its end."""
    risks = (profile.optimistic, profile.pessimistic, guess)
    ends = (*profile.optimistic_interval, *profile.pessimistic_interval)
    scale = 110 / 100 * max(each for each in (*risks, *ends) if math.isfinite(each))
    best, worst, guess, *places = (round(100 * min(risk / scale, 1), 2) for risk in (*risks, *ends))
    worst_ends = None if math.isinf(profile.pessimistic) else places[2:]
    both = {"best_ends": places[:2], "worst_ends": worst_ends}
    return {"best": best, "worst": worst, "guess": guess, **both}


@dataclass(frozen=True, slots=True)
class LabelRisk:
    """Between which two values the risk lies if the labels contain the truth."""

    rule: str  # the rule that turns votes into labels; empty where people stated bounds
    profile: RiskProfile | None  # the two risks; None where no labels could be made
    why_not: str  # why no labels could be made
    skilled: bool  # whether votes were weighted by a model of the annotators
    confidence: float  # confidence level of the rules that have one
    guess: float  # risk of the uniform distribution, log K

    @property
    def promised(self) -> bool:
        """Whether the rule guarantees that a label contains the item's true distribution."""
        return self.rule in PROMISING and not self.skilled


def annotations_of(run: Run) -> Annotations:
    """The annotations of a run, as training read them."""
    known, table = run.facts.annotations, run.annotations
    items = tuple(table["item"].cast(pl.String).unique(maintain_order=True))
    source = Origin(Path(known.path), known.kind, known.format)
    return Annotations(known.kind, items, run.classes, table, source)


def label_risk(run: Run, held_out: HeldOut) -> LabelRisk:
    """Label the test items by the run's own rule, and compute the risk profile."""
    said, options = annotations_of(run), run.facts.options
    stated = said.contains in ("bounds", "statements")
    skilled = not stated and options["skill"] != "equal"
    profile, posterior, why_not = None, None, ""
    try:
        if not held_out.votes.any():
            raise CredalError("no test item has votes.")
        if skilled:
            posterior = dawid_skene(said, held_out.items)
        rule = cast(VoteRule, options["labels"])  # a name that is not a rule is refused there
        labels = make_labels(
            said,
            held_out.votes,
            rule,
            s=options["s"],
            confidence=options["confidence"],
            posterior=posterior,
            items=held_out.items,
        )
        profile = risk_profile(held_out.probs, labels)
    except CredalError as error:
        why_not = str(error)
    return LabelRisk(
        rule="" if stated else options["labels"],
        profile=profile,
        why_not=why_not,
        skilled=skilled,
        confidence=options["confidence"],
        guess=math.log(len(held_out.classes)),
    )
