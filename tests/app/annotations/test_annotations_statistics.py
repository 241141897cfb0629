"""What `inspect` says: agreement, confusions, annotators far from the rest, typos."""

from itertools import islice, permutations
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from credalearn._checks import edit_distance, folded
from credalearn.app.annotations import (
    Annotations,
    Source,
    agreement,
    annotator_agreement,
    confused_pairs,
    krippendorff_alpha,
    typo_classes,
    vote_counts,
)
from credalearn.errors import CredalError

COUNTS = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(2, 4)), elements=st.integers(0, 4)
)


def annotations_of(votes: list[tuple[str, str | None, str | None]]) -> Annotations:
    """Votes (item, annotator, label) as the canonical table."""
    schema = dict.fromkeys(("item", "annotator", "label"), pl.String)
    table = pl.DataFrame(votes, schema=schema, orient="row").with_columns(weight=pl.lit(1.0))
    items = tuple(dict.fromkeys(item for item, _, _ in votes))
    classes = tuple(sorted({label for _, _, label in votes if label is not None}))
    source = Source(Path("votes.csv"), "long", "by hand", len(votes))
    return Annotations("votes", items, classes, table, source)


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
    with pytest.raises(CredalError, match=rf"^counts must .*{message}.*\. To fix: give how many"):
        krippendorff_alpha(counts)


