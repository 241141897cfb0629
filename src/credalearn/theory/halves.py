"""Votes split in two, again and again: one part to build labels, the other to hold them against.

Shapes: N items, K classes, V votes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from credalearn._checks import check_whole
from credalearn._formats import check_share
from credalearn.errors import CredalError
from credalearn.sets.checks import refuse_masked

_TOO_MANY = 10**9  # votes of an item: numpy draws from fewer, without replacement

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Posterior = Callable[[Codes, Codes, Codes], Floats]
"""Items, annotators and classes of votes into a distribution of each item, shape (N, K)."""


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """One split of the votes.

    Args:
        building: Votes that labels are made from, shape (N, K).
        held_out: Votes that they are held against, shape (N, K).
        posterior: What a model of the annotators makes of the building votes, shape (N, K), rows
            that sum to 1; or None, and their shares count.

    Raises:
        CredalError: If the shapes differ, or a count is negative or not whole.

    Example:
        >>> Half(np.array([[2, 1]]), np.array([[1, 1]])).used
        array([ True])
    """

    building: Floats
    held_out: Floats
    posterior: Floats | None = None

    def __post_init__(self) -> None:
        parts = {"building": self.building, "held_out": self.held_out}
        if self.posterior is not None:
            parts["posterior"] = self.posterior
        shapes = {name: np.shape(part) for name, part in parts.items()}
        if len(set(shapes.values())) > 1 or len(shapes["building"]) != 2:
            raise CredalError(f"all parts must share one shape (items, classes); got {shapes}.")
        for name, part in parts.items():
            whole = _whole_numbers(part, name) if name != "posterior" else part
            object.__setattr__(self, name, np.asarray(whole, np.float64))

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether an item has votes on both sides, shape (N,)."""
        both: NDArray[np.bool_] = (self.building.sum(1) > 0) & (self.held_out.sum(1) > 0)
        return both


def halves_of_counts(
    counts: ArrayLike, *, splits: int = 20, share: float = 0.5, random_state: int = 0
) -> Iterator[Half]:
    """Split each item's votes at random, drawing without replacement, where nobody is named.

    Of m votes, share·m build, rounded half up, but at least one and at most m − 1; an item with
    one vote has none to hold out. Drawn exactly, by the multivariate hypergeometric distribution.

    Args:
        counts: Whole numbers of votes, shape (N, K).
        splits: How often.
        share: Of the votes that build, in (0, 1).
        random_state: Of the draws.

    Raises:
        CredalError: If a count is not whole, an item has 10⁹ votes or more, or an option is out of
            range.

    Example:
        >>> half = next(halves_of_counts([[3, 1]], splits=1))
        >>> half.building.sum().item(), (half.building + half.held_out).tolist()
        (2.0, [[3.0, 1.0]])
    """
    votes = _few_enough(_whole_numbers(counts, "counts")).astype(np.int64)
    _check_options(splits, share, random_state)
    random = np.random.default_rng(random_state)
    total = votes.sum(1)
    wanted = np.clip(np.floor(share * total + 0.5), np.minimum(total, 1), np.maximum(total - 1, 0))

    def drawn() -> Iterator[Half]:
        for _ in range(splits):
            building = np.zeros_like(votes)
            others, left = total.copy(), np.where(total > 1, wanted, total).astype(np.int64)
            for number in range(votes.shape[1]):  # class by class: given the first, the rest again
                others -= votes[:, number]
                building[:, number] = random.hypergeometric(votes[:, number], others, left)
                left -= building[:, number]
            yield Half(building.astype(np.float64), (votes - building).astype(np.float64))

    return drawn()


