"""Agreement against the textbook's definitions; annotators against a loop over votes."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta

from credalearn.app.annotations.agreement import (
    agreement_with_others,
    annotation_facts,
    confused_pairs,
    far_annotators,
    krippendorff_alpha,
    majority,
)
from made_annotations import Vote, crowd, votes_of

COUNTS = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(2, 4)), elements=st.integers(0, 4)
)


def slow_alpha(counts: np.ndarray) -> float | None:
    """As the textbook says: the matrix of coincidences, pair by pair of the votes of an item."""
    num_classes = counts.shape[1]
    coincidences = np.zeros((num_classes, num_classes))
    for row in counts:
        votes = [k for k in range(num_classes) for _ in range(int(row[k]))]
        for first, second in permutations(range(len(votes)), 2):
            coincidences[votes[first], votes[second]] += 1 / (len(votes) - 1)
    marginal = coincidences.sum(0)
    total = marginal.sum()
    pairs = list(permutations(range(num_classes), 2))
    expected = sum(marginal[c] * marginal[k] for c, k in pairs)
    if expected == 0:
        return None
    return float(1 - (total - 1) * sum(coincidences[c, k] for c, k in pairs) / expected)


@given(COUNTS)
def test_alpha_equals_a_slow_reference(counts: np.ndarray) -> None:
    slow = slow_alpha(counts)
    found = krippendorff_alpha(counts)
    assert found == (None if slow is None else pytest.approx(slow))
    if found is not None:
        assert found <= 1 + 1e-12


def test_agreement_counts_votes_and_ties() -> None:
    votes: list[Vote] = [("x", "a", "1"), ("x", "b", "1"), ("y", "a", "1"), ("y", "b", "2")]
    found = annotation_facts(votes_of([*votes, ("z", "a", "2"), ("z", "b", None)]))
    assert found.votes_per_item == (1, 2.0, 2)
    assert (found.unanimous, found.tied) == (0.5, 0.5)
    alone = annotation_facts(votes_of([("x", None, "1"), ("y", None, "2")]))
    assert (alone.unanimous, alone.tied, alone.alpha) == (None, None, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_confused_pairs_match_a_slow_loop(votes: list[tuple[int, int]]) -> None:
    made = votes_of([(f"i{i}", None, f"c{k}") for i, k in votes])
    slow: Counter[tuple[str, str]] = Counter()
    for a, (item, first) in enumerate(votes):
        for other, second in votes[a + 1 :]:
            if item == other and first != second:
                slow[f"c{min(first, second)}", f"c{max(first, second)}"] += 1
    found = confused_pairs(made.sparse_counts(weighted=False), made.classes, most=20)
    assert {(a, b): share for a, b, share in found} == pytest.approx(
        {pair: count / slow.total() for pair, count in slow.items()}
    )


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=9))
def test_majority_is_the_unique_maximum(rows: list[list[int]]) -> None:
    for row, found in zip(rows, majority(np.array(rows, dtype=float)), strict=True):
        top = [index for index, votes in enumerate(row) if votes == max(row) > 0]
        assert found == (top[0] if len(top) == 1 else -1)


def test_weights_that_tie_but_for_rounding_tie() -> None:
    assert majority(np.array([[0.1 + 0.2, 0.3], [0.3, 0.31]])).tolist() == [-1, 1]


@given(
    st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 3)), st.integers(0, 2), min_size=1)
)
def test_majority_of_the_others_matches_a_slow_loop(votes: dict[tuple[int, int], int]) -> None:
    made = votes_of([(f"i{i}", f"w{w}", f"c{k}") for (i, w), k in votes.items()])
    counts = zip(*agreement_with_others(made), strict=True)
    found = dict(zip(made.annotators, counts, strict=True))
    slow = {f"w{w}": [0, 0] for _, w in votes}
    for (item, who), label in votes.items():
        others = [k for (i, w), k in votes.items() if i == item and w != who]
        times = {k: others.count(k) for k in others}
        leaders = [k for k in times if times[k] == max(times.values())]
        if len(leaders) == 1:
            slow[f"w{who}"][0] += 1
            slow[f"w{who}"][1] += leaders[0] == label
    assert found == {name: tuple(value) for name, value in slow.items()}


def test_outlier_is_flagged_only_with_enough_votes() -> None:
    (found,) = far_annotators(votes_of(crowd(200, bad=100)))
    assert found.name == "bad"
    assert found.upper < found.others - 0.1
    assert not far_annotators(votes_of(crowd(200, bad=3)))


def test_limit_is_clopper_pearson() -> None:
    said = {"ann": "0000", "bo": "0000", "cy": "0000", "liar": "0111"}
    votes = [(f"i{i}", who, labels[i % 4]) for i in range(80) for who, labels in said.items()]
    (found,) = far_annotators(votes_of(votes))
    assert (found.compared, found.agreed) == (80, 20)
    assert found.upper == pytest.approx(beta.isf(0.05 / 2 / 4, 21, 60))
