"""Linear models of methods with teachers: the fold models of a selected penalty teach.

Shapes: N items, M teachers, K classes.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from credalearn._selection import (
    Choice,
    Items,
    Report,
    Selected,
    linear_path,
    make_folds,
    rows_outside,
    with_threads,
)
from credalearn.methods import METHODS, Method, Model, Outputs
from credalearn.methods.taught import as_wide_as, narrowest, taught_labels
from credalearn.nets import Network
from credalearn.train.linear import LinearProblem, soft_target


def select_taught(
    method: Method,
    items: Items,
    *,
    groups: NDArray[Any] | None,
    random_state: int,
    device: torch.device,  # noqa: ARG001 (linear models are fitted on the CPU)
    report: Report,
) -> Selected:
    """A linear model with the best penalty, taught by the models of the folds."""
    folds = make_folds(items.truth, groups, random_state=random_state)
    found = with_threads(items, report, lambda tell: _select(items, folds, method, tell))
    return replace(found, model=replace(found.model, random_state=random_state))


def _select(items: Items, folds: NDArray[np.int64], method: Method, report: Report) -> Selected:
    path = linear_path(items, folds, items.labels.reference, report)
    report("linear model: bounds of the fold models")
    teachers = [
        _logits(problem.network([head]), inputs)[:, 0, 0].double().softmax(1)
        for problem, head, inputs in zip(path.problems, path.centers, path.inputs, strict=True)
    ]
    taught = taught_labels(torch.stack(teachers, 1))
    fit = (
        LinearProblem.fit_bounds if method.teachers == "cross-fitted" else LinearProblem.fit_credal
    )
    logits = torch.empty(len(items), 1, method.num_heads, items.truth.shape[1])
    for fold, rows in enumerate(rows_outside(folds)):
        problem, here = path.problems[fold], np.flatnonzero(folds == fold)
        heads = fit(problem, taught[rows], path.penalty, path.centers[fold])
        logits[here] = _logits(problem.network(heads), path.inputs[fold][here])
    problem = items.problem(items.encoded(np.arange(len(items))))
    center = problem.fit(soft_target(items.labels.reference), path.penalty, path.centers[0])
    network = problem.network(fit(problem, taught, path.penalty, center))
    outside = Outputs(logits, torch.empty(len(items), 0))
    if method.teachers == "cross-fitted":
        said = items.labels.reference
        state = narrowest(lambda state: method.predictions(outside, state), said)
    else:
        state = as_wide_as(lambda state: method.predictions(outside, state), taught)
    found = method.predictions(outside, state)
    choice = Choice(
        backbone="linear",
        penalty=path.penalty,
        candidates=path.tried,
        log_likelihood=-items.cost(found.probs),
    )
    return Selected(choice, Model(method, (network,), state, 0), folds, found)


def _logits(network: Network, inputs: Any) -> torch.Tensor:
    """Logits (N, 1, H, K) of one network for tensors or sparse matrices."""
    return Model(METHODS["softmax"], (network,), {}, 0).outputs(inputs).logits
