"""Items split into training, calibration and test; items of a group stay together.

Shapes: N items.
"""

from collections.abc import Callable, Sequence

import numpy as np

from credalearn._checks import nearest
from credalearn._formats import shown
from credalearn.errors import CredalError

SPLITS = ("train", "calibration", "test")
HELD_OUT = SPLITS[1:]  # where nothing is trained
SHARES = {"train": 0.6, "calibration": 0.2, "test": 0.2}
_DRAWS = 100  # of few large groups some draws leave a split empty


def draw_split(
    groups: Sequence[object], *, random_state: int = 0, names: Sequence[str] = SPLITS
) -> np.ndarray:
    """The name of the split of each item, shape (N,), at random.

    Items of a group (a patient, a video) go to the same split, so that no item is tested whose
    group was trained on; 60, 20 and 20 % then hold as nearly as the groups allow.
    """
    codes: dict[object, int] = {}
    labels = np.array([codes.setdefault(group, len(codes)) for group in groups], dtype=int)
    sizes = np.bincount(labels)
    ends = np.cumsum([SHARES[name] for name in names])
    edges = ends[:-1] / ends[-1] * len(labels)
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
    raise CredalError(
        f"{len(labels):,} items in {len(sizes):,} groups are too few for {len(names)} splits: one "
        "would be empty. To fix: add items, use smaller groups, or pass a split of your own."
    )


def check_split(
    split: Sequence[str],
    groups: Sequence[object],
    place: Callable[[int], str],
    *,
    names: Sequence[str] = SPLITS,
) -> np.ndarray:
    """A split of the user's, checked: known names, none empty, no group in two of them."""
    first: dict[object, int] = {}
    for row, (name, group) in enumerate(zip(split, groups, strict=True)):
        if name not in names:
            fix = f"write {nearest(name, names) or names[0]!r}"
            raise CredalError(
                f"{place(row)}: the split must be one of {', '.join(names)}; got {shown(name)}. "
                f"To fix: {fix}."
            )
        before = first.setdefault(group, row)
        if split[before] != name:
            raise CredalError(
                f"{place(row)}: {shown(group)} is in two splits, {split[before]!r} and {name!r}, "
                "so that the model would be tested on what it knows. To fix: put all of it into "
                "one split."
            )
    for name in names:
        if name not in split:
            raise CredalError(
                f"no item is in the split {name!r}. To fix: move some items there, or leave out "
                "the split column."
            )
    return np.array(split)


def train_later(split: np.ndarray, later: np.ndarray, groups: Sequence[object]) -> np.ndarray:
    """The split (N,) with items of later rounds in training, but for groups that are held out.

    People choose the items of later rounds, usually hard ones, and guarantees are about items as
    they come. A later item whose group is in calibration or test is in no split, ``""``.
    """
    pairs = zip(split, later, groups, strict=True)
    held_out = {group for name, is_later, group in pairs if name in HELD_OUT and not is_later}
    trained = ["" if group in held_out else "train" for group in groups]
    return np.where(later, trained, split)
