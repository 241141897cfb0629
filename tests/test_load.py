"""Saved classifiers: the same predictions from a file, and files that are rejected."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch import nn

import credalearn as cl
from clouds import classifier, clouds, tiny
from credalearn import _files
from credalearn._tensors import read_tensors, write_tensors
from credalearn.methods import METHODS


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    X, y, _ = clouds()
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = classifier(random_state=3).fit(frame, np.array(["ant", "bee", "cat"])[y])
    clf.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert json.loads((tmp_path / "config.json").read_text())["classes"][0] == "ant"
    again = cl.load(tmp_path)
    assert np.array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    assert again.get_params() == clf.get_params() | {"device": "auto"}
    assert again.loss_curve_ == clf.loss_curve_
    assert again.feature_names_in_.tolist() == list("abcde")


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
    classifier().fit(X, y).save(tmp_path / "named")
    for folder, wrong, message in (
        (tmp_path, None, "a backbone of your own"),
        (tmp_path, nn.Flatten(), "do not fit the network"),
        (tmp_path / "named", tiny, "the backbone 'auto'"),
    ):
        with pytest.raises(cl.CredalError, match=message):
            cl.load(folder, backbone=wrong)


def test_load_needs_the_users_own_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, counts = clouds()
    own = replace(METHODS["deep-ensemble"], num_members=2)
    clf = classifier(own).fit(X, cl.from_votes(counts))
    clf.save(tmp_path / "own")
    loaded = cl.load(tmp_path / "own", method=own)
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-6)
    assert loaded.method is own
    with monkeypatch.context() as patch:  # under a name that another process does not know
        patch.setitem(METHODS, "mine", own)
        clf.set_params(method="mine").save(tmp_path / "mine")
    rejected: tuple[tuple[str, Any, str], ...] = (
        ("own", None, "a method of your own"),
        ("own", METHODS["deep-ensemble"], "has 2 trained networks; the method has 5"),
        ("mine", None, "the method 'mine'"),
    )
    for name, method, message in rejected:
        with pytest.raises(cl.CredalError, match=message):
            cl.load(tmp_path / name, method=method)


def test_rejects_a_damaged_folder(tmp_path: Path) -> None:
    classifier(epochs=1).fit([[0.0], [1.0]], [0, 1]).save(tmp_path)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    changes: tuple[tuple[bytes, str], ...] = (
        (whole[:-1], "is damaged"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "its weights are not those that were saved"),
        (whole.replace(b'\\"format\\"', b'\\"fermat\\"', 1), "not a model of format 1"),
        (whole.replace(b"input_shape", b"inputs_form", 1), "its configuration is not the one"),
    )
    for damaged, message in changes:
        assert damaged != whole
        path.write_bytes(damaged)
        with pytest.raises(cl.CredalError, match=message):
            cl.load(tmp_path)
    path.unlink()
    for folder, message in ((tmp_path, "is missing"), (tmp_path / "absent", "no such folder")):
        with pytest.raises(cl.CredalError, match=message):
            cl.load(folder)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("temperatures", {"truth": 1.0, "votes": 0.0}, "a temperature must be above 0"),
        ("temperatures", {"truth": 1.0}, "a temperature is missing"),
        ("input_shape", [1 << 30], "shape of its inputs is not one of its network"),
        ("input_shape", [0], "shape of the inputs"),
        ("encoder", [{"name": "x0", "fill": "1"}], r"Expected `float \| null`, got `str`"),
        ("encoder", [{"name": "x0", "fill": 0.0}, {"name": "x1", "fill": 0.0}], "of its network"),
        ("encoder", {"num_texts": 1, "words": {"a": 2}, "characters": {}}, "in 1 to 1 texts"),
        ("classes", [["a"], ["b"]], r"\$\.classes"),
        ("classes_dtype", "nonsense", "another version"),
        ("choice", 3, r"\$\.choice"),
    ],
)
def test_rejects_a_forged_configuration(
    name: str, value: object, message: str, tmp_path: Path
) -> None:
    classifier(epochs=1).fit([[0.0], [1.0]], [0, 1]).save(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors, metadata = read_tensors(path, fix="")
    config = json.loads(metadata["config"]) | {name: value}
    del config["config_sha256"]
    config["config_sha256"] = _files.digest_of_json(config)
    write_tensors(path, tensors, metadata={"config": json.dumps(config)})
    with pytest.raises(cl.CredalError, match=f"{tmp_path}.*{message}.* To fix"):
        cl.load(tmp_path)


def test_rejects_saving_another_method_than_was_fitted() -> None:
    clf: Any = classifier("softmax", epochs=1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(cl.CredalError, match=r"but another was fitted\. To fix: fit again"):
        clf.set_params(method="pocc").save("nowhere")
