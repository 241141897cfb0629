"""Label rules: their bounds, references, ties and refusals."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom
from torch.testing import assert_close

import credalearn as cl
from random_sets import distributions

RULES = ("relax", "precise", "idm", "clopper-pearson")
UNKNOWN: Any = "other"

votes = st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=1, max_size=5)


def test_relax_keeps_the_top_class_only(generator: torch.Generator) -> None:
    probs = distributions(200, 5, generator=generator)
    sets = cl.relax(probs)
    for row, bounds in zip(probs.tolist(), sets.lower.tolist(), strict=True):
        top = row.index(max(row))  # the first among equals
        assert bounds == [max(row) if k == top else 0.0 for k in range(5)]
    assert_close(sets.reference, probs)
    assert_close(sets.diameter(), 1 - probs.amax(1))


def test_ties_go_to_the_lowest_class() -> None:
    assert cl.relax([[0.2, 0.4, 0.4]]).lower.argmax() == 1
    assert cl.from_votes([[0, 2, 2]]).lower.argmax() == 1
    assert cl.from_teacher([[1.0, 5.0, 5.0]]).lower.argmax() == 1


@given(votes, st.sampled_from(RULES))
def test_vote_rules_contain_the_vote_shares(counts: list[list[int]], rule: Any) -> None:
    counts = [row if sum(row) else [1, 0, 0, 0] for row in counts]
    sets = cl.from_votes(counts, rule=rule)
    shares = torch.tensor(counts) / torch.tensor(counts).sum(1, keepdim=True)
    assert sets.contains(shares, tolerance=1e-5).all()
    assert_close(sets.reference, shares)


def test_vote_rules_as_stated() -> None:
    counts = np.array([[7, 2, 1]])
    assert_close(cl.from_votes(counts).lower, torch.tensor([[0.7, 0.0, 0.0]]))
    assert_close(cl.from_votes(counts, rule="precise").lower, torch.tensor([[0.7, 0.2, 0.1]]))
    idm = cl.from_votes(counts, rule="idm", s=2.0)
    assert_close(idm.lower, torch.tensor([[7.0, 2.0, 1.0]]) / 12)
    assert_close(idm.diameter(), torch.tensor([2 / 12]))


def test_clopper_pearson_limits_are_where_the_binomial_tail_is_the_level() -> None:
    counts = torch.tensor([[7, 2, 1, 0], [10, 0, 0, 0]])
    lower = cl.from_votes(counts.double(), rule="clopper-pearson", confidence=0.9).lower
    for row, bounds in zip(counts.tolist(), lower.tolist(), strict=True):
        for n, limit in zip(row, bounds, strict=True):
            # At the limit, as many votes as these or more have probability δ/K.
            tail = binom.sf(n - 1, sum(row), limit)
            assert tail == pytest.approx(0.1 / 4) if n else limit == 0
    assert lower[1, 0].item() == pytest.approx(float(beta.ppf(0.1 / 4, 10, 1)))


def test_clopper_pearson_covers_the_truth_and_relaxation_does_not(
    generator: torch.Generator,
) -> None:
    truth = torch.tensor([0.5, 0.3, 0.2]).double()
    drawn = torch.multinomial(truth.expand(4000, 3), 3, replacement=True, generator=generator)
    counts = torch.nn.functional.one_hot(drawn, 3).sum(1)
    covered = {
        rule: cl.from_votes(counts.double(), rule=rule).contains(truth).double().mean().item()
        for rule in ("relax", "clopper-pearson")
    }
    assert covered["clopper-pearson"] >= 0.95
    assert covered["relax"] < 0.5


@pytest.mark.parametrize("rule", ["relax", "precise"])
def test_an_item_without_votes_has_no_shares(rule: Any) -> None:
    with pytest.raises(cl.CredalError, match=rf"needs a vote under rule '{rule}'; row 1"):
        cl.from_votes([[3, 1], [0, 0]], rule=rule)


@pytest.mark.parametrize("rule", ["idm", "clopper-pearson"])
def test_an_item_without_votes_is_open(rule: Any) -> None:
    sets = cl.from_votes([[3, 1], [0, 0]], rule=rule)
    assert_close(sets.lower[1], torch.zeros(2))
    assert_close(sets.reference[1], torch.full((2,), 0.5))


def test_teacher_is_softened_by_its_temperature() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64)
    soft = (logits / 2.5).softmax(1)
    sets = cl.from_teacher(logits)
    assert_close(sets.lower, torch.tensor([[soft[0, 0].item(), 0, 0]], dtype=torch.float64))
    assert_close(sets.reference, soft)
    assert_close(cl.from_teacher(logits, rule="precise").lower, soft)
    # float32 cannot tell these after the softmax; the logits can.
    assert cl.from_teacher([[0.0, 1e-3]], temperature=1e6).lower.argmax() == 1


def test_smoothing_as_stated() -> None:
    sets = cl.smooth([2, 0], 0.1, 4)
    assert_close(sets.lower, torch.tensor([[0, 0, 0.925, 0], [0.925, 0, 0, 0]]))
    assert_close(sets.reference[0], torch.tensor([0.025, 0.025, 0.925, 0.025]))
    assert_close(cl.smooth([1], 0.0, 3).diameter(), torch.zeros(1))
    # So soft that float32 ties all classes: the label is still the one that is kept.
    assert cl.smooth([2], 1 - 1e-9, 3).lower.argmax() == 2
    assert_close(cl.smooth([1], 0.3, 3, rule="precise").lower, torch.tensor([[0.1, 0.8, 0.1]]))


def test_statements_as_stated() -> None:
    sets = cl.at_least([[0.7, 0.0, 0.2], [0.0, 0.0, 0.0]])
    assert_close(sets.lower, torch.tensor([[0.7, 0.0, 0.2], [0.0, 0.0, 0.0]]))
    assert_close(sets.diameter(), torch.tensor([0.1, 1.0]))
    assert_close(sets.reference, sets.center())


def test_tables_with_nullable_counts_serve() -> None:
    table = pd.DataFrame({"cat": [1, 0], "dog": [3, 2]}).astype("Int64")
    assert_close(cl.from_votes(table).lower, torch.tensor([[0.0, 0.75], [0.0, 1.0]]))
    with pytest.raises(cl.CredalError, match="counts must be an array of numbers"):
        cl.from_votes([["one", "two"]])


def test_counts_beyond_float32_keep_their_top_class() -> None:
    assert cl.from_votes([[16_777_216, 16_777_217]]).lower.argmax() == 1
    assert cl.from_votes(torch.tensor([[16_777_216, 16_777_217]])).lower.argmax() == 1


def test_precision_follows_the_input() -> None:
    assert cl.from_votes([[1, 2]]).lower.dtype == torch.float32
    assert cl.from_votes(np.array([[1.0, 2.0]])).lower.dtype == torch.float64
    assert cl.relax(torch.tensor([[0.5, 0.5]])).lower.dtype == torch.float32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cl.relax([[0.5, 0.6]]),
            r"must sum to 1, .*; row 0 .*0.5, 0.6\], sum=\[1.1\]",
        ),
        (lambda: cl.relax([[1.5, -0.5]]), "probs must not be negative"),
        (lambda: cl.relax([[0.5, float("nan")]]), "probs must be finite"),
        (lambda: cl.relax([0.5, 0.5]), r"shape \(items, classes\)"),
        (lambda: cl.precise([[0.9, 0.2]]), "sum to 1"),
        (lambda: cl.from_votes([[3, 1], [2, -1]]), "whole numbers of 0 or more; row 1"),
        (lambda: cl.from_votes([[0.5, 0.5]]), "whole numbers .* give the counts, not shares"),
        (
            lambda: cl.from_votes([[1, 2]], rule=UNKNOWN),
            "one of 'relax', .* got 'other'",
        ),
        (lambda: cl.from_votes([[1, 2]], rule="idm", s=0.0), "s must be above 0"),
        (lambda: cl.from_votes([[1, 2]], confidence=1.0), r"confidence must be in \(0, 1\)"),
        (lambda: cl.from_votes([[1, 2]], confidence=float("nan")), "confidence"),
        (lambda: cl.from_teacher([[1.0, 2.0]], temperature=0.0), "temperature must be above 0"),
        (lambda: cl.from_teacher([[1.0, float("inf")]]), "logits must be finite"),
        (
            lambda: cl.from_teacher([[1.0, 2.0]], rule=UNKNOWN),
            "one of 'relax', 'precise'",
        ),
        (lambda: cl.smooth([0, 1], 1.0, 2), "epsilon must be 0 or more and below 1; got 1.0"),
        (lambda: cl.smooth([0, 1], -0.1, 2), "epsilon"),
        (lambda: cl.smooth([0, 2], 0.1, 2), r"labels must lie in 0\.\.1; row 1"),
        (lambda: cl.smooth([0.5], 0.1, 2), "whole numbers"),
        (lambda: cl.smooth([[0]], 0.1, 2), "whole numbers"),
        (lambda: cl.at_least([[0.7, 0.0], [0.7, 0.6]]), "contradict each other .* row 1"),
        (lambda: cl.at_least([[70, 0]]), r"lie in \[0, 1\]; row 0 .* 0.70 for 70 %"),
        (lambda: cl.at_least([[0.7, float("nan")]]), "bounds must be finite"),
    ],
)
def test_bad_labels_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(cl.CredalError, match=message):
        make()
