"""The default learner: candidates compared on folds of the training items, the best one fitted.

Every candidate has a pessimistic, an optimistic and a center head (``pocc-center``): a linear model
with one of several L2 penalties, or a small network. They are compared by the log-likelihood of the
right class, out of fold, after one temperature.

Shapes: N items, D features, K classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from credalearn._temperature import fit_temperature, log_probs, temper
from credalearn.errors import CredalError, TrainingError
from credalearn.methods import METHODS, Method, Model, Outputs
from credalearn.methods.taught import as_wide_as, narrowest, taught_labels
from credalearn.nets import Network, build_network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import Recipe, Training, seeded, train
from credalearn.train._threads import on_one_thread
from credalearn.train.linear import Inputs, LinearProblem, soft_target

SELECTED_METHOD = "pocc-center"
CENTER = 2  # number of its head that learns the soft labels
NUM_FOLDS = 4
PENALTIES = tuple(10.0 ** -(1 + step / 2) for step in range(12))  # 0.1 to 3e-7, strongest first
# A smaller gain than this, in nats per item, is noise: the stronger penalty stays. After so many
# penalties without a gain, weaker ones are not tried.
_LEAST_GAIN, _MOST_WORSE = 5e-4, 2

# A network is tried from so many items on, with at most so many features.
_ITEMS_FOR_NETWORK, _FEATURES_FOR_NETWORK = 500, 5000
_RECIPE = Recipe(epochs=60, weight_decay=1e-4, schedule="constant")
_PATIENCE = 6  # epochs without a gain
_MANY_ITEMS, _LARGE_BATCH = 20_000, 512
_LARGE_TABLE = 2**22  # numbers: from here on several threads are faster than one

_T = TypeVar("_T")
Stop = Callable[[Network, int], bool]  # from a network and the epochs done to whether to stop
Report = Callable[[str, float], None]  # takes what is being done, and the share that is done
Rows = NDArray[np.int64]
Encode = Callable[[Inputs, Rows], Inputs]  # by an encoder that is fitted on these rows alone


def unheard(text: str, share: float) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the default learner chose."""

    backbone: Literal["linear", "mlp"]
    penalty: float | None = None  # of a linear model, relative to an item's mean squared length
    epochs: int | None = None  # of a network
    candidates: int  # how many were compared
    log_likelihood: float  # of the right class, mean per item, out of fold and tempered

    @property
    def words(self) -> str:
        """In words, such as ``"a linear model with penalty 0.003"``."""
        if self.penalty is None:
            return f"a network with two hidden layers and {self.epochs} epochs"
        return f"a linear model with penalty {self.penalty:.1g}"


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """The model that was chosen, and its predictions for the training items."""

    choice: Choice
    model: Model
    folds: Rows  # number of each item's fold, shape (N,)
    out_of_fold: CredalPredictions  # by the model of the other folds, not tempered


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


def select(
    items: Items,
    *,
    method: Method,
    groups: NDArray[Any] | None,
    random_state: int,
    device: torch.device,
    report: Report,
) -> Selected:
    """Compare the candidates on folds, and fit the best one on all items.

    Methods with teachers have linear candidates only, and the models of the folds teach.
    """
    folds = make_folds(items.truth, groups, random_state=random_state)
    if method.teachers is not None:
        return _with_threads(
            items, report, lambda tell: _select_taught(items, folds, method, random_state, tell)
        )

    return _with_threads(
        items, report, lambda tell: _select(items, folds, random_state, device, tell)
    )


def logistic_regression(items: Items, folds: Rows) -> Tensor:
    """Out-of-fold probabilities of the rival: one linear head on the right class, tempered."""
    path = _with_threads(items, unheard, lambda tell: linear_path(items, folds, items.truth, tell))
    return temper(path.probs, fit_temperature(path.probs, items.truth, weight=items.weight))


def _with_threads(items: Items, report: Report, work: Callable[[Report], _T]) -> _T:
    """What ``work`` returns, on one thread of torch unless the table is large."""

    def run(stopped: Event) -> _T:
        def tell(text: str, share: float) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt
            report(text, share)

        return work(tell)

    is_large = isinstance(items.inputs, Tensor) and items.inputs.numel() > _LARGE_TABLE
    return run(Event()) if is_large else on_one_thread(run)


