"""Label rules: their bounds, references, ties and refusals."""

import math
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom
from torch.testing import assert_close

import credalearn as cl
from credalearn._targets import as_credal
from credalearn.labels import VoteRule, contaminate, from_posterior, hull
from credalearn.labels.votes import lower_limits
from random_sets import distributions

RULES = get_args(VoteRule)

UNKNOWN: Any = "other"
RAGGED: Any = [[1, 2], [1]]

votes = st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=1, max_size=5)


@pytest.mark.catches("labels/soft.py", "soft.argmax(1)", "soft.argmin(1)")
def test_relax_keeps_the_top_class_only(generator: torch.Generator) -> None:
    probs = distributions(200, 5, generator=generator)
    sets = cl.relax(probs)
    for row, bounds in zip(probs.tolist(), sets.lower.tolist(), strict=True):
        top = row.index(max(row))  # the first among equals
        assert bounds == [max(row) if k == top else 0.0 for k in range(5)]
    assert_close(sets.reference, probs)
    assert_close(sets.diameter(), 1 - probs.amax(1))


def test_ties_are_relaxed_equally_everywhere() -> None:
    probs = [[0.4, 0.4, 0.2], [0.2, 0.7, 0.1], [1 / 3, 1 / 3, 1 / 3]]
    kept = cl.relax(probs, ties=True)
    assert_close(kept.lower, torch.tensor([[0.4, 0.4, 0], [0, 0.7, 0], [1 / 3, 1 / 3, 1 / 3]]))
    assert_close(kept.lower, cl.from_votes([[4, 4, 2], [2, 7, 1], [1, 1, 1]]).lower)
    fitted, _ = as_credal(np.array(probs), names=None, label_rule="relax-ties")
    assert_close(kept.lower, fitted.lower.float())
    assert_close(kept.reference, torch.tensor(probs))
    tied = cl.from_teacher(torch.tensor([[0.1 + 0.2, 0.3, 0.0]]), temperature=1, rule="relax-ties")
    assert_close(tied.lower > 0, torch.tensor([[True, True, False]]))  # equal but for rounding


@pytest.mark.catches("labels/votes.py", "(votes.total + votes.s)", "(votes.counts + votes.s)")
@given(votes, st.sampled_from(RULES))
def test_vote_rules_contain_the_vote_shares(counts: list[list[int]], rule: Any) -> None:
    counts = [row if sum(row) else [1, 0, 0, 0] for row in counts]
    sets = cl.from_votes(counts, rule=rule)
    shares = torch.tensor(counts) / torch.tensor(counts).sum(1, keepdim=True)
    assert sets.contains(shares, tolerance=1e-5).all()
    assert_close(sets.reference, shares)


@pytest.mark.catches(
    "labels/soft.py",
    "tied = probs >= probs.amax(1, keepdim=True) * (1 - rounding)",
    "tied = probs.cumsum(1) >= probs.amax(1, keepdim=True)",
)
def test_vote_rules_match_their_definitions() -> None:
    counts = np.array([[7, 2, 1]])
    assert_close(cl.from_votes(counts).lower, torch.tensor([[0.7, 0.0, 0.0]]))
    assert_close(cl.from_votes(counts, rule="precise").lower, torch.tensor([[0.7, 0.2, 0.1]]))
    idm = cl.from_votes(counts, rule="idm", s=2.0)
    assert_close(idm.lower, torch.tensor([[7.0, 2.0, 1.0]]) / 12)
    assert_close(idm.diameter(), torch.tensor([2 / 12]))


@pytest.mark.catches(
    "labels/votes.py",
    "level = (1 - votes.confidence) / votes.counts.shape[1]",
    "level = 1 - votes.confidence",
)
def test_clopper_pearson_limits_invert_the_binomial_tail() -> None:
    counts = torch.tensor([[7, 2, 1, 0], [10, 0, 0, 0]])
    lower = cl.from_votes(counts.double(), rule="clopper-pearson", confidence=0.9).lower
    for row, bounds in zip(counts.tolist(), lower.tolist(), strict=True):
        for n, limit in zip(row, bounds, strict=True):
            # At the limit, as many votes as these or more have probability δ/K.
            tail = binom.sf(n - 1, sum(row), limit)
            assert tail == pytest.approx(0.1 / 4) if n else limit == 0
    assert lower[1, 0].item() == pytest.approx(float(beta.ppf(0.1 / 4, 10, 1)))


