"""Misspelled classes by example."""

from credalearn.app.annotations.typos import typo_classes
from made_annotations import Vote, votes_of


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
