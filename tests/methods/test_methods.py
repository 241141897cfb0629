"""One contract that every method keeps, through the classifier."""

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import credalearn as cl
from clouds import classifier, clouds
from credalearn._scores import SCORES
from credalearn.methods import METHODS
from present import present

DIRICHLET = ("edl", "edl-soft", "dappr", "laplace-bridge")
NUM_VERTICES = {
    "pocc": 2,
    "pocc-mean": 2,
    "pocc-center": 3,
    "pocc-ensemble": 10,
    "softmax": 1,
    "mc-dropout": 5,
    "deep-ensemble": 5,
}
POST_HOC = ("laplace-bridge", "decalibration")


def fit(method: str, y: Any, num_classes: int, **options: Any) -> cl.CredalClassifier:
    X, *_ = clouds(num_classes)
    return classifier(method, **options).fit(X[: len(y)], y, classes=range(num_classes))


@cache
def fitted(method: str, num_classes: int = 3, **options: Any) -> cl.CredalClassifier:
    """Trained once on votes; the tests only look."""
    return fit(method, cl.from_votes(clouds(num_classes)[2]), num_classes, **options)


def assert_same(first: cl.CredalPredictions, second: cl.CredalPredictions) -> None:
    for each in fields(first):
        one, other = getattr(first, each.name), getattr(second, each.name)
        assert (one is None) == (other is None), each.name
        assert one is None or torch.equal(one, other), each.name


def assert_sound(pred: cl.CredalPredictions, num_items: int, num_classes: int) -> None:
    """What must hold of any method's predictions."""
    for each in (pred.probs, pred.lower, pred.upper):
        assert each.shape == (num_items, num_classes)
    assert_close(pred.probs.sum(1), torch.ones(num_items))
    assert (pred.lower >= 0).all()
    assert (pred.lower <= pred.probs).all()
    assert (pred.probs <= pred.upper).all()
    assert (pred.upper <= 1).all()
    needed = {"mutual-information": pred.vertices, "evidence": pred.concentration}
    for name in SCORES:
        if needed.get(name, pred.probs) is None:
            with pytest.raises(cl.CredalError, match=f"score '{name}' needs"):
                pred.score(name)
            continue
        score = pred.score(name)
        assert score.shape == (num_items,), name
        assert score.isfinite().all(), name
        assert (score >= 0).all(), name


@pytest.mark.parametrize("num_classes", [2, 3, 100])
@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_valid(method: str, num_classes: int) -> None:
    X, *_ = clouds(num_classes)
    assert_sound(fitted(method, num_classes).predict_credal(X[:20]), 20, num_classes)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_fills_its_fields(method: str) -> None:
    pred = fitted(method).predict_credal(clouds(3)[0])
    assert (pred.concentration is not None) == (method in DIRICHLET)
    assert (pred.vertices is not None) == (method in NUM_VERTICES)
    if pred.vertices is not None:
        assert pred.vertices.shape == (90, NUM_VERTICES[method], 3)
        assert_close(pred.vertices.mean(1), pred.probs)
        assert torch.equal(pred.vertices.amin(1), pred.lower)
        assert torch.equal(pred.vertices.amax(1), pred.upper)
    if pred.concentration is not None:
        assert_close(pred.concentration / pred.concentration.sum(1, keepdim=True), pred.probs)
    point = method == "softmax" or method in DIRICHLET
    assert torch.equal(pred.lower, pred.upper) == point
    assert METHODS[method].score in SCORES
    assert pred.score(METHODS[method].score).std() > 0


@pytest.mark.parametrize("method", METHODS)
def test_learns_sets_states_whether_the_loss_depends_on_the_set(
    method: str, generator: torch.Generator
) -> None:
    soft = torch.tensor([[0.6, 0.3, 0.1]] * 20)
    logits = torch.randn(20, METHODS[method].num_heads, 3, generator=generator)
    point, everything = (
        METHODS[method].loss(logits, cl.LowerBounds(lower, soft=soft), 5)
        for lower in (soft, 0 * soft)
    )
    if METHODS[method].teachers is None:  # else the labels are made by teachers
        assert METHODS[method].learns_sets == (not torch.equal(point, everything))
        assert METHODS[method].learns_sets == method.startswith("pocc")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_hard_soft_and_credal_labels(method: str) -> None:
    X, y, counts = clouds(3)
    shares = counts / counts.sum(1, keepdims=True)
    points = np.stack([shares, np.full_like(shares, 1 / 3)], 1)
    for labels in (
        y,
        shares,
        cl.from_votes(counts, rule="idm"),
        cl.Intervals(0.9 * shares, 0.9 * shares + 0.1),
        cl.Vertices(points),
    ):
        clf = fit(method, labels, 3, epochs=1)
        assert_sound(clf.predict_credal(X[:10]), 10, 3)


