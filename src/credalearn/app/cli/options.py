"""Arguments, options and choices that the commands from an export to decisions share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[Path, typer.Argument(help="Folder of a run that `credalearn train` wrote.")]
Export = Annotated[Path, typer.Argument(help="The annotation tool's export, or a table of votes.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Folder of the run.")]
Features = Annotated[
    list[Path] | None,
    typer.Option(help="Numbers of each item: CSV, TSV, Parquet, npy or npz; may be repeated."),
]
Images = Annotated[Path | None, typer.Option(help="Folder with an image of each item.")]
Group = Annotated[
    str | None, typer.Option(help="Column beside the features: its items stay in one split.")
]
Gold = Annotated[str | None, typer.Option(help="Column beside the features with the true class.")]
Table = Annotated[
    Path | None,
    typer.Option(
        help="With --images, the table that --group, --gold and --split name columns of.",
        show_default="the export",
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of everything random.")]
SkipMissing = Annotated[
    bool,
    typer.Option("--skip-missing", help="Leave out items without input, inputs without votes."),
]
Item = Annotated[
    str | None, typer.Option(help="Column or field that names the item; a run remembers it.")
]
Annotator = Annotated[str | None, typer.Option(help="Column or field that names the annotator.")]
Label = Annotated[str | None, typer.Option(help="Column or field with the label.")]
Question = Annotated[str | None, typer.Option(help="Which question, where there are several.")]
Weight = Annotated[str | None, typer.Option(help="Column with the weight of a vote.")]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        help="A class, in the order wanted; repeat for each. Other labels are refused.",
        show_default="those in the export",
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Of a text file, such as cp1252.", show_default="found")
]
Delimiter = Annotated[
    str | None, typer.Option(help="Of a table in text.", show_default="recognized")
]
Unsure = Annotated[
    list[str] | None,
    typer.Option(help="A label that means 'I do not know'; may be repeated."),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Of the export: label-studio, label-studio-csv, ground-truth, mturk, argilla, "
        "prodigy, lewidi, doccano, long, wide, counts, probabilities or bounds.",
        show_default="recognized",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="pocc, pocc-mean, pocc-center, pocc-ensemble, softmax, edl, edl-soft, dappr, "
        "mc-dropout, deep-ensemble, laplace-bridge or decalibration."
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        help="File of trained weights that the network starts from: the state dict of a timm:NAME "
        "or torchvision:NAME (the README says how to make one; nothing is downloaded), or "
        "RUN/model/model.safetensors of a run with the same --backbone.",
        show_default="random weights",
    ),
]
LearningRate = Annotated[float, typer.Option(help="The largest one; it falls to 0.")]
BatchSize = Annotated[int, typer.Option(min=2, help="Items a step, at most.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, …")]
Merge = Annotated[list[Path] | None, typer.Option(help="A later export to add; may be repeated.")]
MergeItem = Annotated[
    list[str] | None,
    typer.Option(
        help="Column or field that names the item in them: once for all, or once for each --merge "
        "in their order.",
        show_default="--item where they have it, else found",
    ),
]


class Labels(StrEnum):
    """What votes become: the names of ``credalearn.labels.VOTE_RULES``, which torch comes with."""

    relax = "relax"
    relax_ties = "relax-ties"
    precise = "precise"
    idm = "idm"
    clopper_pearson = "clopper-pearson"
    clopper_pearson_intervals = "clopper-pearson-intervals"
    total_variation = "total-variation"
    hull = "hull"


class Skill(StrEnum):
    """Whose votes count how much."""

    equal = "equal"
    dawid_skene = "dawid-skene"


class Augment(StrEnum):
    """How images are changed: the names of ``credalearn.train.AUGMENTS``."""

    none = "none"
    crop = "crop"
    crop_flip = "crop-flip"


Augmentation = Annotated[
    Augment,
    typer.Option(
        "--augment",
        help="Shift images at random by up to an eighth of their size, and mirror half of them.",
    ),
]


class Certify(StrEnum):
    """How a threshold is certified."""

    sgr = "sgr"
    learn_then_test = "learn-then-test"
    conformal_risk_control = "conformal-risk-control"


class Against(StrEnum):
    """What a prediction is wrong against."""

    truth = "truth"
    annotator = "annotator"


class Distance(StrEnum):
    """How far votes are from a predicted set: ``credalearn.conformal.Distance``."""

    box = "box"
    total_variation = "total-variation"


class Scale(StrEnum):
    """How much an item's set is widened beside the others': ``credalearn.conformal.SCALES``."""

    relative_variance = "relative-variance"
    binomial = "binomial"
    top_probability = "top-probability"
    none = "none"


class Conflicts(StrEnum):
    """What happens where two rounds differ about one vote."""

    refuse = "refuse"
    newest = "newest"
    add = "add"


MergeConflicts = Annotated[
    Conflicts,
    typer.Option(
        help="Where two exports say different things. newest: the file named last wins; dates are "
        "not read. add: counts are added."
    ),
]


class Repeats(StrEnum):
    """What happens where an annotator votes twice on an item and differently."""

    refuse = "refuse"
    last = "last"


RepeatedVotes = Annotated[
    Repeats,
    typer.Option(
        "--repeats", help="Where one annotator's votes on an item differ; the last may count."
    ),
]


class Target(StrEnum):
    """Where deferred items go."""

    label_studio = "label-studio"
    csv = "csv"