def _select(
    items: Items, folds: Rows, random_state: int, device: torch.device, report: Report
) -> Selected:
    path = linear_path(items, folds, items.labels.reference, report)
    report("linear model: pessimistic and optimistic heads", 0.6)
    networks = [
        problem.network(problem.fit_credal(items.labels[rows], path.penalty, center))
        for problem, rows, center in zip(path.problems, _others(folds), path.centers, strict=True)
    ]
    found = _out_of_fold(networks, path.inputs, folds)
    choice = Choice(
        backbone="linear",
        penalty=path.penalty,
        candidates=path.tried,
        log_likelihood=-items.cost(found.probs),
    )
    if _may_be_network(items):
        choice = replace(choice, candidates=path.tried + 1)
        network = _better_network(items, folds, found.probs, random_state, device, report)
        if network is not None:
            epochs, model, found = network
            cost = items.cost(found.probs)
            choice = Choice(
                backbone="mlp", epochs=epochs, candidates=choice.candidates, log_likelihood=-cost
            )
            return Selected(choice, model, folds, found)
    report("linear model: fit on all items", 0.95)
    problem = items.problem(items.encoded(np.arange(len(items))))
    center = problem.fit(soft_target(items.labels.reference), path.penalty, path.centers[0])
    heads = problem.fit_credal(items.labels, path.penalty, center)
    model = _model(problem.network(heads), random_state=random_state)
    return Selected(choice, model, folds, found)


def _select_taught(
    items: Items, folds: Rows, method: Method, random_state: int, report: Report
) -> Selected:
    """A linear model that learns how far the models of the folds disagree, with their penalty."""
    path = linear_path(items, folds, items.labels.reference, report)
    report("linear model: bounds of the fold models", 0.6)
    solved = list(zip(path.problems, path.centers, path.inputs, strict=True))
    teachers = [
        _model(problem.network([head]), "softmax").predict(inputs).probs.double()
        for problem, head, inputs in solved
    ]
    taught = taught_labels(torch.stack(teachers, 1))
    crossed = method.teachers == "cross-fitted"
    fit = LinearProblem.fit_bounds if crossed else LinearProblem.fit_credal
    logits = torch.empty(len(items), 1, method.num_heads, items.truth.shape[1])
    for fold, (problem, center, inputs) in enumerate(solved):
        here = np.flatnonzero(folds == fold)
        heads = fit(problem, taught[np.flatnonzero(folds != fold)], path.penalty, center)
        logits[here] = _model(problem.network(heads), "softmax").outputs(inputs[here]).logits
    outside = Outputs(logits, torch.empty(len(items), 0))
    predict = partial(method.predictions, outside)
    state = narrowest(predict, items.labels.reference) if crossed else as_wide_as(predict, taught)
    problem = items.problem(items.encoded(np.arange(len(items))))
    center = problem.fit(soft_target(items.labels.reference), path.penalty, path.centers[0])
    network = problem.network(fit(problem, taught, path.penalty, center))
    found = predict(state)
    choice = Choice(
        backbone="linear",
        penalty=path.penalty,
        candidates=path.tried,
        log_likelihood=-items.cost(found.probs),
    )
    return Selected(choice, Model(method, (network,), state, random_state), folds, found)


def make_folds(
    truth: Tensor, groups: NDArray[Any] | None, *, random_state: int, count: int = NUM_FOLDS
) -> Rows:
    """The fold of each item, shape (N,): groups stay together, classes are spread evenly."""
    names = np.arange(len(truth)) if groups is None else np.asarray(groups)
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    if len(first) < 2:
        what, fix = (
            ("items", "") if groups is None else ("groups of items", "leave groups out, or ")
        )
        raise CredalError(
            f"there must be two {what} or more, to compare models; got {len(first)}. To fix: {fix}"
            "add items."
        )
    order = np.random.default_rng(random_state).permutation(len(first))
    order = order[np.argsort(truth.argmax(1).numpy()[first[order]], kind="stable")]
    fold = np.empty(len(first), dtype=np.int64)
    fold[order] = np.arange(len(first)) % min(count, len(first))
    return fold[group]


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
    others = _others(folds)
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
        probs = _out_of_fold(networks, inputs, folds, method="softmax").probs
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


def _others(folds: Rows) -> list[Rows]:
    """The rows outside each fold."""
    return [np.flatnonzero(folds != fold) for fold in range(folds.max() + 1)]


def _model(network: Network, method: str = SELECTED_METHOD, *, random_state: int = 0) -> Model:
    return Model(METHODS[method], (network,), {}, random_state)


