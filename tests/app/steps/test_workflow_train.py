"""Training: what goes in, what comes out, and what happens when it is stopped."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

import credalearn as cl
from credalearn.app.annotations import Annotations, read_annotations
from credalearn.app.annotations.examples import three_items
from credalearn.app.items.columns import read_item_columns
from credalearn.app.items.inputs import FeatureTable, read_features
from credalearn.app.joined.joining import Prepared, prepare
from credalearn.app.joined.labeling import training_labels
from credalearn.app.joined.options import TrainOptions
from credalearn.app.report.card_file import CARD, CARD_MARK
from credalearn.app.run import Run
from credalearn.app.staging import partial_of
from credalearn.app.steps import training
from credalearn.app.steps.training import train_run
from credalearn.labels import VOTE_RULES
from team_files import (
    Team,
    full_disk,
    in_process,
    make_images,
    make_team,
    snapshot,
    train_arguments,
)

QUICK = {"epochs": 2}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return make_team(tmp_path_factory.mktemp("team"))


def read(team: Team) -> Annotations:
    return read_annotations(team.votes)


def train(output: Path, team: Team, *, overwrite: bool = False, **options: Any) -> Run:
    """Train quickly on a team's files."""
    chosen = TrainOptions(**{**QUICK, **options})
    others = tuple(name for name in ("patient", "truth", "part") if name not in chosen.columns)
    inputs = read_features(team.features, extra=chosen.columns, drop=others)
    return train_run(output, read(team), inputs, chosen, overwrite=overwrite, verbose=False)


def weights(run: Run) -> dict[str, list[float]]:
    found = load_file(run.path / "model" / "model.safetensors")
    return {name: tensor.flatten().tolist() for name, tensor in found.items()}


def test_the_folder_of_a_run(team: Team, tmp_path: Path) -> None:
    run = train(tmp_path / "run", team)
    assert {path.name for path in run.path.iterdir()} == {
        *("model", "run.json", "annotations.parquet", "items.parquet", "predictions.parquet")
    }
    assert not partial_of(run.path).exists()
    facts = run.facts
    assert facts.classes == ["cat", "dog", "owl"]
    assert facts.splits == {"train": 36, "calibration": 12, "test": 12, "group": None}
    assert facts.inputs.features == ["size", "weight"]
    assert facts.annotations.votes == 300
    assert len(facts.loss_curve) == 2
    items, predictions = run.items, run.predictions
    assert len(items) == 60
    votes = pl.read_csv(team.votes)
    for item, cat in items.select("item", "n:cat").rows():
        assert cat == len(votes.filter((pl.col("item") == item) & (pl.col("label") == "cat")))
    held_out = items.filter(pl.col("split") != "train")
    assert predictions["item"].to_list() == held_out["item"].to_list()
    assert predictions["split"].to_list() == held_out["split"].to_list()


def test_the_columns_of_predictions_are_what_they_are_called(team: Team, tmp_path: Path) -> None:
    run = train(tmp_path / "run", team)
    table, items = run.predictions, run.items
    pred = run.load_model().predict_credal(
        pl.read_csv(team.features)
        .join(table.select("item"), on="item", maintain_order="right")
        .select("size", "weight")
        .to_numpy()
    )
    np.testing.assert_allclose(table["mmi"], pred.score("mmi").numpy(), atol=1e-6)
    joined = table.join(items, on="item", maintain_order="left")
    for row in joined.iter_rows(named=True):
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
            assert row[f"{bound}:{label}"] == least(row[f"v0:{label}"], row[f"v1:{label}"])


def test_the_same_seed_gives_the_same_run(team: Team, tmp_path: Path) -> None:
    first, again, other = (
        train(tmp_path / name, team, random_state=random_state)
        for name, random_state in (("a", 0), ("b", 0), ("c", 1))
    )
    assert weights(first) == weights(again)
    assert first.predictions.equals(again.predictions)
    assert not first.items["split"].equals(other.items["split"])
    assert weights(first) != weights(other)


