"""Trained weights to start from: which files contain them, and what is rejected."""

import sys
from collections import OrderedDict
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from torch import Tensor, nn
from torch.testing import assert_close

import credalearn as cl
from credalearn.nets import build_backbone

X = np.random.default_rng(0).normal(size=(30, 4))
Y = (X[:, 0] > 0).astype(int)
# Ends where it starts.
STILL: dict[str, Any] = {"epochs": 1, "learning_rate": 1e-12, "device": "cpu"}


@pytest.fixture(scope="module")
def trained() -> cl.CredalClassifier:
    return cl.CredalClassifier("softmax", epochs=3, learning_rate=0.05, random_state=7).fit(X, Y)


@pytest.fixture
def saved(trained: cl.CredalClassifier, tmp_path: Path) -> Path:
    trained.save(tmp_path / "earlier")
    return tmp_path / "earlier" / "model.safetensors"


def layers(clf: cl.CredalClassifier, member: int = 0) -> dict[str, Tensor]:
    """What a network's backbone has learned: all but the mean and spread of the inputs."""
    state = clf.model_.members[member].backbone.state_dict()
    return {name: tensor for name, tensor in state.items() if "layers.0." not in name}


@pytest.mark.catches(
    "nets/backbones.py",
    "    if path is not None:\n        load",
    "    if path is None:\n        load",
    case="own.pt",
)
@pytest.mark.parametrize("kind", ["model.safetensors", "own.safetensors", "own.pt", "own.pth"])
def test_a_backbone_starts_from_the_file(
    kind: str, trained: cl.CredalClassifier, saved: Path, tmp_path: Path
) -> None:
    state = trained.model_.members[0].backbone.state_dict()
    path = saved if kind == "model.safetensors" else tmp_path / kind
    if kind == "own.safetensors":
        save_file(state, path)
    elif path != saved:
        torch.save(state, path)
    # Other inputs, another method with other heads: mean and spread are those of the inputs.
    clf = cl.CredalClassifier("pocc", weights=path, **STILL).fit(10 * X, Y)
    assert_close(layers(clf), layers(trained))
    mean = clf.model_.members[0].backbone.state_dict()["layers.0.mean"]
    np.testing.assert_allclose(mean, 10 * X.mean(0))
    fresh = cl.CredalClassifier("pocc", **STILL).fit(10 * X, Y)
    assert_close(clf.model_.members[0].heads.weight, fresh.model_.members[0].heads.weight)
    assert not torch.allclose(layers(clf)["layers.1.weight"], layers(fresh)["layers.1.weight"])


def test_an_ensemble_starts_from_one_file_with_heads_of_their_own(
    trained: cl.CredalClassifier, saved: Path
) -> None:
    clf = cl.CredalClassifier("deep-ensemble", weights=str(saved), **STILL).fit(X, Y)
    heads = [member.heads.weight for member in clf.model_.members]
    for number in range(5):
        assert_close(layers(clf, number), layers(trained))
        assert not any(torch.allclose(heads[number], heads[other]) for other in range(number))


def test_a_saved_model_needs_no_weights(saved: Path, tmp_path: Path) -> None:
    clf = cl.CredalClassifier("pocc", weights=saved, epochs=2).fit(X, Y)
    clf.save(tmp_path / "model")
    saved.unlink()
    loaded = cl.load(tmp_path / "model")
    assert (loaded.backbone, loaded.weights) == ("auto", str(saved))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    # Trained networks are built on as they are, and the file is not looked for.
    again = clone(clf).fit(X, Y, members=clf.model_.members)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


class Published(nn.Sequential):
    """What ``timm.create_model`` gives without a classifier, with one layer."""

    def __init__(self) -> None:
        super().__init__(OrderedDict(conv=nn.Conv2d(3, 5, 1), pool=nn.AdaptiveAvgPool2d(1)))
        self.append(nn.Flatten())
        self.pretrained_cfg = {"classifier": "fc"}


def test_a_network_of_another_package_starts_from_a_published_file_or_a_saved_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    timm = ModuleType("timm")
    timm.is_model = lambda name: True  # type: ignore[attr-defined]
    timm.create_model = lambda name, **options: Published()  # type: ignore[attr-defined]
    timm.__spec__ = ModuleSpec("timm", None)
    monkeypatch.setitem(sys.modules, "timm", timm)
    published = {"conv.weight": torch.full((5, 3, 1, 1), 0.25), "conv.bias": torch.ones(5)}
    file = tmp_path / "published.pt"
    torch.save({**published, "fc.weight": torch.zeros(9, 5), "fc.bias": torch.zeros(9)}, file)
    images = torch.rand(6, 3, 8, 8, generator=generator).numpy()
    clf = cl.CredalClassifier(backbone="timm:any", weights=file, **STILL).fit(images, [0, 1] * 3)
    assert_close(clf.model_.members[0].backbone.network.state_dict(), published)  # type: ignore[union-attr]
    clf.save(tmp_path / "model")
    again = build_backbone("timm:any", (3, 8, 8), weights=tmp_path / "model" / "model.safetensors")
    assert_close(again.network.state_dict(), published)  # type: ignore[union-attr]


class Surprise:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("code ran",)


def test_rejects_weights_that_do_not_fit_and_runs_no_code(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, code, listed = (tmp_path / name for name in ("cut.safetensors", "c.pt", "l.pt"))
    damaged.write_bytes(saved.read_bytes()[:-9])
    torch.save(Surprise(), code)
    torch.save({"state_dict": {}, "epoch": 3}, listed)
    rejected: tuple[tuple[dict[str, Any], str], ...] = (
        ({"weights": tmp_path / "absent.pt"}, r"no file .*absent\.pt"),
        ({"weights": damaged}, r"cut\.safetensors is damaged"),
        ({"weights": code}, r"c\.pt .*more than tensors"),
        ({"weights": listed}, r"l\.pt contains dict, not the tensors"),
        ({"weights": saved, "backbone": nn.Linear(4, 2)}, "for a backbone given by name"),
        ({"weights": saved, "backbone": "resnet18"}, "takes images"),
    )
    for options, message in rejected:
        with pytest.raises(cl.CredalError, match=message):
            cl.CredalClassifier("pocc", **options).fit(X, Y)
    assert not capsys.readouterr().out
    with pytest.raises(cl.CredalError, match=r"do not fit MLP: .*size mismatch"):
        cl.CredalClassifier("pocc", weights=saved).fit(X[:, :3], Y)
