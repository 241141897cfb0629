"""The settings of the paper, by name: one function per kind of labels.

Wang and Chau, *Epistemic Learning from Imprecise Annotation*: three data sets with annotators, and
the same with collapsed labels; CIFAR-10 and CIFAR-100 with labels of three teachers at two
temperatures, and with four strengths of smoothing. ``cifar10h-warm``, ``cifar10h-cutmix``,
``cifar10n`` and ``cifar10n-network`` are ours.

Momentum 0.9 and the augmentation (random crop and flip) are ours too: the paper states neither.
"""

from dataclasses import replace

from credalearn.train import Recipe
from credalearn_experiments.settings import Annotators, Setting, Smoothing, Teacher, Votes

TEN_SEEDS = tuple(range(1, 11))
# The paper's main tables compare seven: EDL, LbBnn, Decali, DAPPr, POCC, MCDO and DE in its words.
# The ensemble of POCC is only in those of foreign data.
SEVEN = (
    *("edl", "laplace-bridge", "decalibration", "dappr", "pocc"),
    *("mc-dropout", "deep-ensemble"),
)
# At 224 px the paper leaves out methods without a pretrained network or out of memory.
FIVE = tuple(name for name in SEVEN if name not in ("laplace-bridge", "mc-dropout"))
FOREIGN_SETS = ("svhn", "places365", "fashion-mnist", "imagenet", "tiny-imagenet")

_AT_32_PX = Recipe(
    epochs=200, batch_size=128, optimizer="sgd", learning_rate=0.1, momentum=0.9, weight_decay=5e-4
)
_AT_224_PX = Recipe(
    epochs=60,
    batch_size=128,
    optimizer="adam",
    learning_rate=1e-5,
    weight_decay=5e-4,
    schedule="constant",
)
_RECIPES = {
    "cifar10h": replace(_AT_32_PX, epochs=150),
    "cifar10": _AT_32_PX,
    "cifar100": replace(_AT_32_PX, warmup_epochs=5, warmup_start=0.001, final_learning_rate=1e-6),
    "micebone": _AT_224_PX,
    "treeversity": _AT_224_PX,
}
_BACKBONES = {"cifar10h": "resnet18", "cifar10": "resnet18", "cifar100": "wrn-28-4"}


def annotators(task: str) -> Setting:
    """Labels of annotators who disagree: ``cifar10h``, ``micebone`` and ``treeversity``."""
    photos = task in ("micebone", "treeversity")
    return Setting(
        name=task,
        task=task,
        labels=Annotators(),
        backbone="torchvision:densenet121" if photos else _BACKBONES[task],
        pretrained=photos,
        image_size=224 if photos else 32,
        recipe=_RECIPES[task],
        methods=FIVE if photos else (*SEVEN, "pocc-ensemble"),
        foreign=() if photos else FOREIGN_SETS,
    )


def collapsed(task: str) -> Setting:
    """As :func:`annotators`, with every label collapsed to the class with most votes.

    The paper compares the others, trained in this way, with POCC trained on the labels as they
    are: its figure of POCC is that of :func:`annotators`. POCC on collapsed labels is ours.
    """
    base = annotators(task)
    return replace(
        base,
        name=f"{task}-collapsed",
        collapsed=True,
        methods=tuple(method for method in base.methods if method in SEVEN),
        foreign=(),
    )


def made(task: str, labels: Smoothing | Teacher) -> Setting:
    """Labels of a teacher or smoothed classes, on ``cifar10`` or ``cifar100``."""
    if isinstance(labels, Teacher):
        name = f"teacher-{labels.name}-{labels.temperature:g}"
    else:
        name = f"smooth-{labels.epsilon:g}"
    with_foreign = task == "cifar10" and name in ("teacher-resnet20-2.5", "smooth-0.05")
    return Setting(
        name=f"{task}-{name}",
        task=task,
        labels=labels,
        backbone=_BACKBONES[task],
        recipe=_RECIPES[task],
        methods=(*SEVEN, "pocc-ensemble") if with_foreign else SEVEN,
        foreign=FOREIGN_SETS if with_foreign else (),
    )


_MADE: tuple[Smoothing | Teacher, ...] = (
    *(
        Teacher(name, temperature)
        for temperature in (2.5, 1.0)
        for name in ("resnet20", "shufflenetv2", "mobilenetv2")
    ),
    *(Smoothing(epsilon) for epsilon in (0.05, 0.1, 0.15, 0.2)),
)
# Ours. A learning rate of 0.1 from the first step costs some methods accuracy and not others: here
# every method has five warm-up epochs from 0.001, as in the paper on CIFAR-100.
_CIFAR10H = annotators("cifar10h")
_WARM = replace(
    _CIFAR10H,
    name="cifar10h-warm",
    recipe=replace(_CIFAR10H.recipe, warmup_epochs=5, warmup_start=0.001),
    methods=(*_CIFAR10H.methods, "pocc-mean", "pocc-center", "softmax"),
    seeds=TEN_SEEDS[:5],
)
# What one network and its teachers reach with mixed images, and the sets that they predict. Seeds
# five apart: no two ensembles share a network.
_CUTMIX = replace(
    _WARM,
    name="cifar10h-cutmix",
    task="cifar10h-new-votes",
    mix="cutmix",
    recipe=replace(_WARM.recipe, epochs=130),  # 65 networks in 22 minutes of an H200
    methods=("softmax", "pocc-center", "deep-ensemble", "pocc-distilled", "credal-bounds"),
    seeds=(1, 6, 11, 16, 21),
    foreign=(),
)
# The same on three votes per image, which differ more.
_THREE_VOTES = replace(
    _CUTMIX, name="cifar10n", task="cifar10n-voted", labels=Votes(None, "relax-ties")
)
# A network that has not seen CIFAR-10's test images, nor any true class: it describes them for the
# study of statements.
_NETWORK = replace(
    _THREE_VOTES,
    name="cifar10n-network",
    task="cifar10n-most",
    recipe=replace(_WARM.recipe, epochs=40),
    methods=("softmax",),
    seeds=(1,),
)
_ANNOTATED = ("cifar10h", "micebone", "treeversity")
_PAPER = (
    *map(annotators, _ANNOTATED),
    *(made(task, labels) for labels in _MADE for task in ("cifar10", "cifar100")),
    *map(collapsed, _ANNOTATED),
)
PAPER: dict[str, Setting] = {each.name: each for each in _PAPER}
SETTINGS = PAPER | {each.name: each for each in (_WARM, _CUTMIX, _THREE_VOTES, _NETWORK)}
