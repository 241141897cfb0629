"""Items split into training, calibration and test; what belongs together stays together.

Shapes: N items.
"""

from collections.abc import Callable, Sequence

import numpy as np

from credalearn._checks import nearest
from credalearn.app.annotations.places import shown
from credalearn.errors import CredalError

SPLITS = ("train", "calibration", "test")
SHARES = (0.6, 0.2, 0.2)
HELD_OUT = SPLITS[1:]  # where nothing is trained
_SEEN = {"train": "trained", "calibration": "calibrated"}
_DRAWS = 100  # of few large groups some draws leave a split empty


def split_items(
    num_items: int,
    *,
    groups: Sequence[object] | None = None,
    random_state: int = 0,
    names: Sequence[str] = SPLITS,
) -> np.ndarray:
    """The name of the split of each item, shape (N,), at random.

    Items of a group (a patient, a video) go to the same split, so that none is tested on what it
    was trained on; 60, 20 and 20 % then hold as nearly as the groups allow.

    Args:
        num_items: N.
        groups: What each item belongs to; every item by itself unless given.
        random_state: Of the draw.
        names: The splits; of two of them each gets as much beside the other as of three.

    Raises:
        CredalError: If a split would be empty.

    Example:
        >>> split = split_items(10, groups=list("aabbccddee"))
        >>> [split.tolist().count(name) for name in SPLITS]
        [6, 2, 2]
    """
    labels = np.arange(num_items) if groups is None else _codes(groups)
    sizes = np.bincount(labels)
    ends = np.cumsum([share for name, share in zip(SPLITS, SHARES, strict=True) if name in names])
    edges = ends[:-1] / ends[-1] * num_items
    random = np.random.default_rng(random_state)
    for _ in range(_DRAWS):
        order = random.permutation(len(sizes))
        # A group goes where its middle falls among all items: an edge is at most half a group off.
        middle = np.cumsum(sizes[order]) - sizes[order] / 2
        place = np.empty(len(sizes), dtype=int)
        place[order] = np.searchsorted(edges, middle, side="right")
        if len(np.unique(place)) == len(names):
            split: np.ndarray = np.array(names)[place[labels]]
            return split
    number = "three" if len(names) == len(SPLITS) else "two"
    raise CredalError(
        f"{num_items:,} items in {len(sizes):,} groups are too few for {number} splits: one would "
        "be empty. To fix: give more items, smaller groups, or a --split of your own."
    )


def split_rounds(
    num_items: int, num_first: int, *, groups: Sequence[object] | None = None, random_state: int = 0
) -> np.ndarray:
    """The split of each item of several rounds, shape (N,): the later ones are trained on alone.

    Who defers chooses hard items, and what is certified must be about items as they come. So those
    of the first round are split as without the others. A later item that belongs with one of
    calibration or test is in no split, ``""``: trained on, it would tell of that one.

    Args:
        num_items: N.
        num_first: How many of them, the first, are of the first round.
        groups: What each item belongs to; every item by itself unless given.
        random_state: Of the draw.

    Raises:
        CredalError: If a split of the first round would be empty.

    Example:
        >>> split_rounds(7, 4, groups=list("abcdabz")).tolist()
        ['train', 'calibration', 'train', 'test', 'train', '', 'train']
    """
    before = None if groups is None else groups[:num_first]
    first = split_items(num_first, groups=before, random_state=random_state)
    split = np.concatenate([first, np.full(num_items - num_first, "", dtype=first.dtype)])
    return train_later(split, range(num_first, num_items), groups=groups)


def train_later(
    split: np.ndarray, later: Sequence[int], *, groups: Sequence[object] | None = None
) -> np.ndarray:
    """A split (N,) whose later items are trained on, but for those that belong with others' rest.

    Args:
        split: Name of each item's split; of the later ones whatever it is.
        later: Their numbers.
        groups: What each item belongs to; every item by itself unless given.

    Example:
        >>> split = np.array(["train", "calibration", "test", "", ""])
        >>> train_later(split, [3, 4], groups=list("abcab")).tolist()
        ['train', 'calibration', 'test', 'train', '']
    """
    found, new = split.copy(), set(later)
    found[list(later)] = "train"
    if groups is not None:
        others = (row for row in range(len(split)) if row not in new)
        held_out = {groups[row] for row in others if split[row] in HELD_OUT}
        found[[row for row in later if groups[row] in held_out]] = ""
    return found


def check_splits(
    split: Sequence[object],
    items: Sequence[str],
    *,
    groups: Sequence[object] | None = None,
    place: Callable[[int], str] | None = None,
    names: Sequence[str] = SPLITS,
) -> np.ndarray:
    """A split of one's own, checked: known names, none empty, no group in two of them.

    Args:
        split: Name of each item's split.
        items: Names of the items, each once.
        groups: What each item belongs to; every item by itself unless given.
        place: From an item's number to where it stands, such as "items.csv, line 7".
        names: The splits there are.

    Raises:
        CredalError: If it leaks or is not one.

    Example:
        >>> check_splits(["train", "calibration", "test"], ["x", "y", "z"]).tolist()
        ['train', 'calibration', 'test']
    """
    found = ["" if name is None else str(name).strip() for name in split]
    for row, (item, name) in enumerate(zip(items, found, strict=True)):
        if name not in names:
            near = nearest(name, names)
            fix = f"write {near!r}" if near else f"write one of {', '.join(names)}"
            trained = "; nothing is trained here" if name in SPLITS else ""
            raise CredalError(
                f"{_where(place, row)}a split must be one of {', '.join(names)}; item "
                f"{shown(item)} has {shown(name)}{trained}. To fix: {fix}."
            )
    for wanted in names:
        if wanted not in found:
            every = "all three" if len(names) == len(SPLITS) else "both"
            raise CredalError(
                f"no item is in the {wanted} split; {every} are needed. To fix: move some items "
                "there, or leave --split out."
            )
    first: dict[object, int] = {}
    for row, group in enumerate(groups if groups is not None else items):
        before = first.setdefault(group, row)
        if found[before] != found[row]:
            raise CredalError(
                f"{_where(place, row)}{shown(group)} is in two splits: {found[before]!r} (item "
                f"{shown(items[before])}) and {found[row]!r} (item {shown(items[row])}), so that "
                f"what is {_SEEN[names[0]]} on would be tested on. To fix: put all of it into one "
                "split."
            )
    return np.array(found)


def _where(place: Callable[[int], str] | None, row: int) -> str:
    return "" if place is None else f"{place(row)}: "


def _codes(groups: Sequence[object]) -> np.ndarray:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups])
