"""Splits: groups stay together, shares are kept, nothing held out is trained on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import credalearn as cl
from credalearn.app._split import HELD_OUT, SPLITS, check_split, draw_split

SHARES = (0.6, 0.2, 0.2)
GROUPS = st.lists(st.integers(1, 12), min_size=12, max_size=60)


@given(sizes=GROUPS, random_state=st.integers(0, 9))
def test_a_group_is_in_one_split_and_the_shares_are_kept(
    sizes: list[int], random_state: int
) -> None:
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    split = draw_split(groups, random_state=random_state)
    assert len(set(zip(split, groups, strict=True))) == len(sizes)
    for name, share in zip(SPLITS, SHARES, strict=True):
        # Half a group off at each of its two edges.
        assert abs((split == name).sum() - share * len(groups)) <= max(sizes)
    assert (split == draw_split(groups, random_state=random_state)).all()
    check_split(split.tolist(), groups, str)


@given(st.integers(10, 300), st.integers(0, 99))
def test_ungrouped_splits_have_the_requested_sizes(num_items: int, random_state: int) -> None:
    split = draw_split(range(num_items), random_state=random_state)
    for name, share in zip(SPLITS, SHARES, strict=True):
        assert abs((split == name).sum() - share * num_items) <= 1
    halves = draw_split(range(num_items), random_state=random_state, names=HELD_OUT)
    assert set(halves) == set(HELD_OUT)
    assert abs((halves == "test").sum() - num_items / 2) <= 1


def test_too_few_groups_are_refused() -> None:
    with pytest.raises(
        cl.CredalError,
        match=r"cannot be split into 3 parts .*: there are 9 items in 2 groups",
    ):
        draw_split(list("aaaaabbbb"))


@pytest.mark.parametrize(
    ("split", "groups", "message"),
    [
        (("train", "", "test"), "abc", r"row 1: the split must be one of.* To fix: rename it"),
        (("train", "valid", "test"), "abc", r"row 1: the split .* got 'valid'. To fix: rename it"),
        (("train", "calibration", "train"), "abc", r"no item is in the split 'test'"),
        (("train", "calibration", "test"), "aba", r"row 2: 'a' is in two splits, 'train' and 'te"),
    ],
)
def test_rejects_splits_that_leak(split: tuple[str, ...], groups: str, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        check_split(split, list(groups), "row {}".format)