def _out_of_fold(
    networks: list[Network], inputs: list[Inputs], folds: Rows, *, method: str = SELECTED_METHOD
) -> CredalPredictions:
    """Predictions of each item by the network of the other folds, which has inputs of its own."""
    rows = [np.flatnonzero(folds == fold) for fold in range(len(networks))]
    parts = [
        _model(network, method).predict(all_items[each])
        for network, all_items, each in zip(networks, inputs, rows, strict=True)
    ]
    vertices = torch.cat([part.vertices for part in parts if part.vertices is not None])
    return CredalPredictions.from_vertices(vertices[np.argsort(np.concatenate(rows))])


def _may_be_network(items: Items) -> bool:
    few = items.inputs.shape[1] <= _FEATURES_FOR_NETWORK
    dense = isinstance(items.inputs, Tensor) and items.weight is None  # the loop knows no weights
    return dense and few and len(items) >= _ITEMS_FOR_NETWORK


def _better_network(
    items: Items,
    folds: Rows,
    rival: Tensor,
    random_state: int,
    device: torch.device,
    report: Report,
) -> tuple[int, Model, CredalPredictions] | None:
    """A network that beats the linear model, with its epochs and out-of-fold predictions, or None.

    The first fold tells when to stop, and whether there is hope. The others decide: the gain over
    ``rival``, the out-of-fold probabilities of the linear model (N, K), must exceed its standard
    error.
    """
    first = np.flatnonzero(folds == 0)
    judged = items[first]
    costs: list[Tensor] = []

    def stop(network: Network, epoch: int) -> bool:
        costs.append(judged.costs(_model(network).predict(judged.inputs).probs))
        network.train()
        means = [float(each.mean()) for each in costs]
        done = 0.6 + 0.2 * epoch / _RECIPE.epochs
        report(f"network: epoch {epoch}, log-likelihood {-means[-1]:.4f}", done)
        return len(means) - int(np.argmin(means)) > _PATIENCE

    def fit(number: int, rows: Rows) -> Network:
        def report_epoch(network: Network, epoch: int) -> bool:  # noqa: ARG001
            done = 0.8 + 0.2 * (number + epoch / epochs) / (len(others) + 1)
            what = f"fold {number + 1} of {len(others)}" if number < len(others) else "all items"
            report(f"network: {what}, epoch {epoch} of {epochs}", done)  # notices Ctrl-C, too
            return False

        return _fit_network(items[rows], epochs, random_state, device, report_epoch)

    others = _others(folds)
    _fit_network(items[others[0]], _RECIPE.epochs, random_state, device, stop)
    epochs = int(np.argmin([float(each.mean()) for each in costs])) + 1
    gain = judged.costs(rival[first]) - costs[epochs - 1]
    if gain.mean() <= 0:  # not even on the fold that chose its epochs
        return None
    networks = [fit(number, rows) for number, rows in enumerate(others)]
    found = _out_of_fold(networks, [items.inputs] * len(networks), folds)
    rest = np.flatnonzero(folds != 0)
    gain = items[rest].costs(rival[rest]) - items[rest].costs(found.probs[rest])
    if gain.mean() <= _standard_error(gain):
        return None
    network = fit(len(others), np.arange(len(items)))
    return epochs, _model(network, random_state=random_state), found


def _standard_error(values: Tensor) -> float:
    return float(values.std() / len(values) ** 0.5)


def _fit_network(
    items: Items, epochs: int, random_state: int, device: torch.device, stop: Stop
) -> Network:
    """A network trained on the items for so many epochs, or until ``stop`` is true."""
    assert isinstance(items.inputs, Tensor)
    method = METHODS[SELECTED_METHOD]
    with seeded(device, random_state, 0):
        heads, classes = method.num_heads, items.truth.shape[1]
        network = build_network("mlp", items.inputs, num_heads=heads, num_classes=classes)
    size = _LARGE_BATCH if len(items) >= _MANY_ITEMS else _RECIPE.batch_size
    training = Training(
        network=network.to(device),
        inputs=items.inputs,
        labels=items.labels.to(dtype=torch.float32),
        loss=method.loss,
        recipe=replace(_RECIPE, epochs=epochs, batch_size=size, random_state=random_state),
        stop=partial(stop, network),
    )
    (end,) = train([training])
    if isinstance(end, TrainingError):
        raise end
    return network
