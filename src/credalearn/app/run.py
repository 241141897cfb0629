"""A finished run: a model with its predictions, loaded once from its folder into a record.

``run.json`` records what was asked and found, with the SHA-256 of the other files; ``model/`` is
what :meth:`CredalClassifier.save` writes; ``annotations.parquet`` the votes as they were read;
``items.parquet`` one row per item; ``predictions.parquet`` one row per item that was not trained
on; ``guarantee.json`` and ``sets.json`` what ``certify`` computed from these predictions;
``requests.json`` every guarantee that was asked for; ``drift.json`` why the run is out of date.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import polars as pl

from credalearn._files import whole_file, writing
from credalearn._options import all_options_of, options_of
from credalearn.app.column_names import same_field
from credalearn.app.facts import Request, RunFacts
from credalearn.app.run_files import (
    ADDED,
    MADE_FROM,
    Stamps,
    check_there,
    foreign,
    read_run,
    stamp,
    stamps_of,
    to_json,
)
from credalearn.app.staging import MODEL, locked
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.dataset import Dataset
    from credalearn.app.steps.certify import Certificate
    from credalearn.app.steps.defer import Deferred
    from credalearn.app.steps.export import Exported
    from credalearn.app.steps.import_predictions import GivenProbabilities
    from credalearn.app.steps.predict import Decisions
    from credalearn.app.steps.recalibrate import Recalibration
    from credalearn.app.steps.report import ReportResult
    from credalearn.classifier import CredalClassifier
    from credalearn.conformal import Inflation
    from credalearn.guarantees import DeferralScore, Guarantee

    Predictor: TypeAlias = CredalClassifier | GivenProbabilities

OUT_OF_FOLD = "out-of-fold"  # in place of the split, for predictions of training items


@dataclass(slots=True, eq=False)
class Run:
    """A finished run, as :meth:`load` reads it. Of its verbs, only :meth:`certify` changes it.

    The keywords of a verb are the options of the command of the same name: those of
    ``run.defer`` are the fields of ``DeferOptions``, as ``credalearn defer --help`` lists them.

    Args:
        path: The folder.
        facts: What was asked and found.
        annotations: The canonical table of annotations.
        items: One row per item: ``item``, ``split``, ``group``, ``truth``, ``digest`` (of the
            input) and the votes ``n:CLASS``. Of items that the model was trained on in an earlier
            run only ``item``, ``split``, ``group`` and ``digest`` are known.
        predictions: One row per item of calibration and test, and of training items as the folds
            of the selection predict them (split ``out-of-fold``): ``item``, ``split``, ``label``,
            ``probability``, ``lower`` and ``upper`` of that label, ``score`` (1 − lower
            probability), ``mmi``, ``top_probability`` (as an uncertainty), ``truth`` and ``wrong``
            (null on ties), ``disagreement`` (share of votes for other labels), and per class
            ``p:CLASS``, ``lower:CLASS``, ``upper:CLASS`` and, where the set has vertices,
            ``v0:CLASS``, ``v1:CLASS``, … (of POCC the pessimist and the optimist).
        guarantee: What ``certify`` promises; None before.
        sets: How far ``certify`` widens the predicted sets; None before.
        requests: Every guarantee that was asked for on these calibration items.
        outdated: Why the guarantee no longer holds, as ``recalibrate`` found; None if it did not.

    Example:
        >>> import tempfile
        >>> import credalearn as cl
        >>> items = pl.DataFrame({"item": map(str, range(50)), "size": range(50)})
        >>> votes = items.select("item", label=pl.Series(["cat"] * 25 + ["dog"] * 25))
        >>> data = cl.Dataset(cl.read_annotations(votes), features=items)
        >>> run = cl.Run.train(data, Path(tempfile.mkdtemp()) / "run")
        >>> run.facts.splits, run.predictions.columns[:3]
        ({'train': 30, 'calibration': 10, 'test': 10}, ['item', 'split', 'label'])
    """

    path: Path
    facts: RunFacts
    annotations: pl.DataFrame
    items: pl.DataFrame
    predictions: pl.DataFrame
    guarantee: "Guarantee | None" = None
    sets: "Inflation | None" = None
    requests: tuple[Request, ...] = ()
    outdated: str | None = None
    stamps: Stamps = field(default_factory=dict, repr=False)  # to see if a file is replaced

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read the run in ``folder``: each file once, without its model."""
        return cls(Path(folder), **read_run(Path(folder)))

    @classmethod
    def train(cls, data: "Dataset", folder: str | Path, **options: Any) -> "Run":
        """Train on a dataset and write the run to ``folder``; called again, it resumes."""
        from credalearn.app.steps.train import TrainOptions, train

        return train(data, folder, options_of("Run.train", TrainOptions, options))

    @classmethod
    def from_predictions(cls, probs: Any, votes: Any, folder: str | Path, **options: Any) -> "Run":
        """Write a run of another model's probabilities, to certify, defer and report them.

        Args:
            probs: File or table with a column of items and one per class; or an array (N, K) in the
                order of the items and classes of the annotations.
            votes: A file or table of annotations, ``Annotations`` or a ``Dataset``; None with gold
                labels.
            folder: Folder of the run.
            options: Keywords of ``ImportOptions``, and of ``read_annotations`` for the votes.
        """
        from credalearn.app.readers.options import ReaderOptions
        from credalearn.app.steps.import_predictions import ImportOptions, import_predictions

        kinds = (ImportOptions, ReaderOptions)
        chosen = all_options_of("Run.from_predictions", kinds, options)
        return import_predictions(probs, votes, folder, *chosen)

    def __repr__(self) -> str:
        splits = ", ".join(f"{count:,} {name}" for name, count in self.facts.splits.items())
        return f"Run({str(self.path)!r}, {splits})"

    def predictor(self) -> "Predictor":
        """What predicts items: the model, or for an imported run their given probabilities."""
        if not self.facts.imported:
            return self.load_model()
        from credalearn.app.steps.import_predictions import GivenProbabilities

        return GivenProbabilities()

    def load_model(self) -> "CredalClassifier":
        """The trained classifier."""
        from credalearn._load import load

        if self.facts.imported:
            raise CredalError(
                f"{self.path} was imported: it has the probabilities of {self.facts.imported} and "
                "no model. To fix: use the model that they come from."
            )
        try:
            clf = load(self.path / MODEL)
            found = (clf.weights_sha256_, clf.classes_.tolist())
            if found != (self.facts.sha256["model"], list(self.classes)):
                raise foreign(self.path / MODEL, "train again")
        except CredalError as error:
            check_there(self.path, self.stamps)
            if str(self.path) in str(error):
                raise
            raise CredalError(f"{self.path / MODEL}: {error}") from error
        return clf

    def certify(self, **options: Any) -> "Certificate":
        """Choose a threshold with a guarantee, or widen the sets; the run then has the result."""
        from credalearn.app.steps.certify import certify
        from credalearn.app.steps.certify_options import CertifyOptions

        check_there(self.path, self.stamps)
        # A failed request, and one through another record, counts as well.
        run = self if stamps_of(self.path) == self.stamps else Run.load(self.path)
        try:
            found = certify(run, options_of("run.certify", CertifyOptions, options))
        except CredalError:
            with suppress(CredalError):
                known = Run.load(self.path)  # it counts the request all the same
                if known.stamps["run.json"] == self.stamps.get("run.json"):
                    self._take(known)
            raise
        self._take(found.run)  # so that run.predict() can be called next
        return found

    def _take(self, other: "Run") -> None:
        """What another reading of this run knows of its guarantee."""
        self.guarantee, self.sets, self.requests = other.guarantee, other.sets, other.requests
        self.outdated, self.stamps = other.outdated, other.stamps

    def predict(self, data: Any, output: str | Path | None = None, **options: Any) -> "Decisions":
        """A label, its bounds and a decision for each item; as a frame, or written to a file.

        Args:
            data: Path of a table or array of features, a pandas or polars table, an array, or a
                folder of images.
            output: CSV, TSV, Parquet or JSON Lines file; with it, memory stays bounded.
            options: Keywords of ``PredictOptions``.
        """
        from credalearn.app.steps.predict import PredictOptions, predict

        return predict(self, data, output, options_of("run.predict", PredictOptions, options))

    def defer(self, data: Any, output: str | Path, **options: Any) -> "Deferred":
        """Write the deferred items, least certain first, as Label Studio tasks or CSV."""
        from credalearn.app.steps.defer import DeferOptions, defer

        return defer(self, data, output, options_of("run.defer", DeferOptions, options))

    def recalibrate(self, votes: Any, folder: str | Path, **options: Any) -> "Recalibration":
        """Check the model on newly annotated items, and calibrate it on them in a new run.

        The new probabilities of an imported run are its ``features``. Keywords of
        ``read_annotations`` are for the votes, where they are a file or a table.
        """
        from credalearn.app.readers.options import ReaderOptions
        from credalearn.app.steps.recalibrate import RecalibrateOptions, recalibrate

        kinds = (RecalibrateOptions, ReaderOptions)
        return recalibrate(self, votes, folder, *all_options_of("run.recalibrate", kinds, options))

    def report(self, *others: "Run", **options: Any) -> "ReportResult":
        """Write a one-page HTML report about the run, compared with others."""
        from credalearn.app.steps.report import ReportOptions, report

        return report(self, options_of("run.report", ReportOptions, options), others)

    def export(self, **options: Any) -> "Exported":
        """Write the model as ONNX, with its model card."""
        from credalearn.app.steps.export import ExportOptions, export

        return export(self, options_of("run.export", ExportOptions, options))

    def keeping(self, **values: Any) -> Self:
        """The run with a new guarantee, sets, requests or reason to be outdated, each in a file."""
        stamps = dict(self.stamps)
        for name, value in values.items():
            file = ADDED[name]
            content = {name: [asdict(each) for each in value] if name == "requests" else value}
            if name in ("guarantee", "sets"):
                content = json.loads(value.to_json())
            other = "copy the run to a folder of your own"
            with self.writing(self.path / file, other=other) as partial:
                # Under the lock: of two processes, the second must not count as the first request.
                if name == "requests" and stamp(self.path / file) != stamps.get(file, ()):
                    raise CredalError(
                        f"{self.path} was certified by another process meanwhile. To fix: run the "
                        "command again."
                    )
                content = {MADE_FROM: self.facts.sha256["predictions"], **content}
                partial.write_text(to_json(content), encoding="utf-8")
                stamps[file] = stamp(partial)  # the same after it is moved
        return replace(self, **values, stamps=stamps)

    @contextmanager
    def writing(self, path: Path, *, other: str = "name another file") -> Iterator[Path]:
        """As ``whole_file``; into the run's folder only while no other process changes it."""
        whole, folder = (Path(os.path.normpath(each.absolute())) for each in (path, self.path))
        inside = whole.is_relative_to(folder)
        with ExitStack() as stack:
            if inside:
                with writing(path, other=other):
                    stack.enter_context(locked(self.path, self.path))
                check_there(self.path, self.stamps)
            within = self.path if inside else None
            yield stack.enter_context(whole_file(path, other=other, within=within))

    def held_out(self, *splits: str, score: "DeferralScore | None" = None) -> pl.DataFrame:
        """Predictions of these splits, or of calibration and test, with what is known of each item.

        ``group``, ``digest`` and the votes come from ``items``; ``score`` is the one that items are
        deferred by, and ``lower_probability`` is 1 − lower probability.
        """
        votes = [f"n:{name}" for name in self.classes]
        # A recalibrated run may have trained items of the same names.
        known = self.items.select("item", "group", "digest", *votes, part=pl.col("split"))
        part = pl.col("split").replace(OUT_OF_FOLD, "train")
        found = self.predictions.filter(pl.col("split").is_in(splits or ("calibration", "test")))
        found = found.with_columns(part=part, lower_probability=pl.col("score"))
        found = found.join(known, on=["item", "part"], how="left", maintain_order="left").drop(
            "part"
        )
        return found.with_columns(
            pl.col(votes).cast(pl.Float64).fill_null(0).fill_nan(0),
            score=pl.col((score or self.deferral_score).replace("-", "_")),
        )

    def test_scores(self) -> dict[str, float]:
        """On the test items, cross-entropy to the votes and micro-F1; empty without votes."""
        from credalearn.app.steps.voted_items import soft_scores

        return soft_scores(self)

    @property
    def deferral_score(self) -> "DeferralScore":
        """Score that items are deferred by: the guarantee's, or the better one out of fold."""
        if self.guarantee is not None and self.guarantee.score is not None:
            return self.guarantee.score
        if self.facts.imported:
            return "top-probability"
        known = self.predictions.filter(pl.col("wrong").is_not_null(), split=OUT_OF_FOLD)
        if known.is_empty():
            return "lower-probability"
        from credalearn.guarantees import better_score

        lower, top, wrong = known.select("score", "top_probability", "wrong").to_dict().values()
        return better_score({"lower-probability": lower, "top-probability": top}, wrong.to_numpy())

    @property
    def warnings(self) -> list[str]:
        """What every output of the run must say first."""
        return [] if self.outdated is None else [f"Out of date: {self.outdated}"]

    @property
    def certify_command(self) -> str:
        """How to get a guarantee, or another one than those that were asked for."""
        asked = "; ".join(each.words for each in self.requests)
        again = f"ERROR --again (asked before: {asked}), or recalibrate on new items"
        return f"credalearn certify {quote(str(self.path))} --max-error {again if asked else 0.1}"

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the columns."""
        return self.facts.classes

    @property
    def takes_images(self) -> bool:
        """Whether the model takes images; else features."""
        return self.facts.inputs.kind == "images"

    @property
    def texts(self) -> dict[str, str]:
        """The start of each held-out item's text, where the model takes texts."""
        known = self.items.filter(pl.col("split") != "train")
        return dict(known.select("item", "text").iter_rows()) if "text" in known.columns else {}

    @property
    def truth(self) -> Literal["gold", "majority", "dawid-skene", "bounds", "probabilities"]:
        """What predictions are compared with."""
        if self.facts.truth != "majority":
            return self.facts.truth
        answers = self.facts.annotations.answers
        return "majority" if answers == "votes" else answers

    @property
    def lost_group(self) -> str:
        """That the training had groups which the calibration does not know; empty otherwise."""
        group = self.training.group
        if group is None or same_field(group, self.facts.group):
            return ""
        return (
            f"The model was trained with groups ({group}) and recalibrated without: new items may "
            "belong to groups that it was trained on."
        )

    @property
    def training(self) -> RunFacts:
        """The facts of the run that trained the model: this one, or the one it is from."""
        return self.facts.recalibrated_from or self.facts
