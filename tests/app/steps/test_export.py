"""ONNX under onnxruntime against the classifier itself."""

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from credalearn import CredalError, Run
from credalearn.app.steps import export as export_module
from credalearn.app.steps.export import OUTPUTS, ExportOptions, export
from credalearn.app.steps.onnx_graph import Graph, why_not
from credalearn.methods import METHODS
from credalearn.methods.base import hull_of_outputs
from small_run import CLASSES, FEATURES, features, make_image_run, make_pictures, make_run, votes

onnxruntime: Any = pytest.importorskip("onnxruntime", reason="pip install 'credalearn[onnx]'")

EXPORTED = [name for name, method in METHODS.items() if not why_not(method)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run of every method."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: make_run(folder / name, method=name) for name in ("auto", *METHODS)}


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
    gap = np.abs(found["score"] - pred.score(run.deferral_score).numpy())
    assert (gap <= within)[clear].all()


def described(session: Any) -> tuple[str, str, list[int]]:
    """Name, type and shape of the one input, but for the number of items."""
    (given,) = session.get_inputs()
    return given.name, given.type, given.shape[1:]


def test_every_method_is_exported_or_refused_by_name(runs: dict[str, Run]) -> None:
    assert set(METHODS) - set(EXPORTED) == {"mc-dropout", "credal-bounds", "pocc-distilled"}
    model = runs["mc-dropout"].load_model().model_
    with pytest.raises(CredalError, match=r"'mc-dropout' cannot be exported: .* at random"):
        Graph("mc-dropout", model)
    model = runs["pocc"].load_model().model_
    own = replace(model.method, predictions=lambda *given: hull_of_outputs(*given))
    with pytest.raises(CredalError, match=r"'own' cannot be exported: .* torch alone. To fix"):
        Graph("own", replace(model, method=own))


@pytest.mark.parametrize("method", ["auto", *EXPORTED])
def test_the_graph_equals_the_classifier(runs: dict[str, Run], method: str) -> None:
    X = inputs()
    clf = runs[method].load_model()
    with torch.no_grad():
        temperature, score = clf.temperatures_["truth"], runs[method].deferral_score
        found = Graph(method, clf.model_, temperature, score=score)(torch.from_numpy(X))
    compare(dict(zip(OUTPUTS, (x.numpy() for x in found), strict=True)), runs[method], X)


# One of each kind of graph: two heads, several members, a Dirichlet, and both post-hoc methods.
@pytest.mark.parametrize(
    "method", ["auto", "pocc", "deep-ensemble", "edl", "laplace-bridge", "decalibration"]
)
def test_onnxruntime_equals_the_classifier(
    runs: dict[str, Run], tmp_path: Path, method: str
) -> None:
    run = runs[method]
    export(run, ExportOptions(onnx=tmp_path / "model.onnx"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.md", "model.onnx"]
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
    export(run, ExportOptions(onnx=tmp_path / "a.onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    assert described(session) == ("images", "tensor(float)", [3, 8, 8])
    X = pixels.astype(np.float32)
    found = dict(zip(OUTPUTS, session.run(list(OUTPUTS), {"images": X}), strict=True))
    compare(found, run, X)
    sizes = {"N": 24, "V": 2, "K": 3}
    for name, (shape, _) in OUTPUTS.items():
        assert tuple(sizes[each] for each in re.findall(r"\w", shape)) == found[name].shape


def test_rejects_an_export_that_differs_from_torch(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = export_module._exported

    def other(graph: Graph, name: str, sample: torch.Tensor) -> Any:
        wrong = copy.deepcopy(graph)  # the exported weights are the graph's own memory
        with torch.no_grad():
            next(iter(wrong.parameters())).mul_(1.01)
        return exported(wrong, name, sample)

    monkeypatch.setattr(export_module, "_exported", other)
    with pytest.raises(CredalError, match=r"heads differs from torch.s by .*nothing was"):
        export(runs["pocc"], ExportOptions(onnx=tmp_path / "model.onnx"))
    assert not list(tmp_path.iterdir())


def test_missing_packages_are_named(
    runs: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "_PACKAGES", ("onnx", "no_such_package"))
    with pytest.raises(CredalError, match=r"not installed: no_such_package.*'credalearn\[onnx\]'"):
        export(runs["pocc"], ExportOptions(onnx=tmp_path / "model.onnx"))
    with pytest.raises(CredalError, match=r"must end in .onnx"):
        export(runs["pocc"], ExportOptions(onnx=tmp_path / "model.bin"))


@pytest.mark.parametrize("method", ["pocc", "decalibration", "edl"])
def test_the_graph_tempers_as_predictions_do(runs: dict[str, Run], method: str) -> None:
    clf, X = runs[method].load_model(), features(50)
    wanted = clf.predict_credal(X).temper(1.7)
    with torch.no_grad():
        found = Graph(method, clf.model_, 1.7)(torch.from_numpy(X))
    for output, values in zip(found[1:4], (wanted.probs, wanted.lower, wanted.upper), strict=True):
        torch.testing.assert_close(output.float(), values.float(), atol=2e-5, rtol=0)
