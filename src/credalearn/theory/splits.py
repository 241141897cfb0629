"""Repeated splits of V votes: one part to build labels, the other to test them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from credalearn._checks import check_number
from credalearn.sets._checks import as_classes, as_votes, require_shape

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Posterior = Callable[[Codes, Codes, Codes], Floats]
"""Items, annotators and classes of votes into a distribution of each item, shape (N, K)."""


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """One split of the votes.

    Args:
        building: Votes that labels are made from, whole numbers, shape (N, K).
        held_out: Votes that they are tested on, same shape.
        posterior: Posterior of a model of the annotators, fitted to the building votes, shape
            (N, K), rows that sum to 1; None to use the vote shares.

    Example:
        >>> Half(np.array([[2, 1]]), np.array([[1, 1]])).used
        array([ True])
    """

    building: Floats
    held_out: Floats
    posterior: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("building", "held_out"):
            votes = as_votes(getattr(self, name), name=name).cpu().numpy()
            object.__setattr__(self, name, votes)
        require_shape(self.held_out, self.building.shape, name="held_out")
        if self.posterior is not None:
            require_shape(self.posterior, self.building.shape, name="posterior")

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether an item has votes on both sides, shape (N,)."""
        return np.asarray((self.building.sum(1) > 0) & (self.held_out.sum(1) > 0))


def halves_of_counts(
    counts: "ArrayLike", *, splits: int = 20, share: float = 0.5, random_state: int = 0
) -> Iterator[Half]:
    """Split each item's votes at random without replacement, for votes without annotator names.

    Of m votes, share·m build, rounded half up, but at least one and at most m − 1; an item with
    one vote has none to hold out. Drawn exactly, by the multivariate hypergeometric distribution.

    Args:
        counts: Whole numbers of votes, shape (N, K).
        splits: Number of splits.
        share: Share of the votes that build, in (0, 1).
        random_state: Random seed.

    Example:
        >>> half = next(halves_of_counts([[3, 1]], splits=1))
        >>> half.building.sum().item(), (half.building + half.held_out).tolist()
        (2.0, [[3.0, 1.0]])
    """
    votes = as_votes(counts).cpu().numpy().astype(np.int64)
    _check_options(splits, share, random_state)
    random = np.random.default_rng(random_state)
    total = votes.sum(1)
    wanted = np.clip(np.floor(share * total + 0.5), np.minimum(total, 1), np.maximum(total - 1, 0))

    def drawn() -> Half:
        building = np.zeros_like(votes)
        others, left = total.copy(), np.where(total > 1, wanted, total).astype(np.int64)
        for number in range(votes.shape[1]):  # class by class: given the first, the rest again
            others -= votes[:, number]
            building[:, number] = random.hypergeometric(votes[:, number], others, left)
            left -= building[:, number]
        return Half(building.astype(np.float64), (votes - building).astype(np.float64))

    return (drawn() for _ in range(splits))


def halves_of_annotators(
    item: "ArrayLike",
    annotator: "ArrayLike",
    label: "ArrayLike",
    *,
    shape: tuple[int, int],
    splits: int = 20,
    share: float = 0.5,
    random_state: int = 0,
    posterior: Posterior | None = None,
) -> Iterator[Half]:
    """Split the annotators: all votes of a person build, or all are held out.

    Of A annotators share·A build, rounded half up, but at least one and at most A − 1. Votes
    without an annotator are split one by one.

    Args:
        item: Item of each vote, from 0, shape (V,).
        annotator: Annotator of each vote, from 0; −1 for unknown.
        label: Class of each vote, from 0; below 0 for unsure, which does not count.
        shape: (N, K).
        splits: Number of splits.
        share: Share of the annotators that build, in (0, 1).
        random_state: Random seed.
        posterior: A model of the annotators, fitted to each split's building votes.

    Example:
        >>> halves = halves_of_annotators([0, 0, 1], [0, 1, 1], [1, 0, 0], shape=(2, 2))
        >>> sorted({tuple(half.building.sum(1).tolist()) for half in halves})
        [(1.0, 0.0), (1.0, 1.0)]
    """
    _check_options(splits, share, random_state)
    items, who, labels = (np.asarray(codes, np.int64) for codes in (item, annotator, label))
    require_shape(who, items.shape, name="annotator, as item,")
    require_shape(labels, items.shape, name="label, as item,")
    known = labels >= 0
    items, who, labels = items[known], who[known], labels[known]
    as_classes(items, num_classes=shape[0], name="item")
    as_classes(labels, num_classes=shape[1], name="label")
    people = np.unique(who[who >= 0])
    wanted = int(np.floor(share * len(people) + 0.5))
    wanted = min(max(wanted, 1), max(len(people) - 1, 0))
    random = np.random.default_rng(random_state)

    def tally(chosen: NDArray[np.bool_]) -> Floats:
        cells = items[chosen] * shape[1] + labels[chosen]
        counts = np.bincount(cells, minlength=shape[0] * shape[1])
        return counts.astype(np.float64).reshape(shape)

    def drawn() -> Half:
        builders = random.permutation(people)[:wanted]
        builds = np.where(who >= 0, np.isin(who, builders), random.random(len(who)) < share)
        soft = posterior and posterior(items[builds], who[builds], labels[builds])
        return Half(tally(builds), tally(~builds), soft)

    return (drawn() for _ in range(splits))


def _check_options(splits: int, share: float, random_state: int) -> None:
    check_number(splits, name="splits", least=1, whole=True)
    check_number(random_state, name="random_state", least=0, whole=True)
    check_number(share, name="share", above=0, below=1)
