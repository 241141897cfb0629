"""``train``: a dataset into a run, the same by the command and in Python."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

import credalearn as cl
from credalearn.app.labels import make_labels
from credalearn.app.staging import sibling
from credalearn.app.steps.train import TrainOptions, train, training_labels
from credalearn.labels import VOTE_RULES
from present import present
from team_files import (
    Capture,
    Team,
    full_disk,
    in_process,
    make_images,
    make_team,
    snapshot,
    succeed,
    team_data,
    train_arguments,
)

DATA = ("group", "gold", "split", "random_state")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return make_team(tmp_path_factory.mktemp("team"))


def quick(output: Path, team: Team, **options: Any) -> cl.Run:
    """Train quickly on a team's files."""
    data = team_data(team, **{name: options[name] for name in DATA if name in options})
    chosen = {name: value for name, value in options.items() if name not in DATA[:3]}
    return cl.Run.train(data, output, **chosen)


NETWORK = {"method": "pocc", "epochs": 2}


def weights(run: cl.Run) -> dict[str, list[float]]:
    found = load_file(run.path / "model" / "model.safetensors")
    return {name: tensor.flatten().tolist() for name, tensor in found.items()}


def test_the_command_does_what_python_does(team: Team, tmp_path: Path, capsys: Capture) -> None:
    more = ("--group", "patient", "--random-state", 3, "-o", tmp_path / "a")
    succeed(capsys, *train_arguments(team, *more))
    data = team_data(team, group="patient", random_state=3)  # one option of both
    run, made = cl.Run.load(tmp_path / "a"), cl.Run.train(data, tmp_path / "b", random_state=3)
    assert run.facts.sha256 == made.facts.sha256
    assert run.facts.options == made.facts.options
    assert run.facts.inputs == made.facts.inputs
    assert run.facts.annotations == made.facts.annotations


def test_run_folder_contents(team: Team, tmp_path: Path) -> None:
    run = quick(tmp_path / "run", team)
    assert {path.name for path in run.path.iterdir()} == {
        *("model", "run.json", "annotations.parquet", "items.parquet", "predictions.parquet")
    }
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    facts = run.facts
    assert facts.classes == ("cat", "dog", "owl")
    assert facts.splits == {"train": 36, "calibration": 12, "test": 12}
    assert facts.inputs.features == ("size", "weight")
    assert facts.annotations.votes == 300
    held_out = run.items.filter(pl.col("split") != "train")
    trained = run.items.filter(split="train")
    assert run.predictions["item"].to_list() == [*held_out["item"], *trained["item"]]
    assert run.predictions["split"].to_list() == [*held_out["split"], *["out-of-fold"] * 36]


def test_the_columns_of_predictions_are_what_they_are_called(team: Team, tmp_path: Path) -> None:
    run = quick(tmp_path / "run", team)
    table = run.predictions.filter(pl.col("split") != "out-of-fold")
    features = pl.read_csv(team.features).join(table.select("item"), on="item")
    pred = run.load_model().predict_credal(features.select("size", "weight").to_numpy())
    np.testing.assert_allclose(table["mmi"], pred.score("mmi").numpy(), atol=1e-6)
    for row in table.join(run.items, on="item", maintain_order="left").iter_rows(named=True):
        label = row["label"]
        assert row["probability"] == row[f"p:{label}"] == max(row[f"p:{k}"] for k in run.classes)
        assert row["lower"] == row[f"lower:{label}"]
        assert row["upper"] == row[f"upper:{label}"]
        assert row["score"] == pytest.approx(1 - row["lower"], abs=1e-6)
        votes = {name: row[f"n:{name}"] for name in run.classes}
        assert row["disagreement"] == pytest.approx(1 - votes[label] / 5)
        top = [name for name in votes if votes[name] == max(votes.values())]
        assert row["truth"] == (top[0] if len(top) == 1 else None)
        assert row["wrong"] == (None if len(top) > 1 else label != top[0])
        for bound, least in (("lower", min), ("upper", max)):
            heads = [row[f"v{number}:{label}"] for number in range(4)]  # the last is the center
            assert row[f"{bound}:{label}"] == least(heads)


