"""The network of a trained POCC, and what its heads see of items.

Shapes: N items, D features.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn.errors import CredalError
from credalearn.methods import Model
from credalearn.methods.pocc import mean_of_two_heads, two_heads
from credalearn.nets import MLP, Network, Standardize


def the_network(model: object) -> Network:
    """The one network with POCC's two heads.

    Raises:
        CredalError: If this is no trained model, or another method's.
    """
    if not isinstance(model, Model):
        raise CredalError(
            "model must be a fitted CredalClassifier, or its model_; got "
            f"{type(model).__name__}. To fix: fit it first, or give clf.model_."
        )
    method, members, heads = model.method, len(model.members), model.method.num_heads
    if (members, heads) != (1, 2):
        has = f"{members} network{'s' * (members > 1)} of {heads} head{'s' * (heads > 1)}"
    elif method.loss not in (two_heads, mean_of_two_heads):
        has = "another loss"
    elif method.num_passes > 1:
        has = "dropout left on"
    else:
        return model.members[0]
    raise CredalError(
        f"the bound is about POCC's two heads on one backbone, and its loss; this model has {has}. "
        "To fix: fit with method='pocc' or 'pocc-mean'."
    )


def features_of(model: Model, inputs: ArrayLike) -> Tensor:
    """What the heads of the first network see of inputs (N, ...), shape (N, D).

    Raises:
        CredalError: If the inputs are no numbers, or not of the shape that the network takes.
    """
    given = _as_fitted(inputs, table=isinstance(model.members[0].backbone, MLP))
    if given.ndim < 2 or not len(given):
        raise CredalError(f"inputs must have shape (items, ...); got {tuple(given.shape)}.")
    _check_width(model.members[0], given)
    try:
        return model.outputs(given).features
    except (RuntimeError, AssertionError) as error:
        raise CredalError(
            f"the network fails on items of shape {tuple(given.shape[1:])}: {error}. To fix: give "
            "the inputs that it was fitted on."
        ) from error


def _as_fitted(inputs: ArrayLike, *, table: bool) -> Tensor:
    """Inputs as a classifier converts them: in float64 for tables, which are standardized in it."""
    if isinstance(inputs, Tensor):
        return inputs.detach().to(torch.float64 if table else torch.float32)
    try:
        return torch.from_numpy(np.array(inputs, dtype=np.float64 if table else np.float32))
    except (TypeError, ValueError) as error:
        raise CredalError(
            f"inputs must be an array of numbers, one row an item; {str(error).rstrip('.')}."
        ) from error


def _check_width(network: Network, inputs: Tensor) -> None:
    """One feature would be taken for all of them: standardizing broadcasts."""
    for layer in network.modules():
        if isinstance(layer, Standardize) and len(layer.mean) != inputs.shape[1]:
            raise CredalError(
                f"inputs must hold items of shape ({len(layer.mean)}, ...), as in fit; got "
                f"{tuple(inputs.shape[1:])}. To fix: give the inputs that it was fitted on."
            )
