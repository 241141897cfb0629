"""What ``credalearn train`` and ``recalibrate`` can be told, beside their files."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from credalearn._checks import check_choice
from credalearn._files import sha256_of
from credalearn.errors import CredalError
from credalearn.labels import VOTE_RULES, VoteRule
from credalearn.labels.vote_rules import check_options
from credalearn.methods import METHODS
from credalearn.train import AUGMENTS

Skill = Literal["equal", "dawid-skene"]
Augmentation = Literal["none", "crop", "crop-flip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """How to train.

    Args:
        labels: What votes become: a rule of :func:`credalearn.from_votes`.
        s: Strength of the imprecise Dirichlet model, for the rule ``idm``.
        confidence: Of the rules that promise one.
        skill: Whether votes count alike, or Dawid and Skene's model of the annotators stands
            between them and the rule.
        method: Name of a method.
        backbone: Name of a network; ``mlp`` for features and ``resnet18`` for images unless given.
        weights: File with the weights that the network starts from; else they are random.
        group: Column beside the features or images whose items stay in one split.
        gold: Column beside them that holds the true class.
        split: Column beside them that holds the split.
        image_size: Height and width that images are brought to.
        augment: What changes images at random in each epoch.
        epochs: Passes over the training items.
        learning_rate: The largest learning rate.
        batch_size: Items a step, at most.
        device: ``"auto"`` (a GPU where there is one), or a device of torch.
        random_state: Of everything random.
        skip_missing: Leave out items without input, and inputs without annotation.

    Raises:
        CredalError: If there is no such rule, method or change to images, or a number is out of
            range.
    """

    labels: VoteRule = "relax-ties"
    s: float = 1.0
    confidence: float = 0.95
    skill: Skill = "equal"
    method: str = "pocc"
    backbone: str | None = None
    weights: Path | None = None
    group: str | None = None
    gold: str | None = None
    split: str | None = None
    image_size: int = 64
    augment: Augmentation = "none"
    epochs: int = 50
    learning_rate: float = 1e-3
    batch_size: int = 128
    device: str = "auto"
    random_state: int = 0
    skip_missing: bool = False

    def __post_init__(self) -> None:
        check_choice(self.labels, VOTE_RULES, name="labels")
        check_options(self.labels, s=self.s, confidence=self.confidence)
        check_choice(self.skill, get_args(Skill), name="skill")
        check_choice(self.method, METHODS, name="method")
        check_choice(self.augment, AUGMENTS, name="augment")
        if not 0 < self.learning_rate < math.inf:
            raise CredalError(
                f"learning_rate must be above 0; got {self.learning_rate}. To fix: give "
                "--learning-rate 0.001."
            )
        for name, least in (
            ("image_size", 8),
            ("epochs", 1),
            ("batch_size", 2),
            ("random_state", 0),
        ):
            if getattr(self, name) < least:
                raise CredalError(
                    f"{name} must be {least} or more; got {getattr(self, name)}. To fix: give "
                    f"--{name.replace('_', '-')} {least}."
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the features that are asked for and are no features."""
        return tuple(name for name in (self.group, self.gold, self.split) if name is not None)

    def told(self) -> dict[str, Any]:
        """All of them as JSON holds them, the file of weights by its path and what it holds.

        Example:
            >>> TrainOptions(epochs=3).told()["epochs"]
            3
        """
        if self.weights is None:
            return asdict(self)
        digest = sha256_of(self.weights)
        return asdict(self) | {"weights": str(self.weights), "weights_sha256": digest}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalibrateOptions:
    """How new items are read and split.

    Args:
        group: Column beside the features or images whose items stay in one split.
        gold: Column beside them that holds the true class.
        split: Column beside them that holds the split, calibration or test.
        random_state: Of the draw of the splits.
        skip_missing: Leave out items without input, and inputs without annotation.

    Raises:
        CredalError: If the random_state is below 0.
    """

    group: str | None = None
    gold: str | None = None
    split: str | None = None
    random_state: int = 0
    skip_missing: bool = False

    def __post_init__(self) -> None:
        self.for_images_of(None)

    def for_images_of(self, size: int | None) -> TrainOptions:
        """The same for a training whose images have this size, or none."""
        options = TrainOptions(**asdict(self))
        return options if size is None else replace(options, image_size=size)

    @property
    def columns(self) -> tuple[str, ...]:
        """As :attr:`TrainOptions.columns`."""
        return self.for_images_of(None).columns
