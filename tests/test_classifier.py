"""CredalClassifier: scikit-learn's contract, every kind of label, backbones and bad input."""

from pathlib import Path
from traceback import extract_stack
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from torch import Tensor, nn
from torch.testing import assert_close

import credalearn as cl
from clouds import classifier, clouds, tiny
from credalearn import _targets
from credalearn.methods import pocc
from credalearn.train import _linear
from present import present
from python_process import run_python

CHECKS = """
import sys
import credalearn
from sklearn.utils.estimator_checks import check_estimator
clf = credalearn.CredalClassifier(sys.argv[1], device="cpu")
results = check_estimator(clf, on_fail=None, on_skip=None)
failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] != "passed"}
print(len(results), "checks")
assert failed.keys() == set(sys.argv[2:]), failed
"""
EXPECTED_FAILURES = {
    # Repeated items fall into different folds, as with LogisticRegressionCV.
    "auto": [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ],
    # Methods given by name take no weights, which an error says.
    "pocc": [
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_all_zero_sample_weights_error",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_classifiers_one_label_sample_weights",
    ],
}
NAMES = np.array(["ant", "bee", "cat"])
TABLE, Y = [[0.0], [1.0]], [0, 1]
POCC = {"method": "pocc"}
ENSEMBLE = {"method": "deep-ensemble", "backbone": nn.Linear(1, 2)}


@pytest.mark.parametrize("method", EXPECTED_FAILURES)
def test_the_scikit_learn_suite_passes_but_for_the_failures_named_here(method: str) -> None:
    # In a process of its own: the suite's array-API check runs only with this variable.
    printed = run_python(CHECKS, method, *EXPECTED_FAILURES[method], SCIPY_ARRAY_API="1")
    assert int(printed.split()[0]) > 50


def test_learns_from_every_kind_of_label() -> None:
    X, y, counts = clouds()
    shares = counts / counts.sum(1, keepdims=True)
    names, stated = NAMES.tolist(), ([*NAMES[y], *NAMES[y]], [80] * 180)
    for labels, classes in (
        (NAMES[y], None),
        (NAMES[y].tolist(), None),
        (pd.Series(NAMES[y]), None),
        (shares, names),
        (torch.tensor(shares), names),
        (pd.DataFrame(shares, columns=names), None),
        (cl.from_votes(counts), names),
        (cl.from_votes(counts, rule="idm"), names),
        (cl.from_votes(100 * counts, rule="total-variation"), names),
        (cl.Intervals(0.9 * shares, 0.9 * shares + 0.1), names),
        (cl.from_statements(*stated, classes=names, items=[*range(90), *range(90)]), names),
        (cl.Vertices(np.stack([shares, np.full_like(shares, 1 / 3)], 1)), names),
    ):
        clf = classifier(epochs=12).fit(X, labels, classes=classes)
        assert clf.classes_.tolist() == names
        assert clf.score(X, NAMES[y]) > 0.9
        pred = clf.predict_credal(X)
        np.testing.assert_allclose(clf.predict_proba(X), pred.probs.numpy(), atol=1e-6)
        assert (clf.predict(X) == clf.classes_[pred.classes.numpy()]).all()


