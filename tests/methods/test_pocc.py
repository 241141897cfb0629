"""POCC's loss against the paper's closed form, and what its heads learn."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import credalearn as cl
from credalearn.methods import METHODS
from random_sets import KINDS, distributions


def logits(
    num_items: int, num_classes: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    both = torch.randn(2, num_items, num_classes, generator=generator, dtype=torch.float64)
    return both.requires_grad_().unbind(0)


@pytest.mark.catches(
    "methods/pocc.py",
    "labels.best_target(pessimistic_logits)",
    "labels.worst_target(pessimistic_logits)",
)
def test_loss_equals_the_papers_closed_form(generator: torch.Generator) -> None:
    soft = distributions(100, 5, generator=generator)
    pessimistic, optimistic = logits(100, 5, generator)
    low, high = pessimistic.softmax(1), optimistic.softmax(1)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(100):
        j = int(soft[i].argmax())
        alpha = soft[i, j]
        total += -alpha * low[i, j].log() - (1 - alpha) * low[i].min().log()
        total += -alpha * high[i, j].log() - (1 - alpha) * high[i].max().log()
    assert_close(
        cl.pocc_loss(pessimistic, optimistic, cl.relax(soft)), torch.as_tensor(total / 100)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_loss_is_worst_plus_best_for_every_kind(kind: str, generator: torch.Generator) -> None:
    sets = KINDS[kind](80, 6, generator)
    pessimistic, optimistic = logits(80, 6, generator)
    worst = sets.worst(-pessimistic.log_softmax(1))
    best = sets.best(-optimistic.log_softmax(1))
    assert_close(cl.pocc_loss(pessimistic, optimistic, sets), (worst + best).mean())


@pytest.mark.parametrize("kind", KINDS)
def test_loss_gradients_are_exact(kind: str, generator: torch.Generator) -> None:
    sets = KINDS[kind](6, 4, generator)
    pessimistic, optimistic = (each.detach() for each in logits(6, 4, generator))
    inputs = (pessimistic.requires_grad_(), optimistic.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: cl.pocc_loss(a, b, sets), inputs)


def test_averaged_on_precise_labels_two_equal_heads_are_softmax(generator: torch.Generator) -> None:
    labels = cl.precise(distributions(50, 3, generator=generator))
    one = logits(50, 3, generator)[0][:, None]
    both = one.expand(-1, 2, -1)
    mean, softmax = (METHODS[name].loss for name in ("pocc-mean", "softmax"))
    assert_close(mean(both, labels, 0), softmax(one, labels, 0))


@pytest.mark.catches(
    "methods/pocc.py",
    "return pocc_loss(logits[:, 0], logits[:, 1], labels)",
    "return pocc_loss(logits[:, 1], logits[:, 0], labels)",
)
def test_the_first_head_is_the_pessimist(generator: torch.Generator) -> None:
    pessimistic, optimistic = logits(20, 4, generator)
    sets = KINDS["lower bounds"](20, 4, generator)
    both = torch.stack([pessimistic, optimistic], 1)
    expected = cl.pocc_loss(pessimistic, optimistic, sets)
    assert_close(METHODS["pocc"].loss(both, sets, 0), expected)
    assert expected != cl.pocc_loss(optimistic, pessimistic, sets)


def test_rejects_labels_and_logits_of_another_kind() -> None:
    sets, zeros = cl.LowerBounds([[0.7, 0.0]]), torch.zeros(1, 2)
    arguments: tuple[tuple[Any, Any, str], ...] = (
        (zeros, [[0.7, 0.3]], "labels must be credal sets"),
        (zeros.int(), sets, "optimistic_logits must be"),
        (torch.zeros(1, 3), sets, r"shape \(1, 2\); got \(1, 3\)"),
    )
    for optimistic, labels, message in arguments:
        with pytest.raises(cl.CredalError, match=message):
            cl.pocc_loss(zeros, optimistic, labels)
