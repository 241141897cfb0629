"""What a setting is: everything of a benchmark run but its method and seed, in one record."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

from credalearn._checks import check_choice, check_option, check_whole
from credalearn._formats import check_share
from credalearn.errors import CredalError
from credalearn.labels.votes import VoteRule
from credalearn.methods import METHODS
from credalearn.train import Recipe

# By our names, the paper's.
PAPER_TEACHERS = {
    "resnet20": "ResNet-20",
    "shufflenetv2": "ShuffleNetV2-0.5x",
    "mobilenetv2": "MobileNetV2-x0.5",
}
TEN_SEEDS = tuple(range(1, 11))

Published = tuple[str, str, str]
"""The columns ``dataset``, ``supervision`` and ``setting`` of the published figures."""


@dataclass(frozen=True, slots=True)
class Annotators:
    """Labels are what the data set's annotators said.

    Example:
        >>> from credalearn_experiments.settings.paper import SETTINGS
        >>> SETTINGS["cifar10h"].labels
        Annotators()
    """


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Labels are the true classes, smoothed.

    Args:
        epsilon: Share that is spread evenly over all classes, above 0 and below 1.

    Raises:
        CredalError: If the share is out of range.

    Example:
        >>> from credalearn_experiments.settings.paper import SETTINGS
        >>> SETTINGS["cifar10-smooth-0.05"].labels
        Smoothing(epsilon=0.05)
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_share(self.epsilon, name="epsilon")


@dataclass(frozen=True, slots=True)
class Teacher:
    """Labels are what a trained network says of the training images.

    Args:
        name: ``resnet20``, ``shufflenetv2`` or ``mobilenetv2``.
        temperature: What its logits are divided by, above 0.

    Raises:
        CredalError: If there is no such teacher, or the temperature is not above 0.

    Example:
        >>> from credalearn_experiments.settings.paper import SETTINGS
        >>> SETTINGS["cifar10-teacher-resnet20-2.5"].labels
        Teacher(name='resnet20', temperature=2.5)
    """

    name: str
    temperature: float

    def __post_init__(self) -> None:
        check_choice(self.name, PAPER_TEACHERS, name="teacher")
        check_option(
            self.temperature,
            lambda value: 0 < value < math.inf,
            name="temperature",
            rule="a finite number above 0",
            remedy="give 1.0, which leaves the logits as they are",
        )


@dataclass(frozen=True, slots=True)
class Votes:
    """Labels are made from some of the annotators' votes, by a rule.

    Which votes is drawn anew for each seed, without replacement; rules of one seed see the same
    votes, and fewer votes are some of the more
    (:func:`credalearn_experiments.running.labels.draw_votes`).

    Args:
        number: Votes an item; None for all that there are.
        rule: How they become a set, as :func:`credalearn.from_votes` names it.

    Raises:
        CredalError: If the number is below 1, or there is no such rule.

    Example:
        >>> from credalearn_experiments.settings.votes import FAMILIES
        >>> FAMILIES["lidc-votes"].settings[0].labels
        Votes(number=1, rule='precise')
    """

    number: int | None
    rule: VoteRule

    def __post_init__(self) -> None:
        if self.number is not None:
            check_whole(self.number, least=1, name="number", remedy="give None for all votes")
        check_choice(self.rule, get_args(VoteRule), name="rule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is trained on what, and how: everything of a run but its method and seed.

    Args:
        name: As users give it, for instance ``cifar10-teacher-resnet20-2.5``.
        task: Images, true classes and split, a key of ``TASKS``.
        labels: Where the training labels come from.
        collapsed: Whether the labels are collapsed to their top class.
        backbone: Name of the network.
        pretrained: Whether the network starts from ImageNet's weights.
        image_size: Height and width of the images, in pixels; of rows of features it says nothing.
        augment: Whether training images are cropped at random, with 4 px padding at 32 px and in
            proportion at other sizes, and flipped; rows of features stay as they are.
        recipe: How to train; its seed is not looked at, each run has its own.
        methods: Names of the methods, in the paper's order.
        seeds: One run a method and seed.
        foreign: Names of the data sets that foreign images are taken from.
        published: Where the paper's figures of this setting stand; None where it has none.

    Raises:
        CredalError: If methods or seeds are unknown, missing or named twice, or an ensemble is to
            learn from a few votes: its members have seeds of their own, and so other votes.

    Example:
        >>> from credalearn_experiments.settings.paper import SETTINGS
        >>> setting = SETTINGS["cifar10h"]
        >>> setting.backbone, setting.recipe.epochs, len(setting.seeds)
        ('resnet18', 150, 10)
    """

    name: str
    task: str
    labels: Annotators | Smoothing | Teacher | Votes
    collapsed: bool = False
    backbone: str
    pretrained: bool = False
    image_size: int = 32
    augment: bool = True
    recipe: Recipe
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = TEN_SEEDS
    foreign: tuple[str, ...] = ()
    published: Published | None = None

    def __post_init__(self) -> None:
        for method in self.methods:
            if method not in METHODS:
                raise CredalError(
                    f"method {method!r} of setting {self.name!r} is unknown. To fix: take some of "
                    f"{', '.join(METHODS)}."
                )
            if METHODS[method].num_members > 1 and self.depends_on_seed:
                raise CredalError(
                    f"the members of {method!r} would each have other votes, together more than "
                    f"setting {self.name!r} allows. To fix: take it where all votes are used."
                )
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise CredalError(
                f"setting {self.name!r} must have one method or more, each once; got "
                f"{list(self.methods)}. To fix: name each that is wanted once."
            )
        whole = all(isinstance(seed, int) and seed >= 1 for seed in self.seeds)
        if not self.seeds or not whole or len(set(self.seeds)) < len(self.seeds):
            raise CredalError(
                f"setting {self.name!r} must have one seed or more, whole numbers from 1, each "
                f"once; got {list(self.seeds)}. To fix: give such as (1, 2, 3)."
            )

    @property
    def depends_on_seed(self) -> bool:
        """Whether the labels do: where a few of the votes are drawn."""
        return isinstance(self.labels, Votes) and self.labels.number is not None

    def as_plain(self) -> dict[str, Any]:
        """What decides the outcome of a run, but for its method and seed, as plain JSON.

        Seeds and methods are left out: a run is the same, however few are asked for beside it.

        Example:
            >>> from credalearn_experiments.settings.paper import SETTINGS
            >>> SETTINGS["cifar10-smooth-0.05"].as_plain()["labels"]
            {'kind': 'smoothing', 'epsilon': 0.05}
        """
        recipe = asdict(self.recipe)
        del recipe["random_state"]
        return {
            "name": self.name,
            "task": self.task,
            "labels": {"kind": type(self.labels).__name__.lower(), **asdict(self.labels)},
            "collapsed": self.collapsed,
            "backbone": self.backbone,
            "pretrained": self.pretrained,
            "image_size": self.image_size,
            "augment": self.augment,
            "recipe": recipe,
            "foreign": list(self.foreign),
        }

    def narrowed(
        self,
        *,
        epochs: int | None = None,
        seeds: tuple[int, ...] | None = None,
        methods: tuple[str, ...] | None = None,
    ) -> "Setting":
        """A copy with other epochs, seeds or methods; None leaves them as they are.

        The warm-up is cut where it would be longer than the training. Any known method may be
        asked for, also one that the paper does not have here.

        Example:
            >>> from credalearn_experiments.settings.paper import SETTINGS
            >>> rehearsal = SETTINGS["cifar100-smooth-0.1"].narrowed(epochs=2, seeds=(1,))
            >>> rehearsal.recipe.epochs, rehearsal.recipe.warmup_epochs, rehearsal.seeds
            (2, 2, (1,))
        """
        recipe = self.recipe
        if epochs is not None:
            warmup = min(recipe.warmup_epochs, max(epochs, 1))
            recipe = replace(recipe, epochs=epochs, warmup_epochs=warmup)
        return replace(
            self,
            recipe=recipe,
            seeds=self.seeds if seeds is None else tuple(seeds),
            methods=self.methods if methods is None else tuple(methods),
        )
