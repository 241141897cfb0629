"""Confused classes against a loop, and misspelled classes by example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn.app.annotations.confusions import confused_pairs, typo_classes
from made_annotations import Vote, votes_of


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_confused_pairs_are_those_of_a_loop(votes: list[tuple[int, int]]) -> None:
    made = votes_of([(f"i{i}", None, f"c{k}") for i, k in votes])
    slow: dict[tuple[str, str], int] = {}
    for a, (item, first) in enumerate(votes):
        for other, second in votes[a + 1 :]:
            if item == other and first != second:
                key = (f"c{min(first, second)}", f"c{max(first, second)}")
                slow[key] = slow.get(key, 0) + 1
    found = {each.classes: each.pairs for each in confused_pairs(made)}
    assert found == slow
    if slow:
        assert sum(each.share for each in confused_pairs(made)) == pytest.approx(1)


def test_misspelled_classes_are_told_from_rare_ones() -> None:
    names = {"horse": 9, "hrose": 1, "Horse ": 1, "cow": 5, "cov": 1, "class_11": 1, "class_1": 9}
    names |= {"rhinoceros": 4, "rinoceros": 1, "Cow": 6, "zebra": 1, "-1": 1, "1": 9, "10": 1}
    names |= {"1.0": 1, "-1000": 1, "1000": 3}  # numbers are never misspelled
    votes: list[Vote] = [
        (f"i{n}", None, name) for name, times in names.items() for n in range(times)
    ]
    found = {each.label: each.like for each in typo_classes(votes_of(votes))}
    assert found == {"hrose": "horse", "Horse ": "horse", "rinoceros": "rhinoceros", "cow": "Cow"}
    assert [each.votes for each in typo_classes(votes_of(votes))] == [1, 1, 1, 5]
