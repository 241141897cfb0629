"""The network among the candidates of the default learner: kept where it beats the linear model.

Shapes: N items, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from credalearn._folds import Items, out_of_fold, rows_outside
from credalearn._method_training import MethodTraining
from credalearn.methods import Method, Model
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.train import Recipe

# A network is tried from so many items on, with at most so many features.
_ITEMS, _FEATURES = 500, 5000
_RECIPE = Recipe(epochs=60, weight_decay=1e-4, schedule="constant")
_PATIENCE = 6  # epochs without a gain
_MANY_ITEMS, _LARGE_BATCH = 20_000, 512

Report = Callable[[str, float], None]  # takes what is being done, and the share that is done


@dataclass(frozen=True, slots=True, eq=False)
class NetworkCandidate:
    """A small network, trained for as many epochs as the first fold prefers."""

    items: Items
    method: Method
    random_state: int
    device: torch.device
    report: Report

    @property
    def is_worth_a_try(self) -> bool:
        """Whether there are enough items, dense and without weights, which training has not."""
        dense = isinstance(self.items.inputs, Tensor) and self.items.weight is None
        few = self.items.inputs.shape[1] <= _FEATURES
        return dense and few and len(self.items) >= _ITEMS

    def beat(self, rival: Tensor, folds: np.ndarray) -> tuple[int, Model, CredalPredictions] | None:
        """Its epochs, the model of all items and predictions out of fold; None if it is no better.

        The first fold tells when to stop, and whether there is hope. The others decide: the gain
        over the out-of-fold probabilities of the ``rival`` (N, K) must exceed its standard error.
        """
        items, others, first = self.items, rows_outside(folds), np.flatnonzero(folds == 0)
        judged = items[first]
        costs: list[Tensor] = []

        def judge(network: Network) -> bool:
            model = Model(self.method, (network,), {}, self.random_state)
            costs.append(judged.costs(model.predict(judged.inputs).probs))
            network.train()
            return len(costs) - int(torch.stack(costs).mean(1).argmin()) > _PATIENCE

        self._fit(others[0], _RECIPE.epochs, "first fold", 0.6, judge)
        epochs = int(torch.stack(costs).mean(1).argmin()) + 1
        if (judged.costs(rival[first]) - costs[epochs - 1]).mean() <= 0:
            return None  # not even on the fold that chose its epochs
        models = [
            self._fit(rows, epochs, f"fold {number} of {len(others)}", 0.7 + 0.05 * number)
            for number, rows in enumerate(others, 1)
        ]
        found = out_of_fold(models, [items.inputs] * len(models), folds)
        rest = np.flatnonzero(folds != 0)
        gain = items[rest].costs(rival[rest]) - items[rest].costs(found.probs[rest])
        if gain.mean() <= gain.std() / len(gain) ** 0.5:
            return None
        return epochs, self._fit(np.arange(len(items)), epochs, "all items", 0.95), found

    def _fit(
        self,
        rows: np.ndarray,
        epochs: int,
        what: str,
        share: float,
        judge: Callable[[Network], bool] | None = None,
    ) -> Model:
        """A network trained on these rows for so many epochs, or until ``judge`` is true."""
        items = self.items[rows]

        def stop(network: Network, epoch: int) -> bool:
            self.report(f"network: {what}, epoch {epoch} of {epochs}", share)  # notices Ctrl-C
            return judge is not None and judge(network)

        size = _LARGE_BATCH if len(items) >= _MANY_ITEMS else _RECIPE.batch_size
        seed = self.random_state
        training = MethodTraining(
            method=self.method,
            backbone="mlp",
            recipe=replace(_RECIPE, epochs=epochs, batch_size=size, random_state=seed),
            device=self.device,
            stop=stop,
        )
        return training.fit(items.inputs, items.labels.to(dtype=torch.float32))[0]
