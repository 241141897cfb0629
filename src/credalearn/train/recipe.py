"""How to train: the choices, and the learning rate they give at each step."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from credalearn.errors import CredalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A training recipe, checked once.

    Args:
        epochs: Passes over the data.
        batch_size: Items a step, at most; one more where a batch of one would be left. Batches are
            of nearly equal size.
        optimizer: ``"adam"`` or ``"sgd"``.
        learning_rate: The largest learning rate.
        momentum: Of SGD.
        weight_decay: L2 penalty in the gradient.
        schedule: ``"cosine"`` falls to ``final_learning_rate`` over the run, ``"constant"`` stays.
        warmup_epochs: Epochs over which the rate first rises linearly to its largest.
        warmup_start: Where that rise starts.
        final_learning_rate: Where the cosine ends.
        precision: ``"float32"``, ``"bfloat16"`` (autocast), or ``"auto"``: the latter on a GPU.
        random_state: Of everything random, 0 or more.

    Raises:
        CredalError: If a value is out of range.

    Example:
        Five epochs of warm-up, then a cosine from 0.1 to 0.

        >>> recipe = Recipe(epochs=200, optimizer="sgd", learning_rate=0.1, warmup_epochs=5)
        >>> [round(recipe.rate_at(epoch), 4) for epoch in (0, 2.5, 5, 102.5, 200)]
        [0.0, 0.05, 0.1, 0.05, 0.0]
    """

    epochs: int = 50
    batch_size: int = 128
    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: Literal["cosine", "constant"] = "cosine"
    warmup_epochs: float = 0
    warmup_start: float = 0.0
    final_learning_rate: float = 0.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    random_state: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "random_state"):
            self._check(name, isinstance(getattr(self, name), Integral), "a whole number")
        for name in ("learning_rate", "momentum", "weight_decay"):
            self._check(name, isinstance(getattr(self, name), Real), "a number")
        for name in ("warmup_epochs", "warmup_start", "final_learning_rate"):
            self._check(name, isinstance(getattr(self, name), Real), "a number")
        for name in ("epochs", "batch_size"):
            self._check(name, getattr(self, name) >= 1, "1 or more")
        for name in ("momentum", "weight_decay", "warmup_epochs", "warmup_start", "random_state"):
            self._check(name, 0 <= getattr(self, name) < math.inf, "0 or more")
        self._check("learning_rate", 0 < self.learning_rate < math.inf, "above 0")
        self._check(
            "final_learning_rate",
            0 <= self.final_learning_rate <= self.learning_rate,
            "between 0 and learning_rate",
        )
        self._check("warmup_epochs", self.warmup_epochs <= self.epochs, "at most epochs")
        self._check("optimizer", self.optimizer in ("adam", "sgd"), "'adam' or 'sgd'")
        self._check("schedule", self.schedule in ("cosine", "constant"), "'cosine' or 'constant'")
        precisions = ("auto", "float32", "bfloat16")
        self._check("precision", self.precision in precisions, f"one of {precisions}")

    def rate_at(self, epoch: float) -> float:
        """Learning rate after this many epochs; a fraction is within an epoch."""
        if epoch < self.warmup_epochs:
            rise = epoch / self.warmup_epochs
            return self.warmup_start + rise * (self.learning_rate - self.warmup_start)
        if self.schedule == "constant":
            return self.learning_rate
        share = (epoch - self.warmup_epochs) / max(self.epochs - self.warmup_epochs, 1e-12)
        height = (1 + math.cos(math.pi * share)) / 2
        return self.final_learning_rate + height * (self.learning_rate - self.final_learning_rate)

    def _check(self, name: str, ok: bool, rule: str) -> None:
        if not ok:
            raise CredalError(f"{name} must be {rule}; got {getattr(self, name)!r}.")