def halves_of_annotators(
    item: ArrayLike,
    annotator: ArrayLike,
    label: ArrayLike,
    *,
    shape: tuple[int, int],
    splits: int = 20,
    share: float = 0.5,
    random_state: int = 0,
    posterior: Posterior | None = None,
) -> Iterator[Half]:
    """Split the annotators: all votes of a person build, or all are held out.

    A label then meets people who had no part in any label of its split. Of A annotators share·A
    build, rounded half up, but at least one and at most A − 1. Votes that nobody signed go to
    either side one by one.

    Args:
        item: Of each vote which item, from 0, shape (V,).
        annotator: Of each vote who gave it, from 0; −1 for nobody.
        label: Of each vote which class, from 0; −1 for unsure, which counts nowhere.
        shape: (N, K).
        splits: How often.
        share: Of the annotators that build, in (0, 1).
        random_state: Of the draws.
        posterior: A model of the annotators, fitted anew to each split's building votes.

    Raises:
        CredalError: If the codes do not fit the shape, or an option is out of range.

    Example:
        >>> halves = halves_of_annotators([0, 0, 1], [0, 1, 1], [1, 0, 0], shape=(2, 2))
        >>> sorted({tuple(half.building.sum(1).tolist()) for half in halves})
        [(1.0, 0.0), (1.0, 1.0)]
    """
    try:
        items, who, labels = (np.asarray(codes, np.int64) for codes in (item, annotator, label))
    except (TypeError, ValueError) as error:
        raise CredalError(
            f"item, annotator and label are numbers from 0; {error}. To fix: number the names."
        ) from error
    _check_codes(items, who, labels, shape)
    _check_options(splits, share, random_state)
    known = labels >= 0
    items, who, labels = items[known], who[known], labels[known]
    people = np.unique(who[who >= 0])
    wanted = int(np.floor(share * len(people) + 0.5))
    wanted = min(max(wanted, 1), max(len(people) - 1, 0))
    random = np.random.default_rng(random_state)

    def tally(chosen: NDArray[np.bool_]) -> Floats:
        cells = items[chosen] * shape[1] + labels[chosen]
        found = np.bincount(cells, minlength=shape[0] * shape[1])
        return found.astype(np.float64).reshape(shape)

    def drawn() -> Iterator[Half]:
        for _ in range(splits):
            builders = random.permutation(people)[:wanted]
            builds = np.where(who >= 0, np.isin(who, builders), random.random(len(who)) < share)
            soft = None
            if posterior is not None:
                soft = posterior(items[builds], who[builds], labels[builds])
            yield Half(tally(builds), tally(~builds), soft)

    return drawn()


def _check_options(splits: int, share: float, random_state: int) -> None:
    check_whole(splits, least=1, name="splits", remedy="give 20")
    check_whole(random_state, least=0, name="random_state", remedy="give 0")
    check_share(share, name="share")


def _check_codes(items: Codes, who: Codes, labels: Codes, shape: tuple[int, int]) -> None:
    if not items.shape == who.shape == labels.shape or items.ndim != 1:
        shapes = (items.shape, who.shape, labels.shape)
        raise CredalError(f"item, annotator and label must share one shape (votes,); got {shapes}.")
    for name, codes, least, most in (
        ("item", items, 0, shape[0]),
        ("annotator", who, -1, np.iinfo(np.int64).max),
        ("label", labels, -1, shape[1]),
    ):
        wrong = (codes < least) | (codes >= most)
        if wrong.any():
            row = int(wrong.argmax())
            raise CredalError(
                f"{name} must lie in {least}..{most - 1}; vote {row} has {codes[row]}."
            )


def _whole_numbers(counts: ArrayLike, name: str) -> Floats:
    refuse_masked(counts, name=name)
    try:
        given = counts.numpy(force=True) if isinstance(counts, Tensor) else counts
        votes = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise CredalError(
            f"{name} must be whole numbers of shape (items, classes); {error}. To fix: give how "
            "many votes each class got."
        ) from error
    if votes.ndim != 2:
        raise CredalError(f"{name} must have shape (items, classes); got {votes.shape}.")
    wrong = ~((votes >= 0) & (votes == np.round(votes))).all(1)
    if wrong.any():
        row = int(wrong.argmax())
        raise CredalError(
            f"{name} must be whole numbers of 0 or more; row {row} has {votes[row].tolist()[:8]}. "
            "To fix: give the votes themselves, without weights."
        )
    return votes


def _few_enough(votes: Floats) -> Floats:
    total = votes.sum(1)
    if (total >= _TOO_MANY).any():
        row = int((total >= _TOO_MANY).argmax())
        raise CredalError(
            f"an item must have fewer than {_TOO_MANY:,} votes to be split; row {row} has "
            f"{total[row]:,.0f}. To fix: leave it out, or give a part of its votes."
        )
    return votes
