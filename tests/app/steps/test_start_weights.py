"""Trained weights to start from: which files hold them, what is refused, what a run says."""

import hashlib
import re
import sys
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
from credalearn.app.joined.options import TrainOptions
from credalearn.app.run import Run
from credalearn.app.staging import partial_of
from credalearn.app.steps.card import card
from credalearn.app.steps.reporting import provenance
from credalearn.nets import build_backbone, outside
from team_files import Team, in_process, make_images, make_team, snapshot, train_arguments

X = np.random.default_rng(0).normal(size=(30, 4))
Y = (X[:, 0] > 0).astype(int)
STILL: dict[str, Any] = {"epochs": 1, "learning_rate": 1e-12}  # ends where it starts


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
    clf = cl.CredalClassifier(weights=path, **STILL).fit(10 * X, Y)
    assert_close(layers(clf), layers(trained))
    mean = clf.model_.members[0].backbone.state_dict()["layers.0.mean"]
    np.testing.assert_allclose(mean, 10 * X.mean(0))
    fresh = cl.CredalClassifier(**STILL).fit(10 * X, Y)
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
    clf = cl.CredalClassifier(weights=saved, epochs=2).fit(X, Y)
    clf.save(tmp_path / "model")
    saved.unlink()
    loaded = cl.load(tmp_path / "model")
    assert (loaded.backbone, loaded.weights) == ("mlp", str(saved))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    # Trained networks are built on as they are, and the file is not looked for.
    again = clone(clf).fit(X, Y, members=clf.model_.members)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(cl.CredalError, match=r"no file .*earlier/model\.safetensors"):
        clone(loaded).fit(X, Y)


def test_weights_are_a_parameter_like_others() -> None:
    clf = cl.CredalClassifier(weights=Path("some.pt"), augment="crop")
    assert clone(clf).get_params() == clf.get_params()
    assert clf.get_params()["weights"] == Path("some.pt")


def test_a_checkpoint_of_other_weights_is_not_gone_on_from(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "resume.safetensors"
    clf = cl.CredalClassifier(weights=saved, epochs=2, checkpoint=path).fit(X, Y)
    whole = cl.CredalClassifier(weights=saved, epochs=2).fit(X, Y)
    for each in (clf, clone(clf).fit(X, Y)):
        assert_close(layers(each), layers(whole), atol=0, rtol=0)
    other = cl.CredalClassifier(epochs=1).fit(X, Y)
    other.save(tmp_path / "other")
    for weights in (None, tmp_path / "other" / "model.safetensors"):
        with pytest.raises(cl.TrainingError, match="another run: first weights differ"):
            clone(clf).set_params(weights=weights).fit(X, Y)


def test_what_cannot_be_started_from_is_refused(saved: Path, tmp_path: Path) -> None:
    damaged, whole, listed = tmp_path / "cut.safetensors", tmp_path / "w.pt", tmp_path / "l.pt"
    damaged.write_bytes(saved.read_bytes()[:-9])
    torch.save(nn.Linear(4, 2), whole)
    torch.save({"state_dict": {}, "epoch": 3}, listed)
    alone = r"save the state dict alone: torch\.save\(network\.state_dict\(\), file\)"
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"weights": tmp_path / "absent.pt"}, r"no file .*absent\.pt\. To fix: name the state"),
        ({"weights": damaged}, r"cut\.safetensors is damaged .*To fix: get the file again, or"),
        ({"weights": whole}, rf"w\.pt .*more than tensors, .*\(UnpicklingError\)\. .*{alone}"),
        ({"weights": listed}, rf"l\.pt holds dict, not the tensors .*To fix: {alone}"),
        ({"weights": 3}, "weights must be the path of a file, or None; got int. To fix: save"),
        (
            {"weights": saved, "backbone": nn.Linear(4, 2)},
            r"weights are for a backbone given by name; got weights='.*' and Linear\. To fix: load",
        ),
    )
    for options, message in refused:
        with pytest.raises(cl.CredalError, match=message):
            cl.CredalClassifier(**options).fit(X, Y)
    message = r"model\.safetensors do not fit MLP: .*size mismatch.*'mlp' is credalearn's own"
    with pytest.raises(cl.CredalError, match=message):
        cl.CredalClassifier(weights=saved).fit(X[:, :3], Y)