def test_nothing_held_out_is_trained_on(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopError(Exception):
        pass

    def watch(self: cl.CredalClassifier, X: np.ndarray, y: Any, **options: object) -> None:
        assert len(y) == len(X)
        seen.extend(X[:, 0].tolist())
        raise StopError

    monkeypatch.setattr(cl.CredalClassifier, "fit", watch)
    for options in ({}, {"group": "patient"}, {"split": "part"}, {"random_state": 3}):
        seen: list[float] = []
        data = team_data(team, **options)
        with pytest.raises(StopError):
            train(data, tmp_path / "run")
        part = present(data.split().part)
        assert seen == np.asarray(data.X)[part == "train", 0].tolist()
        assert 0 < len(seen) < 60
        groups = np.array(data.groups or data.items)
        assert not {*groups[part == "train"]} & {*groups[part != "train"]}
    assert not list(tmp_path.iterdir())


# Labels


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_labels_are_those_of_from_votes(team: Team, tmp_path: Path, rule: Any) -> None:
    votes = pl.read_csv(team.votes).with_columns(
        label=pl.when(pl.col("item") < "x004").then(pl.lit("?")).otherwise(pl.col("label"))
    )
    data = cl.Dataset(
        cl.read_annotations(votes, unsure=("?",)),
        features=pl.read_csv(team.features).select("item", "size"),
    )
    rows = np.arange(60)
    assert (data.counts[:4] == 0).all()  # nobody is sure
    found = training_labels(data, rows, TrainOptions(labels=rule))
    wanted = cl.from_votes(data.counts, rule=rule)
    assert torch.equal(found.lower, wanted.lower)
    assert torch.equal(found.upper, wanted.upper)
    assert torch.equal(found.reference, wanted.reference)
    assert (found.diameter()[:4] > 0.999).all()
    run = cl.Run.train(data, tmp_path / "run", labels=rule)
    assert run.facts.options["labels"] == rule


def test_weights_count_as_shares(team: Team) -> None:
    trust = pl.when(pl.col("annotator") == "ann").then(0.5).otherwise(1.0)
    votes = cl.read_annotations(pl.read_csv(team.votes).with_columns(weight=trust), weight="weight")
    counts = votes.counts()
    shares = counts / counts.sum(1, keepdims=True)
    for rule, wanted in (
        ("relax", cl.relax(shares)),
        ("relax-ties", cl.relax(shares, ties=True)),
        ("precise", cl.precise(shares)),
    ):
        found = make_labels(votes, counts, rule)  # type: ignore[arg-type]
        torch.testing.assert_close(found.lower, wanted.lower)
    with pytest.raises(cl.CredalError, match=r"rule 'idm' counts votes; .* has the weight 0\.5"):
        make_labels(votes, counts, "idm")


@pytest.mark.parametrize("kind", ["counts", "probabilities", "bounds"])
def test_every_kind_of_annotation_trains(team: Team, tmp_path: Path, kind: Any) -> None:
    votes = cl.read_annotations(team.votes)
    counts, names = votes.counts(), list(votes.items)
    table = pl.DataFrame({"item": names, **dict(zip(votes.classes, counts.T, strict=True))})
    if kind == "probabilities":
        table = table.with_columns(pl.col(votes.classes) / 5)
    if kind == "bounds":
        label = [votes.classes[index] for index in counts.argmax(1)]
        table = pl.DataFrame({"item": names, "label": label, "at_least": counts.max(1) / 5})
    found = cl.read_annotations(table, format=kind)
    features = pl.read_csv(team.features).select("item", "size", "weight")
    run = cl.Run.train(cl.Dataset(found, features=features), tmp_path / "run")
    assert run.facts.annotations.kind == kind
    assert len(run.items) == 60
    nobody_disagrees = bool(run.predictions["disagreement"].is_nan().all())
    assert nobody_disagrees == (kind == "bounds")


def test_skill_is_learned_from_training_items_only(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = team_data(team)
    seen = []

    def posteriors(annotations: object, items: list[str], *, alone: bool) -> np.ndarray:
        seen.append((items, alone))
        return np.full((3, 3), 1 / 3)

    monkeypatch.setattr("credalearn.app.steps.train.dawid_skene", posteriors)
    rows = np.array([3, 5, 8])
    found = training_labels(data, rows, TrainOptions(skill="dawid-skene", labels="precise"))
    assert seen == [([data.items[row] for row in rows], True)]
    torch.testing.assert_close(found.lower, torch.full((3, 3), 1 / 3).double())


# What does not fit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be 1 or more; got 0"),
        ({"labels": "relaxed"}, "labels must be one of 'relax'"),
        ({"method": "poc"}, "method must be one of 'auto', 'pocc'.*take 'pocc'"),
        ({"confidence": 95}, "confidence must be .*; got 95.*write 95 % as 0.95"),
        ({"labels": "relax", "s": 2.0}, "the rule 'relax' does not use s"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        TrainOptions(**options)


def test_rejected_options_change_nothing(team: Team, tmp_path: Path) -> None:
    run = quick(tmp_path / "run", team)
    before = snapshot(tmp_path)
    for options, message in (
        ({"backbone": "resnet1"}, r"backbone must be one of .*got 'resnet1'"),
        ({"augment": "crop"}, r"augment=crop: such options are for networks"),
        ({"weights": Path("none.pt")}, r"none\.pt"),
    ):
        with pytest.raises((cl.CredalError, OSError), match=message):
            quick(run.path, team, **options)
        assert snapshot(tmp_path) == before


def test_a_class_that_training_never_sees_is_refused(team: Team, tmp_path: Path) -> None:
    owls = pl.read_csv(team.votes).filter(label="owl")["item"].unique().to_list()
    part = pl.when(pl.col("item").is_in(owls)).then(pl.lit("test")).otherwise(pl.col("part"))
    table = pl.read_csv(team.features).with_columns(part=part)
    drop = ("patient", "truth")
    data = cl.Dataset(cl.read_annotations(team.votes), features=table, split="part", drop=drop)
    message = r"no training item of .* has a vote for 'owl'.*missing='owl'"
    with pytest.raises(cl.CredalError, match=f"{message}, merge it into another class with map="):
        train(data, tmp_path / "run")
    said = pl.read_csv(team.votes).with_columns(top_percent=80).rename({"label": "top"})
    stated = cl.Dataset(cl.read_annotations(said), features=table, split="part", drop=drop)
    with pytest.raises(cl.CredalError, match=f"{message}, or choose another random_state="):
        train(stated, tmp_path / "run")


def test_too_many_classes_are_refused_before_any_table_is_built(tmp_path: Path) -> None:
    row = np.arange(14_400)
    said = {"item": row % 1200, "annotator": row // 1200, "label": row * 7 % 1200}
    votes = pl.DataFrame(said).with_columns(label=pl.format("c{}", "label"))
    votes.write_csv(tmp_path / "votes.csv")
    table = pl.DataFrame({"item": row[:1200], "x": row[:1200] / 9})
    data = cl.Dataset(cl.read_annotations(tmp_path / "votes.csv"), features=table)
    with pytest.raises(cl.CredalError, match=r"has 1,200 classes; train takes at most 1,000"):
        train(data, tmp_path / "run")


def test_trains_on_images(team: Team, tmp_path: Path) -> None:
    votes = cl.read_annotations(team.votes)
    images = make_images(tmp_path / "img", list(votes.items))
    bad = next(images.iterdir())
    bad.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n")
    data = cl.Dataset(votes, images=images, image_size=8)
    (why,) = data.inputs.left_out
    assert why.startswith(f"with an unreadable image; the first is {bad}: ")
    for backbone in ("auto", "mlp"):
        with pytest.raises(cl.CredalError, match=r"takes vectors, not images.*resnet18"):
            cl.Run.train(data, tmp_path / "run", backbone=backbone)
    run = cl.Run.train(data, tmp_path / "run", epochs=1)
    assert run.takes_images
    assert run.facts.learner == "resnet18 with pocc-center, mixup, calibrated"
    assert run.facts.inputs.image_size == 8
    assert len(run.predictions) == 24


def test_a_run_starts_from_the_weights_of_another(team: Team, tmp_path: Path) -> None:
    first = quick(tmp_path / "first", team, **NETWORK)
    start = first.path / "model" / "model.safetensors"
    run = quick(tmp_path / "run", team, **NETWORK, weights=start, learning_rate=1e-12)
    assert run.facts.options["weights"] == str(start)
    assert run.facts.options["weights_sha256"] is not None
    name = "member0.backbone.layers.1.weight"
    np.testing.assert_allclose(weights(run)[name], weights(first)[name], atol=1e-6)


# Stopped and started again


def test_a_full_disk_in_any_file_leaves_nothing_half_written(team: Team, tmp_path: Path) -> None:
    whole = quick(tmp_path / "whole", team)
    sizes = {path.stat().st_size for path in whole.path.rglob("*") if path.is_file()}
    for most in sorted(sizes):
        said = r"/run cannot be written: .* choose another folder\.$"
        with full_disk(most - 1), pytest.raises(cl.CredalError, match=said):
            quick(tmp_path / "run", team)
        assert not (tmp_path / "run").exists()
    run = quick(tmp_path / "run", team)
    assert weights(run) == weights(whole)
    assert not sibling(run.path, "partial").exists()


def test_stopped_training_resumes_and_other_training_starts_over(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cl.CredalClassifier, "save", stop)
        for options in ({}, {"gold": "truth"}, {"device": "cpu"}, {"epochs": 3}):
            with pytest.raises(KeyboardInterrupt):
                quick(tmp_path / "run", team, **NETWORK | options)
    found = list(sibling(tmp_path / "run", "partial").glob("resume-*.safetensors"))
    # Gold labels choose no training item; auto is the CPU where there is no GPU.
    assert len(found) == (2 if not torch.cuda.is_available() else 3)
    more = ("--method", "pocc", "--epochs", "3", "-o", tmp_path / "run")
    done = in_process(capsys, *train_arguments(team, *more))
    assert "resum" in done.err
    run = cl.Run.load(tmp_path / "run")
    assert weights(run) == weights(quick(tmp_path / "other", team, method="pocc", epochs=3))
    assert not list(run.path.glob("*resume*"))
