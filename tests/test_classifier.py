"""CredalClassifier: scikit-learn's contract, every kind of label, files."""

import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from torch import Tensor, nn
from torch.testing import assert_close

import credalearn as cl
from credalearn.methods import METHODS
from credalearn.nets import ResNet18

CHECKS = """
import credalearn
from sklearn.utils.estimator_checks import check_estimator
results = check_estimator(credalearn.CredalClassifier({method!r}), on_fail=None, on_skip=None)
bad = [r["check_name"] + ": " + repr(r["exception"]) for r in results if r["status"] != "passed"]
print(len(results), "checks")
raise SystemExit("\\n".join(bad) or 0)
"""


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three clouds, their names, and four noisy votes an item."""
    random = np.random.default_rng(0)
    y = random.integers(3, size=240)
    X = random.normal(size=(240, 4)) + 3 * np.eye(4)[y]
    wrong = random.random((240, 4)) < 0.15
    votes = np.where(wrong, random.integers(3, size=(240, 4)), y[:, None])
    counts = (votes[:, :, None] == np.arange(3)).sum(1)
    return X, np.array(["ant", "bee", "cat"])[y], counts


@pytest.mark.parametrize("method", ["pocc", "laplace-bridge"])  # each of the suite's 55 checks fits
def test_the_whole_scikit_learn_suite_passes(method: str) -> None:
    # In a process of its own: the suite's array-API check runs only under this variable.
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHECKS.format(method=method)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 50


@pytest.mark.parametrize("method", ["pocc", "softmax"])
def test_learns_from_every_kind_of_label(
    method: str, blobs: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    X, y, counts = blobs
    shares = counts / counts.sum(1, keepdims=True)
    names = ["ant", "bee", "cat"]
    for labels, classes in (
        (y, None),
        (y.tolist(), None),
        (pd.Series(y), None),
        (shares, names),
        (torch.tensor(shares), names),
        (pd.DataFrame(shares, columns=names), None),
        (cl.from_votes(counts), names),
        (cl.from_votes(counts, rule="idm"), names),
        (cl.Intervals(0.9 * shares, 0.9 * shares + 0.1), names),
        (cl.Vertices(np.stack([shares, np.full_like(shares, 1 / 3)], 1)), names),
    ):
        clf = cl.CredalClassifier(method, epochs=25).fit(X, labels, classes=classes)
        assert clf.classes_.tolist() == names
        assert clf.score(X, y) > 0.9
        pred = clf.predict_credal(X)
        np.testing.assert_allclose(clf.predict_proba(X), pred.probs.numpy(), atol=1e-6)
        assert (clf.predict(X) == clf.classes_[pred.classes.numpy()]).all()


def test_soft_labels_follow_the_label_rule(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, _, counts = blobs
    shares = counts / counts.sum(1, keepdims=True)
    fitted = {
        rule: cl.CredalClassifier(label_rule=rule, epochs=10).fit(X, shares)
        for rule in ("relax", "precise")
    }
    direct = cl.CredalClassifier(epochs=10).fit(X, cl.relax(shares))
    weights = {name: clf.model_.members[0].heads.weight for name, clf in fitted.items()}
    assert torch.equal(weights["relax"], direct.model_.members[0].heads.weight)
    assert not torch.equal(weights["relax"], weights["precise"])
    assert fitted["relax"].predict_credal(X).score("mmi").mean() > 0.02


def test_pipelines_cross_validation_and_clones(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, _ = blobs
    clf = cl.CredalClassifier(epochs=15)
    assert cross_val_score(make_pipeline(PolynomialFeatures(2), clf), X, y, cv=3).mean() > 0.9
    again = clone(clf)
    assert again.get_params() == clf.get_params()


def test_credal_and_soft_labels_split_and_score_like_any_other(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, _, counts = blobs
    for labels in (cl.from_votes(counts), counts / counts.sum(1, keepdims=True)):
        X_train, X_test, y_train, y_test = train_test_split(X, labels, random_state=0)
        clf = cl.CredalClassifier(epochs=15).fit(X_train, y_train)
        assert clf.score(X_test, y_test) > 0.8
        groups = np.arange(len(X)) % 6
        pipe = make_pipeline(PolynomialFeatures(1), cl.CredalClassifier(epochs=15))
        scores = cross_val_score(pipe, X, labels, groups=groups, cv=GroupKFold(3))
        assert scores.min() > 0.8
        grid = {"credalclassifier__learning_rate": [1e-6, 1e-2]}
        search = GridSearchCV(pipe, grid, cv=3).fit(X, labels)
        assert search.best_params_["credalclassifier__learning_rate"] == 1e-2
        assert search.best_score_ > 0.8


def test_what_needs_one_class_label_an_item(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, counts = blobs
    clf, splits = cl.CredalClassifier(epochs=1), StratifiedKFold(2)
    assert np.isfinite(cross_val_score(clf, X, y, cv=splits, scoring="accuracy")).all()
    for labels in (cl.from_votes(counts), counts / counts.sum(1, keepdims=True)):
        with pytest.warns(UserWarning, match="Scoring failed"):
            assert np.isnan(cross_val_score(clf, X, labels, cv=2, scoring="accuracy")).all()
        with pytest.raises(ValueError, match="Supported target types"):
            cross_val_score(clf, X, labels, cv=splits)


def test_predictions_across_folds_and_sets_from_a_pipeline(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, counts = blobs
    pipe = make_pipeline(PolynomialFeatures(1), cl.CredalClassifier(epochs=1))
    labels = cl.from_votes(counts)
    assert cross_val_predict(pipe, X, labels, cv=2).shape == (240,)
    assert cross_val_predict(pipe, X, y, cv=2, method="predict_proba").shape == (240, 3)
    for coded in (labels, counts / 4):
        with pytest.raises(cl.CredalError, match="not your numbers, cross_val_predict"):
            cross_val_predict(pipe, X, coded, cv=2, method="predict_proba")
    with pytest.raises(cl.CredalError, match=r"from_votes\(counts\)\.$"):  # numbers of one's own
        pipe.fit(X, counts / 3)
    pipe.fit(X, labels)
    sets = pipe[-1].predict_credal(pipe[:-1].transform(X))
    np.testing.assert_allclose(sets.probs.numpy(), pipe.predict_proba(X), atol=1e-6)


def test_data_frames_keep_their_column_names(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, _ = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = cl.CredalClassifier(epochs=2).fit(frame, y)
    assert clf.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame.rename(columns={"a": "z"}))


class Convolutions(nn.Module):
    """A backbone of one's own, for images."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())

    def forward(self, inputs: Tensor) -> Tensor:
        features: Tensor = self.layers(inputs)
        return features


