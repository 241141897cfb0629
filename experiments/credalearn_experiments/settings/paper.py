"""The settings of the paper, by name, and ours on images.

Wang and Chau, *Epistemic Learning from Imprecise Annotation*: three data sets with annotators, and
the same with collapsed labels; CIFAR-10 and CIFAR-100 with labels of three teachers at two
temperatures, and with four strengths of smoothing. Momentum 0.9 and the augmentation (random crop
and flip) are ours: the paper states neither.
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
_CIFAR10H = Setting(
    name="cifar10h",
    task="cifar10h",
    labels=Annotators(),
    backbone="resnet18",
    recipe=replace(_AT_32_PX, epochs=150),
    methods=(*SEVEN, "pocc-ensemble"),
    foreign=FOREIGN_SETS,
)
_MICEBONE = Setting(
    name="micebone",
    task="micebone",
    labels=Annotators(),
    backbone="torchvision:densenet121",
    pretrained=True,
    image_size=224,
    recipe=Recipe(
        epochs=60,
        batch_size=128,
        optimizer="adam",
        learning_rate=1e-5,
        weight_decay=5e-4,
        schedule="constant",
    ),
    methods=FIVE,
)
_ANNOTATED = (_CIFAR10H, _MICEBONE, replace(_MICEBONE, name="treeversity", task="treeversity"))
# Every label collapsed to the class with most votes. The paper compares the others, trained in this
# way, with POCC trained on the labels as they are; POCC on collapsed labels is ours.
_COLLAPSED = tuple(
    replace(
        base,
        name=f"{base.name}-collapsed",
        collapsed=True,
        methods=tuple(method for method in base.methods if method in SEVEN),
        foreign=(),
    )
    for base in _ANNOTATED
)
_CIFAR10 = replace(
    _CIFAR10H, task="cifar10", recipe=_AT_32_PX, methods=SEVEN, foreign=(), labels=Smoothing(0.05)
)
_CIFAR100 = replace(
    _CIFAR10,
    task="cifar100",
    backbone="wrn-28-4",
    recipe=replace(_AT_32_PX, warmup_epochs=5, warmup_start=0.001, final_learning_rate=1e-6),
)
_LABELS: dict[str, Smoothing | Teacher] = {
    f"teacher-{name}-{temperature:g}": Teacher(name, temperature)
    for temperature in (2.5, 1.0)
    for name in ("resnet20", "shufflenetv2", "mobilenetv2")
} | {f"smooth-{epsilon:g}": Smoothing(epsilon) for epsilon in (0.05, 0.1, 0.15, 0.2)}
_MADE = {
    f"{base.task}-{name}": replace(base, name=f"{base.task}-{name}", labels=labels)
    for name, labels in _LABELS.items()
    for base in (_CIFAR10, _CIFAR100)
}
for _name in ("cifar10-teacher-resnet20-2.5", "cifar10-smooth-0.05"):
    _MADE[_name] = replace(_MADE[_name], methods=_CIFAR10H.methods, foreign=FOREIGN_SETS)
# Ours. A learning rate of 0.1 from the first step costs some methods accuracy and not others: here
# every method has five warm-up epochs from 0.001, as in the paper on CIFAR-100.
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
# The same with twice the epochs: how near one network comes to its teachers.
_LONG = replace(
    _CUTMIX,
    name="cifar10h-long",
    recipe=replace(_WARM.recipe, epochs=260),
)
# The same on three votes per image, which differ more.
_THREE_VOTES = replace(
    _CUTMIX, name="cifar10n", task="cifar10n-voted", labels=Votes(None, "relax-ties")
)
# Its precise rivals: softmax on the class with most votes, and on the centers of the sets.
_PRECISE = replace(_THREE_VOTES, methods=("softmax",))
_MAJORITY = replace(_PRECISE, name="cifar10n-collapsed", collapsed=True)
_CENTERS = replace(_PRECISE, name="cifar10n-centered", centered=True)
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
PAPER = {each.name: each for each in (*_ANNOTATED, *_MADE.values(), *_COLLAPSED)}
_OURS = (_WARM, _CUTMIX, _LONG, _THREE_VOTES, _MAJORITY, _CENTERS, _NETWORK)
SETTINGS = PAPER | {each.name: each for each in _OURS}
