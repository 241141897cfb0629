"""Training items, and the folds that candidates are compared on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalearn._temperature import fit_temperature, log_probs, temper
from credalearn.errors import CredalError
from credalearn.methods import Model
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train._linear import Inputs, LinearProblem

NUM_FOLDS = 4
Rows = NDArray[np.int64]
Encode = Callable[[Inputs, Rows], Inputs]  # by an encoder that is fitted on these rows alone


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Training items."""

    inputs: Inputs  # shape (N, D)
    labels: CredalSet
    truth: Tensor  # distribution of the right class, shape (N, K)
    weight: Tensor | None = None  # shape (N,)
    encode: Encode | None = None  # what each fold does to the inputs first

    def __getitem__(self, rows: Rows) -> "Items":
        weight = None if self.weight is None else self.weight[rows]
        return Items(self.inputs[rows], self.labels[rows], self.truth[rows], weight, self.encode)

    def __len__(self) -> int:
        return len(self.truth)

    def encoded(self, rows: Rows) -> Inputs:
        """The inputs of all items, by an encoder that knows these rows alone."""
        return self.inputs if self.encode is None else self.encode(self.inputs, rows)

    def problem(self, inputs: Inputs) -> LinearProblem:
        """The items with encoded inputs, prepared for linear fits."""
        return LinearProblem(inputs, self.truth.shape[1], weight=self.weight)

    def costs(self, probs: Tensor) -> Tensor:
        """Negative log-likelihood of the right class after one temperature, shape (N,)."""
        temperature = fit_temperature(probs, self.truth, weight=self.weight)
        return -(self.truth * log_probs(temper(probs.double(), temperature))).sum(1)

    def cost(self, probs: Tensor) -> float:
        """The mean of :meth:`costs`."""
        return float(np.average(self.costs(probs).numpy(), weights=self.weight))


def make_folds(
    truth: Tensor, groups: NDArray[Any] | None, *, random_state: int, count: int = NUM_FOLDS
) -> Rows:
    """The fold of each item, shape (N,): groups stay together, classes are spread evenly."""
    names = np.arange(len(truth)) if groups is None else np.asarray(groups)
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    if len(first) < 2:
        what = "items" if groups is None else "groups of items"
        raise CredalError(
            f"there must be at least two {what} to compare models; got {len(first)}. To fix: add "
            f"items{'' if groups is None else ', or leave out groups'}."
        )
    order = np.random.default_rng(random_state).permutation(len(first))
    order = order[np.argsort(truth.argmax(1).numpy()[first[order]], kind="stable")]
    fold = np.empty(len(first), dtype=np.int64)
    fold[order] = np.arange(len(first)) % min(count, len(first))
    return fold[group]


def rows_outside(folds: Rows) -> list[Rows]:
    """The rows outside each fold."""
    return [np.flatnonzero(folds != fold) for fold in range(folds.max() + 1)]


def out_of_fold(models: list[Model], inputs: list[Inputs], folds: Rows) -> CredalPredictions:
    """Predictions of each item by the model of the other folds, which has inputs of its own."""
    rows = [np.flatnonzero(folds == fold) for fold in range(len(models))]
    parts = [
        model.predict(all_items[own])
        for model, all_items, own in zip(models, inputs, rows, strict=True)
    ]
    vertices = torch.cat([part.vertices for part in parts if part.vertices is not None])
    return CredalPredictions.from_vertices(vertices[np.argsort(np.concatenate(rows))])