@pytest.mark.parametrize("method", METHODS)
def test_learns_a_separable_problem(method: str) -> None:
    X, y, _ = clouds(3)
    clf = fitted(method, epochs=12)
    assert clf.score(X, y) > 0.95
    assert len(clf.loss_curve_) == 12


@pytest.mark.parametrize("method", METHODS)
def test_random_state_decides_every_prediction(method: str) -> None:
    X, _, counts = clouds(3)
    first = fitted(method).predict_credal(X)
    assert_same(first, fitted(method).predict_credal(X))  # dropout included
    torch.manual_seed(99)  # what the caller draws does not matter
    again = fit(method, cl.from_votes(counts), 3)
    assert_same(first, again.predict_credal(X))
    other = fit(method, cl.from_votes(counts), 3, random_state=1)
    assert not torch.equal(first.probs, other.predict_credal(X).probs)


@pytest.mark.parametrize("num_classes", [2, 100])
@pytest.mark.parametrize("method", METHODS)
def test_a_saved_model_predicts_the_same(method: str, num_classes: int, tmp_path: Path) -> None:
    X, *_ = clouds(num_classes)
    clf = fitted(method, num_classes)
    clf.save(tmp_path)
    loaded, saved = cl.load(tmp_path).predict_credal(X), clf.predict_credal(X)
    if torch.cuda.is_available():  # where a loaded model predicts, to a rounding the same
        assert_close(loaded.probs, saved.probs, rtol=1e-3, atol=1e-4)
    else:
        assert_same(loaded, saved)


@pytest.mark.parametrize("method", METHODS)
def test_trains_and_predicts_with_a_batch_of_one(method: str) -> None:
    X, y, _ = clouds(3)
    clf = fitted(method)
    alone = clf.predict_credal(X[:1])
    assert_sound(alone, 1, 3)
    assert_close(alone.probs, clf.predict_credal(X).probs[:1])
    assert_sound(fit(method, y[:7], 3, epochs=1, batch_size=1).predict_credal(X[:2]), 2, 3)


@pytest.mark.parametrize("method", METHODS)
def test_collapsed_labels_equal_majority_labels(method: str) -> None:
    X, _, counts = clouds(3)
    collapsed = fit(method, cl.from_votes(counts), 3, collapse=True)
    majority = fit(method, counts.argmax(1), 3)
    assert_same(collapsed.predict_credal(X), majority.predict_credal(X))
    # EDL learns from the top class anyway; for all others disagreement matters.
    same = torch.equal(
        collapsed.model_.members[0].heads.weight, fitted(method).model_.members[0].heads.weight
    )
    assert same == (method == "edl")


def test_an_ensemble_can_be_built_from_softmax_members() -> None:
    X, _, counts = clouds(3)
    labels = cl.from_votes(counts)
    trained = fit("deep-ensemble", labels, 3, random_state=4)
    alone = [fit("softmax", labels, 3, random_state=random_state) for random_state in range(4, 9)]
    members = [member for clf in alone for member in clf.model_.members]
    built = classifier("deep-ensemble", random_state=4)
    built.fit(X, labels, classes=range(3), members=members)
    assert_same(built.predict_credal(X), trained.predict_credal(X))
    for i, clf in enumerate(alone):
        vertices = present(trained.predict_credal(X).vertices)
        assert torch.equal(vertices[:, i], clf.predict_credal(X).probs)
    with pytest.raises(cl.CredalError, match=r"needs 5 trained members, .*; got 4"):
        built.fit(X, labels, members=members[:4])
    with pytest.raises(cl.CredalError, match="teachers cannot be built on trained members"):
        classifier("credal-bounds").fit(X, labels, members=members[:1])


@pytest.mark.parametrize("method", POST_HOC)
def test_post_hoc_methods_build_on_a_softmax_and_leave_it_alone(method: str) -> None:
    X, _, counts = clouds(3)
    labels = cl.from_votes(counts)
    softmax = fit("softmax", labels, 3)
    (member,) = softmax.model_.members
    before = {name: tensor.clone() for name, tensor in member.state_dict().items()}
    built = classifier(method).fit(X, labels, classes=range(3), members=softmax.model_.members)
    assert_same(built.predict_credal(X), fitted(method).predict_credal(X))
    assert_close(member.state_dict(), before, atol=0, rtol=0)
    assert built.model_.state
    if method == "decalibration":
        assert_close(built.predict_credal(X).probs, softmax.predict_credal(X).probs)
