"""What ``run.json`` records about a run: frozen dataclasses, validated when they are read."""

from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Literal

from credalearn._formats import aligned, many, percent, shown

Kind = Literal["votes", "bounds", "counts", "probabilities"]
Answers = Literal["votes", "bounds", "probabilities"]
TruthSource = Literal["gold", "majority", "dawid-skene"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementFacts:
    """How much the annotators agree."""

    alpha: float | None  # Krippendorff's alpha; None where it is undefined
    unanimous: float | None  # share of items whose votes are all for one class
    tied: float | None  # share of items without a single most-voted class
    votes_per_item: tuple[float, float, float]  # fewest, median and most
    confused: tuple[tuple[str, str, float], ...] = ()  # and their share, most first


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFacts:
    """Where the annotations come from and what they contain."""

    kind: Kind  # votes, counts, probabilities or lower bounds
    path: str  # the export
    stated: bool = False  # whether labels are what people stated next to their votes
    later: tuple[str, ...] = ()  # exports of later rounds
    format: str = ""  # the recognized format, in words
    item: str | None = None  # column or field that names the items
    items: int = 0  # number of annotated items
    annotators: int | None = None  # number of annotators, where they are named
    votes: float | None = None  # number of votes, where there are any
    left_out: dict[str, int] = field(default_factory=dict)  # number of rows left out, by reason
    agreement: AgreementFacts | None = None  # agreement between annotators, where there are votes


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """What the model takes, and where the inputs of the items were read."""

    kind: Literal["features", "images", "texts"]
    path: str  # the first file of features or texts, or the folder of images
    later: tuple[str, ...] = ()  # further files of features
    item: str | None = None  # column that names the items in a table of features
    features: tuple[str, ...] = ()  # names of the features, in order
    categories: tuple[str, ...] = ()  # features whose values are texts
    texts: tuple[str, ...] = ()  # columns of the text, in order
    encoder: str = ""  # what turns texts or images into features, where that is not trained
    encoder_weights: str | None = None  # file of its weights, where one was given
    encoder_sha256: str = ""  # of its weights
    dropped: tuple[str, ...] = ()  # columns that were left out on request
    image_size: int | None = None  # height and width of the images, in pixels
    left_out: dict[str, int] = field(default_factory=dict)  # number of items left out, by reason
    unreadable: dict[str, str] = field(default_factory=dict)  # why, by image
    matched: dict[str, int] = field(default_factory=dict)  # images, by how found
    table: str | None = None  # the table of texts, groups, splits and gold labels

    @property
    def is_frozen(self) -> bool:
        """Whether items are encoded before the classifier sees them."""
        return self.encoder not in ("", "tfidf")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFacts:
    """Number of items in each split, and the columns that decided about it."""

    train: int = 0  # items that were trained on in this run
    calibration: int = 0  # items that guarantees are computed from
    test: int = 0  # items that only the report looks at
    group: str | None = None  # column whose items stay in one split
    gold: str | None = None  # column of the true class
    split: str | None = None  # column of the split

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
    calibrate: bool = False
    weights: str | None = None
    weights_sha256: str | None = None
    device: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """How well one model predicts the truth; probabilities are about what is right."""

    name: str
    accuracy: float
    log_likelihood: float  # mean per item, in nats
    ece: float  # expected calibration error
    accuracy_kept: float  # accuracy after deferring the fifth with the lowest top probability


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFacts:
    """The model next to simple rivals, on items that it was not trained on."""

    where: Literal["out of fold", "calibration"]
    items: int  # number of items that have a truth
    most_frequent: str  # the most frequent class
    rows: tuple[ComparisonRow, ...]  # the most frequent class first, this model last
    truth: TruthSource = "majority"  # what they are compared with

    @property
    def lines(self) -> list[str]:
        """A table for a terminal, and a warning where the model is not worth its name."""
        place = {"out of fold": "training items, out of fold", "calibration": "calibration items"}
        truth = "gold labels" if self.truth == "gold" else self.truth
        head = f"{self.items:,} {place[self.where]}, by {truth}"
        rows = [(head, "accuracy", "log-likelihood", "ECE", "accuracy, 20 % deferred")]
        for row in self.rows:
            each = (row.accuracy, row.ece, row.accuracy_kept)
            right, error, kept = (percent(share, decimals=1) for share in each)
            rows.append((row.name, right, f"{row.log_likelihood:.3f}", error, kept))
        return [*aligned(rows), *filter(None, [self.warning])]

    @property
    def warning(self) -> str:
        """What to say of a model that is not worth its name; empty otherwise."""
        first, last = self.rows[0], self.rows[-1]
        own, other = (percent(each.accuracy, decimals=1) for each in (last, first))
        gain = last.accuracy - first.accuracy
        if gain > 0 and last.log_likelihood > first.log_likelihood:
            return ""
        if gain > 2 * (0.5 / self.items) ** 0.5:  # two standard errors at most: not by chance
            return (
                f"This model is more often right than always answering {shown(self.most_frequent)},"
                f" {own} against {other}, but its probabilities are worse than the shares of the "
                "classes. To fix: pass --calibrate, or leave --method out."
            )
        than = f"better than always answering {shown(self.most_frequent)}"
        return (
            f"This model is {'no' if gain <= 0 else 'not reliably'} {than}: accuracy "
            f"{own} against {other}. The inputs may contain little information about the classes. "
            "To fix: add inputs that say more, or more items."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """SHA-256 of what the run consists of: the model's weights and the bytes of each table."""

    model: str
    annotations: str
    items: str
    predictions: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFacts:
    """Where and on what the model was trained, where that was another run."""

    path: str  # folder of that run
    created: str  # when it was made
    answers: Answers  # what its annotators gave
    annotations: AnnotationFacts  # its annotations
    inputs: InputFacts  # its inputs
    splits: SplitFacts  # its splits
    later_items: int  # number of its items that only later rounds have
    truth: TruthSource  # what its predictions were compared with


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The content of ``run.json``."""

    classes: tuple[str, ...]  # names of the classes
    created: str  # when the run was made, ISO 8601
    versions: dict[str, str]  # versions of credalearn, torch and Python
    annotations: AnnotationFacts  # where the annotations come from
    inputs: InputFacts  # what the model takes
    splits: SplitFacts  # number of items in each split
    truth: TruthSource  # what predictions are compared with
    options: TrainingOptions  # what the model was trained with
    sha256: Digests  # digests of the model and the tables
    later_items: int = 0  # number of items that only later rounds have; they are trained on alone
    label_diameter: float = 0.0  # mean diameter of the labels, 0 for points and 1 for everything
    loss_curve: tuple[float, ...] = ()  # mean loss of each epoch
    model: str = ""  # what the default learner chose, in words; empty for a method given by name
    temperatures: dict[str, float] = field(default_factory=dict)  # by meaning: truth and votes
    comparison: ComparisonFacts | None = None  # the model next to simple rivals
    seconds: float = 0.0  # duration of training
    recalibrated_from: TrainingFacts | None = None  # where another run trained the model
    leaks: dict[str, float] = field(default_factory=dict)  # accuracy by columns alone
    imported: str = ""  # whose probabilities these are; empty where the run has its own model

    @property
    def learner(self) -> str:
        """What was trained, in words."""
        used = self.options
        words = [used.method if used.backbone == "auto" else f"{used.backbone} with {used.method}"]
        words += [f"weights of {used.weights}"] if used.weights else []
        words += [used.augment] if used.augment != "none" else []
        words += ["calibrated"] if used.calibrate else []
        return self.model or ", ".join(words)

    @property
    def leak_warning(self) -> str:
        """A warning about columns that alone predict the class; empty without any."""
        if not self.leaks:
            return ""
        name, accuracy = max(self.leaks.items(), key=lambda each: each[1])
        more = f" and {many(len(self.leaks) - 1, 'more column')}" if len(self.leaks) > 1 else ""
        return (
            f"Column {shown(name)}{more}: it alone predicts the class of {percent(accuracy)} of "
            "held-out training items. If it was made from the labels, new items will not have it. "
            f"To fix: leave it out with --drop {quote(name)}, or ignore this if they have it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A guarantee that was asked for, whether or not it could be certified."""

    asked: dict[str, Any]  # the options that it depends on
    risk: float  # what it has spent: the probability of a wrong promise
    certified: bool  # whether something was promised
