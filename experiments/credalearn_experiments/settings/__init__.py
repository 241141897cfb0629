"""A setting: everything of a run but its method and seed, in one record."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn.labels.votes import VoteRule
from credalearn.methods import METHODS
from credalearn.train import Recipe

Mixing = Literal["none", "mixup", "cutmix"]


@dataclass(frozen=True, slots=True)
class Annotators:
    """Labels are the shares of the annotators' votes, relaxed as in the paper."""


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Labels are the true classes, smoothed."""

    epsilon: float  # the share that is spread evenly over all classes


@dataclass(frozen=True, slots=True)
class Teacher:
    """Labels are what a trained network says of the training images."""

    name: str  # a key of TEACHERS
    temperature: float  # by which its logits are divided


@dataclass(frozen=True, slots=True)
class Votes:
    """Labels are made from some of the annotators' votes, drawn for each seed, by a rule."""

    number: int | None  # votes per item; None for all
    rule: VoteRule  # how they become a set


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is trained on what, and how: everything of a run but its method and seed."""

    name: str  # such as cifar10-teacher-resnet20-2.5
    task: str  # a key of TASKS
    labels: Annotators | Smoothing | Teacher | Votes
    collapsed: bool = False  # labels to their top class
    centered: bool = False  # sets to their centers
    backbone: str
    pretrained: bool = False  # the network starts from ImageNet weights
    image_size: int = 32  # height and width in pixels; ignored for features
    augment: bool = True  # images are cropped, with 4 px padding at 32 px, and flipped at random
    mix: Mixing = "none"  # half of the items with another one
    recipe: Recipe  # every run has its own random_state
    methods: tuple[str, ...]  # in the paper's order
    seeds: tuple[int, ...] = tuple(range(1, 11))  # one run per method and seed
    foreign: tuple[str, ...] = ()  # data sets of foreign images

    def __post_init__(self) -> None:
        check_choice(self.mix, get_args(Mixing), name="mix")
        for method in self.methods:
            check_choice(method, METHODS, name=f"a method of setting {self.name!r}")
            several = METHODS[method].num_members > 1 or METHODS[method].teachers is not None
            if several and self.depends_on_seed:
                raise CredalError(
                    f"the networks of {method!r} would learn from different votes, together more "
                    f"than setting {self.name!r} allows. To fix: use it where all votes are used."
                )

    @property
    def depends_on_seed(self) -> bool:
        """Whether the labels depend on the seed: where a few of the votes are drawn."""
        return isinstance(self.labels, Votes) and self.labels.number is not None

    def as_plain(self) -> dict[str, Any]:
        """Everything that decides the outcome of a run but method and seed, as plain JSON."""
        plain = asdict(self) | {"foreign": list(self.foreign)}
        plain["labels"]["kind"] = type(self.labels).__name__.lower()
        del plain["recipe"]["random_state"], plain["methods"], plain["seeds"]
        for name, usual in (("mix", "none"), ("centered", False)):
            if plain[name] == usual:  # records from before do not have it
                del plain[name]
        return plain

    def narrowed(
        self,
        *,
        epochs: int | None = None,
        seeds: tuple[int, ...] = (),
        methods: tuple[str, ...] = (),
    ) -> "Setting":
        """A copy with other epochs, seeds or methods; a warm-up is not longer than the training."""
        recipe, epochs = self.recipe, epochs or self.recipe.epochs
        warmup = min(recipe.warmup_epochs, epochs)
        recipe = replace(recipe, epochs=epochs, warmup_epochs=warmup)
        seeds, methods = seeds or self.seeds, methods or self.methods
        return replace(self, recipe=recipe, seeds=seeds, methods=methods)