@settings(max_examples=15)
@given(random_state=st.integers(0, 99), grouped=st.booleans(), own=st.booleans())
def test_nothing_held_out_is_ever_trained_on(random_state: int, grouped: bool, own: bool) -> None:
    """What reaches ``fit`` is exactly the training split, whoever made the split."""
    rng = np.random.default_rng(random_state)
    size = 40
    names = [f"x{number}" for number in range(size)]
    group = rng.integers(0, 8, size=size)
    split = np.array(["train", "calibration", "test", "train"])[group % 4]
    table = FeatureTable(
        Path("f.csv"),
        names,
        ["number"],
        np.arange(size, dtype=float)[:, None],
        pl.DataFrame({"g": [f"g{number}" for number in group], "s": split.tolist()}),
    )
    votes = pl.DataFrame(
        {
            "item": np.repeat(names, 2).tolist(),
            "annotator": ["ann", "bo"] * size,
            "label": rng.choice(["cat", "dog"], size=2 * size).tolist(),
            "weight": [1.0] * (2 * size),
        }
    )
    found = Annotations("votes", tuple(names), ("cat", "dog"), votes, three_items().source)
    seen: list[float] = []

    class StopError(Exception):
        pass

    def watch(self: cl.CredalClassifier, X: np.ndarray, y: object, **options: object) -> None:
        assert len(X) == len(y)  # type: ignore[arg-type]
        seen.extend(X[:, 0].tolist())
        raise StopError

    options = TrainOptions(
        group="g" if grouped else None,
        split="s" if own else None,
        random_state=random_state,
        epochs=1,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cl.CredalClassifier, "fit", watch)
        checked: list[np.ndarray] = []

        def keep(*args: Any, **named: Any) -> Prepared:
            made = prepare(*args, **named)
            checked.append(np.array(made.split))
            return made

        patch.setattr(training, "prepare", keep)
        with pytest.raises(StopError):
            train_run(Path(tempfile.mkdtemp()) / "run", found, table, options, verbose=False)
    held_out = {number for number in range(size) if checked[0][number] != "train"}
    assert set(seen) == set(range(size)) - held_out
    assert len(held_out) >= 2
    if own:
        assert checked[0].tolist() == split.tolist()
    if grouped:
        trained = {group[int(number)] for number in seen}
        assert not trained & {group[number] for number in held_out}


def test_an_own_split_gold_and_groups(team: Team, tmp_path: Path) -> None:
    run = train(tmp_path / "run", team, split="part", gold="truth")
    features = pl.read_csv(team.features)
    assert run.items["split"].to_list() == features["part"].to_list()
    assert run.items["truth"].to_list() == features["truth"].to_list()
    assert run.facts.truth == "gold"
    assert run.facts.inputs.features == ["size", "weight"]
    grouped = train(tmp_path / "grouped", team, group="patient")
    split = grouped.items.group_by("group").agg(pl.col("split").n_unique())
    assert split["split"].to_list() == [1] * 12


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_every_label_rule_trains(team: Team, tmp_path: Path, rule: str) -> None:
    run = train(tmp_path / "run", team, labels=rule, epochs=1)
    assert run.facts.label_rule == rule


def test_the_options_of_a_rule_reach_the_labels(team: Team) -> None:
    inputs = read_features(team.features, drop=("patient", "truth", "part"))
    annotations = read(team)
    prepared = prepare(annotations, inputs, TrainOptions())
    counts = prepared.counts[np.array(prepared.split) == "train"]
    for asked, made in (
        (TrainOptions(labels="idm", s=4.0), cl.from_votes(counts, rule="idm", s=4.0)),
        (
            TrainOptions(labels="clopper-pearson", confidence=0.5),
            cl.from_votes(counts, rule="clopper-pearson", confidence=0.5),
        ),
    ):
        assert torch.equal(training_labels(annotations, prepared, asked).lower, made.lower)
    with pytest.raises(cl.CredalError, match="s must be above 0"):
        TrainOptions(s=0.0)


@pytest.mark.parametrize("kind", ["counts", "probabilities", "bounds", "unsure", "weights"])
def test_every_kind_of_annotation_trains(team: Team, tmp_path: Path, kind: str) -> None:
    counts = read(team).counts()
    names = list(read(team).items)
    path = tmp_path / "votes.csv"
    options: dict[str, Any] = {}
    columns = {name: counts[:, k] for k, name in enumerate(("cat", "dog", "owl"))}
    if kind == "counts":
        pl.DataFrame({"item": names, **columns}).write_csv(path)
    elif kind == "probabilities":
        shares = {name: values / 5 for name, values in columns.items()}
        pl.DataFrame({"item": names, **shares}).write_csv(path)
    elif kind == "bounds":
        top = counts.argmax(1)
        said = [("cat", "dog", "owl")[index] for index in top]
        stated = {"item": names, "label": said, "at_least": counts.max(1) / 5}
        pl.DataFrame(stated).write_csv(path)
    else:
        votes = pl.read_csv(team.votes)
        if kind == "unsure":
            silent = pl.col("item").is_in(names[:4]) | (pl.col("annotator") == "eve")
            votes = votes.with_columns(
                label=pl.when(silent).then(pl.lit("?")).otherwise(pl.col("label"))
            )
            options = {"unsure": ("?",)}
        else:
            trust = pl.when(pl.col("annotator") == "ann").then(0.5).otherwise(1.0)
            votes, options = votes.with_columns(weight=trust), {"weight": "weight"}
        votes.write_csv(path)
    found = read_annotations(path, **options)
    inputs = read_features(team.features, drop=("patient", "truth", "part"))
    run = train_run(tmp_path / "run", found, inputs, TrainOptions(epochs=1), verbose=False)
    assert len(run.items) == 60
    if kind == "unsure":
        silent_items = run.items.filter(pl.col("item").is_in(names[:4]))
        assert silent_items["truth"].null_count() == 4
        held_out = run.predictions.filter(pl.col("item").is_in(names[:4]))
        assert held_out["disagreement"].is_nan().all()
    if kind == "bounds":  # nobody voted, so nobody disagrees
        assert run.predictions["disagreement"].is_nan().all()


