"""Annotators of unequal skill: crowd-kit's Dawid and Skene against an obvious one."""

import sys

import numpy as np
import pytest

from credalearn.app.annotations.dawid_skene import dawid_skene, posteriors
from credalearn.app.annotations.table import Annotations
from credalearn.errors import CredalError
from made_annotations import Vote, shares_of, votes_of

CROWD_KIT = "crowdkit.aggregation.classification.dawid_skene"


def skilled(annotations: Annotations) -> np.ndarray:
    return dawid_skene(annotations, annotations.items)


def slow_posteriors(
    votes: list[tuple[int, int, int]], num_items: int, num_classes: int, *, rounds: int
) -> np.ndarray:
    """Expectation maximization as the paper of 1979 states it, vote by vote."""
    num_people = 1 + max(who for _, who, _ in votes)
    found = np.zeros((num_items, num_classes))
    for item, _, label in votes:
        found[item, label] += 1
    found /= found.sum(1, keepdims=True)
    for _ in range(rounds):
        shares = found.mean(0)
        confusion = np.zeros((num_people, num_classes, num_classes))  # who, true, said
        for item, who, label in votes:
            confusion[who, :, label] += found[item]
        confusion = np.maximum(confusion, 1e-10)
        # Only classes with votes compete for the share of what he says.
        said = np.zeros((num_people, num_classes), bool)
        for _, who, label in votes:
            said[who, label] = True
        confusion *= said[:, None, :]
        confusion /= confusion.sum(2, keepdims=True)
        logs = np.tile(np.log(np.maximum(shares, 1e-10)), (num_items, 1))
        for item, who, label in votes:
            logs[item] += np.log(confusion[who, :, label])
        found = np.exp(logs - logs.max(1, keepdims=True))
        found /= found.sum(1, keepdims=True)
    return found


def simulated(
    random_state: int, *, num_items: int, skills: list[float], num_classes: int = 3
) -> tuple[list[tuple[int, int, int]], np.ndarray]:
    """Everybody votes on every item, right with the probability of his skill."""
    rng = np.random.default_rng(random_state)
    truth = rng.integers(0, num_classes, num_items)
    votes = []
    for item, true in enumerate(truth.tolist()):
        for who, skill in enumerate(skills):
            wrong = (true + int(rng.integers(1, num_classes))) % num_classes
            votes.append((item, who, true if rng.random() < skill else wrong))
    return votes, truth


def arrays_of(votes: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    item, who, label = np.array(votes).T
    return item, who, label


@pytest.mark.parametrize("random_state", range(2))
def test_posteriors_equal_a_slow_reference(random_state: int) -> None:
    votes, _ = simulated(random_state, num_items=120, skills=[0.95, 0.9, 0.85, 0.6, 0.4])
    found = posteriors(*arrays_of(votes), shape=(120, 3))
    slow = slow_posteriors(votes, 120, 3, rounds=100)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(found, slow, atol=1e-4)
    settled = slow_posteriors(votes, 120, 3, rounds=200)
    np.testing.assert_allclose(found, settled, atol=1e-4)  # more rounds would change nothing
    early = slow_posteriors(votes, 120, 3, rounds=9)
    assert np.abs(found - early).max() > 0.01  # or the comparison could not fail


def test_rows_and_columns_are_those_of_the_annotations() -> None:
    """Crowd-kit returns items and classes as they come; here they come backwards."""
    votes: list[Vote] = [
        *[("z", "ann", "owl"), ("z", "bo", "owl"), ("y", "ann", "dog"), ("y", "bo", "dog")],
        *[("x", "ann", "cat"), ("x", "bo", "cat")],
    ]
    found = votes_of(votes, items=("x", "y", "z"), classes=("cat", "dog", "emu", "owl"))
    np.testing.assert_allclose(skilled(found), np.eye(4)[[0, 1, 3]], atol=1e-6)


def test_unsure_votes_and_items_without_votes_change_no_other_posterior() -> None:
    votes: list[Vote] = [
        *[("x", "ann", "cat"), ("x", "bo", "cat"), ("y", "ann", "dog"), ("y", "bo", "dog")],
        *[("z", "ann", "dog"), ("z", "bo", "dog")],
    ]
    plain = skilled(votes_of(votes))
    unsure: list[Vote] = [("x", "cy", None), ("w", "ann", None)]
    unsigned: list[Vote] = [("w", None, None)]
    more = skilled(votes_of(votes + unsure + unsigned))
    np.testing.assert_allclose(more[:3], plain)
    np.testing.assert_allclose(more[3], [1 / 3, 2 / 3], atol=1e-6)  # the classes' shares


def test_votes_can_be_restricted_to_items() -> None:
    votes, _ = simulated(0, num_items=60, skills=[0.9, 0.8, 0.5])
    named: list[Vote] = [(f"x{item}", f"w{who}", "abc"[label]) for item, who, label in votes]
    some = [f"x{item}" for item in range(40)]
    found = dawid_skene(votes_of(named), some[::-1], alone=True)
    alone = skilled(votes_of([vote for vote in named if vote[0] in some]))
    np.testing.assert_array_equal(found[::-1], alone)
    assert (dawid_skene(votes_of(named), some) != alone).any()


def test_rejects_votes_without_annotators_and_weighted_votes() -> None:
    votes: list[Vote] = [("x", "ann", "cat"), ("y", None, "dog")]
    with pytest.raises(CredalError, match=r"missing in 1 of 2 votes .*'y'.*annotator="):
        skilled(votes_of(votes))
    with pytest.raises(CredalError, match=r"item 'x' of votes.csv has the weight 0.5"):
        skilled(votes_of([("x", "ann", "cat"), ("y", "bo", "dog")], weight=0.5))
    with pytest.raises(CredalError, match="there is no vote"):
        skilled(votes_of([("x", "ann", None)], classes=("cat", "dog")))
    with pytest.raises(CredalError, match=r"counts.csv contains counts. .*leave out skill="):
        skilled(shares_of("counts", ("cat", "dog"), x=[3, 1]))


def test_without_crowd_kit_the_command_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "crowdkit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    votes = simulated(0, num_items=5, skills=[0.9, 0.9])[0]
    with pytest.raises(CredalError, match=r"not installed. To fix: pip install 'credalearn\[crowd"):
        posteriors(*arrays_of(votes), shape=(5, 3))
    assert CROWD_KIT not in sys.modules
