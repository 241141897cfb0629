"""The bound: each term by hand, its steps by brute force, the whole where the truth is known."""

import math
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from credalearn import CredalClassifier, CredalError, LowerBounds, pocc_loss
from credalearn.methods import METHODS
from credalearn.sets.box_entropy import _enumerated
from credalearn.theory import (
    GeneralizationBound,
    bound_of_model,
    generalization_bound,
    last_layer_complexity,
    least_objective,
)
from credalearn.theory.objective import _smallest_entropy
from random_sets import KINDS, outcomes


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_classes", [2, 3])
def test_the_least_objective_is_what_a_search_of_all_predictions_finds(
    kind: str, num_classes: int, generator: torch.Generator
) -> None:
    sets = KINDS[kind](40, num_classes, generator)
    grid = torch.from_numpy(outcomes(60, num_classes) + 1e-6)  # no probability is 0
    grid = grid / grid.sum(1, keepdim=True)
    worst = torch.stack([sets.worst(-p.log()) for p in grid]).amin(0)
    best = torch.stack([sets.best(-p.log()) for p in grid]).amin(0)
    searched = (worst + best) / 2
    exact = least_objective(sets)
    assert (exact <= searched + 1e-4).all()  # no prediction is better; the dust costs 1e-5
    assert (searched - exact).max() < 0.015  # and the nearest of the grid is nearly as good


def test_many_classes_have_a_lower_bound_of_the_smallest_entropy(
    generator: torch.Generator,
) -> None:
    # Beyond ten classes the search may miss the minimum; every vertex of eleven can still be tried.
    sets = KINDS["intervals"](100, 11, generator)
    exact = _enumerated(sets.lower, sets.upper)
    bound = _smallest_entropy(sets) * math.log(2)
    assert (bound <= exact + 1e-9).all()
    assert float((exact - bound).median()) < 0.1  # and it is worth something


def test_the_complexity_is_above_that_of_the_losses_over_all_signs(
    generator: torch.Generator,
) -> None:
    # Two classes, one feature, eight items: heads (a, −a) with |a| <= ρ/√2 on a fine grid, and
    # every one of the 2^8 signs.
    features = normal(8, 1, generator=generator)
    sets = KINDS["lower bounds"](8, 2, generator)
    weights = torch.tensor([[[1.2], [-0.8]], [[-0.3], [0.7]]], dtype=torch.float64)
    scores = torch.linspace(-1, 1, 201, dtype=torch.float64)
    signs = torch.tensor(list(product([-1.0, 1.0], repeat=8)), dtype=torch.float64)
    complexity = 0.0
    for limit, extreme in zip((1.0, 0.5), (sets.worst, sets.best), strict=True):  # centered by hand
        losses = torch.stack(
            [
                extreme(-(a * limit * features * torch.tensor([[1, -1]])).log_softmax(1))
                for a in scores
            ]
        )
        complexity += float((signs @ losses.T / 8).amax(1).mean()) / 2
    bound = last_layer_complexity(features, weights)
    assert 0.1 * bound < complexity < bound
    assert bound == pytest.approx((math.sqrt(2) + math.sqrt(0.5)) * float(features.norm()) / 8)


def example(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, LowerBounds]:
    """Features, weights and biases of two heads, and labels."""
    features, weights = normal(50, 4, generator=generator), normal(2, 3, 4, generator=generator)
    labels = KINDS["lower bounds"](50, 3, generator)
    assert isinstance(labels, LowerBounds)
    return features, weights, normal(2, 3, generator=generator), labels


def test_each_term_matches_its_formula(generator: torch.Generator) -> None:
    features, weights, biases, labels = example(generator)
    bound = generalization_bound(features, weights, labels, biases=biases, confidence=0.9)
    heads = [features @ weights[h].T + biases[h] for h in range(2)]
    spans = [float(row.max() - row.min()) for head in heads for row in head]
    largest = max(spans)
    assert bound.loss_range == pytest.approx(largest)
    assert bound.loss_bound == pytest.approx(math.log(1 + 2 * math.exp(largest)))
    assert bound.loss_bound < math.log(3) + largest  # the paper's, which it replaces
    assert all(float(-head.log_softmax(1).min()) <= bound.loss_bound for head in heads)
    assert bound.complexity == pytest.approx(4 * last_layer_complexity(features, weights, biases))
    assert bound.sampling == pytest.approx(2 * bound.loss_bound * math.sqrt(math.log(20) / 100))
    assert bound.imprecision == pytest.approx(largest * float(labels.free.mean()))
    worst = labels.worst(-heads[0].log_softmax(1))
    best = labels.best(-heads[1].log_softmax(1))
    gap = float(((worst + best) / 2 - least_objective(labels)).mean())
    assert bound.optimization == pytest.approx(gap)
    half = float(pocc_loss(heads[0], heads[1], labels)) / 2
    assert bound.optimization == pytest.approx(half - float(least_objective(labels).mean()))
    four = (bound.complexity, bound.sampling, bound.optimization, bound.imprecision)
    assert bound.total == pytest.approx(sum(four))


