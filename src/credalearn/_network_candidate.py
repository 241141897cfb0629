"""The network among the candidates of the default learner: kept where it beats the linear model."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from credalearn._folds import Search, out_of_fold, rows_outside
from credalearn._method_training import MethodTraining
from credalearn.methods import Model
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.train import Recipe

# A network is tried from so many items on, with at most so many features.
_ITEMS, _FEATURES = 500, 5000
_RECIPE = Recipe(epochs=60, weight_decay=1e-4, schedule="constant")
_PATIENCE = 6  # epochs without a gain
_MANY_ITEMS, _LARGE_BATCH = 20_000, 512


def may_be_network(search: Search) -> bool:
    """Whether a network is worth a try: enough items, dense and without weights."""
    inputs = search.items.inputs
    dense = isinstance(inputs, Tensor) and search.items.weight is None  # as training takes them
    return dense and inputs.shape[1] <= _FEATURES and len(search.items) >= _ITEMS


def better_network(search: Search, rival: Tensor) -> tuple[int, Model, CredalPredictions] | None:
    """A network's epochs, the model of all items and predictions out of fold; None if no better.

    The first fold tells when to stop, and whether there is hope. The others decide: the gain over
    the out-of-fold probabilities of the ``rival`` (N, K) must exceed its standard error.
    """
    items, folds, others = search.items, search.folds, rows_outside(search.folds)
    first = np.flatnonzero(folds == 0)
    judged = items[first]
    costs: list[Tensor] = []

    def judge(network: Network) -> bool:
        model = Model(search.method, (network,), {}, search.random_state)
        costs.append(judged.costs(model.predict(judged.inputs).probs))
        network.train()
        return len(costs) - int(torch.stack(costs).mean(1).argmin()) > _PATIENCE

    _fit(search, others[0], _RECIPE.epochs, "first fold", 0.6, judge)
    epochs = int(torch.stack(costs).mean(1).argmin()) + 1
    if (judged.costs(rival[first]) - costs[epochs - 1]).mean() <= 0:
        return None  # not even on the fold that chose its epochs
    models = [
        _fit(search, rows, epochs, f"fold {number} of {len(others)}", 0.7 + 0.05 * number)
        for number, rows in enumerate(others, 1)
    ]
    found = out_of_fold(models, [items.inputs] * len(models), folds)
    rest = np.flatnonzero(folds != 0)
    gain = items[rest].costs(rival[rest]) - items[rest].costs(found.probs[rest])
    if gain.mean() <= gain.std() / len(gain) ** 0.5:
        return None
    return epochs, _fit(search, np.arange(len(items)), epochs, "all items", 0.95), found


def _fit(
    search: Search,
    rows: np.ndarray,
    epochs: int,
    what: str,
    share: float,
    judge: Callable[[Network], bool] | None = None,
) -> Model:
    """A network trained on these rows for so many epochs, or until ``judge`` is true."""
    items = search.items[rows]

    def stop(network: Network, epoch: int) -> bool:
        search.report(f"network: {what}, epoch {epoch} of {epochs}", share)  # notices Ctrl-C
        return judge is not None and judge(network)

    size = _LARGE_BATCH if len(items) >= _MANY_ITEMS else _RECIPE.batch_size
    seed = search.random_state
    training = MethodTraining(
        method=search.method,
        backbone="mlp",
        recipe=replace(_RECIPE, epochs=epochs, batch_size=size, random_state=seed),
        device=search.device,
        stop=stop,
    )
    return training.fit(items.inputs, items.labels.to(dtype=torch.float32))[0]
