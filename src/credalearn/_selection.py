"""The default learner: candidates compared on folds of the training items, the best one fitted.

Every candidate has a pessimistic, an optimistic and a center head (``pocc-center``): a linear model
with one of several L2 penalties, or a small network. They are compared by the log-likelihood of the
right class, out of fold, after one temperature.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from threading import Event
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from credalearn._folds import Items, Rows, out_of_fold, rows_outside
from credalearn._temperature import fit_temperature, temper
from credalearn.labels.soft import taught_labels
from credalearn.methods import METHODS, Method, Model, Outputs
from credalearn.methods.distillation import as_wide_as, narrowest
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.train import Recipe
from credalearn.train._linear import Inputs, LinearProblem, soft_target
from credalearn.train._threads import on_one_thread

SELECTED_METHOD = "pocc-center"
CENTER = 2  # number of its head that learns the soft labels
PENALTIES = tuple(10.0 ** -(1 + step / 2) for step in range(12))  # 0.1 to 3e-7, strongest first
# A smaller gain than this, in nats per item, is noise: the stronger penalty stays. After so many
# penalties without a gain, weaker ones are not tried.
_LEAST_GAIN, _MOST_WORSE = 5e-4, 2
_LARGE_TABLE = 2**22  # numbers: from here on several threads are faster than one
# A network is tried from so many items on, with at most so many features.
_ITEMS, _FEATURES = 500, 5000
_RECIPE = Recipe(epochs=60, weight_decay=1e-4, schedule="constant")
_PATIENCE = 6  # epochs without a gain
_MANY_ITEMS, _LARGE_BATCH = 20_000, 512

Report = Callable[[str, float], None]  # takes what is being done, and the share that is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the default learner chose."""

    backbone: Literal["linear", "mlp"]
    penalty: float | None = None  # of a linear model, relative to an item's mean squared length
    epochs: int | None = None  # of a network
    candidates: int  # how many were compared
    log_likelihood: float = nan  # of the right class, mean per item, out of fold and tempered

    @property
    def words(self) -> str:
        """In words, such as ``"a linear model with penalty 0.003"``."""
        if self.penalty is None:
            return f"a network with two hidden layers and {self.epochs} epochs"
        return f"a linear model with penalty {self.penalty:.1g}"