def test_any_module_serves_as_backbone(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    y = random.integers(2, size=80)
    X = random.normal(size=(80, 1, 6, 6)) + 2 * y[:, None, None, None]
    torch.manual_seed(0)
    module = Convolutions()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    clf = cl.CredalClassifier(backbone=module, epochs=30, learning_rate=1e-2).fit(X, y)
    assert clf.score(X, y) > 0.9
    assert all(torch.equal(before[name], x) for name, x in module.state_dict().items())
    with pytest.raises(cl.CredalError, match=r"items of shape \(1, 6, 6\), as in fit"):
        clf.predict(X[:, :, :5, :])
    clf.save(tmp_path)
    with pytest.raises(cl.CredalError, match="a backbone of your own"):
        cl.load(tmp_path)
    again = cl.load(tmp_path, backbone=Convolutions())
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(
        cl.CredalError, match=r"do not fit the network: .* To fix: give the backbone"
    ):
        cl.load(tmp_path, backbone=nn.Flatten())


def tiny() -> nn.Module:
    """A backbone of one's own, for tables of four."""
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU())


def starts(clf: cl.CredalClassifier) -> list[Tensor]:
    """Each member's first weights."""
    return [member.state_dict()["backbone.0.weight"] for member in clf.model_.members]


@pytest.mark.parametrize("method", ["deep-ensemble", "pocc-ensemble"])
def test_a_function_starts_every_member_of_an_ensemble_elsewhere(
    method: str, blobs: tuple[np.ndarray, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y, _ = blobs
    clf = cl.CredalClassifier(method, backbone=tiny, epochs=1, learning_rate=1e-9)
    state = torch.random.get_rng_state()
    weights = starts(clf.fit(X, y))
    assert torch.equal(torch.random.get_rng_state(), state)
    for number, one in enumerate(weights):
        assert all((one - other).abs().max() > 0.1 for other in weights[:number])
    # The seeds decide, member by member.
    again = clone(clf).fit(X, y)
    assert again.get_params()["backbone"] is tiny
    assert all(map(torch.equal, weights, starts(again)))
    later = starts(clone(clf).set_params(random_state=1).fit(X, y))
    assert_close(later[:4], weights[1:], atol=1e-6, rtol=0)
    clf.save(tmp_path)
    with pytest.raises(cl.CredalError, match="a backbone of your own"):
        cl.load(tmp_path)
    for given in (tiny, tiny()):
        loaded = cl.load(tmp_path, backbone=given)
        np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    shared = tiny()
    with pytest.raises(cl.CredalError, match="got the same Sequential twice"):
        cl.load(tmp_path, backbone=lambda: shared)


def test_one_module_is_no_ensemble(blobs: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, y, _ = blobs
    module = tiny()
    clf = cl.CredalClassifier("deep-ensemble", backbone=module, epochs=1)
    message = r"start all 5 networks .* the same weights, .* backbone=lambda: Sequential\(\.\.\.\)"
    with pytest.raises(cl.CredalError, match=message):
        clf.fit(X, y)
    # Members that are trained already start nowhere.
    one = cl.CredalClassifier("softmax", backbone=module, epochs=1)
    members = [
        clone(one).set_params(random_state=random_state).fit(X, y).model_.members[0]
        for random_state in range(5)
    ]
    assert clf.fit(X, y, members=members).model_.members == tuple(members)


def test_a_module_for_a_backbone_of_the_package_is_refused(tmp_path: Path) -> None:
    cl.CredalClassifier(epochs=1).fit([[0.0], [1.0]], ["no", "yes"]).save(tmp_path)
    with pytest.raises(cl.CredalError, match=r"backbone 'mlp'; got Linear\. To fix"):
        cl.load(tmp_path, backbone=nn.Linear(3, 4))


def test_a_method_of_ones_own_trains_clones_saves_and_loads(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    X, _, counts = blobs
    own = replace(METHODS["deep-ensemble"], num_members=2)
    clf = cl.CredalClassifier(own, epochs=3, verbose=True).fit(X, cl.from_votes(counts))
    assert "your method 2/2: epoch 3/3" in capsys.readouterr().err
    again = clone(clf).set_params(verbose=False).fit(X, cl.from_votes(counts))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    again.save(tmp_path / "own")
    loaded = cl.load(tmp_path / "own", method=own)
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.method is own
    with pytest.raises(cl.CredalError, match=r"a method of your own\. To fix: .*, method=\.\.\.\)"):
        cl.load(tmp_path / "own")
    with pytest.raises(cl.CredalError, match="has 2 trained networks; the method has 5"):
        cl.load(tmp_path / "own", method=METHODS["deep-ensemble"])
    # Under a name that another process does not know.
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "mine", own)
        again.set_params(method="mine").save(tmp_path / "mine")
        with pytest.raises(cl.CredalError, match=r"method 'mine'; got Method\. To fix"):
            cl.load(tmp_path / "mine", method=own)
    with pytest.raises(cl.CredalError, match=r"a method of your own, 'mine'\. To fix"):
        cl.load(tmp_path / "mine")
    loaded = cl.load(tmp_path / "mine", method=own)
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def bright_and_dark(size: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    y = random.integers(2, size=24)
    X = random.integers(0, 100, size=(24, 3, size, size)) + 120 * y[:, None, None, None]
    return X.astype(np.uint8), np.array(["dark", "bright"])[y]


@pytest.mark.parametrize(
    ("backbone", "method"),
    [("resnet18", "pocc"), ("resnet18", "mc-dropout"), ("wrn-28-4", "pocc")],
)
def test_images_go_from_fit_to_file_by_the_name_of_a_backbone(
    backbone: str, method: str, tmp_path: Path
) -> None:
    X, y = bright_and_dark(8)
    clf = cl.CredalClassifier(method, backbone=backbone, epochs=3, batch_size=8).fit(X, y)
    network = clf.model_.members[0]
    assert network.dropout_rate == clf.model_.method.dropout
    assert network.dropout.p == 0  # it stands in the blocks
    mean = network.state_dict()["backbone.standardize.mean"]
    np.testing.assert_allclose(mean.numpy(), X.mean((0, 2, 3)), rtol=1e-6)
    vertices = clf.predict_credal(X).vertices
    assert vertices is not None
    assert vertices.shape == (24, 5 if method == "mc-dropout" else 2, 2)
    clf.save(tmp_path)
    again = cl.load(tmp_path)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.model_.members[0].dropout_rate == clf.model_.method.dropout
    with pytest.raises(cl.CredalError, match=r"items of shape \(3, 8, 8\), as in fit"):
        clf.predict(X[:, :, :5])


def test_a_residual_network_learns_images() -> None:
    X, y = bright_and_dark(4)
    clf = cl.CredalClassifier(backbone="resnet18", epochs=20, batch_size=12).fit(X, y)
    assert clf.score(X, y) > 0.9


LOADED = """
import sys
import numpy as np
import credalearn as cl
clf = cl.load(sys.argv[1])
X = np.load(sys.argv[2])
np.save(sys.argv[3], clf.predict_proba(X))
print(clf.classes_.dtype, *clf.predict(X[:3]), *clf.feature_names_in_)
"""


def test_a_saved_model_predicts_the_same_in_a_new_process(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y, _ = blobs
    clf = cl.CredalClassifier(epochs=5, random_state=3).fit(
        pd.DataFrame(X, columns=list("abcd")), y
    )
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf.save(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
    np.save(tmp_path / "X.npy", X)
    command = [sys.executable, "-W", "ignore", "-c", LOADED]
    paths = [str(tmp_path / name) for name in ("model", "X.npy", "probs.npy")]
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["<U3", *clf.predict(frame)[:3], *"abcd"]
    np.testing.assert_array_equal(np.load(tmp_path / "probs.npy"), clf.predict_proba(frame))
    again = cl.load(tmp_path / "model")
    assert again.get_params() == clf.get_params()


@pytest.mark.parametrize(
    "classes", [[0, 1], [True, False], [1.0, 2.0], ["ja", "nein"], ["ä", "漢字 with, comma"]]
)
def test_class_names_of_every_type_survive_a_file(classes: list[object], tmp_path: Path) -> None:
    y = np.array(classes)[[0, 1, 0, 1]]
    clf = cl.CredalClassifier(epochs=1).fit(np.arange(4.0)[:, None], y)
    clf.save(tmp_path)
    again = cl.load(tmp_path)
    assert again.classes_.dtype == clf.classes_.dtype
    assert again.classes_.tolist() == clf.classes_.tolist()


def test_a_damaged_folder_is_named(tmp_path: Path) -> None:
    clf = cl.CredalClassifier(epochs=1).fit([[0.0], [1.0]], [0, 1])
    clf.save(tmp_path)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    assert json.loads((tmp_path / "config.json").read_text())["classes"] == [0, 1]
    for damaged, message in (
        (whole[:-1], r"is damaged \(.*\)\. To fix: save the model again\."),
        (
            whole[:-1] + bytes([whole[-1] ^ 1]),
            r"damaged \(its weights are not those that were saved\)\. To",
        ),
        (whole.replace(b'"format', b'"fermat', 1), "not a model of format 1"),
        (
            whole.replace(b'\\"format\\"', b'\\"fermat\\"', 1),
            "not a model of format 1.* To fix: save",
        ),
        (whole.replace(b"input_shape", b"inputs_form", 1), "another version: .* To fix: load it"),
    ):
        if damaged != whole:
            path.write_bytes(damaged)
            with pytest.raises(cl.CredalError, match=message):
                cl.load(tmp_path)
    path.unlink()
    with pytest.raises(cl.CredalError, match=r"model\.safetensors is missing"):
        cl.load(tmp_path)
    with pytest.raises(cl.CredalError, match=r"there is no such folder. To fix: name the"):
        cl.load(tmp_path / "absent")


def test_a_save_that_fails_leaves_the_model_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = [[0.0], [1.0]], [0, 1]
    first = cl.CredalClassifier(epochs=1).fit(X, y)
    first.save(tmp_path)

    def full_disk(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    second = cl.CredalClassifier(epochs=2, random_state=np.int64(3)).fit(X, y)  # type: ignore[arg-type]
    monkeypatch.setattr("credalearn._tensors.save_file", full_disk)
    with pytest.raises(cl.CredalError, match=r"safetensors cannot be written: No space .* fix: "):
        second.save(tmp_path)
    np.testing.assert_array_equal(cl.load(tmp_path).predict_proba(X), first.predict_proba(X))
    monkeypatch.undo()
    second.save(tmp_path)  # NumPy's numbers among the options are no obstacle
    assert cl.load(tmp_path).get_params()["random_state"] == 3


def test_a_fit_that_fails_leaves_what_was_learned_before() -> None:
    X = np.arange(20.0)[:, None]
    clf = cl.CredalClassifier(epochs=5).fit(X, np.where(X[:, 0] < 10, "cat", "dog"))
    before = clf.predict(X)
    with pytest.raises(cl.TrainingError, match="became"):
        clf.set_params(learning_rate=1e30, optimizer="sgd").fit(X, np.arange(20) % 3)
    np.testing.assert_array_equal(clf.predict(X), before)


def test_a_refit_that_fails_keeps_the_number_of_features(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, _ = blobs
    clf = cl.CredalClassifier(epochs=1).fit(X, y)
    with pytest.raises(cl.CredalError, match="one class only"):
        clf.fit(X[:, :2], np.zeros(len(X), int))
    assert clf.predict(X).shape == y.shape


def test_columns_of_soft_labels_go_by_name(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, _, counts = blobs
    frame = pd.DataFrame(counts / counts.sum(1, keepdims=True), columns=list("abc"))
    clf = cl.CredalClassifier(epochs=20).fit(X, frame)
    other = cl.CredalClassifier(epochs=20).fit(X, frame, classes=["c", "b", "a"])
    assert other.classes_.tolist() == ["c", "b", "a"]
    assert (clf.predict(X) == other.predict(X)).mean() > 0.9
    assert clf.score(X, frame) == clf.score(X, frame[["c", "a", "b"]])
    with pytest.raises(cl.CredalError, match=r"y has the columns .* To fix: give y one column"):
        clf.fit(X, frame, classes=["a", "b", "z"])


def test_members_must_be_networks_of_this_kind(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, _ = blobs
    softmax = cl.CredalClassifier("softmax", epochs=1).fit(X, y)
    members = softmax.model_.members
    post_hoc = cl.CredalClassifier("decalibration")
    wrong: list[Any] = [(X[:, :2], members), (X, [softmax])]
    for inputs, given in wrong:
        with pytest.raises(cl.CredalError, match="trained networks with this classifier's"):
            post_hoc.fit(inputs, y, members=given)
    with pytest.raises(cl.CredalError, match=r"but another was fitted. To fix: fit again"):
        softmax.set_params(method="pocc").save("nowhere")


def test_a_pickled_classifier_can_be_saved(tmp_path: Path) -> None:
    clf = cl.CredalClassifier(epochs=1).fit([[0.0], [1.0]], ["no", "yes"])
    pickle.loads(pickle.dumps(clf)).save(tmp_path)
    assert cl.load(tmp_path).classes_.tolist() == ["no", "yes"]


def test_features_far_from_zero_keep_their_differences() -> None:
    X = 1.7e9 + np.arange(200.0)[:, None]  # seconds since 1970
    y = np.arange(200) >= 100
    assert cl.CredalClassifier(epochs=60).fit(X, y).score(X, y) > 0.97


def test_many_items_are_predicted_in_batches(
    blobs: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, _ = blobs
    clf = cl.CredalClassifier(epochs=2).fit(X, y)
    many = np.tile(X, (40, 1))  # more than two batches
    np.testing.assert_allclose(
        clf.predict_proba(many), np.tile(clf.predict_proba(X), (40, 1)), atol=1e-6
    )


def test_a_killed_fit_resumes_through_the_classifier(tmp_path: Path) -> None:
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    options = {"epochs": 6, "batch_size": 5}
    whole = cl.CredalClassifier(**options).fit(X, y)  # type: ignore[arg-type]
    path = tmp_path / "resume.safetensors"
    clf = cl.CredalClassifier(**options, checkpoint=path)  # type: ignore[arg-type]
    clf.fit(X, y)
    assert path.exists()
    again = clone(clf).fit(X, y)
    for one in (clf, again):
        assert torch.equal(one.model_.members[0].heads.weight, whole.model_.members[0].heads.weight)
    assert again.loss_curve_ == whole.loss_curve_
    with pytest.raises(cl.TrainingError, match="another run"):
        clone(clf).fit(X + 1, y)
    with pytest.raises(cl.TrainingError, match="another run"):
        clone(clf).set_params(method="softmax").fit(X, y)


def test_verbose_shows_progress_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    cl.CredalClassifier(epochs=2, verbose=True).fit([[0.0], [1.0]], [0, 1])
    shown = capsys.readouterr()
    assert "pocc: epoch 2/2  loss" in shown.err
    assert not shown.out


SHARED = nn.Identity()
NAN = float("nan")


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({"method": "svm"}, [[0.0], [1]], [0, 1], "method must be one of 'pocc', .* got 'svm'"),
        ({"backbone": "vgg"}, [[0.0], [1]], [0, 1], "one of 'mlp', .*'timm:NAME' or a torch"),
        ({"backbone": "timm:"}, [[0.0], [1]], [0, 1], "backbone must be one of .* got 'timm:'"),
        (
            {"backbone": "resnet18"},
            [[0.0], [1]],
            [0, 1],
            r"backbone 'resnet18' takes images \(items, channels, height, width\); .* shape \(1,\)",
        ),
        ({"backbone": "wrn-28-4"}, np.zeros((2, 8, 8, 3)), [0, 1], "three colors last"),
        (
            {"backbone": ResNet18((3, 8, 8)), "method": "mc-dropout"},
            np.zeros((2, 3, 8, 8)),
            [0, 1],
            r"ResNet18 places dropout itself and was built with 0\.0; the method needs 0\.3",
        ),
        (
            {"backbone": nn.Linear},
            [[0.0], [1]],
            [0, 1],
            r"called without arguments; .*Linear'> fails: .* To fix: .*lambda: Net\(10\)",
        ),
        (
            {"backbone": lambda: "mlp"},
            [[0.0], [1]],
            [0, 1],
            r"make a new torch\.nn\.Module .*; got str\. To fix: make it inside",
        ),
        ({"backbone": 3}, [[0.0], [1]], [0, 1], "or a function that makes one; got 3"),
        (
            {"backbone": lambda: SHARED},
            [[0.0], [1]],
            [0, 1],
            r"call; got the same Identity twice\. To fix: make it inside",
        ),
        ({"backbone": nn.Linear(3, 2)}, [[0.0], [1]], [0, 1], r"Linear fails on items of shape"),
        ({"device": "gpu"}, [[0.0], [1]], [0, 1], "device 'gpu' is not available here"),
        (
            {"epochs": "5"},
            [[0.0], [1]],
            [0, 1],
            "epochs must be a whole number of 1 or more; got '5'",
        ),
        (
            {"epochs": 2.5},
            [[0.0], [1]],
            [0, 1],
            "epochs must be a whole number of 1 or more; got 2.5",
        ),
        ({"learning_rate": "fast"}, [[0.0], [1]], [0, 1], "learning_rate must be a number"),
        ({"label_rule": "max"}, [[0.0], [1]], [0, 1], "label_rule must be one of 'relax'"),
        ({"epochs": 0}, [[0.0], [1]], [0, 1], "epochs must be 1 or more"),
        ({}, [[0.0], [1]], [1, 1], r"y has one class only: \[1\]. To fix: add items"),
        ({}, [[0.0], [1]], [[3, 1], [2, 2]], r"read as soft labels, .* credalearn\.from_votes"),
        ({}, [[0.0], [1]], cl.LowerBounds([[0.5, 0.5]]), "X has 2 items and y has 1.* To fix"),
    ],
)
def test_bad_input_gets_a_clear_message(
    options: dict[str, Any], X: object, y: object, message: str
) -> None:
    with pytest.raises(cl.CredalError, match=message):
        cl.CredalClassifier(**options).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([[0.5, NAN], [0.0, 1.0]]), r"^y of shape \(2, 2\) .*probs must be finite; row 0"),
        (np.array([[0.0, 1.0], [1.5, -0.5]]), "probs must not be negative; row 1"),
        ([[3, 1], [2, 2]], r"must sum to 1.* credalearn\.from_votes"),
        ([["a", "b"], ["a", "b"]], "read as soft labels"),
        (np.eye(5)[:2], "over the 2 classes that were learned; got 5. To fix: give y one"),
        (cl.LowerBounds(np.eye(3)[:2]), "over the 2 classes that were learned; got 3"),
        (cl.LowerBounds([[1.0], [1.0]]), "over the 2 classes that were learned; got 1"),
    ],
)
def test_what_cannot_be_learned_from_is_not_scored(y: Any, message: str) -> None:
    X = [[0.0], [1.0]]
    clf = cl.CredalClassifier(epochs=1)
    with pytest.raises(NotFittedError):
        clf.score(X, y)
    clf.fit(X, ["a", "b"])
    with pytest.raises(cl.CredalError, match=message):
        clf.score(X, y)


def test_masked_values_are_refused() -> None:
    X, y, second = np.arange(3.0)[:, None], np.array([0, 1, 1]), np.array([False, True, False])
    clf = cl.CredalClassifier(epochs=1).fit(X, y)
    hidden = np.ma.array(X, mask=second[:, None])
    for use in (clf.fit, clf.score):
        with pytest.raises(cl.CredalError, match=r"^X must have no masked value; that at \(1, 0\)"):
            use(hidden, y)
        for wrong in (y, np.eye(3)[y]):
            mask = np.broadcast_to(second.reshape(3, *[1] * (wrong.ndim - 1)), wrong.shape)
            with pytest.raises(cl.CredalError, match=r"^y must have no masked .* To fix: fill or"):
                use(X, np.ma.array(wrong, mask=mask))
    with pytest.raises(cl.CredalError, match=r"^X must have no masked value"):
        clf.predict(hidden)
    clf.fit(np.ma.array(X), np.ma.array(y))  # masks that hide nothing


def test_tensors_of_every_kind_are_taken_or_refused() -> None:
    X, y = torch.arange(4.0)[:, None], torch.tensor([0, 0, 1, 1])
    clf = cl.CredalClassifier(epochs=1).fit(X, y)
    for short in (torch.bfloat16, torch.float16, torch.float8_e5m2):
        again = cl.CredalClassifier(epochs=1).fit(X.to(short).requires_grad_(), y)
        assert_close(again.predict_proba(X.to(short)), clf.predict_proba(X))
    assert clf.score(X, torch.eye(2, dtype=torch.bfloat16)[y]) == clf.score(X, y)
    for wrong, message in ((X.to("meta"), "must hold values"), (X.to_sparse(), r"sparse_coo")):
        for use in (clf.fit, clf.score):
            with pytest.raises(cl.CredalError, match=rf"^X .*{message}.* To fix: "):
                use(wrong, y)
            with pytest.raises(cl.CredalError, match=rf"^y .*{message}.* To fix: "):
                use(X, wrong)


def test_class_names_must_fit() -> None:
    with pytest.raises(cl.CredalError, match=r"\['b'\] are missing. To fix: add them"):
        cl.CredalClassifier().fit([[0.0], [1.0]], ["a", "b"], classes=["a", "c"])
    bad: list[Any] = [["a", "a"], [["a"], ["b"]], [None, "b"], [np.nan, 1.0]]
    for names in bad:
        with pytest.raises(cl.CredalError, match=r"all strings or all numbers, .* To fix: make"):
            cl.CredalClassifier().fit([[0.0], [1.0]], np.eye(2), classes=names)
    unordered: list[Any] = [{"a", "b"}, "ab", 2]
    for names in unordered:
        with pytest.raises(cl.CredalError, match=r"a list of names, in order.* To fix: give"):
            cl.CredalClassifier().fit([[0.0], [1.0]], np.eye(2), classes=names)
    with pytest.raises(cl.CredalError, match=r"must name the 2 classes of y.* To fix: give 2"):
        cl.CredalClassifier().fit([[0.0], [1.0]], np.eye(2), classes=["a", "b", "c"])
    clf = cl.CredalClassifier(epochs=1).fit([[0.0], [1.0]], ["b", "a"], classes=["c", "b", "a"])
    assert clf.classes_.tolist() == ["c", "b", "a"]
    assert clf.predict_proba([[0.0]]).shape == (1, 3)