def test_images_train(team: Team, tmp_path: Path) -> None:
    items = list(read(team).items)
    folder = make_images(tmp_path / "images", items)
    options = TrainOptions(epochs=1, image_size=8)
    run = train_run(tmp_path / "run", read(team), folder, options, verbose=False)
    assert run.facts.inputs.kind == "images"
    assert run.facts.inputs.image_size == 8
    assert run.facts.options.backbone == "resnet18"
    assert run.facts.inputs.matched == {"path": 60}
    assert len(run.predictions) == 24
    with pytest.raises(cl.CredalError, match=r"'mlp' takes numbers and .*images .*--backbone res"):
        train_run(tmp_path / "mlp", read(team), folder, TrainOptions(backbone="mlp"))


def test_images_keep_groups_splits_and_gold_labels(team: Team, tmp_path: Path) -> None:
    found, table = read(team), pl.read_csv(team.features)
    folder = make_images(tmp_path / "images", list(found.items))
    options = TrainOptions(epochs=1, image_size=8, group="patient", gold="truth")
    with pytest.raises(cl.CredalError, match=r"images have no column 'patient'. To fix: give"):
        train_run(tmp_path / "run", found, folder, options)
    renamed = pl.col("item").str.replace("^", "/data/local-files/?d=") + ".png"
    table.with_columns(renamed).reverse().write_csv(tmp_path / "items.csv")
    columns = read_item_columns(tmp_path / "items.csv", options.columns)
    run = train_run(tmp_path / "run", found, folder, options, columns=columns, verbose=False)
    assert run.items["group"].to_list() == table["patient"].to_list()
    assert run.items["truth"].to_list() == table["truth"].to_list()
    splits = run.items.group_by("group").agg(pl.col("split").n_unique())
    assert splits["split"].to_list() == [1] * 12
    own = TrainOptions(epochs=1, image_size=8, split="part")
    columns = read_item_columns(team.features, own.columns)
    run = train_run(tmp_path / "own", found, folder, own, columns=columns, verbose=False)
    assert run.items["split"].to_list() == table["part"].to_list()


def test_a_failed_training_leaves_an_older_run(team: Team, tmp_path: Path) -> None:
    run = train(tmp_path / "run", team)
    (run.path / "guarantee.json").write_text("{}")
    before = snapshot(tmp_path)
    with (
        full_disk(2_000),
        pytest.raises(cl.CredalError, match=r"run cannot be written: .*To "),
    ):
        train(run.path, team, random_state=1, overwrite=True)
    assert snapshot(tmp_path) == before
    said = r"must be one of 'mlp', .*'timm:NAME'; got 'resnet1'. To fix: name one of them"
    with pytest.raises(cl.CredalError, match=said) as caught:
        train(run.path, team, backbone="resnet1", overwrite=True)
    assert "torch.nn" not in str(caught.value)  # which nobody can give to a command
    assert snapshot(tmp_path) == before
    with pytest.raises(cl.CredalError, match=r"run holds a rule, .* give --overwrite"):
        train(run.path, team, random_state=1)
    assert snapshot(tmp_path) == before
    train(run.path, team, random_state=1, overwrite=True)
    assert Run.load(run.path).facts.options.random_state == 1
    assert not (run.path / "guarantee.json").exists()  # it was about another model


