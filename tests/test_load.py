"""Saved classifiers: the same predictions from a file, and files that are rejected."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import nn

import credalearn as cl
from clouds import classifier, clouds
from credalearn.methods import METHODS

LOADED = """
import sys
import numpy as np
import credalearn as cl
clf = cl.load(sys.argv[1])
X = np.load(sys.argv[2])
np.save(sys.argv[3], clf.predict_proba(X))
print(clf.classes_.dtype, *clf.predict(X[:3]), *clf.feature_names_in_)
"""


def tiny() -> nn.Module:
    """A backbone of one's own, for tables of five."""
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU())


def test_a_saved_model_predicts_the_same_in_a_new_process(tmp_path: Path) -> None:
    X, y, _ = clouds()
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = classifier(random_state=3).fit(frame, np.array(["ant", "bee", "cat"])[y])
    clf.save(tmp_path / "model")
    files = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert files == ["config.json", "model.safetensors"]
    assert json.loads((tmp_path / "model/config.json").read_text())["classes"][0] == "ant"
    np.save(tmp_path / "X.npy", X)
    command = [sys.executable, "-W", "ignore", "-c", LOADED]
    paths = [str(tmp_path / name) for name in ("model", "X.npy", "probs.npy")]
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["<U3", *clf.predict(frame)[:3], *"abcde"]
    expected = clf.predict_proba(frame)
    np.testing.assert_allclose(np.load(tmp_path / "probs.npy"), expected, atol=1e-6)
    again = cl.load(tmp_path / "model")
    assert again.get_params() == clf.get_params() | {"device": "auto"}
    assert again.loss_curve_ == clf.loss_curve_


@pytest.mark.parametrize(
    "classes", [[0, 1], [True, False], [1.0, 2.0], ["ja", "nein"], ["ä", "漢字 with, comma"]]
)
def test_class_names_of_every_type_survive_a_file(classes: list[object], tmp_path: Path) -> None:
    clf = classifier(epochs=1).fit(np.arange(4.0)[:, None], np.array(classes)[[0, 1, 0, 1]])
    clf.save(tmp_path)
    again = cl.load(tmp_path)
    assert again.classes_.dtype == clf.classes_.dtype
    assert again.classes_.tolist() == clf.classes_.tolist()


def test_load_needs_the_users_own_backbone(tmp_path: Path) -> None:
    X, y, _ = clouds()
    clf = classifier("deep-ensemble", backbone=tiny).fit(X, y)
    clf.save(tmp_path)
    for given in (tiny, tiny()):
        loaded = cl.load(tmp_path, backbone=given)
        np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-6)
    for wrong, message in (
        (None, r"a backbone of your own\. To fix: load\(folder, backbone=\.\.\.\)"),
        (nn.Flatten(), r"do not fit the network: .* To fix: give the backbone"),
    ):
        with pytest.raises(cl.CredalError, match=message):
            cl.load(tmp_path, backbone=wrong)
    classifier().fit(X, y).save(tmp_path / "named")
    with pytest.raises(cl.CredalError, match=r"the backbone 'mlp'\. To fix: .* without backbone"):
        cl.load(tmp_path / "named", backbone=tiny)


def test_load_needs_the_users_own_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X, _, counts = clouds()
    own = replace(METHODS["deep-ensemble"], num_members=2)
    clf = classifier(own, verbose=True).fit(X, cl.from_votes(counts))
    assert "your method 2/2: epoch 3/3" in capsys.readouterr().err
    clf.save(tmp_path / "own")
    loaded = cl.load(tmp_path / "own", method=own)
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-6)
    assert loaded.method is own
    with pytest.raises(cl.CredalError, match=r"a method of your own\. To fix: .*method=\.\.\.\)"):
        cl.load(tmp_path / "own")
    with pytest.raises(cl.CredalError, match="has 2 trained networks; the method has 5"):
        cl.load(tmp_path / "own", method=METHODS["deep-ensemble"])
    # Under a name that another process does not know.
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "mine", own)
        clf.set_params(method="mine").save(tmp_path / "mine")
        with pytest.raises(cl.CredalError, match=r"the method 'mine'.* To fix: .* without method"):
            cl.load(tmp_path / "mine", method=own)
    with pytest.raises(cl.CredalError, match=r"the method 'mine'\. To fix: .*method=\.\.\.\)"):
        cl.load(tmp_path / "mine")
    loaded = cl.load(tmp_path / "mine", method=own)
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-6)


def test_rejects_a_damaged_folder(tmp_path: Path) -> None:
    classifier(epochs=1).fit([[0.0], [1.0]], [0, 1]).save(tmp_path)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    changes: tuple[tuple[bytes, str], ...] = (
        (whole[:-1], r"is damaged \(.*\)\. To fix: save the model again\."),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "its weights are not those that were saved"),
        (whole.replace(b'\\"format\\"', b'\\"fermat\\"', 1), "not a model of format 1"),
        (whole.replace(b"input_shape", b"inputs_form", 1), "another version: .* To fix: load it"),
    )
    for damaged, message in changes:
        assert damaged != whole
        path.write_bytes(damaged)
        with pytest.raises(cl.CredalError, match=message):
            cl.load(tmp_path)
    path.unlink()
    with pytest.raises(cl.CredalError, match=r"model\.safetensors is missing"):
        cl.load(tmp_path)
    with pytest.raises(cl.CredalError, match=r"there is no such folder\. To fix: name the"):
        cl.load(tmp_path / "absent")


def test_a_save_that_fails_leaves_the_model_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = [[0.0], [1.0]], [0, 1]
    first = classifier(epochs=1).fit(X, y)
    first.save(tmp_path)

    def full_disk(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    second = classifier(epochs=2, random_state=np.int64(3)).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("credalearn._tensors.save_file", full_disk)
        with pytest.raises(cl.CredalError, match=r"safetensors cannot be written: No space .* fix"):
            second.save(tmp_path)
    loaded = cl.load(tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(X), first.predict_proba(X), atol=1e-6)
    second.save(tmp_path)  # NumPy's numbers among the options are saved as Python's
    assert cl.load(tmp_path).get_params()["random_state"] == 3


def test_rejects_saving_another_method_than_was_fitted() -> None:
    clf: Any = classifier("softmax", epochs=1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(cl.CredalError, match=r"but another was fitted\. To fix: fit again"):
        clf.set_params(method="pocc").save("nowhere")