def test_alpha_of_krippendorffs_own_example() -> None:
    """Four observers, twelve units, five categories: 0.743 for nominal data (2011, section C)."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    votes: list[tuple[str, str | None, str | None]] = [
        (f"unit {u}", f"observer {o}", None if value is None else str(value))
        for o, row in enumerate(observers)
        for u, value in enumerate(row)
    ]
    found = agreement(annotations_of(votes)).alpha
    assert found == pytest.approx(0.743, abs=5e-4)


def test_agreement_counts_items_votes_and_ties() -> None:
    votes = [("x", "a", "1"), ("x", "b", "1"), ("y", "a", "1"), ("y", "b", "2"), ("z", "a", "2")]
    found = agreement(annotations_of([*votes, ("z", "b", None)]))
    assert (found.items, found.annotators, found.votes) == (3, 2, 5)
    assert (found.fewest, found.median, found.most) == (1, 2.0, 2)
    assert (found.unanimous, found.tied) == (0.5, 0.5)
    alone = agreement(annotations_of([("x", None, "1"), ("y", None, "2")]))
    assert (alone.annotators, alone.unanimous, alone.tied, alone.alpha) == (0, None, None, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_confused_pairs_are_those_of_a_loop(votes: list[tuple[int, int]]) -> None:
    made = annotations_of([(f"i{i}", None, f"c{k}") for i, k in votes])
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


@given(
    st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 3)), st.integers(0, 2), min_size=1)
)
def test_the_majority_of_the_others_is_that_of_a_loop(votes: dict[tuple[int, int], int]) -> None:
    made = annotations_of([(f"i{i}", f"w{w}", f"c{k}") for (i, w), k in votes.items()])
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
    votes: list[tuple[str, str | None, str | None]] = []
    for i in range(num_items):
        truth = int(dice.integers(3))
        for who in "abcd":
            label = truth if dice.random() < 0.9 else int(dice.integers(3))
            votes.append((f"i{i}", who, str(label)))
        if i < of_bad:
            votes.append((f"i{i}", "bad", str((truth + 1) % 3)))
    return annotations_of(votes)


def test_somebody_far_from_the_rest_is_named_and_three_votes_accuse_nobody() -> None:
    first, *others = annotator_agreement(crowd(200, of_bad=100))
    assert first.name == "bad"
    assert first.far
    assert first.upper < first.others - 0.1  # type: ignore[operator]
    assert not any(each.far for each in others)
    assert not any(each.far for each in annotator_agreement(crowd(200, of_bad=3)))


def test_nobody_is_accused_where_all_are_alike() -> None:
    """At 95 % for everyone together; with the margin it is far fewer than one crowd in twenty."""
    dice = np.random.default_rng(1)
    accused = 0
    for _ in range(100):
        votes: list[tuple[str, str | None, str | None]] = [
            (f"i{i}", f"w{w}", str(int(dice.random() < 0.8)))
            for i in range(30)
            for w in dice.choice(8, 5, replace=False)
        ]
        accused += any(each.far for each in annotator_agreement(annotations_of(votes)))
    assert accused <= 5


def test_typos_are_told_from_classes() -> None:
    names = {"horse": 9, "hrose": 1, "Horse ": 1, "cow": 5, "cov": 1, "class_11": 1, "class_1": 9}
    names |= {"rhinoceros": 4, "rinocerous": 1, "Cow": 5, "zebra": 1, "-1": 1, "1": 9, "10": 1}
    names |= {"1.0": 1, "-1000": 1, "1000": 3}  # numbers differ in all they hold
    names |= {"dog": 8, "dgo": 2, "owl": 7, "olw": 2, "ACT": 8, "ATC": 1, "b1a": 8, "ba1": 1}
    votes: list[tuple[str, str | None, str | None]] = [
        (f"i{n}", None, name) for name, times in names.items() for n in range(times)
    ]
    found = {each.label: (each.like, each.why) for each in typo_classes(annotations_of(votes))}
    assert found == {
        "hrose": ("horse", "1 letter differs"),
        "Horse ": ("horse", "only case or spaces differ"),
        "rinocerous": ("rhinoceros", "2 letters differ"),
        "cow": ("Cow", "only case or spaces differ"),
        "dgo": ("dog", "two letters are swapped"),
    }


def is_number(name: str) -> bool:
    whole, _, decimals = name.removeprefix("-").partition(".")
    return whole.isdigit() and (decimals.isdigit() or "." not in name)


def bare(name: str) -> str:
    return name if is_number(name) else folded(name)


def is_swap(name: str, other: str) -> bool:
    a, b = name.casefold(), other.casefold()
    differs = [k for k in range(min(len(a), len(b))) if a[k] != b[k]]
    if len(name) < 3 or name.isupper() or len(a) != len(b) or len(differs) != 2:
        return False
    i, j = differs
    return j == i + 1 and a[i] == b[j] and a[j] == b[i] and (a[i] + a[j]).isalpha()


def slow_typos(names: list[str], votes: list[int]) -> dict[str, str]:
    """Of each class what it was meant to be, pair by pair."""
    found = {}
    for i, name in enumerate(names):
        allowed = 0 if len(name) < 4 else 1 if len(name) < 8 else 2
        near = []
        for j, other in enumerate(names):
            number = is_number(name)
            same = bare(name) == bare(other) and (votes[j], -j) > (votes[i], -i)
            distance = edit_distance(name.casefold(), other.casefold())
            digits = [each for each in name if each.isdigit()]
            alike = digits == [each for each in other if each.isdigit()] and not number
            if same:
                near.append((0, -votes[j], j))
            elif votes[i] == 1 and votes[j] >= 3 and 0 < distance <= allowed and alike:
                near.append((distance, -votes[j], j))
            elif not number and votes[j] >= max(3, 4 * votes[i]) and is_swap(name, other):
                near.append((1, -votes[j], j))
        if near:
            found[name] = names[min(near)[2]]
    return found


@given(
    st.dictionaries(
        st.text(st.sampled_from("aAbc_1"), min_size=3, max_size=5).map(lambda end: f"horse{end}")
        | st.text(st.sampled_from("aAb_1-."), min_size=1, max_size=5),
        st.integers(1, 4),
        min_size=2,
        max_size=12,
    )
)
def test_typos_are_those_of_a_loop(times: dict[str, int]) -> None:
    votes: list[tuple[str, str | None, str | None]] = [
        (f"i{n}", None, name) for name, number in times.items() for n in range(number)
    ]
    names = sorted(times)
    found = typo_classes(annotations_of(votes))
    assert {each.label: each.like for each in found} == slow_typos(
        names, [times[name] for name in names]
    )
    assert [each.votes for each in found] == sorted(each.votes for each in found)


def test_typos_among_thousands_of_classes_are_quick() -> None:
    names = ["".join(letters) for letters in islice(permutations("abcdefgh"), 0, 40_000, 20)]
    votes: list[tuple[str, str | None, str | None]] = [
        (f"i{n}", None, name) for name in names for n in range(3)
    ]
    started = process_time()
    assert typo_classes(annotations_of(votes)) == ()
    assert process_time() - started < 4


def test_statistics_are_of_votes() -> None:
    source = Source(Path("p.csv"), "probabilities", "by hand", 1)
    table = pl.DataFrame({"item": ["x"], "cat": [0.4], "dog": [0.6]})
    made = Annotations("probabilities", ("x",), ("cat", "dog"), table, source)
    for function in (agreement, confused_pairs, vote_counts, annotator_agreement):
        with pytest.raises(CredalError, match="got a table of probabilities"):
            function(made)
    with pytest.raises(CredalError, match=r"confidence must lie in \(0, 1\); got 1.0. To fix"):
        annotator_agreement(annotations_of([("x", "a", "1")]), confidence=1.0)