def test_the_radius_is_the_stated_one_and_at_most_1() -> None:
    counts = torch.tensor([[60, 30, 10], [1, 1, 0], [0, 0, 0]])
    sets = cl.from_votes(counts.double(), rule="total-variation", confidence=0.9)
    assert isinstance(sets, cl.TotalVariationBall)
    stated = math.sqrt(2 * math.log((2**3 - 2) / 0.1) / 100) / 2
    assert_close(sets.radius, torch.tensor([stated, 1, 1]).double())
    assert_close(sets.q[0], torch.tensor([0.6, 0.3, 0.1]).double())
    one = cl.from_votes([[3]], rule="total-variation")
    assert isinstance(one, cl.TotalVariationBall)
    assert one.radius.item() == 0
    many = cl.from_votes(np.eye(2000)[:1] * 10_000, rule="total-variation")  # 2^2000 is no float
    assert 0.26 < many.diameter().item() < 0.27


def test_hull_allows_the_classes_with_votes() -> None:
    sets = cl.from_votes([[2, 0, 1], [3, 0, 0], [0, 0, 0]], rule="hull")
    assert_close(sets.upper, torch.tensor([[1.0, 0, 1], [1, 0, 0], [1, 1, 1]]))
    assert_close(sets.lower, torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 0, 0]]))
    assert_close(sets.diameter(), torch.tensor([1.0, 0.0, 1.0]))


@given(votes, st.permutations(range(4)), st.sampled_from(RULES))
def test_no_rule_prefers_a_class(counts: list[list[int]], order: list[int], rule: Any) -> None:
    table = np.array([row if sum(row) else [1, 0, 0, 0] for row in counts])
    if rule == "relax":
        table = table[(table == table.max(1, keepdims=True)).sum(1) == 1]  # ties: the lowest index
    first, second = (cl.from_votes(each, rule=rule) for each in (table, table[:, order]))
    assert_close(first.lower[:, order], second.lower)
    assert_close(first.upper[:, order], second.upper)
    assert_close(first.diameter(), second.diameter())


@pytest.mark.parametrize("rule", RULES)
def test_items_without_votes_allow_every_distribution(rule: Any) -> None:
    sets = cl.from_votes([[3, 1], [0, 0]], rule=rule)
    assert_close(sets.lower[1], torch.zeros(2))
    assert_close(sets.upper[1], torch.ones(2))
    assert_close(sets.diameter()[1], torch.tensor(1.0))
    assert_close(sets.reference[1], torch.full((2,), 0.5))


@given(votes, st.sampled_from(RULES))
def test_posterior_of_vote_shares_equals_votes(counts: list[list[int]], rule: Any) -> None:
    table = np.array([row if sum(row) else [1, 0, 0, 0] for row in counts], dtype=np.float64)
    total = table.sum(1)
    direct = cl.from_votes(table, rule=rule)
    through = from_posterior(table / total[:, None], total, rule=rule)
    assert_close(through.lower, direct.lower)
    assert_close(through.upper, direct.upper)
    assert_close(through.reference, direct.reference)


def test_limits_of_fractions_of_votes_lie_between_those_of_whole_ones() -> None:
    counts = torch.linspace(0, 10, 101).double()[:, None]
    limits = lower_limits(counts, torch.full_like(counts, 10), level=0.025)
    assert (limits.diff(dim=0) >= 0).all()
    assert_close(limits[::10], lower_limits(counts[::10], torch.tensor([[10.0]]), level=0.025))
    assert (limits <= counts / 10).all()
    dust = torch.tensor([[1e-300, 1e-20, 1e-3]]).double()
    assert (lower_limits(dust, torch.tensor([[5.0]]), level=0.025) < 1e-9).all()


def test_contamination_matches_its_definition(generator: torch.Generator) -> None:
    probs = distributions(50, 4, generator=generator)
    sets = contaminate(probs, 0.3)
    assert_close(sets.diameter(), torch.full((50,), 0.3, dtype=torch.float64))
    assert_close(sets.reference, probs)
    other = distributions(50, 4, generator=generator)
    assert sets.contains(0.7 * probs + 0.3 * other).all()
    assert_close(contaminate(probs, 0.0).lower, probs)
    assert_close(contaminate(probs, 1.0).diameter(), torch.ones(50, dtype=torch.float64))


def test_hull_ignores_missing_statements(generator: torch.Generator) -> None:
    said = distributions(30, 4, 3, generator=generator)
    with_gaps = said.clone()
    with_gaps[:10, 1], with_gaps[10:20, 2:] = torch.nan, torch.nan
    sets = hull(with_gaps)
    for rows, kept in ((slice(10), [0, 2, 3]), (slice(10, 20), [0, 1]), (slice(20, 30), range(4))):
        alone = cl.Vertices(said[rows][:, list(kept)])
        cost = torch.randn(10, 3, generator=generator, dtype=torch.float64)
        assert_close(sets[rows].worst(cost), alone.worst(cost))
        assert_close(sets[rows].best(cost), alone.best(cost))
        assert_close(sets[rows].diameter(), alone.diameter())
        assert_close(sets[rows].reference, alone.center())
    assert hull([[[1, 0], [0, 1]]]).lower.dtype == torch.float32