def test_soft_labels_follow_the_label_rule() -> None:
    X, _, counts = clouds()
    shares = counts / counts.sum(1, keepdims=True)
    relaxed, precise = (classifier(label_rule=rule).fit(X, shares) for rule in ("relax", "precise"))
    direct = classifier().fit(X, cl.relax(shares))
    weights = [clf.model_.members[0].heads.weight for clf in (relaxed, direct, precise)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_every_kind_of_label_in_cross_validation_searches_and_pipelines() -> None:
    X, y, counts = clouds()
    groups, folds = np.arange(len(X)) // 15, GroupKFold(3)
    for labels in (NAMES[y], cl.from_votes(counts), counts / counts.sum(1, keepdims=True)):
        search = GridSearchCV(cl.CredalClassifier(), {"collapse": [True, False]}, cv=3)
        assert search.fit(X, labels).best_score_ > 0.9
        assert search.best_estimator_.choice_.backbone == "linear"
        pipe = make_pipeline(PolynomialFeatures(1), classifier(epochs=12))
        assert cross_val_score(pipe, X, labels, groups=groups, cv=folds).min() > 0.8
        grid = {"credalclassifier__learning_rate": [1e-6, 1e-2]}
        found = GridSearchCV(pipe, grid, cv=3).fit(X, labels)
        assert found.best_params_["credalclassifier__learning_rate"] == 1e-2
        X_train, X_test, y_train, y_test = train_test_split(X, labels, random_state=0)
        assert cl.CredalClassifier().fit(X_train, y_train).score(X_test, y_test) > 0.8
    scores = cross_val_score(cl.CredalClassifier(), X, y, cv=3, scoring="neg_log_loss")
    assert scores.min() > -0.2


@pytest.mark.parametrize("sparse", [False, True])
def test_an_item_without_weight_is_an_item_removed(sparse: bool) -> None:
    """Exactly, whatever its label and its numbers are."""
    X, _, counts = clouds()
    X, counts = X.copy(), counts.copy()
    out = np.arange(90) % 7 == 0
    X[out], counts[out] = 1e6, [0, 0, 5]
    if not sparse:
        X[out, 1] = np.nan  # only there: no column has missing values once they are removed
    weights = np.where(out, 0.0, 1 + np.arange(90) % 3)
    given, labels = (csr_array(X) if sparse else X), cl.from_votes(counts)
    weighted = cl.CredalClassifier().fit(given, labels, sample_weight=weights)
    kept = np.flatnonzero(~out)
    removed = cl.CredalClassifier().fit(given[kept], labels[kept], sample_weight=weights[kept])
    inside = given[kept]
    assert np.array_equal(weighted.predict_proba(inside), removed.predict_proba(inside))
    assert weighted.temperatures_ == removed.temperatures_
    assert weighted.folds_ is not None
    assert (weighted.folds_[out] == -1).all()
    assert np.array_equal(weighted.folds_[kept], present(removed.folds_))
    assert len(present(weighted.out_of_fold_)) == len(kept)
    scaled = cl.CredalClassifier().fit(given, labels, sample_weight=1000 * weights)
    first, second = (each.predict_proba(inside) for each in (scaled, weighted))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert present(weighted.choice_).backbone == "linear"


def test_weights_move_the_probabilities() -> None:
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    even, uneven = (
        cl.CredalClassifier().fit(X, y, sample_weight=np.where(y == 1, weight, 1.0))
        for weight in (1.0, 9.0)
    )
    assert even.predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.05)
    assert uneven.predict_proba(X)[:, 1].mean() == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([-1.0] + [1.0] * 89, "Negative values"),
        ([1.0] * 89 + [np.nan], "contains NaN"),
        ([1.0] * 9, r"shape == \(9,\), expected \(90,\)"),
        ([0.0] * 90, "zero"),
    ],
)
def test_rejects_bad_weights(weights: list[float], message: str) -> None:
    X, y, _ = clouds()
    with pytest.raises(cl.CredalError, match=f"sample_weight.*{message}"):
        cl.CredalClassifier().fit(X, y, sample_weight=weights)
    with pytest.raises(cl.CredalError, match=r"^sample_weight is for the default learner\. To fix"):
        classifier().fit(X, y, sample_weight=weights)


def test_rejects_zero_weights_where_scikit_learn_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_targets, "_check_sample_weight", lambda given, _, **__: np.array(given))
    with pytest.raises(cl.CredalError, match="above zero; all are zero"):
        _targets.as_weights([0.0, 0.0], 2)