# What was chosen, fitted, and predictions by the models of the other folds, not tempered.
Selected = tuple[Choice, Model, CredalPredictions]


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What the default learner compares its candidates on."""

    items: Items
    folds: Rows
    method: Method
    random_state: int
    device: torch.device
    report: Report


def select(search: Search, stopped: Event) -> Selected:
    """Compare the candidates on folds, and fit the best one on all items."""
    search = replace(search, report=interrupted(search.report, stopped))
    items, learn = search.items, _better if search.method.teachers is None else _taught
    path = linear_path(items, search.folds, items.labels.reference, search.report)
    choice, model, predicted = learn(search, path)
    return replace(choice, log_likelihood=-items.cost(predicted.probs)), model, predicted


def logistic_regression(items: Items, folds: Rows) -> Tensor:
    """Out-of-fold probabilities of the rival: one linear head on the right class, tempered."""

    def work(stopped: Event) -> LinearPath:
        return linear_path(items, folds, items.truth, interrupted(lambda *_: None, stopped))

    path = on_one_thread(work, unless=is_large(items))
    return temper(path.probs, fit_temperature(path.probs, items.truth, weight=items.weight))


def is_large(items: Items) -> bool:
    """Whether linear models of these items are fitted faster by several threads."""
    return isinstance(items.inputs, Tensor) and items.inputs.numel() > _LARGE_TABLE


def interrupted(report: Report, stopped: Event) -> Report:
    """A report that ends the work by ``KeyboardInterrupt`` once the event is set."""

    def tell(text: str, share: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        report(text, share)

    return tell


@dataclass(frozen=True, slots=True, eq=False)
class LinearPath:
    """Linear models of the folds with the best of several penalties."""

    penalty: float
    tried: int  # number of penalties that were compared
    inputs: list[Inputs]  # of all items, one per fold, encoded as the others are
    problems: list[LinearProblem]  # one per fold, of the items of the others
    centers: list[Tensor]  # the head that learned the soft labels, one per fold
    probs: Tensor  # out of fold, not tempered, shape (N, K)


def linear_path(items: Items, folds: Rows, soft: Tensor, report: Report) -> LinearPath:
    """Linear models that learn ``soft`` (N, K), from the strongest penalty to weaker ones."""
    others = rows_outside(folds)
    inputs = [items.encoded(rows) for rows in others]
    pairs = zip(inputs, others, strict=True)
    problems = [items[rows].problem(each[rows]) for each, rows in pairs]
    targets = [soft_target(soft[rows]) for rows in others]
    centers: list[Tensor | None] = [None] * len(others)
    best: LinearPath | None = None
    least, tried = np.inf, 0
    for tried, penalty in enumerate(PENALTIES, 1):
        fitted = [
            problem.fit(target, penalty, start)
            for problem, target, start in zip(problems, targets, centers, strict=True)
        ]
        networks = [problem.network([head]) for problem, head in zip(problems, fitted, strict=True)]
        probs = out_of_fold(list(map(_model, networks)), inputs, folds).probs
        cost = items.cost(probs)
        done = 0.6 * tried / len(PENALTIES)
        report(f"linear model: penalty {penalty:.1g}, log-likelihood {-cost:.4f}", done)
        if best is None or cost < least - _LEAST_GAIN:
            least, best = cost, LinearPath(penalty, tried, inputs, problems, fitted, probs)
        elif tried - best.tried >= _MOST_WORSE:
            break
        centers = list(fitted)
    assert best is not None
    return replace(best, tried=tried)


def _model(network: Network, method: str = "softmax", *, random_state: int = 0) -> Model:
    return Model(METHODS[method], (network,), {}, random_state)


def _last_fit(items: Items, path: LinearPath) -> tuple[LinearProblem, Tensor]:
    """All items prepared for linear fits, and their center head."""
    problem = items.problem(items.encoded(np.arange(len(items))))
    return problem, problem.fit(soft_target(items.labels.reference), path.penalty, path.centers[0])


def _better(search: Search, path: LinearPath) -> Selected:
    """The linear model, or the network where it is better."""
    items, folds = search.items, search.folds
    search.report("linear model: pessimistic and optimistic heads", 0.6)
    models = []
    for problem, rows, center in zip(path.problems, rows_outside(folds), path.centers, strict=True):
        heads = problem.fit_credal(items.labels[rows], path.penalty, center)
        models.append(_model(problem.network(heads), SELECTED_METHOD))
    predicted, tried = out_of_fold(models, path.inputs, folds), path.tried
    # Enough items, dense and without weights, as the training of networks takes them.
    dense = isinstance(items.inputs, Tensor) and items.weight is None
    if dense and len(items) >= _ITEMS and items.inputs.shape[1] <= _FEATURES:
        tried += 1
        with_network = _better_network(search, predicted.probs, tried)
        if with_network is not None:
            return with_network
    search.report("linear model: fit on all items", 0.95)
    problem, center = _last_fit(items, path)
    heads = problem.fit_credal(items.labels, path.penalty, center)
    model = _model(problem.network(heads), SELECTED_METHOD, random_state=search.random_state)
    return Choice(backbone="linear", penalty=path.penalty, candidates=tried), model, predicted


def _better_network(search: Search, rival: Tensor, tried: int) -> Selected | None:
    """A network, if its gain over out-of-fold probabilities (N, K) exceeds its standard error."""
    # The first fold tells when to stop, and whether there is hope. The others decide.
    items, folds, others = search.items, search.folds, rows_outside(search.folds)
    first = np.flatnonzero(folds == 0)
    judged = items[first]
    costs: list[Tensor] = []

    def judge(network: Network) -> bool:
        model = Model(search.method, (network,), {}, search.random_state)
        costs.append(judged.costs(model.predict(judged.inputs).probs))
        network.train()
        return len(costs) - int(torch.stack(costs).mean(1).argmin()) > _PATIENCE

    _fit_network(search, others[0], _RECIPE.epochs, "first fold", 0.6, judge)
    epochs = int(torch.stack(costs).mean(1).argmin()) + 1
    if (judged.costs(rival[first]) - costs[epochs - 1]).mean() <= 0:
        return None  # not even on the fold that chose its epochs
    models = [
        _fit_network(search, rows, epochs, f"fold {number} of {len(others)}", 0.7 + 0.05 * number)
        for number, rows in enumerate(others, 1)
    ]
    predicted = out_of_fold(models, [items.inputs] * len(models), folds)
    rest = np.flatnonzero(folds != 0)
    gain = items[rest].costs(rival[rest]) - items[rest].costs(predicted.probs[rest])
    if gain.mean() <= gain.std() / len(gain) ** 0.5:
        return None
    model = _fit_network(search, np.arange(len(items)), epochs, "all items", 0.95)
    return Choice(backbone="mlp", epochs=epochs, candidates=tried), model, predicted


def _fit_network(
    search: Search,
    rows: np.ndarray,
    epochs: int,
    what: str,
    share: float,
    judge: Callable[[Network], bool] | None = None,
) -> Model:
    """A network trained on these rows for so many epochs, or until ``judge`` is true."""
    from credalearn._method_training import MethodTraining  # few tables are large enough

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


def _taught(search: Search, path: LinearPath) -> Selected:
    """A linear model that learns how far the models of the folds disagree, with their penalty."""
    items, folds, method = search.items, search.folds, search.method
    search.report("linear model: bounds of the fold models", 0.6)
    solved = list(zip(path.problems, path.centers, path.inputs, strict=True))
    teachers = [
        _model(problem.network([head])).predict(inputs).probs.double()
        for problem, head, inputs in solved
    ]
    taught = taught_labels(torch.stack(teachers, 1))
    crossed = method.teachers == "cross-fitted"
    fit = LinearProblem.fit_bounds if crossed else LinearProblem.fit_credal
    logits = torch.empty(len(items), 1, method.num_heads, items.truth.shape[1])
    for fold, (problem, center, inputs) in enumerate(solved):
        here = np.flatnonzero(folds == fold)
        heads = fit(problem, taught[np.flatnonzero(folds != fold)], path.penalty, center)
        logits[here] = _model(problem.network(heads)).outputs(inputs[here]).logits
    predict = partial(method.predictions, Outputs(logits, torch.empty(len(items), 0)))
    state = narrowest(predict, items.labels.reference) if crossed else as_wide_as(predict, taught)
    problem, center = _last_fit(items, path)
    network = problem.network(fit(problem, taught, path.penalty, center))
    model = Model(method, (network,), state, search.random_state)
    choice = Choice(backbone="linear", penalty=path.penalty, candidates=path.tried)
    return choice, model, predict(state)
