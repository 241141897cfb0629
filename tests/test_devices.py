"""The core on every device at hand: the CPU, and a GPU where there is one."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import credalearn as cl
from credalearn.labels import VoteRule
from credalearn.methods import METHODS
from random_sets import KINDS, distributions

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def source() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_sets_stay_on_their_device_and_agree(kind: str, device: str) -> None:
    generator = source()
    sets = KINDS[kind](200, 6, generator)
    cost = torch.randn(200, 6, generator=generator, dtype=torch.float64)
    there, cost_there = sets.to(device), cost.to(device)
    for found, expected in (
        (there.worst(cost_there), sets.worst(cost)),
        (there.best(cost_there), sets.best(cost)),
        (there.diameter(), sets.diameter()),
        (there.center(), sets.center()),
        (there.contains(there.center()), sets.contains(sets.center())),
        (there[there.diameter() > 0.1].lower, sets[sets.diameter() > 0.1].lower),
    ):
        assert found.device.type == device
        assert_close(found.cpu(), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("num_classes", [4, 30])
def test_entropies_agree(num_classes: int, device: str) -> None:
    points = distributions(300, 5, num_classes, generator=source())
    lower, upper = points.amin(1), points.amax(1)
    for function, inputs in (
        (cl.max_entropy_hull, (points,)),
        (cl.max_entropy_hull, (points[:, :2],)),
        (cl.min_entropy_hull, (points,)),
        (cl.max_entropy_box, (lower, upper)),
        (cl.min_entropy_box, (lower, upper)),
        (cl.mmi, (points,)),
    ):
        found = function(*(each.to(device) for each in inputs))
        assert found.device.type == device
        assert_close(found.cpu(), function(*inputs), atol=1e-3, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_label_rules_stay_on_their_device(device: str) -> None:
    counts = torch.randint(1, 9, (50, 4), generator=source()).to(device)
    for rule in get_args(VoteRule):
        assert cl.from_votes(counts, rule=rule).lower.device.type == device
    assert cl.from_teacher(counts.float()).lower.device.type == device
    assert cl.smooth(counts[:, 0] % 4, 0.1, 4).lower.device.type == device


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["auto", "float32", "bfloat16"])
def test_training_resumes_and_saves(device: str, precision: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    y = random.integers(3, size=300)
    X = random.normal(size=(300, 4)) + 3 * np.eye(4)[y]
    labels = cl.from_votes(np.eye(3, dtype=int)[y] * 3 + random.integers(2, size=(300, 3)))
    clf = cl.CredalClassifier(
        epochs=12,
        device=device,
        precision=precision,  # type: ignore[arg-type]
        checkpoint=tmp_path / "resume.safetensors",
    )
    clf.fit(X, labels)
    assert next(clf.model_.members[0].parameters()).device.type == device
    assert clf.score(X, y) > 0.9
    first = clf.predict_proba(X)
    np.testing.assert_array_equal(clf.fit(X, labels).predict_proba(X), first)  # from the file
    clf.save(tmp_path / "model")
    np.testing.assert_allclose(cl.load(tmp_path / "model").predict_proba(X), first, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_predicts(method: str, device: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    y = random.integers(3, size=200)
    X = random.normal(size=(200, 4)) + 3 * np.eye(4)[y]
    clf = cl.CredalClassifier(method, epochs=12, learning_rate=5e-3, device=device).fit(X, y)
    assert clf.score(X, y) > 0.85
    pred = clf.predict_credal(X)
    assert pred.probs.device.type == "cpu"
    assert pred.score(METHODS[method].score).isfinite().all()
    clf.save(tmp_path)
    np.testing.assert_allclose(cl.load(tmp_path).predict_proba(X), clf.predict_proba(X), atol=1e-5)
