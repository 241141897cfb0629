"""Learned bounds and distillation: losses, factors, and students of linear and other models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.testing import assert_close

import credalearn as cl
from clouds import clouds
from credalearn import _method_training
from credalearn.labels.soft import taught_labels
from credalearn.methods.base import Outputs
from credalearn.methods.distillation import (
    as_wide_as,
    bounds_loss,
    learned_bounds,
    narrowest,
    stretch,
    stretched,
)
from credalearn.nets import Network
from credalearn.train import Recipe, Training, train
from credalearn.train._linear import LinearProblem, log_odds, soft_target
from random_sets import distributions
from small_training import Watch

TAUGHT = ("credal-bounds", "pocc-distilled")


def test_the_bounds_are_learned_where_the_loss_is_least(generator: torch.Generator) -> None:
    labels = taught_labels(0.9 * distributions(20, 4, 3, generator=generator) + 0.1 / 3)
    center = labels.reference.log()
    ends = torch.stack([labels.lower, labels.upper], 1).logit() - log_odds(center)[:, None]
    logits = torch.cat([ends, center[:, None]], 1).requires_grad_()
    (slope,) = torch.autograd.grad(bounds_loss(logits, labels, 0), logits)
    assert slope.abs().max() < 1e-6
    outputs = Outputs(logits.detach()[:, None], torch.empty(20, 0))
    found = learned_bounds(outputs, stretch(1.0))
    assert_close(found.lower, labels.lower)
    assert_close(found.upper, labels.upper)
    assert_close(found.probs, labels.reference)
    wide = learned_bounds(outputs, stretch(3.0))
    assert_close(wide.lower, (found.probs - 3 * (found.probs - found.lower)).clamp(min=0))
    assert_close(wide.upper, (found.probs + 3 * (found.upper - found.probs)).clamp(max=1))


def test_the_narrowest_factor_is_found(generator: torch.Generator) -> None:
    center = distributions(400, 4, generator=generator)
    gaps = 0.05 * (center * (1 - center)).sqrt()
    ends = torch.stack([center - gaps, center + gaps], 1)
    noise = torch.randn(400, 4, generator=generator).double()
    votes = (center + 0.5 * gaps / 0.05 * noise).clamp(min=0) + 1e-9

    def width(factor: float) -> float:
        boxes = stretched(center, ends, stretch(factor))
        wide = boxes.conformalize(boxes.inflation(votes, scale="none"))
        return float((wide.upper - wide.lower).mean())

    found = narrowest(lambda state: stretched(center, ends, state), votes)["stretch"].item()
    assert found > 1
    assert all(width(found) <= width(other) for other in (1.0, found / 2, 2 * found))


def test_a_distilled_set_is_as_wide_as_its_teachers(generator: torch.Generator) -> None:
    labels = taught_labels(
        0.5 + 0.1 * torch.randn(60, 5, 1, generator=generator) * torch.tensor([1, -1])
    )
    center = labels.reference
    ends = torch.stack([center - 0.003, center + 0.001], 1)
    found = stretched(center, ends, as_wide_as(lambda s: stretched(center, ends, s), labels))
    assert_close((found.upper - found.lower).mean(), (labels.upper - labels.lower).mean())


def test_linear_bounds_equal_a_general_optimizer(generator: torch.Generator) -> None:
    X = torch.randn(40, 3, generator=generator)
    center = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    wanted = torch.rand(40, 2, generator=generator, dtype=torch.float64)
    problem = LinearProblem(X, 2)
    offset = log_odds(torch.randn(40, 2, generator=generator, dtype=torch.float64))
    found = problem.fit(soft_target(wanted), 0.01, center, offset=offset)
    features = problem.X.double()

    def objective(flat: np.ndarray) -> float:
        head = torch.from_numpy(flat).view(4, 2)
        odds = offset + features @ head[:-1] + head[-1]
        cost = nn.functional.binary_cross_entropy_with_logits(odds, wanted, reduction="sum") / 40
        strength = 0.01 * problem.length
        return float(cost + strength / 2 * head[:-1].square().sum())

    best = minimize(objective, np.zeros(8), method="BFGS", options={"gtol": 1e-8})
    assert abs(objective(found.numpy().ravel()) - best.fun) < 1e-6


@pytest.mark.parametrize("method", TAUGHT)
@pytest.mark.parametrize("sparse", [False, True])
def test_fold_models_teach_a_linear_model(method: str, sparse: bool, tmp_path: Path) -> None:
    X, y, counts = clouds(3)
    given = csr_matrix(X) if sparse else X
    clf = cl.CredalClassifier(method, backbone="linear").fit(given, cl.from_votes(counts))
    assert clf.score(given, y) > 0.95
    assert clf.choice_ is not None
    assert clf.choice_.backbone == "linear"
    assert clf.out_of_fold_ is not None
    found = clf.predict_credal(given)
    assert (found.upper - found.lower).mean() > 1e-4
    clf.save(tmp_path)
    again = cl.load(tmp_path).predict_credal(given)
    assert torch.equal(again.lower, found.lower)
    with pytest.raises(cl.CredalError, match="such options are for networks"):
        cl.CredalClassifier(method, backbone="linear", epochs=3).fit(X, y)


def test_cross_fitted_teachers_leave_items_out(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, counts = clouds(3)
    seen: list[int] = []
    rows: list[set[float]] = []

    def counted(trainings: list[Training]) -> Any:
        seen.append(len(trainings[0].inputs))
        rows.append(set(trainings[0].inputs[:, 0].tolist()))
        return train(trainings)

    monkeypatch.setattr(_method_training, "train", counted)
    for method, sizes in (("credal-bounds", [72] * 5), ("pocc-distilled", [90] * 5)):
        seen.clear()
        cl.CredalClassifier(method, epochs=1).fit(X, cl.from_votes(counts))
        assert seen == [*sizes, 90]  # and the student
    rows.clear()
    groups = np.arange(90) // 3
    clf = cl.CredalClassifier("credal-bounds", epochs=1)
    clf.fit(X, cl.from_votes(counts), groups=groups)
    for group in range(30):
        together = set(X[groups == group, 0].tolist())
        assert sum(together <= own for own in rows[:5]) == 4
        assert sum(together.isdisjoint(own) for own in rows[:5]) == 1


def test_teachers_label_augmented_inputs(generator: torch.Generator) -> None:
    inputs = torch.randn(12, 2, generator=generator)
    watch, learned = Watch(), list[Tensor]()

    def network(backbone: nn.Module, num_heads: int) -> Network:
        return Network(backbone, num_features=2, num_heads=num_heads, num_classes=2)

    def loss(logits: Tensor, labels: cl.CredalSet, epoch: int | Tensor) -> Tensor:
        learned.append(labels.lower)
        return bounds_loss(logits, labels, epoch)

    teachers = (network(watch, 1), network(nn.Identity(), 1))
    training = Training(
        network=network(nn.Identity(), 3),
        inputs=inputs,
        labels=taught_labels(torch.full((12, 1, 2), 0.5)),
        loss=loss,
        recipe=Recipe(epochs=2, batch_size=12),
        augment=lambda items: items + 1,
        teachers=teachers,
    )
    train([training])
    assert len(watch.seen) == 2
    for items, lower in list(zip(watch.seen, learned, strict=True)):
        assert_close(items.sort(0).values, (inputs + 1).sort(0).values)
        said = torch.cat([each(items).softmax(2) for each in teachers], 1)
        assert_close(lower, taught_labels(said).lower)
