"""What ``run.json`` records about a run: frozen dataclasses, validated when they are read."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from credalearn.errors import CredalError

Kind = Literal["votes", "bounds", "counts", "probabilities"]
Answers = Literal["votes", "bounds", "probabilities"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementFacts:
    """How much the annotators agree.

    Args:
        alpha: Krippendorff's alpha; None where it is undefined.
        unanimous: Share of items whose votes are all for one class.
        tied: Share of items without a single most-voted class.
        votes_per_item: Fewest, median and most.
        confused: Two classes and their share of all disagreement, the most confused first.
    """

    alpha: float | None
    unanimous: float | None
    tied: float | None
    votes_per_item: tuple[float, float, float]
    confused: tuple[tuple[str, str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFacts:
    """Where the annotations come from and what they contain.

    Args:
        kind: Votes, counts, probabilities or lower bounds.
        path: The export.
        later: Exports of later rounds.
        format: The recognized format, in words.
        item: Column or field that names the items.
        items: Number of annotated items.
        annotators: Number of annotators, where they are named.
        votes: Number of votes, where there are any.
        left_out: Number of rows left out, by reason.
        agreement: Agreement between annotators, where there are votes.
    """

    kind: Kind
    path: str
    later: tuple[str, ...] = ()
    format: str = ""
    item: str | None = None
    items: int = 0
    annotators: int | None = None
    votes: float | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    agreement: AgreementFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """What the model takes, and where the inputs of the items were read.

    Args:
        kind: Features or images.
        path: The first file of features, or the folder of images.
        later: Further files of features.
        item: Column that names the items in a table of features.
        features: Names of the features, in order.
        dropped: Columns that were left out on request.
        image_size: Height and width of the images, in pixels.
        left_out: Number of items left out, by reason.
        unreadable: Why an image could not be read, by item.
        matched: Number of images found, by what they were found by.
        table: The table of groups, splits and gold labels of images.
    """

    kind: Literal["features", "images"]
    path: str
    later: tuple[str, ...] = ()
    item: str | None = None
    features: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    image_size: int | None = None
    left_out: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    matched: dict[str, int] = field(default_factory=dict)
    table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFacts:
    """Number of items in each split, and the columns that decided about it.

    Args:
        train: Items that were trained on in this run.
        calibration: Items that guarantees are computed from.
        test: Items that only the report looks at.
        group: Column whose items stay in one split.
        gold: Column of the true class.
        split: Column of the split.
    """

    train: int = 0
    calibration: int = 0
    test: int = 0
    group: str | None = None
    gold: str | None = None
    split: str | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Number of items by split, of splits that have any."""
        found = {"train": self.train, "calibration": self.calibration, "test": self.test}
        return {name: number for name, number in found.items() if number}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """The options that the model was trained with; see ``TrainOptions`` for what they mean."""

    labels: str
    s: float
    confidence: float
    skill: str
    method: str
    backbone: str
    epochs: int
    learning_rate: float
    batch_size: int
    augment: str
    random_state: int
    weights: str | None = None
    weights_sha256: str | None = None
    device: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """SHA-256 of what the run consists of: the model's weights and the bytes of each table."""

    model: str
    annotations: str
    items: str
    predictions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFacts:
    """Where and on what the model was trained, where that was another run.

    Args:
        path: Folder of that run.
        created: When it was made.
        answers: What its annotators gave.
        annotations: Its annotations.
        inputs: Its inputs.
        splits: Its splits.
        later_items: Number of its items that only later rounds have.
        truth: What its predictions were compared with.
    """

    path: str
    created: str
    answers: Answers
    annotations: AnnotationFacts
    inputs: InputFacts
    splits: SplitFacts
    later_items: int
    truth: Literal["gold", "majority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The content of ``run.json``.

    Args:
        classes: Names of the classes.
        created: When the run was made, ISO 8601.
        versions: Versions of credalearn, torch and Python.
        annotations: Where the annotations come from.
        inputs: What the model takes.
        splits: Number of items in each split.
        later_items: Number of items that only later rounds have; they are trained on alone.
        truth: Whether predictions are compared with gold labels or with the annotations.
        options: What the model was trained with.
        label_diameter: Mean diameter of the labels, 0 for points and 1 for everything.
        loss_curve: Mean loss of each epoch.
        seconds: Duration of the training.
        sha256: Digests of the model and the tables.
        recalibrated_from: The run that trained the model, where it was another.
    """

    classes: tuple[str, ...]
    created: str
    versions: dict[str, str]
    annotations: AnnotationFacts
    inputs: InputFacts
    splits: SplitFacts
    truth: Literal["gold", "majority"]
    options: TrainingOptions
    sha256: Digests
    later_items: int = 0
    label_diameter: float = 0.0
    loss_curve: tuple[float, ...] = ()
    seconds: float = 0.0
    recalibrated_from: TrainingFacts | None = None

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.options.method

    @property
    def label_rule(self) -> str:
        """Name of the rule that turned votes into labels."""
        return self.options.labels


def to_json(record: Any, **more: object) -> str:
    """A dataclass as JSON text, with further fields first."""
    content = {**more, **asdict(record)}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def parse_json(text: bytes, form: type[_T], path: Path, *, fix: str = "train again") -> _T:
    """JSON text as an object of this type.

    Raises:
        CredalError: If it is no JSON, or a field is missing or has another type.
    """
    try:
        return msgspec.json.decode(text, type=form)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        where = f", field {place.rstrip('`')}" if place else ""
        raise CredalError(f"{path}{where}: {_small(what)}. To fix: {fix}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CredalError(f"{path} is damaged: {error}. To fix: {fix}.") from error


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]
