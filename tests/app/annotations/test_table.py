"""Annotations: checked when they are made, counted, and given back as tables."""

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn.app.annotations.table import check_unweighted
from credalearn.errors import CredalError
from made_annotations import Vote, bounds_of, shares_of, three_items, votes_of

VOTES = st.lists(
    st.tuples(
        st.sampled_from("xyz"), st.sampled_from(["a", "b", None]), st.sampled_from(["1", "2", None])
    ),
    max_size=12,
)


@given(VOTES)
def test_counts_match_a_slow_loop(votes: list[Vote]) -> None:
    made = votes_of(votes, items=("w", "x", "y", "z"), classes=("1", "2"), weight=0.5)
    slow = Counter((item, label) for item, _, label in votes)
    expected = [[slow[item, label] / 2 for label in made.classes] for item in made.items]
    assert made.counts().tolist() == expected
    people = dict.fromkeys(who for _, who, _ in votes if who is not None)
    assert made.annotators == tuple(people)


def test_to_pandas_and_to_polars_return_the_table() -> None:
    made = three_items()
    assert made.to_polars() is made.table
    frame = made.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["label"].tolist() == made.table["label"].to_list()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: votes_of([("x", "a", "1")], items=("y",)), "every item must be one of 'y'; got"),
        (lambda: votes_of([("x", "a", "1")], classes=("2",)), "every label .* '2'; got '1'"),
        (lambda: votes_of([("x", "a", "1")], items=("x", "x")), "every item must be named once"),
        (lambda: votes_of([("x", "a", "1")], weight=-1), "item 'x': 'weight' must be 0 or more"),
        (lambda: shares_of("counts", ("1", "2"), x=[0.5, 1]), "'1' must be a whole number .* 0.5"),
        (lambda: shares_of("counts", ("1", "2"), x=[1e300, 1]), "'1' must be at most 1e\\+15; got"),
        (lambda: shares_of("probabilities", ("1", "2"), x=[70, 1]), "write 70 % as 0.7"),
        (lambda: bounds_of(("x", "1", 0.7), ("x", "2", 0.6)), "'x'.*sum to at most 1; got 1.3"),
        (lambda: bounds_of(("x", "1", float("nan"))), "'at_least' must be between 0 and 1; got"),
    ],
)
def test_rejects_wrong_tables(make: object, message: str) -> None:
    with pytest.raises(CredalError, match=message):
        make()  # type: ignore[operator]


def test_weights_are_refused_where_votes_must_count_once() -> None:
    check_unweighted(three_items(), "votes are counted")
    check_unweighted(shares_of("counts", ("1", "2"), x=[2, 0]), "votes are counted")
    check_unweighted(votes_of([("x", "a", None)], classes=("1", "2"), weight=2), "unsure: no vote")
    with pytest.raises(CredalError, match=r"^votes are counted; .*item 'x'.*the weight 0\.5"):
        check_unweighted(votes_of([("x", "a", "1")], weight=0.5), "votes are counted")