class Published(nn.Module):
    """What ``timm.create_model`` gives without a classifier, with one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.pretrained_cfg = {"classifier": "fc"}
        self.conv = nn.Conv2d(3, 5, 1)

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.conv(images)
        return maps.mean((2, 3))


def test_another_packages_network_starts_from_a_published_file_or_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    timm = ModuleType("timm")
    timm.is_model = lambda name: True  # type: ignore[attr-defined]
    timm.create_model = lambda name, **options: Published()  # type: ignore[attr-defined]
    timm.__spec__ = ModuleSpec("timm", None)
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setattr(outside, "find_spec", lambda name: object())
    published = {"conv.weight": torch.full((5, 3, 1, 1), 0.25), "conv.bias": torch.ones(5)}
    file = tmp_path / "published.pt"
    torch.save({**published, "fc.weight": torch.zeros(9, 5), "fc.bias": torch.zeros(9)}, file)
    images = torch.rand(6, 3, 8, 8, generator=generator).numpy()
    clf = cl.CredalClassifier(backbone="timm:any", weights=file, **STILL).fit(images, [0, 1] * 3)
    assert_close(clf.model_.members[0].backbone.network.state_dict(), published)  # type: ignore[union-attr]
    clf.save(tmp_path / "model")
    again = build_backbone("timm:any", (3, 8, 8), weights=tmp_path / "model" / "model.safetensors")
    assert_close(again.network.state_dict(), published)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return make_team(tmp_path_factory.mktemp("team"))


def test_the_command_starts_from_an_earlier_run_and_says_so(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_process(capsys, *train_arguments(team, "-o", tmp_path / "first")).code == 0
    monkeypatch.chdir(tmp_path)
    file = "first/model/model.safetensors"
    more = ["--weights", file, "--learning-rate", "1e-12", "--batch-size", "7", "--device", "cpu"]
    done = in_process(capsys, *train_arguments(team, "-o", "run", *more))
    assert done.code == 0, done.err
    run, first = Run.load(Path("run")), Run.load(Path("first"))
    assert_close(layers(run.load_model()), layers(first.load_model()))
    options = run.facts.options
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    asked = {"weights": file, "learning_rate": 1e-12, "batch_size": 7, "device": "cpu"}
    asked |= {"weights_sha256": digest, "augment": "none"}
    assert {name: options[name] for name in asked} == asked
    assert first.facts.options.weights is None
    text = card(run)
    assert "augmentation" not in text
    assert f"| started from | {file} (sha256 {digest}) |" in text
    assert "| learning rate | 1e-12 |" in text
    assert "| batch size | 7 |" in text
    assert "started from" not in card(first)
    told = dict(provenance(run.facts, "today"))["options"]
    assert f"weights={file}" in told
    assert digest in told
    assert (run.load_model().learning_rate, run.load_model().batch_size) == (1e-12, 7)


def test_images_start_from_an_earlier_runs_resnet(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    images: list[str | Path] = ["--images", folder, "--image-size", "8", "--epochs", "1"]
    done = in_process(capsys, *train_arguments(team, *images, "-o", tmp_path / "first"))
    assert done.code == 0, done.err
    file = tmp_path / "first" / "model" / "model.safetensors"
    more: list[str | Path] = ["--weights", file, "--learning-rate", "1e-12"]
    more += ["--augment", "crop-flip"]
    done = in_process(capsys, *train_arguments(team, *images, *more, "-o", tmp_path / "run"))
    assert done.code == 0, done.err
    run = Run.load(tmp_path / "run")
    first, second = (
        clf.model_.members[0].backbone.get_parameter("conv.weight")
        for clf in (Run.load(tmp_path / "first").model(), run.load_model())
    )
    assert_close(first, second)
    assert run.load_model().augment == run.facts.options.augment == "crop-flip"
    assert "| augmentation | crop-flip |" in card(run)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.pt", r"there is no file .*absent\.pt\. To fix: name the state dict"),
        ("damaged.pt", r"damaged\.pt is damaged or holds more than tensors.*To fix: get the file"),
        ("other.pt", r"the weights in .*other\.pt do not fit ResNet18: .*'resnet18' is credalearn"),
    ],
)
def test_the_command_refuses_in_one_message_before_images_are_read(
    name: str, message: str, team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(Published().state_dict(), tmp_path / "other.pt")
    (tmp_path / "damaged.pt").write_bytes((tmp_path / "other.pt").read_bytes()[:-100])
    before = snapshot(tmp_path)
    given: list[str | Path] = ["--images", tmp_path / "no-images", "--weights", tmp_path / name]
    done = in_process(capsys, *train_arguments(team, *given, "-o", tmp_path / "run"))
    assert done.code == 2
    assert re.search(message, done.err)
    assert len(done.err.splitlines()) == 1
    assert snapshot(tmp_path) == before


def test_options_out_of_range_are_refused(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, message in (
        (["--learning-rate", "0"], r"learning_rate must be above 0; got 0\.0\. To fix: give --l"),
        (["--learning-rate", "nan"], "learning_rate must be above 0; got nan"),
        (["--batch-size", "0"], "batch-size"),
        (["--device", "meta"], "device 'meta' is not to be had here.*To fix: take 'auto'"),
        (["--device", "gpu"], "device 'gpu' is not to be had here"),
    ):
        done = in_process(capsys, *train_arguments(team, *given, "-o", tmp_path / "run"))
        assert done.code == 2
        assert re.search(message, done.err)
    with pytest.raises(cl.CredalError, match="batch_size must be 2 or more; got 0"):
        TrainOptions(batch_size=0)
    assert not list(tmp_path.iterdir())


def test_every_option_of_training_names_a_checkpoint_of_its_own(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def watch(self: cl.CredalClassifier, *args: object, **options: object) -> None:
        names.append(Path(str(self.checkpoint)).name)
        raise KeyboardInterrupt

    file = tmp_path / "start.pt"
    for random_state in (0, 1):  # the same path, other weights
        torch.manual_seed(random_state)
        torch.save(build_backbone("mlp", (2,)).state_dict(), tmp_path / f"{random_state}.pt")
    monkeypatch.setattr(cl.CredalClassifier, "fit", watch)
    for more in (
        [],
        ["--learning-rate", "0.01"],
        ["--batch-size", "9"],
        ["0"],
        ["1"],
    ):
        if more in (["0"], ["1"]):
            file.write_bytes((tmp_path / f"{more[0]}.pt").read_bytes())
            more = ["--weights", str(file)]
        in_process(capsys, *train_arguments(team, *more, "-o", tmp_path / "run"))
    assert len(set(names)) == len(names) == 5
    assert not partial_of(tmp_path / "run").exists()
