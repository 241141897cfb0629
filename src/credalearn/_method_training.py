"""Training of a method given by name: its networks, teachers first where it has them."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from credalearn._folds import Rows, make_folds
from credalearn._targets import truth_of
from credalearn.errors import CredalError, TrainingError
from credalearn.labels.soft import taught_labels
from credalearn.methods import METHODS, Method, Model
from credalearn.methods.distillation import as_wide_as, narrowest, stretch, stretched
from credalearn.methods.softmax import ENSEMBLE_SIZE
from credalearn.nets import Backbone, Network, build_network
from credalearn.sets import CredalSet
from credalearn.train import AUGMENTS, Progress, Recipe, Training, seeded, train

Stop = Callable[[Network, int], bool]  # from a network and the epochs done to whether to stop
Trained = tuple[Model, list[float]]  # and its mean loss in each epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodTraining:
    """A method, and how its networks are made and trained."""

    method: Method
    backbone: Backbone
    weights: str | Path | None = None
    recipe: Recipe
    augment: str = "none"
    device: torch.device
    checkpoint: Path | None = None
    progress: str | None = None  # name to show it under
    stop: Stop | None = None

    def fit(
        self,
        inputs: Tensor,
        labels: CredalSet,
        *,
        groups: np.ndarray | None = None,
        members: Sequence[Network] | None = None,
    ) -> Trained:
        """A model, built on ``members`` instead of trained if there are any."""
        if self.augment.startswith("crop") and inputs.ndim != 4:
            got = f"augment={self.augment!r} is for images; X has the shape {tuple(inputs.shape)}"
            raise CredalError(f"{got}. To fix: augment='none' or 'mixup'.")
        count = self.method.num_members + (ENSEMBLE_SIZE if self.method.teachers else 0)
        if isinstance(self.backbone, nn.Module) and count > 1 and members is None:
            name = type(self.backbone).__name__
            raise CredalError(
                f"one {name} as backbone would start all {count} networks of this method from the "
                f"same weights. To fix: give a function, as in backbone=lambda: {name}(...)."
            )
        if self.method.teachers is not None:
            if members is not None:
                what = "a network that learns from teachers cannot be built on trained members"
                raise CredalError(f"{what}. To fix: leave members out.")
            return self._fit_taught(inputs, labels, groups)
        losses, networks = [], list(members or ())
        for number in range(self.method.num_members if members is None else 0):
            training = self._training(number, inputs, labels)
            losses.append(self._run(training, number))
            networks.append(training.network)
        state = self.recipe.random_state
        model = Model.from_members(self.method, networks, inputs, labels, random_state=state)
        return model, np.array(losses).mean(0).tolist() if losses else []

    def checkpoint_of(self, part: str) -> Path | None:
        """The checkpoint of a part, such as one member of an ensemble; None without checkpoints."""
        return self.checkpoint and self.checkpoint.with_stem(f"{self.checkpoint.stem}-{part}")

    def _fit_taught(self, inputs: Tensor, labels: CredalSet, groups: np.ndarray | None) -> Trained:
        """A student of softmax networks that the same backbone, recipe and data make."""
        method, state, teachers = self.method, self.recipe.random_state, []
        folds = teaching_folds(labels, groups, random_state=state)
        for number in range(ENSEMBLE_SIZE):
            teacher = replace(
                self,
                method=METHODS["softmax"],
                recipe=replace(self.recipe, random_state=state + 1 + number),
                checkpoint=self.checkpoint_of(f"teacher-{number}"),
                progress=None if self.progress is None else "softmax",
            )
            rows = np.flatnonzero((folds != number) | (method.teachers != "cross-fitted"))
            teachers.append(teacher.fit(inputs[rows], labels[rows])[0])
        probs = teacher_probs(teachers, inputs)
        training = self._training(0, inputs, taught_labels(probs))
        if self.augment != "none":
            networks = tuple(each.members[0] for each in teachers)
            training = replace(training, teachers=networks)
        losses = self._run(training, 0)
        student = Model(method, (training.network,), stretch(1.0), state)
        return widened(student, inputs, labels, probs, folds), losses

    def _training(self, number: int, inputs: Tensor, labels: CredalSet) -> Training:
        """The training of member ``number``, whose random_state is the recipe's plus that."""
        recipe = replace(self.recipe, random_state=self.recipe.random_state + number)
        with seeded(self.device, recipe.random_state, 0):
            network = build_network(
                self.backbone,
                inputs,
                num_heads=self.method.num_heads,
                num_classes=labels.num_classes,
                dropout=self.method.dropout,
                weights=self.weights,
            ).to(self.device)
        augment, mix = AUGMENTS[self.augment]
        alone = self.method.num_members == 1
        return Training(
            network=network,
            inputs=inputs,
            labels=labels,
            loss=self.method.loss,
            recipe=recipe,
            augment=augment if inputs.ndim == 4 else None,
            mix=mix,
            checkpoint=self.checkpoint if alone else self.checkpoint_of(f"{number}"),
            stop=None if self.stop is None else partial(self.stop, network),
        )

    def _run(self, training: Training, number: int) -> list[float]:
        """Train a member's network, and return its loss in each epoch."""
        name, count = self.progress, self.method.num_members
        shown = name if name is None or count == 1 else f"{name} {number + 1}/{count}"
        with nullcontext() if shown is None else Progress(shown) as progress:
            (end,) = train([replace(training, listener=progress)])
        if isinstance(end, TrainingError):
            raise end
        return end


def teaching_folds(labels: CredalSet, groups: np.ndarray | None, *, random_state: int) -> Rows:
    """For each item the number of the teacher that does not see it, where they are cross-fitted."""
    right = truth_of(labels, None, np.arange(labels.num_classes))
    return make_folds(right, groups, random_state=random_state, count=ENSEMBLE_SIZE)


def teacher_probs(teachers: Sequence[Model], items: Tensor) -> Tensor:
    """Probabilities of M teachers for items, shape (N, M, K)."""
    return torch.stack([each.predict(items).probs for each in teachers], 1)


def widened(model: Model, inputs: Tensor, labels: CredalSet, probs: Tensor, folds: Rows) -> Model:
    """A student with the factor of its boxes, given its teachers' probabilities (N, M, K)."""
    predict = partial(model.method.predictions, model.outputs(inputs))
    if model.method.teachers == "ensemble":
        return replace(model, state=as_wide_as(predict, taught_labels(probs)))
    # Around what the one teacher says that did not see the item: it errs as for new items.
    box, unseen = predict(stretch(1.0)), probs[torch.arange(len(folds)), torch.from_numpy(folds)]
    ends = unseen[:, None] + torch.stack([box.lower, box.upper], 1) - box.probs[:, None]
    return replace(model, state=narrowest(partial(stretched, unseen, ends), labels.reference))
