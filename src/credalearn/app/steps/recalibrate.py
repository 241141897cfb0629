"""``credalearn recalibrate``: a trained model on newly annotated items, as a run of its own."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from credalearn._formats import listed, many
from credalearn._options import Options, keywords, same_option
from credalearn.app._join import gold_column
from credalearn.app._split import HELD_OUT
from credalearn.app.annotations.table import Annotations, gold_alone
from credalearn.app.column_names import same_field
from credalearn.app.dataset import Dataset, DatasetOptions
from credalearn.app.facts import SHARED, Printed, Request
from credalearn.app.item_stream import known_items
from credalearn.app.readers import read_votes
from credalearn.app.readers.options import ReaderOptions, refuse_reading
from credalearn.app.run import Run
from credalearn.app.run_files import write_run
from credalearn.app.staging import MODEL, recover, staged
from credalearn.app.steps.drift_check import Drift, drift_check
from credalearn.errors import CredalError


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutOptions(Options):
    """Options of items that nothing is trained on."""

    group: str | None = same_option(DatasetOptions, "group")
    gold: str | Any | None = same_option(DatasetOptions, "gold")
    split: str | None = same_option(
        DatasetOptions, "split", help="Column of the split: calibration or test."
    )
    item: str | None = same_option(DatasetOptions, "item")
    skip_missing: bool = same_option(DatasetOptions, "skip_missing")
    random_state: int = same_option(DatasetOptions, "random_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalibrateOptions(HeldOutOptions):
    """Options of ``recalibrate``, in Python and on the command line."""

    features: tuple[Path, ...] | Any = same_option(
        DatasetOptions,
        "features",
        help="Table or array of features, or of another model's probabilities; may be repeated.",
        flags=("--features", "--predictions"),
    )
    text: tuple[str, ...] = same_option(DatasetOptions, "text", show_default="as in training")
    images: Path | None = same_option(DatasetOptions, "images")
    table: Path | Any | None = same_option(DatasetOptions, "table")


@dataclass(frozen=True, slots=True, repr=False)
class Recalibration(Printed):
    """What ``recalibrate`` made."""

    old: Run  # the run whose model it is
    run: Run  # the same model with the new items as calibration and test items
    drift: Drift  # what the new items say about the old run
    shared: tuple[str, ...] = ()  # items with the same input as calibration or test items of old

    @property
    def facts(self) -> dict[str, Any]:
        """The same as :attr:`lines`, for programs."""
        return {
            "run": self.run.path,
            "left_out": self.run.facts.inputs.left_out,
            "lost_group": self.run.lost_group or None,
            "shared_items": self.shared,
            "drift": {**self.drift.facts, "outdated": self.drift.outdated},
            "splits": self.run.facts.splits,
            "inherited_requests": len(self.run.requests),
        }

    @property
    def lines(self) -> list[str]:
        """What the command prints, in at most eight lines."""
        facts, sets = self.run.facts, self.old.sets
        calibration, test = (facts.splits[name] for name in HELD_OUT)
        left_out = [f"{many(count, 'item')} {why}" for why, count in facts.inputs.left_out.items()]
        notes = [f"Left out: {', '.join(left_out)}."] if left_out else []
        if self.shared:
            count = " The requests of that run count here, too." if self.run.requests else ""
            notes.append(
                "Not new, with the same input as calibration or test items of "
                f"{self.old.path}: {many(len(self.shared), 'item')}, {listed(self.shared, 3)}."
                f"{count} To fix: leave them out of the votes."
            )
        more = "" if sets is None else f" --set-coverage {sets.coverage:g}"
        if sets is not None and sets.by is not None and not sets.edges:
            more += f" --stratum {shlex.quote(sets.by)}"
        more += " --again" if self.run.requests else ""
        outdated = f" {self.old.path} is marked as out of date." if self.drift.outdated else ""
        return [
            *filter(None, [" ".join(notes), self.run.lost_group]),
            *self.drift.lines,
            f"Wrote {self.run.path}: the same model with {calibration:,} calibration and "
            f"{many(test, 'test item')}; nothing was trained.{outdated}",
            f"Next: credalearn certify {self.run.path} {_as_before(self.old)}{more}",
        ]


def recalibrate(
    run: Run, votes: Any, folder: str | Path, options: RecalibrateOptions, reading: ReaderOptions
) -> Recalibration:
    """Put new items in place of calibration and test items; mark a run that they contradict."""
    output = Path(folder)
    recover(output)  # what a killed command left of a finished run
    if output.resolve().is_relative_to(run.path.resolve()):
        raise CredalError(f"{output} is in the run {run.path}. To fix: choose another folder.")
    if (output / "run.json").exists():
        raise CredalError(f"{output} contains a run. To fix: choose a new folder.")
    if votes is None:
        votes = gold_alone(options.gold, run.classes)
    if not isinstance(votes, Annotations):
        columns = filter(None, (options.group, gold_column(options.gold), options.split))
        used = (*(options.text or run.facts.inputs.texts), *columns)
        classes = reading.classes or run.classes
        reading = replace(reading, classes=classes, elsewhere=used)
        votes = read_votes(votes, reading, usual=run.facts.inputs.item)
    else:
        refuse_reading(reading)
    if votes.classes != run.classes:
        raise CredalError(
            f"{votes.source.path} has the classes {listed(votes.classes)}; those of {run.path} are "
            f"{listed(run.classes)}. To fix: read it with these classes."
        )
    data = _dataset(run, votes, options)
    data = data.split(HELD_OUT, without=_reasons(run, data))
    from credalearn.app.steps.train import data_facts, judged_by_skill, run_tables  # imports torch
    from credalearn.classifier import CredalClassifier

    if run.facts.truth == "dawid-skene":
        data = judged_by_skill(data)
    with staged(output) as partial:
        clf = run.predictor()
        if isinstance(clf, CredalClassifier):
            clf.save(partial / MODEL)
        trained = run.items.filter(split="train").select("item", "split", "group", "digest")
        same = ["options", "model", "imported", "label_diameter", "loss_curve", "temperatures"]
        same += ["comparison", "seconds"]
        facts = data_facts(data) | {name: getattr(run.facts, name) for name in same}
        facts["recalibrated_from"] = run.training
        facts["trained_in"] = run.facts.trained_in or str(run.path)
        tables = run_tables(data, clf)
        folds = run.predictions.filter(split="out-of-fold")
        for name, more in (("items", trained), ("predictions", folds)):  # of the model's training
            tables[name] = pl.concat([tables[name], more], how="diagonal")
        requests = _inherited(run, tables["items"])
        write_run(partial, facts, tables, model_sha256=run.facts.sha256["model"], requests=requests)
    new = Run.load(output)
    drift = drift_check(run, new)
    if drift.outdated is not None:
        run = run.keeping(outdated=drift.outdated)
    known = new.held_out()
    seen = known_items(run, "calibration", "test")(known["item"], known["digest"])
    return Recalibration(run, new, drift, tuple(known["item"].filter(seen)))


def _inherited(old: Run, items: pl.DataFrame) -> list[Request]:
    """The old requests, if some of the new calibration items have answered them."""
    items = items.filter(split="calibration")
    shared = sum(known_items(old, "calibration")(items["item"], items["digest"]))
    # Never the same request again: other items answer it.
    origin = dict(zip(SHARED, (str(old.path), shared), strict=True))
    return [replace(each, asked=each.asked | origin) for each in old.requests] if shared else []


def _dataset(run: Run, annotations: Annotations, options: RecalibrateOptions) -> Dataset:
    """The new items, with inputs as the model takes them."""
    inputs, given = run.facts.inputs, keywords(options)
    no_features = isinstance(options.features, tuple | list) and not options.features
    missing = {"images": options.images is None, "features": no_features}
    if missing.get(inputs.kind):
        raise CredalError(f"{run.path} takes {inputs.kind}. To fix: pass {inputs.kind}=.")
    if inputs.kind == "features":
        given |= {"names": inputs.features, "categories": inputs.categories}
        given |= {"called": "probabilities"} if run.facts.imported else {}
    else:
        given |= {"encoder": inputs.encoder or None, "weights": inputs.encoder_weights}
        given |= {"image_size": inputs.image_size} if inputs.image_size else {}
        given |= {"text": options.text or inputs.texts} if inputs.kind == "texts" else {}
    return Dataset(annotations, **given)


def _reasons(run: Run, data: Dataset) -> list[str]:
    """Why each item may not be calibrated on; "" where it may."""
    trained = known_items(run, "train")(data.items, data.digests)
    together = run.training.group
    groups = set(run.items.filter(split="train")["group"].drop_nulls())
    reasons = ["that the model was trained on" if each else "" for each in trained]
    if data.groups is not None and same_field(data.options.group, together):
        of_group = f"whose {together} the model was trained on"
        reasons = [
            why or (of_group if group in groups else "")
            for why, group in zip(reasons, data.groups, strict=True)
        ]
    return reasons


def _as_before(run: Run) -> str:
    """The options of ``certify`` that ask for what the run promises."""
    if run.guarantee is not None and run.guarantee.method == "capacity":
        return f"--capacity {1 - run.guarantee.coverage:.2g}"
    kept = [each.words for each in run.requests if each.certified]
    return kept[-1] if kept else "--max-error 0.1"
