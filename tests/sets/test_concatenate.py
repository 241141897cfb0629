"""Joined batches: every set, its reference and its kind survive; NumPy cannot drop them unseen."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import credalearn as cl
from random_sets import KINDS, distributions


def check_alike(
    joined: cl.CredalSet, parts: list[cl.CredalSet], generator: torch.Generator
) -> None:
    """Worst cases for random costs, bounds and references are those of the parts."""
    assert len(joined) == sum(map(len, parts))
    cost = torch.randn(joined.shape, generator=generator, dtype=torch.float64)
    rows = torch.split(cost, [len(part) for part in parts])
    worst = torch.cat([part.worst(row) for part, row in zip(parts, rows, strict=True)])
    assert_close(joined.worst(cost), worst)
    assert_close(joined.lower, torch.cat([part.lower for part in parts]))
    assert_close(joined.upper, torch.cat([part.upper for part in parts]))
    assert_close(joined.reference, torch.cat([part.reference for part in parts]))
    assert_close(joined.diameter(), torch.cat([part.diameter() for part in parts]))


@pytest.mark.parametrize("kind", KINDS)
def test_sets_of_one_kind_stay_as_they_are(kind: str, generator: torch.Generator) -> None:
    parts = [KINDS[kind](num_items, 5, generator) for num_items in (16, 1, 24)]
    joined = cl.concatenate(parts)
    assert type(joined) is type(parts[0])
    check_alike(joined, parts, generator)
    assert_close(joined.center(), torch.cat([part.center() for part in parts]))
    again = joined[16:]  # a batch like any other
    check_alike(again, parts[1:], generator)


def test_a_soft_label_on_one_side_only_is_kept() -> None:
    shares = [[0.25, 0.75]]
    with_soft, without = cl.relax(shares), cl.LowerBounds([[0.2, 0.4]])
    joined = cl.concatenate([with_soft, without])
    assert joined.soft is not None
    assert_close(joined.reference, torch.tensor([[0.25, 0.75], [0.4, 0.6]]))
    assert cl.concatenate([without, without]).soft is None


def test_rejects_sets_over_other_classes_or_of_other_kinds() -> None:
    sets = cl.from_votes([[1, 3]])
    bad: list[tuple[Any, str]] = [
        ([], "one or more credal sets"),
        ([sets, np.eye(2)], "one or more credal sets"),
        ([sets, cl.from_votes([[1, 3, 0]])], r"got \[2, 3\] classes"),
        (
            [sets, cl.from_votes([[1, 3]], rule="hull"), sets],
            r"of one kind; got LowerBounds and Intervals\. To fix: make all labels with one rule",
        ),
    ]
    for parts, message in bad:
        with pytest.raises(cl.CredalError, match=message):
            cl.concatenate(parts)


def test_numpy_does_not_join_sets_silently(generator: torch.Generator) -> None:
    sets: Any = cl.LowerBounds(0.5 * distributions(4, 3, generator=generator))
    joins: list[Any] = [np.concatenate, np.vstack, np.hstack, np.stack]
    for join in joins:
        with pytest.raises(cl.CredalError, match=r"drops the sets\. To fix: credalearn\.concat"):
            join([sets, sets])
    with pytest.raises(cl.CredalError, match=r"np\.append drops the sets"):
        np.append(sets, sets, axis=0)
    # What looks at the references goes on as before.
    assert np.concatenate([np.asarray(sets), np.asarray(sets)]).shape == (8, 3)
    assert np.ndim(sets) == 2
    np.testing.assert_allclose(np.sum(sets, axis=1), 1)
