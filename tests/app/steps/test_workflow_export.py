"""ONNX under onnxruntime against the classifier itself; the model card."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image, ImageOps

from credalearn import CredalError
from credalearn.app.items.inputs import read_image
from credalearn.app.report.card_file import CARD
from credalearn.app.run import Run
from credalearn.app.steps import exporting
from credalearn.app.steps.card import card, write_card
from credalearn.app.steps.exporting import OUTPUTS, export_onnx
from credalearn.app.steps.graphs import Graph, why_not
from credalearn.methods import METHODS
from credalearn.methods.base import hull_of_outputs
from credalearn.metrics import accuracy
from small_run import CLASSES, FEATURES, features, make_image_run, make_pictures, make_run, votes
from team_files import in_process, snapshot

onnxruntime: Any = pytest.importorskip("onnxruntime", reason="pip install 'credalearn[onnx]'")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run of every method."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: make_run(folder / name, method=name) for name in METHODS}


def inputs() -> np.ndarray:
    """From items like those of training to ones a million spreads away."""
    parts = []
    for number, spread in enumerate((0.0, 1.0, 10.0, 100.0, 1e6)):
        values = features(200, random_state=number)
        parts.append(np.concatenate([values[:, :2] * spread, values[:, 2:]], axis=1))
        parts.append(np.concatenate([values[:, :2], 1.7e9 + spread * values[:, :1]], axis=1))
    return np.concatenate(parts)


def compare(found: dict[str, np.ndarray], run: Run, X: np.ndarray) -> None:
    """Within 1e-5; labels and scores where no two classes are as probable.

    Far from the training data logits are so large that float32 knows fewer digits of them: 7 of
    10,000 are wrong by 1e-3. There torch differs as much from itself, from batch to batch.
    """
    clf = run.load_model()
    pred = clf.predict_credal(X)
    logits = clf.model_.outputs(torch.from_numpy(X)).logits.abs().amax((1, 2, 3)).numpy()
    within = 1e-5 * np.maximum(1, logits / 30)
    assert (within == 1e-5).mean() > 0.5

    def same(output: str, wanted: torch.Tensor) -> None:
        gap = np.abs(found[output] - wanted.numpy()).reshape(len(X), -1).max(1)
        assert (gap <= within).all(), (output, (gap / within).max())

    if pred.vertices is not None:
        same("heads", pred.vertices)
    same("probabilities", pred.probs)
    same("lower", pred.lower)
    same("upper", pred.upper)
    top = pred.probs.sort(1).values
    clear = (top[:, -1] - top[:, -2]).numpy() > 2 * within
    assert clear.mean() > 0.9
    assert (found["label"] == pred.classes.numpy())[clear].all()
    gap = np.abs(found["score"] - pred.score("lower-probability").numpy())
    assert (gap <= within)[clear].all()


def described(session: Any) -> tuple[str, str, list[int]]:
    """Name, type and shape of the one input, but for the number of items."""
    (given,) = session.get_inputs()
    return given.name, given.type, given.shape[1:]


def test_every_method_is_exported_or_refused_by_name(runs: dict[str, Run]) -> None:
    assert [name for name, method in METHODS.items() if why_not(method)] == ["mc-dropout"]
    model = runs["mc-dropout"].model().model_
    with pytest.raises(CredalError, match=r"'mc-dropout' cannot be exported: .* at random"):
        Graph("mc-dropout", model)


def test_a_method_under_another_name_is_exported_and_one_of_its_own_kind_refused(
    runs: dict[str, Run],
) -> None:
    model, X = runs["pocc"].model().model_, torch.from_numpy(inputs())
    with torch.no_grad():
        for ours, theirs in zip(Graph("a copy", model)(X), Graph("pocc", model)(X), strict=True):
            assert torch.equal(ours, theirs)
    own = replace(model.method, predictions=lambda *given: hull_of_outputs(*given))
    with pytest.raises(CredalError, match=r"'own' cannot be exported: .* torch alone. To fix"):
        Graph("own", replace(model, method=own))


@pytest.mark.parametrize("method", [name for name in METHODS if name != "mc-dropout"])
def test_the_graph_says_what_the_classifier_says(runs: dict[str, Run], method: str) -> None:
    X = inputs()
    with torch.no_grad():
        found = Graph(method, runs[method].load_model().model_)(torch.from_numpy(X))
    compare(dict(zip(OUTPUTS, (x.numpy() for x in found), strict=True)), runs[method], X)


# One of each kind of graph: two heads, several members, a Dirichlet, and both post-hoc methods.
@pytest.mark.parametrize(
    "method", ["pocc", "deep-ensemble", "edl", "laplace-bridge", "decalibration"]
)
def test_onnxruntime_says_what_the_classifier_says(
    runs: dict[str, Run], tmp_path: Path, method: str
) -> None:
    run = runs[method]
    export_onnx(run, tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert described(session) == ("features", "tensor(double)", [3])
    X = inputs()
    for rows in (slice(None), slice(0, 1), slice(0, 0)):
        values = session.run(None, {"features": X[rows]})
        assert len(values[0]) == len(X[rows])
    found = dict(zip(OUTPUTS, session.run(list(OUTPUTS), {"features": X}), strict=True))
    compare(found, run, X)
    kept = session.get_modelmeta().custom_metadata_map
    assert json.loads(kept["classes"]) == list(CLASSES)
    assert json.loads(kept["features"]) == list(FEATURES)
    assert run.guarantee is not None
    assert json.loads(kept["threshold"]) == run.guarantee.threshold


def test_images_are_exported(tmp_path: Path) -> None:
    pixels = make_pictures(tmp_path / "pictures", 24, 8)
    run = make_image_run(tmp_path / "RUN", tmp_path / "pictures", votes(features(24)))
    export_onnx(run, tmp_path / "a.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    assert described(session) == ("images", "tensor(float)", [3, 8, 8])
    X = pixels.astype(np.float32)
    found = dict(zip(OUTPUTS, session.run(list(OUTPUTS), {"images": X}), strict=True))
    compare(found, run, X)
    text = card(run)
    assert "| `images` | float32 (N, 3, 8, 8) |" in text
    sizes = {"N": 24, "V": 2, "K": 3}
    for name, values in found.items():
        said = re.search(rf"\| `{name}` \| \(([NVK, ]+)\) \|", text)
        assert said, name
        assert tuple(sizes[each] for each in re.findall(r"\w", said[1])) == values.shape


def test_who_follows_the_card_sees_what_the_model_saw(tmp_path: Path) -> None:
    gray = np.arange(80, dtype=np.uint16).reshape(8, 10) * 800
    deep = Image.fromarray(gray)
    flat = Image.fromarray((gray * (255 / 65535)).round().astype(np.uint8))
    turned = Image.new("RGB", (10, 8), "red")
    turned.paste("blue", (0, 0, 5, 8))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(tmp_path / "turned.png", exif=exif)
    deep.save(tmp_path / "deep.png")
    upright = ImageOps.exif_transpose(Image.open(tmp_path / "turned.png"))
    assert upright.size == (8, 10)
    for name, image in (("turned", upright), ("deep", flat)):
        small = image.convert("RGB").resize((8, 8), Image.Resampling.BILINEAR)
        wanted = np.asarray(small).transpose(2, 0, 1)
        np.testing.assert_array_equal(read_image(tmp_path / f"{name}.png", 8), wanted)
    run = make_run(tmp_path / "RUN")
    inputs = {"kind": "images", "path": "photos", "image_size": 8}
    write_json(run.path / "run.json", run.facts | {"inputs": inputs})
    order = (r"exif\_transpose", "from 65535 to 255", "to RGB", "then scaled", "bilinear")
    places = [card(Run.load(run.path)).index(step) for step in order]
    assert places == sorted(places)


def test_a_wrong_export_is_noticed(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = exporting._exported

    def other(graph: Graph, name: str, sample: torch.Tensor) -> Any:
        wrong = copy.deepcopy(graph)  # the exported weights are the graph's own memory
        with torch.no_grad():
            next(iter(wrong.parameters())).mul_(1.01)
        return exported(wrong, name, sample)

    monkeypatch.setattr(exporting, "_exported", other)
    with pytest.raises(CredalError, match=r"gives another heads than torch, by .*nothing was"):
        export_onnx(runs["pocc"], tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_without_the_packages_the_user_is_told(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_PACKAGES", ("onnx", "no_such_package"))
    with pytest.raises(
        CredalError, match=r"needs no_such_package.*pip install 'credalearn\[onnx\]'"
    ):
        export_onnx(runs["pocc"], tmp_path / "model.onnx")
    with pytest.raises(CredalError, match=r"must end in .onnx"):
        export_onnx(runs["pocc"], tmp_path / "model.bin")


def test_what_the_run_was_trained_on_stays(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs["pocc"]
    votes = tmp_path / "votes.onnx"
    votes.write_text("votes")
    monkeypatch.setitem(run.facts.annotations, "path", str(votes))
    with pytest.raises(CredalError, match=r"votes.onnx is what .* was trained on"):
        export_onnx(run, votes)


def test_the_card_says_what_the_run_says(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["pocc"]
    path = tmp_path / "model.md"
    write_card(run, path)
    text = path.read_text(encoding="utf-8")
    test = run.predictions.filter(pl.col("split") == "test")
    right = accuracy(
        test.select(f"p:{name}" for name in CLASSES).to_numpy(),
        [CLASSES.index(name) for name in test["truth"]],
    )
    assert f"| accuracy | {right:.4f} |" in text
    assert run.guarantee is not None
    assert run.guarantee.sentence().replace("_", r"\_") in text
    assert "| classes | cat, dog, =owl |" in text
    assert "| test items | 30 |" in text
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == [
        "Model",
        "Input and outputs of the ONNX model",
        "Data",
        "Quality on the test items",
        "Rule",
        "Limits",
        "Versions",
    ]
    write_card(run, path)  # its own card is replaced
    path.write_text("# My project\n")
    with pytest.raises(CredalError, match=r"model.md is there already and no model card of cred"):
        write_card(run, path)
    assert path.read_text() == "# My project\n"


@pytest.mark.parametrize("taken", ["out/model.md", "RUN/model/MODEL_CARD.md"])
def test_an_export_has_cards_and_leaves_what_others_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], taken: str
) -> None:
    run = make_run(tmp_path / "RUN")
    arguments = ("export", run.path, "--onnx", tmp_path / "out" / "model.onnx")
    foreign = tmp_path / taken
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("# Mine\n")
    before = snapshot(tmp_path)
    done = in_process(capsys, *arguments)
    assert done.code == 2
    assert f"{foreign} is there already" in done.err
    assert snapshot(tmp_path) == before
    foreign.unlink()
    for _ in range(2):  # its own files are replaced
        done = in_process(capsys, *arguments)
        assert done.code == 0, done.err
    wanted = [tmp_path / "out/model.onnx", tmp_path / "out/model.md", run.path / "model" / CARD]
    assert done.out.split() == [str(path) for path in wanted]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["model.md", "model.onnx"]
    assert wanted[1].read_text() == wanted[2].read_text() == card(run)
    assert run.load_model().predict(features(2)).shape == (2,)


def test_the_card_escapes_what_comes_from_outside(tmp_path: Path) -> None:
    run = make_run(tmp_path / "RUN", rule=False)
    facts = run.facts
    facts.annotations.path = "<script>|x\n## no heading"
    facts.versions.torch = "[a](b)"
    write_json(run.path / "run.json", facts)
    text = card(run)
    assert "<script>" not in text
    assert r"\<script\>\|x ## no heading" in text
    assert r"\[a\](b)" in text
    assert "nothing is promised" in text
    assert "\n## no heading" not in text


def test_a_card_without_truths_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "RUN")
    table = run.predictions.with_columns(truth=pl.lit(None, dtype=pl.String))
    table.write_parquet(run.path / "predictions.parquet")
    assert "No test item has a truth" in card(run)
    (tmp_path / "file").touch()
    with pytest.raises(CredalError, match=r"card.md cannot be written: .* name another file"):
        write_card(run, tmp_path / "file" / "card.md")
