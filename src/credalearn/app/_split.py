"""Items split into training, calibration and test; items of a group stay together."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from credalearn._formats import many, shown
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from credalearn.app.dataset import Dataset

SPLITS = ("train", "calibration", "test")
HELD_OUT = SPLITS[1:]  # where nothing is trained
SHARES = {"train": 0.6, "calibration": 0.2, "test": 0.2}
_DRAWS = 100  # of few large groups some draws leave a split empty


def assign(
    data: "Dataset", names: Sequence[str], reasons: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The split of each item, the user's own or drawn; adds reasons; and which items are later."""
    asked, official = data.options.split, data.annotations.source.splits
    own = np.array([official.get(item, "") for item in data.items], dtype=object)
    if asked is not None:
        own = data.columns[asked].fill_null("").str.strip_chars().to_numpy().astype(object)
    # Equal images must not be in two splits, whatever they are called. People repeat texts.
    drawn = data.inputs.kind == "texts" and not own.any()
    same = data.digests if data.inputs.kind == "images" or drawn else data.items
    together = np.array(same if data.groups is None else data.groups, dtype=object)
    # A later item is in a split only where the user put it there.
    later = data.later & (own == "")
    reasons[data.unvoted & (own == "train")] = "in training without votes"
    if "train" not in names:
        reasons[later & (reasons == "")] = "of later exports, which are not a random sample"
    rows = np.flatnonzero((reasons == "") & ~later)
    if not len(rows):
        found = ", ".join(f"{count:,} {why}" for why, count in Counter(reasons).items())
        raise CredalError(f"no item is left to split: {found}. To fix: add new items.")
    free = rows[own[rows] == ""] if asked is None else rows[:0]  # without an official split
    if len(free):
        left = [name for name in names if name not in own] or names[:1]
        own[free] = _drawn(data, free, together[free], left) if len(left) > 1 else left[0]
    part = np.full(len(data.items), "", dtype="<U11")
    part[rows] = own[rows]
    if len(free) < len(rows):
        place = lambda number: data.place(int(rows[number]))  # noqa: E731
        check_split(own[rows].tolist(), together[rows].tolist(), place, names=names)
    if "train" in names:
        # Later items whose group is held out are in no split.
        held = {group for name, group in zip(part, together, strict=True) if name in HELD_OUT}
        trained = ["" if group in held else "train" for group in together]
        part = np.where(later & (reasons == ""), trained, part)
        what = data.options.group or "image"
        held_out = (reasons == "") & (part == "")
        reasons[held_out] = f"of later exports whose {what} is in calibration or test"
    return part, later


def _drawn(
    data: "Dataset", rows: np.ndarray, groups: np.ndarray, names: Sequence[str]
) -> np.ndarray:
    """The splits of some items; gold-labeled items without votes calibrate and test."""
    state, unvoted = data.options.random_state, data.unvoted[rows]
    if "train" not in names or not unvoted.any():
        return draw_split(groups.tolist(), random_state=state, names=names)
    held = set(groups[unvoted])
    apart = np.array([group in held for group in groups])
    if apart.all():
        raise CredalError(
            "no item is left to train on: all have a gold label and no votes, or share a group "
            "with such items. To fix: add votes, or pass a split of your own."
        )
    part = np.full(len(rows), "train", dtype="<U11")
    # A few of them cannot calibrate and test alone, where other items have gold labels too.
    judged = (data.truth[rows][~unvoted] >= 0).mean() > 0.5
    if judged and unvoted.mean() < 1 - SHARES["train"]:
        part = draw_split(groups.tolist(), random_state=state, names=names)
    held_out = HELD_OUT if len(held) > 1 else ("test",)
    part[apart] = draw_split(groups[apart].tolist(), random_state=state, names=held_out)
    return part


def draw_split(
    groups: Sequence[object], *, random_state: int = 0, names: Sequence[str] = SPLITS
) -> np.ndarray:
    """The name of the split of each item, shape (N,), at random."""
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
            return np.array(names)[place[labels]]
    raise CredalError(
        f"the data cannot be split into {len(names)} parts without an empty one: there are "
        f"{many(len(labels), 'item')} in {many(len(sizes), 'group')}. To fix: add items, use "
        "smaller groups, or pass a split of your own."
    )


def check_split(
    split: Sequence[str],
    groups: Sequence[object],
    place: Callable[[int], str],
    *,
    names: Sequence[str] = SPLITS,
) -> None:
    """Check a split of the user's: known names, none empty, no group in two of them."""
    first: dict[object, int] = {}
    for row, (name, group) in enumerate(zip(split, groups, strict=True)):
        if name not in names:
            raise CredalError(
                f"{place(row)}: the split must be one of {', '.join(names)}; got {shown(name)}. "
                "To fix: rename it, or leave such items out."
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
