"""Agreement against the textbook's definitions, pair by pair."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from credalearn.app.annotations.agreement import agreement, krippendorff_alpha, vote_counts
from credalearn.errors import CredalError
from made_annotations import Vote, shares_of, votes_of

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
def test_alpha_is_the_textbooks(counts: np.ndarray) -> None:
    slow = slow_alpha(counts)
    found = krippendorff_alpha(counts)
    assert found == (None if slow is None else pytest.approx(slow))
    if found is not None:
        assert found <= 1 + 1e-12


def test_alpha_takes_lists_and_whole_numbers() -> None:
    counts = [[2, 0], [0, 2], [1, 1]]
    for given_as in (counts, tuple(counts), np.array(counts), np.ma.array(counts)):
        assert krippendorff_alpha(given_as) == pytest.approx(4 / 9)
    assert krippendorff_alpha(np.empty((0, 2))) is None


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[2, 0], [3, -1]], r"finite numbers of 0 or more; row 1 has \[3.0, -1.0\]"),
        ([[2.0, float("nan")]], r"finite numbers of 0 or more; row 0 has \[2.0, nan\]"),
        (np.ma.array([[2.0, 3.0]], mask=[[False, True]]), "finite numbers of 0 or more; row 0"),
        ([2, 1], r"shape \(items, classes\); got \(2,\)"),
        ([[2, 1], [1]], "an array of numbers; .*inhomogeneous"),
        ([["2", "1"]], "an array of numbers; got <U1"),
        (np.array([[2j, 1]]), "an array of numbers; got complex128"),
        ([[2, {}]], "an array of numbers; "),
        (None, r"shape \(items, classes\); got \(\)"),
    ],
)
def test_what_are_no_counts_have_no_alpha(counts: Any, message: str) -> None:
    with pytest.raises(CredalError, match=rf"^counts must .*{message}.*\. To fix: pass the number"):
        krippendorff_alpha(counts)


def test_alpha_of_krippendorffs_own_example() -> None:
    """Four observers, twelve units, five categories: 0.743 for nominal data (2011, section C)."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    votes: list[Vote] = [
        (f"unit {u}", f"observer {o}", None if value is None else str(value))
        for o, row in enumerate(observers)
        for u, value in enumerate(row)
    ]
    found = agreement(votes_of(votes)).alpha
    assert found == pytest.approx(0.743, abs=5e-4)


def test_agreement_counts_items_votes_and_ties() -> None:
    votes = [("x", "a", "1"), ("x", "b", "1"), ("y", "a", "1"), ("y", "b", "2"), ("z", "a", "2")]
    found = agreement(votes_of([*votes, ("z", "b", None)]))
    assert (found.items, found.annotators, found.votes) == (3, 2, 5)
    assert (found.fewest, found.median, found.most) == (1, 2.0, 2)
    assert (found.unanimous, found.tied) == (0.5, 0.5)
    alone = agreement(votes_of([("x", None, "1"), ("y", None, "2")]))
    assert (alone.annotators, alone.unanimous, alone.tied, alone.alpha) == (0, None, None, None)


def test_agreement_needs_votes() -> None:
    with pytest.raises(CredalError, match=r"agreement needs votes; .* contains probabilities"):
        vote_counts(shares_of("probabilities", ("1", "2"), x=[0.5, 0.5]))
