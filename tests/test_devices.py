"""The library on a GPU: tensors stay there, and results are those of the CPU."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import credalearn as cl
from clouds import clouds
from credalearn.labels import VoteRule
from credalearn.methods import METHODS
from random_sets import KINDS, distributions

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


@pytest.mark.parametrize("kind", KINDS)
def test_sets_stay_on_their_device_and_agree(kind: str, generator: torch.Generator) -> None:
    sets = KINDS[kind](200, 6, generator)
    cost = torch.randn(200, 6, generator=generator, dtype=torch.float64)
    there, cost_there = sets.to("cuda"), cost.to("cuda")
    for found, expected in (
        (there.worst(cost_there), sets.worst(cost)),
        (there.best(cost_there), sets.best(cost)),
        (there.diameter(), sets.diameter()),
        (there.center(), sets.center()),
        (there.contains(there.center()), sets.contains(sets.center())),
        (there[there.diameter() > 0.1].lower, sets[sets.diameter() > 0.1].lower),
    ):
        assert found.device.type == "cuda"
        assert_close(found.cpu(), expected)


@pytest.mark.parametrize("num_classes", [4, 10])  # beyond ten, the smallest is searched
def test_entropies_agree(num_classes: int, generator: torch.Generator) -> None:
    points = distributions(300, 5, num_classes, generator=generator)
    lower, upper = points.amin(1), points.amax(1)
    for function, inputs in (
        (cl.max_entropy_hull, (points,)),
        (cl.max_entropy_hull, (points[:, :2],)),
        (cl.min_entropy_hull, (points,)),
        (cl.max_entropy_box, (lower, upper)),
        (cl.min_entropy_box, (lower, upper)),
        (cl.mmi, (points,)),
    ):
        found = function(*(each.to("cuda") for each in inputs))
        assert found.device.type == "cuda"
        assert_close(found.cpu(), function(*inputs), atol=1e-3, rtol=0)


def test_label_rules_stay_on_their_device(generator: torch.Generator) -> None:
    counts = torch.randint(1, 9, (50, 4), generator=generator).to("cuda")
    for rule in get_args(VoteRule):
        assert cl.from_votes(counts, rule=rule).lower.device.type == "cuda"
    assert cl.from_teacher(counts.float()).lower.device.type == "cuda"
    assert cl.smooth(counts[:, 0] % 4, 0.1, 4).lower.device.type == "cuda"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_resumes_saves_and_predicts(method: str, tmp_path: Path) -> None:
    X, y, _ = clouds()
    path = tmp_path / "resume.safetensors"
    clf = cl.CredalClassifier(method, learning_rate=5e-3, device="cuda", checkpoint=path).fit(X, y)
    assert next(clf.model_.members[0].parameters()).device.type == "cuda"
    assert clf.score(X, y) > 0.85
    pred = clf.predict_credal(X)
    assert pred.probs.device.type == "cpu"
    assert pred.score(METHODS[method].score).isfinite().all()
    first = clf.predict_proba(X)
    np.testing.assert_allclose(clf.fit(X, y).predict_proba(X), first, atol=1e-6)  # from the file
    clf.save(tmp_path / "model")
    np.testing.assert_allclose(cl.load(tmp_path / "model").predict_proba(X), first, atol=1e-5)
    clf.model_.members[0].cpu()
    if method == "mc-dropout":  # the masks are those of the GPU
        np.testing.assert_allclose(clf.predict_proba(X), first, atol=1e-3)
