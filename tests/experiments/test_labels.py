"""Labels from some of the votes: which are drawn, and the sets that they become."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from credalearn import CredalError, from_votes
from credalearn.labels.votes import VoteRule
from credalearn.methods import METHODS
from credalearn.sets._checks import map_tensors
from credalearn_experiments.data import DataFolders, Task
from credalearn_experiments.labels import draw_votes, training_labels
from credalearn_experiments.settings import Annotators, Votes
from credalearn_experiments.settings.catalog import ALL_SETTINGS

CPU = torch.device("cpu")
COUNTS = arrays(
    np.int64, st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.integers(0, 9)
)


@given(COUNTS, st.integers(0, 2**31))
def test_votes_are_drawn_without_replacement_and_nested(counts: np.ndarray, seed: int) -> None:
    counts[:, 0] += 1  # a vote or more
    given = torch.from_numpy(counts)
    fewest = int(given.sum(1).min())
    before = torch.zeros_like(given)
    for number in range(1, fewest + 1):
        drawn = draw_votes(given, number, random_state=seed)
        assert drawn.dtype == torch.int64
        assert (drawn.sum(1) == number).all()
        assert (drawn <= given).all()
        assert (before <= drawn).all()
        before = drawn
    assert draw_votes(given, None, random_state=seed) is given
    row = int(given.sum(1).argmin())
    with pytest.raises(CredalError, match=f"{fewest + 1} votes .*; item {row} has {fewest}"):
        draw_votes(given, fewest + 1, random_state=seed)


def test_draws_are_hypergeometric_and_differ_between_items_and_seeds() -> None:
    item, number, items = (30, 15, 5), 10, 20_000
    counts = torch.tensor([item]).repeat(items, 1)
    drawn = draw_votes(counts, number, random_state=7).double()
    total = sum(item)
    for place, votes in enumerate(item):
        share = votes / total
        mean = number * share
        variance = number * share * (1 - share) * (total - number) / (total - 1)
        error = (variance / items) ** 0.5
        assert drawn[:, place].mean().item() == pytest.approx(mean, abs=5 * error)
        assert drawn[:, place].var().item() == pytest.approx(variance, rel=0.05)
    assert len({tuple(row) for row in drawn.tolist()}) > 30
    again, other = (draw_votes(counts, number, random_state=seed) for seed in (7, 8))
    assert torch.equal(again.double(), drawn)
    assert not torch.equal(again, other)


def some_task(counts: Tensor) -> Task:
    black = torch.zeros(len(counts), 3, 4, 4, dtype=torch.uint8)
    return Task(
        name="some",
        classes=tuple("abcdef"[: counts.shape[1]]),
        train_inputs=black,
        train_y=counts.argmax(1),
        train_counts=counts,
        test_inputs=black,
        test_y=counts.argmax(1),
    )


@pytest.mark.parametrize("rule", get_args(VoteRule))
def test_rules_of_one_seed_see_the_same_votes(rule: VoteRule) -> None:
    counts = torch.from_numpy(np.random.default_rng(1).multinomial(51, [0.7, 0.2, 0.1], size=40))
    task, folders = some_task(counts), DataFolders()
    base = ALL_SETTINGS["cifar10h-votes-3-idm"]
    few = replace(base, labels=Votes(3, rule))
    labels = training_labels(few, task, folders, CPU, random_state=5)
    drawn = draw_votes(counts, 3, random_state=5)
    expected = from_votes(drawn.double(), rule=rule)
    assert type(labels) is type(expected)
    assert torch.equal(labels.lower, expected.lower)
    assert torch.equal(labels.upper, expected.upper)
    torch.testing.assert_close(labels.reference, drawn.double() / 3)
    whole = replace(base, labels=Votes(None, rule))
    one, two = (training_labels(whole, task, folders, CPU, random_state=seed) for seed in (1, 2))
    assert torch.equal(one.lower, two.lower)
    assert few.depends_on_seed
    assert not whole.depends_on_seed
    bare = replace(task, train_counts=None, train_soft=None)
    shares = replace(few, labels=Annotators())
    for setting, field in ((few, "train_counts"), (shares, "train_soft")):
        said = rf"need {field}; task 'some' has none\. To fix: pass {field} to its Task"
        with pytest.raises(CredalError, match=said):
            training_labels(setting, bare, folders, CPU, random_state=5)


# A CUDA graph replays what was recorded: a loss that reads a tensor's value (``if``, ``.item()``)
# cannot be recorded. Fake tensors have no values and refuse the same.
@pytest.mark.parametrize("method", ["softmax", "pocc", "pocc-center", "edl", "dappr"])
@pytest.mark.parametrize("rule", get_args(VoteRule))
def test_a_step_on_every_kind_of_label_can_be_recorded(rule: VoteRule, method: str) -> None:
    counts = torch.from_numpy(np.random.default_rng(1).multinomial(3, [0.6, 0.3, 0.1], size=12))
    labels = from_votes(counts.double(), rule=rule).to(dtype=torch.float32)
    logits = torch.randn(4, METHODS[method].num_heads, 3, requires_grad=True)
    rows = torch.arange(4, 8)
    loss = METHODS[method].loss(logits, labels[rows], 0)
    assert torch.isfinite(loss)
    with FakeTensorMode() as mode:
        fake = map_tensors(labels, mode.from_tensor)
        epoch = mode.from_tensor(torch.tensor(0))
        found = METHODS[method].loss(mode.from_tensor(logits), fake[mode.from_tensor(rows)], epoch)
        found.backward()  # type: ignore[no-untyped-call]
    assert found.shape == loss.shape