def some_bound(**changes: float) -> GeneralizationBound:
    """Of three classes, log K = 1.0986, with the four values named."""
    values = {"complexity": 0.2, "sampling": 0.1, "optimization": 0.1, "imprecision": 0.2} | changes
    return GeneralizationBound(
        **values,
        items=100,
        num_classes=3,
        confidence=0.95,
        loss_range=2.0,
        loss_bound=2.8,
        mean_diameter=0.1,
    )


def test_a_classifiers_bound_is_that_of_its_heads(generator: torch.Generator) -> None:
    X = normal(60, 3, generator=generator)
    labels = KINDS["lower bounds"](60, 4, generator)
    clf = CredalClassifier("pocc", epochs=3, device="cpu").fit(X.numpy(), labels)
    bound = bound_of_model(clf.model_, X.numpy(), labels, confidence=0.9)
    network = clf.model_.members[0]
    weights, biases = network.heads.weight.detach(), network.heads.bias.detach()
    with torch.no_grad():
        features = network.features(X)
    heads = (weights.view(2, 4, -1), labels)
    own = generalization_bound(features, *heads, biases=biases.view(2, 4), confidence=0.9)
    assert asdict(bound) == pytest.approx(asdict(own), rel=1e-5)
    for model in (clf, clf.model_):
        assert bound_of_model(model, X, labels, confidence=0.9) == bound


def test_verdict_says_what_the_bound_is_worth() -> None:
    assert not some_bound().vacuous
    assert "informative: 0.60 nats is below log K = 1.10" in some_bound().verdict
    few = some_bound(complexity=2.0)
    assert few.vacuous
    assert few.items_needed is not None
    shrink = math.sqrt(100 / few.items_needed)
    assert some_bound(complexity=2 * shrink, sampling=0.1 * shrink).total < math.log(3)
    assert "It would take about 690 items like these" in few.verdict
    never = some_bound(imprecision=1.5)
    assert never.items_needed is None
    assert never.total == pytest.approx(1.9)
    assert "More items would not help: the last two terms, 1.60," in never.verdict
    assert "With 95 % confidence" in never.statement


@pytest.mark.parametrize(
    "changes",
    [
        {"num_heads": 3},
        {"num_members": 2},
        {"num_passes": 5, "dropout": 0.3},
        {"loss": lambda logits, labels, epoch: logits.square().mean()},
    ],
)
def test_rejects_models_of_other_methods(changes: dict[str, Any]) -> None:
    method = replace(METHODS["pocc"], **changes)
    X, labels = torch.zeros(4, 2).numpy(), LowerBounds(torch.zeros(4, 3))
    clf = CredalClassifier(method, epochs=1, device="cpu").fit(X, labels)
    with pytest.raises(CredalError, match="one network with POCC's two heads"):
        bound_of_model(clf, X, labels)


def test_rejects_unfitted_models_and_shapes_that_do_not_fit(generator: torch.Generator) -> None:
    features, weights, biases, labels = example(generator)
    with pytest.raises(CredalError, match=r"got CredalClassifier\. To fix: fit it first"):
        bound_of_model(CredalClassifier(), features, labels)
    with pytest.raises(CredalError, match=r"biases must have shape \(2, 3\); got \(3, 2\)"):
        generalization_bound(features, weights, labels, biases=biases.T)
    with pytest.raises(CredalError, match="two heads over two or more classes"):
        generalization_bound(features, weights[:1], labels)
    with pytest.raises(CredalError, match="one row of features per label"):
        generalization_bound(features[:9], weights, labels)
    with pytest.raises(CredalError, match="weights must be finite"):
        generalization_bound(features, weights * math.nan, labels)
    assert generalization_bound(features, 200 * weights, labels).loss_bound < math.inf
