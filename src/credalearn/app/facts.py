"""What ``run.json`` records about a run: frozen dataclasses, validated when they are read."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any, Literal

from credalearn._formats import aligned, many, percent, shown

Kind = Literal["votes", "bounds", "counts", "probabilities"]
Answers = Literal["votes", "bounds", "probabilities"]
TruthSource = Literal["gold", "majority", "dawid-skene"]
# Mean diameter of labels. POCC on Clopper–Pearson labels of CIFAR-10H's features: at .84 (three
# votes) chance, at .68 (five) 20 points below softmax, at .46 (ten) level with it.
_MUCH_OPEN = 0.6
SHARED = ("run", "shared_items")  # in a request: the run that made it, and items that answered it


class Printed:
    """A result that shows itself as its command prints it."""

    __slots__ = ()

    @property
    @abstractmethod
    def lines(self) -> Sequence[str]:
        """What the command prints."""

    def __repr__(self) -> str:
        return "\n".join(self.lines)


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
    alpha: float | None = None  # Krippendorff's alpha; None where it is undefined
    several: int = 0  # number of items with two votes or more
    unvoted: int = 0  # number of items without a vote
    unanimous: float | None = None  # share of the several whose votes are all for one class
    tied: float | None = None  # share of the several without a single most-voted class
    votes_per_item: tuple[float, float, float] | None = None  # fewest, median and most
    confused: tuple[tuple[str, str, float], ...] = ()  # and their share, most first

    @property
    def answers(self) -> Answers:
        """What people gave: votes (or their number), lower bounds, or probabilities."""
        return "votes" if self.kind == "counts" else self.kind

    @property
    def of_several(self) -> str:
        """Which items unanimity and ties are about; empty where it is all of them."""
        known = self.several not in (0, self.items)
        return f"of the {many(self.several, 'item')} with two votes or more" if known else ""


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
    empty: int = 0  # number of items whose text is empty
    encoder: str = ""  # what turns texts or images into features, where that is not trained
    encoder_weights: str | None = None  # file of its weights, where one was given
    encoder_sha256: str = ""  # of its weights
    dropped: tuple[str, ...] = ()  # columns that were left out on request
    image_size: int | None = None  # height and width of the images, in pixels
    left_out: dict[str, int] = field(default_factory=dict)  # number of items left out, by reason
    unreadable: dict[str, str] = field(default_factory=dict)  # why, by image
    table: str | None = None  # the table of texts, groups, splits and gold labels

    @property
    def is_frozen(self) -> bool:
        """Whether items are encoded before the classifier sees them."""
        return self.encoder not in ("", "tfidf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFacts:
    """The model next to simple rivals, on items that it was not trained on."""

    where: Literal["out of fold", "calibration"]
    items: int  # number of items that have a truth
    most_frequent: str  # the most frequent class
    # Accuracy, log_likelihood (mean per item, in nats), ece, and accuracy_kept after deferring the
    # fifth with the lowest top probability; the most frequent class first, this model last.
    models: dict[str, dict[str, float]]
    truth: TruthSource = "majority"  # what they are compared with

    @property
    def lines(self) -> list[str]:
        """A table for a terminal, and a warning where the model is not worth its name."""
        place = {"out of fold": "training items, out of fold", "calibration": "calibration items"}
        truth = "gold labels" if self.truth == "gold" else self.truth
        head = f"{self.items:,} {place[self.where]}, by {truth}"
        rows = [(head, "accuracy", "log-likelihood", "ECE", "accuracy, 20 % deferred")]
        for name, found in self.models.items():
            each = (found["accuracy"], found["ece"], found["accuracy_kept"])
            right, error, kept = (percent(share, decimals=1) for share in each)
            rows.append((name, right, f"{found['log_likelihood']:.3f}", error, kept))
        return [*aligned(rows), *filter(None, [self.warning])]

    @property
    def warning(self) -> str:
        """What to say of a model that is not worth its name; empty otherwise."""
        first, *_, last = self.models.values()
        own, other = (percent(each["accuracy"], decimals=1) for each in (last, first))
        gain = last["accuracy"] - first["accuracy"]
        if gain > 0 and last["log_likelihood"] > first["log_likelihood"]:
            return ""
        if gain > 2 * (0.5 / self.items) ** 0.5:  # two standard errors at most: not by chance
            return (
                f"This model is more often right than always answering {shown(self.most_frequent)},"
                f" {own} against {other}, but its probabilities are worse than the shares of the "
                "classes. To fix: pass calibrate=True, or leave out method=."
            )
        than = f"better than always answering {shown(self.most_frequent)}"
        return (
            f"This model is {'no' if gain <= 0 else 'not reliably'} {than}: accuracy "
            f"{own} against {other}. The inputs may contain little information about the classes. "
            "To fix: add inputs that say more, more items, or epochs= to a network."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The content of ``run.json``."""

    classes: tuple[str, ...]  # names of the classes
    created: str  # when the run was made, ISO 8601
    versions: dict[str, str]  # versions of credalearn, torch and Python
    annotations: AnnotationFacts  # where the annotations come from
    inputs: InputFacts  # what the model takes
    splits: dict[str, int]  # number of items in each split that has any
    truth: TruthSource  # what predictions are compared with
    options: dict[str, Any]  # what the model was trained with; see ``TrainOptions``
    sha256: dict[str, str]  # of the model's weights and of the bytes of each table
    group: str | None = None  # column whose items stay in one split
    gold: str | None = None  # column of the true class
    split: str | None = None  # column of the split
    later_items: int = 0  # number of items that only later rounds have; they are trained on alone
    label_diameter: float = 0.0  # mean diameter of the labels, 0 for points and 1 for everything
    loss_curve: tuple[float, ...] = ()  # mean loss of each epoch
    model: str = ""  # what the default learner chose, in words; empty for a method given by name
    temperatures: dict[str, float] = field(default_factory=dict)  # by meaning: truth and votes
    comparison: ComparisonFacts | None = None  # the model next to simple rivals
    seconds: float = 0.0  # duration of training
    recalibrated_from: "RunFacts | None" = None  # the run that trained the model, if another did
    trained_in: str = ""  # the folder of that run
    leaks: dict[str, float] = field(default_factory=dict)  # accuracy by columns alone
    imported: str = ""  # whose probabilities these are; empty where the run has its own model

    @property
    def learner(self) -> str:
        """What was trained, in words."""
        used = self.options
        own_network = "" if used["backbone"] == "auto" else f"{used['backbone']} with "
        words = [f"{own_network}{used['method']}"]
        words += [f"weights of {used['weights']}"] if used["weights"] else []
        words += [used["augment"]] if used["augment"] != "none" else []
        words += ["calibrated"] if used["calibrate"] else []
        return self.model or ", ".join(words)

    @property
    def advice(self) -> list[str]:
        """What is wrong with the items or their labels, and what to do."""
        from credalearn.methods import METHODS  # imports torch

        notes, method = [self.leak_warning] if self.leaks else [], self.options["method"]
        learns_sets = method == "auto" or (method in METHODS and METHODS[method].learns_sets)
        if self.label_diameter > _MUCH_OPEN and learns_sets:
            fix = "collect more votes per item"
            if self.annotations.kind == "bounds" or self.annotations.stated:
                fix = "state larger bounds"
            elif self.options["labels"] != "relax-ties":
                fix = f"pass labels='relax-ties', or {fix}"
            size = f"mean diameter {self.label_diameter:.2f} of 1"
            notes.append(
                f"The labels are wide ({size}), so there is little to learn. To fix: {fix}."
            )
        if self.later_items:
            notes.append(
                f"For training only: {many(self.later_items, 'item')} of later rounds. People "
                "chose what is in them, and a guarantee is about items as they come."
            )
        return notes

    @property
    def trained(self) -> str:
        """What was trained, how long, and on how many items, in words."""
        sizes = ", ".join(f"{number:,} {name}" for name, number in self.splits.items())
        return f"{self.learner}, trained in {self.seconds:.1f} s; items: {sizes}"

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
            f"To fix: leave it out with drop={name!r}, or ignore this if they have it."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A guarantee that was asked for, whether or not it could be certified."""

    asked: dict[str, Any]  # the options that it depends on
    risk: float  # what it has spent: the probability of a wrong promise
    certified: bool  # whether something was promised

    @property
    def words(self) -> str:
        """The options of ``certify`` that ask for it."""
        usual = {"confidence": 0.95, "against": "truth", "per_class": False}
        notes = []
        for name, value in self.asked.items():
            if value is not None and value != usual.get(name) and name not in SHARED:
                flag = f"--{name.replace('_', '-')}"
                several = value if isinstance(value, list) else [value]
                notes += [flag if x is True else f"{flag} {quote(str(x))}" for x in several]
        return " ".join(notes)