@pytest.mark.catches("labels/soft.py", "outputs / temperature", "outputs * temperature")
def test_teacher_is_softened_by_its_temperature() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64)
    soft = (logits / 2.5).softmax(1)
    sets = cl.from_teacher(logits)
    assert_close(sets.lower, torch.tensor([[soft[0, 0].item(), 0, 0]], dtype=torch.float64))
    assert_close(sets.reference, soft)
    assert_close(cl.from_teacher(logits, rule="precise").lower, soft)
    # float32 cannot tell these after the softmax; the logits can.
    assert cl.from_teacher([[0.0, 1e-3]], temperature=1e6).lower.argmax() == 1


def test_smoothing_matches_its_definition() -> None:
    sets = cl.smooth([2, 0], 0.1, 4)
    assert_close(sets.lower, torch.tensor([[0, 0, 0.925, 0], [0.925, 0, 0, 0]]))
    assert_close(sets.reference[0], torch.tensor([0.025, 0.025, 0.925, 0.025]))
    assert_close(cl.smooth([1], 0.0, 3).diameter(), torch.zeros(1))
    # So soft that float32 ties all classes: the label is still the one that is kept.
    assert cl.smooth([2], 1 - 1e-9, 3).lower.argmax() == 2
    assert_close(cl.smooth([1], 0.3, 3, rule="precise").lower, torch.tensor([[0.1, 0.8, 0.1]]))


def test_accepts_tables_with_nullable_counts() -> None:
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
        (lambda: cl.relax([[0.5, 0.6]]), r"must sum to 1, .*; row 0 .*0.5, 0.6\], sum=\[1.1\]"),
        (lambda: cl.relax([[1.5, -0.5]]), "probs must not be negative"),
        (lambda: cl.precise([[0.9, 0.2]]), "sum to 1"),
        (lambda: cl.from_votes([[3, 1], [2, -1]]), "whole numbers of 0 or more; row 1"),
        (lambda: cl.from_votes([[0.5, 0.5]]), "whole numbers .* not shares"),
        (lambda: cl.from_votes(torch.eye(2).to_sparse()), "counts must be a dense tensor"),
        (lambda: cl.from_votes(RAGGED), "counts must be an array of numbers"),
        (lambda: cl.from_votes(np.ma.array([[3, 0]], mask=[[True, False]])), "no masked value"),
        (lambda: cl.from_votes([[1, 2]], rule=UNKNOWN), "one of 'relax', .* got 'other'"),
        (lambda: cl.from_votes([[1, 2]], rule="idm", s=0.0), "s must be above 0"),
        (lambda: cl.from_votes([[1, 2]], confidence=1.0), "confidence must be above 0 and below 1"),
        (lambda: cl.from_votes([[1, 2]], s=2), "'relax-ties' does not use s; .* rule 'idm'"),
        (lambda: from_posterior([[0.5, 0.5]] * 2, [1, -1]), "num_votes must be 0 or more; row 1"),
        (lambda: from_posterior([[0.5, 0.5]], [1, 2]), "num_votes must be one number, or one per"),
        (lambda: from_posterior([[0.5, 0.6]], 1), "each row of posterior must sum to 1"),
        (lambda: contaminate([[0.5, 0.5]], 1.5), "epsilon must be 0 or more and at most 1; got"),
        (lambda: hull([[[math.nan] * 2], [[0.5] * 2]]), "one statement or more; row 0 .* drop"),
        (lambda: hull([[[0.5, math.nan]]]), "NaN for every class .*; row 0 .* fill it"),
        (lambda: cl.from_teacher([[1.0, 2.0]], temperature=0.0), "temperature must be above 0"),
        (lambda: cl.from_teacher([[1.0, 2.0]], rule=UNKNOWN), "'relax', 'relax-ties', 'precise'"),
        (lambda: cl.smooth([0, 1], 1.0, 2), "epsilon must be 0 or more and below 1; got 1.0"),
        (lambda: cl.smooth([0, 2], 0.1, 2), r"labels must lie in 0\.\.1; row 1"),
        (lambda: cl.at_least([[0.7, 0.0], [0.7, 0.6]]), r"sum\(lower\) <= 1 .* row 1"),
        (lambda: cl.collapse(RAGGED), r"labels must be credal sets, .* got list. To fix"),
    ],
)
def test_rejects_bad_labels(make: Callable[[], object], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        make()