def test_a_full_disk_in_any_file_leaves_nothing_half_written(team: Team, tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", team)
    sizes = {path.stat().st_size for path in whole.path.rglob("*") if path.is_file()}
    for most in sorted(sizes):
        said = r"/run cannot be written: .* name another folder with --output\.$"
        with full_disk(most - 1), pytest.raises(cl.CredalError, match=said):
            train(tmp_path / "run", team)
        assert not (tmp_path / "run").exists()
    run = train(tmp_path / "run", team)
    assert weights(run) == weights(whole)
    assert not partial_of(run.path).exists()


def test_a_killed_training_goes_on_to_the_same_weights(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = train_arguments(team, "--epochs", "60", "-o", tmp_path / "run")
    command = [sys.executable, "-m", "credalearn", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while time.monotonic() < until and not list(
        partial_of(tmp_path / "run").glob("resume-*.safetensors")
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"
    assert not (tmp_path / "run").exists()
    with pytest.raises(cl.CredalError, match=r"no finished run .*goes on where it stopped"):
        Run.load(tmp_path / "run")
    done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    assert "resum" in done.err
    assert not partial_of(tmp_path / "run").exists()
    never = train(tmp_path / "never", team, epochs=60)
    run = Run.load(tmp_path / "run")
    assert weights(run) == weights(never)
    assert run.predictions.equals(never.predictions)
    assert len(run.facts.loss_curve) == 60


def test_options_beside_the_training_do_not_start_it_anew(
    team: Team,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cl.CredalClassifier, "save", stop)
        in_process(capsys, *train_arguments(team, "-o", tmp_path / "run", "--device", "cpu"))
    kept = list(partial_of(tmp_path / "run").glob("resume-*.safetensors"))
    more = ("--skip-missing", "--gold", "truth", "--device", "cpu:0")
    trained: list[Path] = []
    fit = cl.CredalClassifier.fit

    def seen(clf: cl.CredalClassifier, *args: Any, **options: Any) -> cl.CredalClassifier:
        trained.append(Path(str(clf.checkpoint)))
        return fit(clf, *args, **options)

    monkeypatch.setattr(cl.CredalClassifier, "fit", seen)
    done = in_process(capsys, *train_arguments(team, "-o", tmp_path / "run", *more))
    assert done.code == 0, done.err
    assert trained == kept
    in_process(capsys, *train_arguments(team, "-o", tmp_path / "run", "--random-state", "1"))
    assert trained[1] != trained[0]


def test_who_stops_a_training_is_told_that_it_goes_on(
    team: Team,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    arguments = train_arguments(team, "-o", tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(cl.CredalClassifier, "fit", stop)
        done = in_process(capsys, *arguments)
    assert done.code == 130
    assert "credalearn: stopped; nothing was written" in done.err
    assert not (tmp_path / "run").exists()
    with monkeypatch.context() as patch:
        patch.setattr(cl.CredalClassifier, "save", stop)
        done = in_process(capsys, *arguments)
    assert done.code == 130
    assert "credalearn: stopped; the same command goes on where it stopped" in done.err
    assert done.err.count("stopped;") == 1
    done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    assert "resum" in done.err


def test_other_options_after_a_kill_start_anew(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training, "write_tables", kill)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", team)
    assert partial_of(tmp_path / "run").is_dir()
    run = train(tmp_path / "run", team, epochs=3)
    assert len(run.facts.loss_curve) == 3
    assert weights(run) == weights(train(tmp_path / "other", team, epochs=3))


def test_killed_while_an_older_run_is_replaced(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(tmp_path / "run", team)

    def kill(self: Path, target: Path) -> None:
        if target == run.path / "items.parquet":
            raise KeyboardInterrupt
        move(self, target)

    move = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        with pytest.raises(KeyboardInterrupt):
            train(run.path, team, random_state=1)
    with pytest.raises(cl.CredalError, match=r"run.json is missing. To fix: give the train comm"):
        Run.load(run.path)
    with monkeypatch.context() as patch:  # nothing is trained again
        patch.setattr("credalearn.train.loop._epoch", kill)
        again = train(run.path, team, random_state=1)
    assert weights(again) == weights(train(tmp_path / "other", team, random_state=1))
    assert not partial_of(run.path).exists()


def test_a_class_that_training_never_sees_is_refused(team: Team, tmp_path: Path) -> None:
    split = pl.read_csv(team.features)
    owls = pl.read_csv(team.votes).filter(pl.col("label") == "owl")["item"].unique().to_list()
    part = (
        pl.when(pl.col("item").is_in(owls)).then(pl.lit("test")).otherwise(pl.col("part"))
    ).alias("part")
    split.with_columns(part).write_csv(tmp_path / "features.csv")
    (tmp_path / "votes.csv").write_bytes(team.votes.read_bytes())
    with pytest.raises(
        cl.CredalError, match=rf"training split was called 'owl' in .*votes.csv, and {len(owls)} of"
    ):
        train(tmp_path / "run", Team(tmp_path), split="part")


def test_nothing_of_a_killed_checkpoint_or_an_older_model_stays(team: Team, tmp_path: Path) -> None:
    half = partial_of(tmp_path / "run") / ".resume-0123.safetensors.partial"
    half.parent.mkdir()
    half.write_bytes(b"half of it")
    run = train(tmp_path / "run", team)
    assert not list(run.path.glob(".*"))
    card = run.path / "model" / CARD
    for text, stays in ((CARD_MARK, False), ("# Mine", True)):
        card.write_text(text)
        train(run.path, team, random_state=1)
        assert card.exists() == stays
