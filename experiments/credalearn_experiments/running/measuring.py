"""Measuring a run: what its networks say of test items, foreign images and voted items."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from credalearn.methods import BASES, Model
from credalearn.predictions import CredalPredictions
from credalearn_experiments.data import Task
from credalearn_experiments.records import Record
from credalearn_experiments.running.answers import Answers
from credalearn_experiments.running.evaluate import evaluate, pack, pack_voted, rejection_curve
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import PREDICTIONS, Store
from credalearn_experiments.running.trying import check_predictions
from credalearn_experiments.running.voted import evaluate_voted


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What a run found.

    Args:
        metrics: By name, as fractions.
        curves: By name.
        predictions: What is kept of them, as :func:`credalearn_experiments.running.evaluate.pack` has it.
    """

    metrics: Mapping[str, float]
    curves: Mapping[str, tuple[float, ...]]
    predictions: Mapping[str, Tensor]


def measured(
    run: Run,
    model: Model,
    task: Task,
    foreign: Mapping[str, Tensor],
    *,
    answers: Answers,
    device: torch.device,
) -> Measured:
    """Predict and measure.

    Args:
        run: Which.
        model: Its method on its trained networks.
        task: Its data.
        foreign: Foreign images by the name of their set.
        answers: What networks have said already.
        device: Where scores are worked out.
    """
    shared = run.method in BASES.values()

    def predict(name: str, inputs: Tensor) -> CredalPredictions:
        # Scores are worked out where the networks are: on a GPU the entropies cost nothing.
        found = answers.predict(model, name, inputs, shared=shared)
        check_predictions(run.method, found)  # of a post-hoc method they are the first
        return found.to(device)

    test, y = predict("test", task.test_inputs), task.test_y
    strange = {name: predict(name, images) for name, images in foreign.items()}
    known = task.train_inputs[: run.foreign_limit]
    training = predict("training", known) if strange else None
    metrics = evaluate(run.method, test, y.to(device), strange, training)
    kept = pack(test, y, strange)
    if task.voted_inputs is not None and task.voted_counts is not None:
        same = task.voted_inputs is task.test_inputs
        voted = test.to("cpu") if same else predict("voted", task.voted_inputs).to("cpu")
        metrics |= evaluate_voted(test.to("cpu"), y, voted, task.voted_counts)
        kept |= pack_voted(voted, task.voted_counts)
    curves = {"accuracy_rejection": rejection_curve(run.method, test, y.to(device))}
    return Measured(metrics, curves, kept)


def with_earlier(
    found: Measured, run: Run, before: Record, foreign: Mapping[str, Tensor], store: Store
) -> Measured:
    """With what was found before on foreign images that are not at hand now; these are named.

    Args:
        found: What is found now.
        run: Which.
        before: What was found the last time.
        foreign: The foreign images that are at hand.
        store: Where the predictions of the last time are.
    """
    lost = {
        name: value
        for name, value in before.metrics.items()
        if name.startswith("auroc_") and name not in found.metrics
    }
    if not lost:
        return found
    told = ", ".join(lost)
    print(f"{run.name} keeps {told}: these images are not at hand now", file=sys.stderr)
    kept = _kept(run, set(run.setting.foreign) - foreign.keys(), store)
    return Measured({**found.metrics, **lost}, found.curves, {**found.predictions, **kept})


def _kept(run: Run, absent: set[str], store: Store) -> dict[str, Tensor]:
    """What is kept of predictions on foreign images that are not at hand now."""
    if store.damage(run, thorough=True) is not None:
        return {}
    tensors = store.tensors(run, PREDICTIONS)
    return {name: x for name, x in tensors.items() if name.rpartition(".")[0] in absent}