def overlapping(num_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that no model can tell apart for certain."""
    random = np.random.default_rng(0)
    y = np.arange(num_items) % 2
    return random.normal(size=(num_items, 5)) + 0.5 * y[:, None], y


def test_calibrating_a_method_given_by_name_mends_its_confidence(tmp_path: Path) -> None:
    X, y = overlapping(900)
    options: dict[str, Any] = {"epochs": 60, "checkpoint": tmp_path / "resume.safetensors"}
    plain = classifier("softmax", **options).fit(X[:300], y[:300])
    clf = classifier("softmax", calibrate=True, **options).fit(X[:300], y[:300])
    assert plain.temperatures_ == {"truth": 1, "votes": 1}
    assert clf.temperatures_["truth"] > 1.5
    assert (clf.predict(X) == plain.predict(X)).all()  # the same network, tempered
    costs = [log_loss(y[300:], each.predict_proba(X[300:])) for each in (clf, plain)]
    assert costs[0] < costs[1] - 0.1
    clf.save(tmp_path / "model")
    loaded = cl.load(tmp_path / "model")
    assert loaded.temperatures_ == clf.temperatures_
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-6)
    again = clone(clf).fit(X[:300], y[:300])  # both trainings continue from their checkpoints
    assert again.temperatures_ == clf.temperatures_


@pytest.mark.parametrize("method", ["pocc", "edl", "laplace-bridge", "decalibration", "mc-dropout"])
def test_every_kind_of_prediction_can_be_calibrated(method: str) -> None:
    X, y = overlapping(120)
    clf = classifier(method, calibrate=True, epochs=5).fit(X, y)
    pred = clf.predict_credal(X)
    assert clf.temperatures_["truth"] != 1
    assert (pred.lower <= pred.probs).all()
    assert (pred.probs <= pred.upper).all()
    assert np.array_equal(pred.classes.numpy(), clf.model_.predict(torch.from_numpy(X)).classes)


def test_columns_of_soft_labels_are_matched_by_name() -> None:
    X, _, counts = clouds()
    frame = pd.DataFrame(counts / counts.sum(1, keepdims=True), columns=list("abc"))
    clf = classifier(epochs=12).fit(X, frame)
    other = classifier(epochs=12).fit(X, frame, classes=["c", "b", "a"])
    assert other.classes_.tolist() == ["c", "b", "a"]
    assert (clf.predict(X) == other.predict(X)).mean() > 0.9
    assert clf.score(X, frame) == clf.score(X, frame[["c", "a", "b"]])
    with pytest.raises(cl.CredalError, match=r"y has the columns .* To fix: give y one column"):
        clf.fit(X, frame, classes=["a", "b", "z"])


def test_any_module_serves_as_backbone_and_stays_as_it_is() -> None:
    random = np.random.default_rng(0)
    y = random.integers(2, size=80)
    X = random.normal(size=(80, 1, 6, 6)) + 2 * y[:, None, None, None]
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    clf = classifier(backbone=module, epochs=30).fit(X, y)
    assert clf.score(X, y) > 0.9
    assert_close(module.state_dict(), before, rtol=0, atol=0)
    with pytest.raises(cl.CredalError, match=r"items of shape \(1, 6, 6\), as in fit"):
        clf.predict(X[:, :, :5, :])


def starts(clf: cl.CredalClassifier) -> list[Tensor]:
    """Each member's first weights."""
    return [member.state_dict()["backbone.0.weight"] for member in clf.model_.members]


@pytest.mark.catches(
    "train/_random.py", "            default.set_state(before)", "            pass"
)
def test_a_function_starts_every_member_of_an_ensemble_elsewhere() -> None:
    X, y, _ = clouds()
    clf = classifier("deep-ensemble", backbone=tiny, epochs=1, learning_rate=1e-9)
    state = torch.random.get_rng_state()
    weights = starts(clf.fit(X, y))
    assert torch.equal(torch.random.get_rng_state(), state)
    for number, one in enumerate(weights):
        assert all((one - other).abs().max() > 0.1 for other in weights[:number])
    again = clone(clf).fit(X, y)  # the seeds decide, member by member
    assert again.get_params()["backbone"] is tiny
    assert all(map(torch.equal, weights, starts(again)))
    later = starts(clone(clf).set_params(random_state=1).fit(X, y))
    assert_close(later[:4], weights[1:], atol=1e-6, rtol=0)


@pytest.mark.parametrize(("backbone", "method"), [("resnet18", "mc-dropout"), ("wrn-28-4", "pocc")])
def test_images_are_trained_and_saved_by_the_name_of_a_backbone(
    backbone: str, method: str, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    y = random.integers(2, size=24)
    X = random.integers(0, 100, size=(24, 3, 8, 8)) + 120 * y[:, None, None, None]
    clf = classifier(method, backbone=backbone, batch_size=8).fit(X.astype(np.uint8), y)
    (network,) = clf.model_.members
    assert network.dropout_rate == clf.model_.method.dropout
    mean = network.state_dict()["backbone.standardize.mean"]
    np.testing.assert_allclose(mean.numpy(), X.mean((0, 2, 3)), rtol=1e-6)
    vertices = present(clf.predict_credal(X).vertices)
    assert vertices.shape == (24, 5 if method == "mc-dropout" else 2, 2)
    clf.save(tmp_path)
    np.testing.assert_allclose(cl.load(tmp_path).predict_proba(X), clf.predict_proba(X), atol=1e-4)


@pytest.mark.catches("classifier.py", "fitted = copy.copy(self)", "fitted = self")
def test_a_fit_that_fails_changes_nothing() -> None:
    X, y, _ = clouds()
    clf = classifier().fit(pd.DataFrame(X, columns=list("abcde")), NAMES[y])
    before = dict(vars(clf))
    with pytest.raises(cl.CredalError, match="at least two classes"):
        clf.fit(X[:, :2], np.zeros(len(X), int))
    assert vars(clf) == before
    clf.set_params(learning_rate=1e30, optimizer="sgd")
    before = dict(vars(clf))
    with pytest.raises(cl.TrainingError, match="became"):
        clf.fit(X, np.arange(len(X)) % 4)
    assert vars(clf) == before


def test_the_loss_is_six_files_from_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def loss(first: Tensor, second: Tensor, labels: cl.CredalSet) -> Tensor:
        frames = [each for each in extract_stack() if "src/credalearn" in each.filename]
        seen.append(list(dict.fromkeys(Path(each.filename).stem for each in frames)))
        return cl.pocc_loss(first, second, labels)

    monkeypatch.setattr(pocc, "pocc_loss", loss)
    classifier(epochs=1).fit(TABLE, Y)
    assert seen == [["classifier", "_method_training", "loop", "_threads", "_learner", "pocc"]]


def test_the_default_loss_is_eight_calls_from_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def minimize(objective: _linear.Objective, start: Tensor, **_: float) -> Tensor:
        frames = [each for each in extract_stack() if "src/credalearn" in each.filename]
        seen.append([each.name for each in frames if each.name.isidentifier()])
        return start

    monkeypatch.setattr(_linear, "minimize", minimize)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # a thread would hide its callers
    cl.CredalClassifier().fit(TABLE, Y)
    # And then minimize, which calls the loss.
    assert seen[0] == ["fit", "_select", "on_one_thread", "select", "linear_path", "fit"]


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({"method": "svm"}, TABLE, Y, "method must be one of 'auto', 'pocc', .* got 'svm'"),
        ({"backbone": "vgg"}, TABLE, Y, "one of 'auto', 'linear', .*'timm:NAME' or a torch"),
        ({"backbone": "wrn-28-4"}, np.zeros((2, 8, 8, 3)), Y, "three colors last"),
        ({"backbone": nn.Linear(3, 2)}, TABLE, Y, "Linear fails on items of shape"),
        (ENSEMBLE, TABLE, Y, r"all 5 networks .* the same weights.*=lambda: Linear\(\.\.\.\)"),
        ({"device": "gpu"}, TABLE, Y, "device 'gpu' is not available here"),
        ({"epochs": "5"}, TABLE, Y, "epochs must be a whole number of 1 or more; got '5'"),
        ({"epochs": 5, "weights": "a.pt"}, TABLE, Y, "^epochs=5, weights=a.pt: .* name a method"),
        ({"augment": "crop"}, TABLE, Y, "^augment=crop: such options are for networks"),
        (POCC | {"augment": "crop"}, TABLE, Y, r"for images; .* shape \(2, 1\)\. To fix"),
        ({}, TABLE, [1, 1], r"at least two classes; got 1 class: \[1\]\. To fix: add items"),
        ({}, TABLE, [[3, 1], [2, 2]], r"read as soft labels, .* credalearn\.from_votes"),
        ({}, TABLE, cl.LowerBounds([[0.5, 0.5]]), "same number of items; got 2 and 1"),
    ],
)
def test_rejects_bad_input(options: dict[str, Any], X: object, y: object, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        cl.CredalClassifier(**options).fit(X, y)


def test_an_unknown_option_is_about_the_classifier() -> None:
    with pytest.raises(TypeError, match=r"^CredalClassifier\.__init__\(\) .* 'epoch'"):
        cl.CredalClassifier(epoch=3)


def test_rejects_masked_values() -> None:
    X, y, second = np.arange(3.0)[:, None], np.array([0, 1, 1]), np.array([False, True, False])
    clf = classifier(epochs=1).fit(np.ma.array(X), np.ma.array(y))  # masks that hide nothing
    hidden = np.ma.array(X, mask=second[:, None])
    with pytest.raises(cl.CredalError, match=r"^y must have no masked"):
        clf.fit(X, np.ma.array(y, mask=second))
    with pytest.raises(cl.CredalError, match=r"^X must have no masked value"):
        clf.predict(hidden)


def test_takes_dense_tensors_of_every_precision() -> None:
    X, y = torch.arange(4.0)[:, None], torch.tensor([0, 0, 1, 1])
    clf = classifier(epochs=1).fit(X, y)
    for short in (torch.bfloat16, torch.float8_e5m2):
        again = classifier(epochs=1).fit(X.to(short).requires_grad_(), y)
        assert_close(again.predict_proba(X.to(short)), clf.predict_proba(X))
    with pytest.raises(cl.CredalError, match=r"^X must be a dense tensor"):
        clf.fit(X.to_sparse(), y)
    with pytest.raises(cl.CredalError, match=r"^y must be a dense tensor"):
        clf.score(X, y.to("meta"))


@pytest.mark.parametrize(
    ("y", "groups", "message"),
    [
        (["a", None], None, "y must name a class for every item; item 1 has none. To fix: leave"),
        (pd.Series([None, "a"], dtype="string"), None, "class for every item; item 0 has none"),
        (csr_array(np.eye(2)), None, r"y must be dense; .* To fix: pass y.toarray\(\)"),
        (["a", "b"], ["g", np.nan], "groups must name a group for every item; item 1 has none"),
        (["a", "b"], ["", "g"], "groups must name a group for every item; item 0 has none"),
    ],
)
def test_rejects_missing_labels_and_groups(y: Any, groups: Any, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        cl.CredalClassifier().fit(TABLE, y, groups=groups)


def test_class_names_must_fit() -> None:
    with pytest.raises(cl.CredalError, match=r"\['b'\] are missing. To fix: add them"):
        classifier().fit(TABLE, ["a", "b"], classes=["a", "c"])
    bad: list[Any] = [["a", "a"], [["a"], ["b"]], [None, "b"], [np.nan, 1.0]]
    for names in bad:
        with pytest.raises(cl.CredalError, match="all strings or all numbers, each different"):
            classifier().fit(TABLE, np.eye(2), classes=names)
    with pytest.raises(cl.CredalError, match=r"y has 2 classes; classes must name each"):
        classifier().fit(TABLE, np.eye(2), classes=["a", "b", "c"])
    with pytest.raises(cl.CredalError, match=r"at least two classes; got 1 class: \['a'\]"):
        classifier().fit(TABLE, ["a", "b"], classes=["a"])
    with pytest.raises(cl.CredalError, match=r"the 2 classes that were learned, .* got 3"):
        cl.CredalClassifier().fit(TABLE, Y).score(TABLE, np.eye(3)[:2])
    clf = classifier(epochs=1).fit(TABLE, ["b", "a"], classes=["c", "b", "a"])
    assert clf.classes_.tolist() == ["c", "b", "a"]
    assert clf.predict_proba([[0.0]]).shape == (1, 3)
