"""Annotators next to the others, against a loop over votes and an exact limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from credalearn.app.annotations.annotators import annotator_agreement
from credalearn.app.annotations.table import Annotations
from made_annotations import Vote, votes_of


@given(
    st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 3)), st.integers(0, 2), min_size=1)
)
def test_the_majority_of_the_others_is_that_of_a_loop(votes: dict[tuple[int, int], int]) -> None:
    made = votes_of([(f"i{i}", f"w{w}", f"c{k}") for (i, w), k in votes.items()])
    found = {each.name: (each.compared, each.agreed) for each in annotator_agreement(made)}
    slow = {f"w{w}": [0, 0] for _, w in votes}
    for (item, who), label in votes.items():
        others = [k for (i, w), k in votes.items() if i == item and w != who]
        times = {k: others.count(k) for k in others}
        leaders = [k for k in times if times[k] == max(times.values())]
        if len(leaders) == 1:
            slow[f"w{who}"][0] += 1
            slow[f"w{who}"][1] += leaders[0] == label
    assert found == {name: tuple(value) for name, value in slow.items()}


def crowd(num_items: int, of_bad: int) -> Annotations:
    """Four people who agree 90 % of the time, and one who is always wrong on the first items."""
    dice = np.random.default_rng(0)
    votes: list[Vote] = []
    for i in range(num_items):
        truth = int(dice.integers(3))
        for who in "abcd":
            label = truth if dice.random() < 0.9 else int(dice.integers(3))
            votes.append((f"i{i}", who, str(label)))
        if i < of_bad:
            votes.append((f"i{i}", "bad", str((truth + 1) % 3)))
    return votes_of(votes)


def test_outlier_is_flagged_only_with_enough_votes() -> None:
    first, *others = annotator_agreement(crowd(200, of_bad=100))
    assert first.name == "bad"
    assert first.far
    assert first.upper < first.others - 0.1  # type: ignore[operator]
    assert not any(each.far for each in others)
    assert not any(each.far for each in annotator_agreement(crowd(200, of_bad=3)))


def test_limit_is_clopper_pearson() -> None:
    for each in annotator_agreement(crowd(50, of_bad=20)):
        level = 0.05 / 2 / 5
        missed = each.compared - each.agreed
        upper = beta.isf(level, each.agreed + 1, missed) if missed else 1
        assert each.upper == pytest.approx(upper)
