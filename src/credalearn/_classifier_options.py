"""The options of the classifier, and what they ask for together."""

from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator

from credalearn._checks import check_choice
from credalearn._selection import SELECTED_METHOD, Choice
from credalearn.errors import CredalError
from credalearn.labels.soft import SoftRule
from credalearn.methods import METHODS, Method
from credalearn.train import AUGMENTS, Recipe
from credalearn.train._processes import find_device
from credalearn.train.training import Optimizer, Precision, Schedule

if TYPE_CHECKING:
    from credalearn._method_training import MethodTraining
    from credalearn.nets import Backbone

_DEFAULTS = Recipe()
TABLE_BACKBONES = ("linear", "mlp")  # for rows of a table


@dataclass(eq=False, repr=False)
class ClassifierOptions(BaseEstimator):  # type: ignore[misc]
    """What ``CredalClassifier`` is made with; documented there."""

    method: str | Method = "auto"
    _: KW_ONLY
    backbone: "Backbone" = "auto"
    encoder: Literal["auto", "tfidf"] = "auto"
    weights: str | Path | None = None
    label_rule: SoftRule = "relax-ties"
    collapse: bool = False
    calibrate: bool = False
    epochs: int = _DEFAULTS.epochs
    batch_size: int = _DEFAULTS.batch_size
    optimizer: Optimizer = _DEFAULTS.optimizer
    learning_rate: float = _DEFAULTS.learning_rate
    momentum: float = _DEFAULTS.momentum
    weight_decay: float = _DEFAULTS.weight_decay
    schedule: Schedule = _DEFAULTS.schedule
    warmup_epochs: float = _DEFAULTS.warmup_epochs
    warmup_start: float = _DEFAULTS.warmup_start
    final_learning_rate: float = _DEFAULTS.final_learning_rate
    augment: Literal["none", "crop", "crop-flip", "mixup", "cutmix"] = "none"
    precision: Precision = _DEFAULTS.precision
    random_state: int = _DEFAULTS.random_state
    device: str = "auto"
    checkpoint: str | Path | None = None
    verbose: bool = False

    @property
    def _selects(self) -> bool:
        """Whether this is the default learner."""
        if not isinstance(self.method, str) or not isinstance(self.backbone, str):
            return False
        taught = self.method in METHODS and METHODS[self.method].teachers is not None
        both = (self.method, self.backbone)
        return both == ("auto", "auto") or (taught and self.backbone == "linear")

    def _method(self) -> Method:
        if isinstance(self.method, Method):
            return self.method
        check_choice(self.method, ("auto", *METHODS), name="method")
        if self.method == "auto":
            return METHODS[SELECTED_METHOD if self._selects else "pocc"]
        return METHODS[self.method]

    def _backbone(self) -> "Backbone":
        if isinstance(self.backbone, str) and self.backbone == "auto":
            choice: Choice | None = getattr(self, "choice_", None)
            return "mlp" if choice is None else choice.backbone
        return self.backbone

    def _recipe(self) -> Recipe:
        return Recipe(**{each.name: getattr(self, each.name) for each in fields(Recipe)})

    def _check_options(self, *, weighted: bool, on_members: bool) -> None:
        """Reject options that are invalid, or without effect."""
        self._recipe(), self._method()  # which check their options
        check_choice(self.augment, AUGMENTS, name="augment")
        check_choice(self.encoder, ("auto", "tfidf"), name="encoder")
        if not self._selects:
            for name, given in (("encoder", self.encoder != "auto"), ("sample_weight", weighted)):
                if given:
                    fix = f"leave out method and backbone, or leave out {name}"
                    raise CredalError(f"{name} is for the default learner. To fix: {fix}.")
            return
        usual = {each.name: each.default for each in fields(Recipe) if each.name != "random_state"}
        usual |= {"weights": None, "augment": "none"}
        chosen = {name: getattr(self, name) for name in usual}
        changed = [f"{name}={each}" for name, each in chosen.items() if each != usual[name]]
        changed += ["members"] * on_members
        if changed:
            raise CredalError(
                f"{', '.join(changed)}: such options are for networks; the default learner selects "
                "its own. To fix: leave them out, or name a method, such as method='pocc'."
            )

    def _method_training(self) -> "MethodTraining":
        from credalearn._method_training import MethodTraining  # which the default seldom needs

        name = self.method if isinstance(self.method, str) else "your method"
        return MethodTraining(
            method=self._method(),
            backbone=self._backbone(),
            weights=self.weights,
            recipe=self._recipe(),
            augment=self.augment,
            device=find_device(self.device),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            progress=name if self.verbose else None,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._selects
        tags.input_tags.allow_nan = self._backbone() in TABLE_BACKBONES
        tags.input_tags.string = self.encoder == "tfidf"
        return tags


ClassifierOptions.__init__.__qualname__ = "CredalClassifier.__init__"  # in errors about a keyword
