"""Two rounds as one: what is added, what is repeated, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn.app.annotations.merge import merge
from credalearn.errors import CredalError
from made_annotations import Vote, bounds_of, shares_of, votes_of

ROUND = st.dictionaries(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("abc")), st.sampled_from("12"), min_size=1
)


@given(ROUND, ROUND)
def test_the_newest_vote_of_each_annotator_and_item_counts(
    first: dict[tuple[str, str], str], second: dict[tuple[str, str], str]
) -> None:
    one, two = (
        votes_of([(*key, label) for key, label in each.items()], classes=("1", "2"))
        for each in (first, second)
    )
    both = merge(one, two, conflicts="newest")
    found = {(item, who): label for item, who, label, _ in both.table.rows()}
    assert found == first | second
    assert len(both.table) == len(found)
    assert both.source.first_items == len(one.items)
    differ = any(second.get(key, label) != label for key, label in first.items())
    if differ:
        with pytest.raises(CredalError, match=r"have '[12]' in votes.csv and '[12]' in votes.csv"):
            merge(one, two)
    else:
        assert merge(one, two).table.equals(both.table)


def test_merging_the_same_export_changes_nothing() -> None:
    for made in (
        votes_of([("x", "a", "1"), ("x", "b", "2"), ("y", "a", None)]),
        shares_of("counts", ("1", "2"), x=[2, 1], y=[0, 0]),
        shares_of("probabilities", ("1", "2"), x=[0.5, 0.5]),
        bounds_of(("x", "1", 0.3), ("x", "2", 0.4)),
    ):
        again = merge(made, made)
        assert again.counts().tolist() == made.counts().tolist()
        assert again.items == made.items


def test_unnamed_votes_and_counts_are_added() -> None:
    unnamed: list[Vote] = [("x", None, "1"), ("y", None, "2")]
    made = votes_of(unnamed)
    assert merge(merge(made, made), made).counts().tolist() == [[3, 0], [0, 3]]
    counts = shares_of("counts", ("1", "2"), x=[2, 1], z=[0, 1])
    assert merge(counts, made).counts().tolist() == [[3, 1], [0, 1], [0, 1]]
    assert merge(made, counts).kind == "counts"
    assert merge(counts, counts, conflicts="add").counts().tolist() == [[4, 2], [0, 2]]


def test_new_items_come_last_and_sorted_classes_stay_sorted() -> None:
    first = votes_of([("x", "a", "b"), ("y", "a", "c")])
    both = merge(first, votes_of([("w", "a", "a"), ("x", "b", "c")]))
    assert both.items == ("x", "y", "w")
    assert both.classes == ("a", "b", "c")
    assert both.table["item"].to_list() == ["x", "x", "y", "w"]
    assert both.source.notes == ("votes.csv adds 1 item and 2 votes",)


def test_an_escaped_formula_is_the_item_of_the_first_round() -> None:
    first = votes_of([("=x", "a", "1"), ("y", "a", "2")])
    assert merge(first, votes_of([("'=x", "b", "1")])).items == ("=x", "y")


@pytest.mark.parametrize(
    ("second", "conflicts", "message"),
    [
        (shares_of("probabilities", ("1", "2"), x=[0.5, 0.5]), "refuse", "must be of one kind"),
        (votes_of([("x", "b", "2")]), "add", "only counts can be added"),
        (votes_of([("x", "a", "2")]), "refuse", "item 'x' and annotator 'a' have '1' in"),
    ],
)
def test_rounds_that_do_not_fit_are_refused(second: object, conflicts: str, message: str) -> None:
    with pytest.raises(CredalError, match=message):
        merge(votes_of([("x", "a", "1")]), second, conflicts=conflicts)  # type: ignore[arg-type]
