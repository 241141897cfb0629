"""A trained model on items that were annotated later: what is left out, told, kept and refused."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, fisher_exact

from credalearn._formats import percent
from credalearn.app.annotations import Annotations, read_annotations
from credalearn.app.cli import app
from credalearn.app.items.inputs import FeatureTable, read_features
from credalearn.app.joined.merging import merge
from credalearn.app.joined.options import RecalibrateOptions, TrainOptions
from credalearn.app.joined.splits import split_items
from credalearn.app.run import Run
from credalearn.app.staging import partial_of
from credalearn.app.steps.card import card
from credalearn.app.steps.certifying import certify_run
from credalearn.app.steps.predicting import predict
from credalearn.app.steps.recalibrating import known_item, read_new, recalibrate_run
from credalearn.app.steps.reporting import provenance, write_report
from credalearn.app.steps.still_holding import _promise, _rule, _telling, still_holding
from credalearn.app.steps.training import train_run
from credalearn.errors import CredalError
from credalearn.guarantees import certify
from fake_run import fake_run
from team_files import (
    Team,
    full_disk,
    in_process,
    make_images,
    make_team,
    snapshot,
    train_arguments,
)

Capture = pytest.CaptureFixture[str]
FEATURES = ["size", "weight"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """A team with a finished run, split by patient, and its rule; do not change it."""
    team = make_team(tmp_path_factory.mktemp("trained"), num_items=400)
    given = train_arguments(team, "--epochs", "15", "--group", "patient")
    app(given, standalone_mode=False)
    app(["certify", str(team.run), "--max-error", "0.15"], standalone_mode=False)
    return team


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Other items of other patients, months later; do not change it."""
    return new_team(tmp_path_factory.mktemp("later"))


def new_team(
    folder: Path, *, num_items: int = 300, random_state: int = 7, drift: bool = False
) -> Team:
    """New items; after a drift the features no longer tell what people say."""
    team = make_team(folder, num_items=num_items, random_state=random_state)
    for path in (team.votes, team.features):
        table = pl.read_csv(path).with_columns(pl.col("item").str.replace("x", "new-"))
        if "patient" in table.columns:
            table = table.with_columns(patient="new " + pl.col("patient"), note=pl.lit("text"))
            if drift:
                table = table.with_columns(size=pl.col("weight"), weight=pl.col("size"))
        table.write_csv(path)
    return team


def given(trained: Team, new: Team, output: Path, *more: object) -> list[object]:
    """The command on a team's new files."""
    return ["recalibrate", trained.run, new.votes, "--features", new.features, "-o", output, *more]


def read(team: Team, run: Run, *extra: str) -> tuple[Annotations, FeatureTable]:
    found = read_annotations(team.votes, classes=run.classes)
    return found, read_features(team.features, names=FEATURES, extra=extra)


def again(run: Run, output: Path, team: Team, **options: Any) -> Run:
    """The same in Python."""
    chosen = RecalibrateOptions(**options)
    return recalibrate_run(run, output, *read(team, run, *chosen.columns), chosen)


# The whole way


def test_the_whole_way(trained: Team, later: Team, tmp_path: Path, capsys: Capture) -> None:
    before, new = snapshot(trained.run), tmp_path / "new"
    done = in_process(capsys, *given(trained, later, new))
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[1] == "300 items, 5 annotators, 1,500 votes; classes cat, dog, owl"
    sizes = "150 calibration, 150 test"
    assert lines[-3] == f"{new}: the model of {trained.run}, not trained again; {sizes}"
    assert lines[-1] == f"next: credalearn certify {new} --max-error 0.15"
    assert snapshot(trained.run) == before
    run = Run.load(new)
    assert run.guarantee is None
    for name in ("model.safetensors", "config.json"):
        assert (new / "model" / name).read_bytes() == (trained.run / "model" / name).read_bytes()

    for arguments in (
        ["certify", new, "--max-error", "0.15", "--set-coverage", "0.9"],
        ["predict", new, trained.features, "-o", tmp_path / "d.csv"],
        ["defer", new, later.features, "-o", tmp_path / "t.json", "--threshold", "0.3"],
        ["export", new, "--onnx", tmp_path / "model.onnx"],
        ["report", new],
        ["report", new, trained.run],
    ):
        done = in_process(capsys, *arguments)
        assert done.code == 0, done.err
        if arguments[0] == "predict":
            number = Run.load(trained.run).facts.splits.train
            assert f"{number} of these items were trained on" in done.out
    assert in_process(capsys, "--help").out.count("recalibrate") == 1


def test_every_number_by_hand(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    run = again(old, tmp_path / "new", later)
    table, features = run.predictions, pl.read_csv(later.features)
    pred = old.load_model().predict_credal(features.select(FEATURES).to_numpy())
    assert table["item"].to_list() == features["item"].to_list()
    np.testing.assert_allclose(table["score"], pred.score("lower-probability"), atol=1e-6)
    votes = pl.read_csv(later.votes).pivot("label", index="item", aggregate_function="len")
    counts = votes.select(*run.classes).fill_null(0).to_numpy()
    tied = (counts == counts.max(1, keepdims=True)).sum(1) > 1
    assert tied.any()
    assert table["truth"].is_null().to_list() == tied.tolist()  # ties are there, without a truth
    wrong = pred.classes.numpy()[~tied] != counts.argmax(1)[~tied]
    assert table["wrong"].drop_nulls().to_list() == wrong.tolist()

    told = "\n".join(still_holding(old, run))
    share = f"{100 * (1 - wrong.mean()):.3g} %"
    said = f"accuracy on the {len(wrong)} new items with a single most-voted class: {share} (95 %"
    assert said in told
    tested = old.predictions.filter(split="test")["wrong"].drop_nulls().to_numpy()
    share = f"{100 * (1 - tested.mean()):.3g} %"
    assert f"; on the {len(tested)} test items of {trained.run} {share} (95 %" in told
    rows = [[each.sum(), len(each) - each.sum()] for each in (wrong, tested)]
    assert fisher_exact(rows).pvalue > 0.05
    assert "the difference may be chance; so many items tell one where accuracy is " in told

    rule = old.guarantee
    assert rule is not None
    assert rule.threshold is not None
    kept = table["score"].to_numpy() <= rule.threshold
    error = (table["wrong"].fill_null(False).to_numpy() & kept).sum() / (kept & ~tied).sum()
    assert f"keeps {100 * kept.mean():.3g} % of the 300 new items, and kept" in told
    judged = (kept & ~tied).sum()
    assert f"of the {judged} kept with a single most-voted class {100 * error:.3g} % are" in told
    assert error < 0.15
    assert "these items do not contradict its promise of at most 15 %" in told

    certified = certify_run(run, max_error=0.15).rule
    judged = table.filter((pl.col("split") == "calibration") & pl.col("wrong").is_not_null())
    among = judged.filter(pl.col("score") <= certified.threshold)
    assert (certified.num_items, certified.kept) == (len(judged), len(among))
    assert certified.errors == among["wrong"].sum()
    # With so few errors among so many, an error of 15 % is refuted at the level of 5 %.
    assert binom.cdf(certified.errors, len(among), 0.15) <= 0.05


def test_a_drift_is_told(trained: Team, tmp_path: Path, capsys: Capture) -> None:
    drifted, new = new_team(tmp_path / "drifted", drift=True), tmp_path / "new"
    done = in_process(capsys, *given(trained, drifted, new))
    assert done.code == 0, done.err
    assert "the model is right less often, more than chance makes" in done.out
    assert "its promise of at most 15 % does not hold here: with 95 % confidence" in done.out
    done = in_process(capsys, "certify", new, "--max-error", "0.15")
    assert done.code == 2
    assert "cannot be certified" in done.err


@pytest.mark.parametrize("errors", range(8, 24))
def test_a_promise_is_contradicted_where_the_exact_test_says_so(errors: int) -> None:
    told = _promise(0.1, errors, 100, binary=True)
    so_many_by_chance = binom.sf(errors - 1, 100, 0.1)
    assert ("does not hold" in told) == (so_many_by_chance < 0.05)
    assert ("may be chance" in told) == (so_many_by_chance >= 0.05 and errors > 10)
    assert ("do not contradict" in told) == (errors <= 10)


def test_other_rules_are_held_to_what_they_promise(
    trained: Team, later: Team, tmp_path: Path
) -> None:
    team = Team(tmp_path)
    for path in (trained.votes, trained.features):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    app(train_arguments(team, "--epochs", "15", "--gold", "truth"), standalone_mode=False)
    old = Run.load(team.run)
    run = again(old, tmp_path / "gold", later, gold="truth")
    votes = again(old, tmp_path / "votes", later)
    certify_run(old, capacity=0.3)
    assert still_holding(old, run)[-1] == "it promises no error"
    certify_run(old, max_error=0.3, method="conformal-risk-control")
    assert "30 % is an average over calibration sets, which one rule" in still_holding(old, run)[-1]
    told = "\n".join(still_holding(old, votes))
    assert "not alike: those were judged by the gold labels" in told
    assert "it is about the gold labels, these items have a single most-voted class" in told
    certify_run(old, max_error=0.4, against="annotator")
    number = votes.predictions.filter(pl.col("score") <= old.guarantee.threshold)  # type: ignore[union-attr]
    mean = float(np.mean(number["disagreement"].to_numpy()))
    assert f"with a vote {100 * mean:.3g} % are wrong" in still_holding(old, votes)[-2]


@pytest.mark.parametrize("number", [1, 2, 3, 12, 60])
@pytest.mark.parametrize("errors", [0, 63, 200])
def test_it_says_which_accuracy_so_many_items_would_have_told(number: int, errors: int) -> None:
    before = np.arange(241) < errors
    told = _telling(before, number)
    worse = [each for each in range(number + 1) if each / number > errors / 241]
    tables = ([[each, number - each], [errors, 241 - errors]] for each in worse)
    found = [fisher_exact(table).pvalue <= 0.05 for table in tables]
    if not any(found):
        assert told == "so few items tell none"
        return
    least = worse[found.index(True)]
    assert all(found[found.index(True) :])
    assert told.endswith(f"where accuracy is {percent(1 - least / number)} or less")


def test_an_average_over_calibration_sets_is_no_promise_of_one_rule(tmp_path: Path) -> None:
    """Every item is kept and wrong, and that does not contradict an average."""
    run = fake_run(tmp_path / "run", num_items=100)
    rule = certify([0.1] * 300, [False] * 300, max_error=0.1, method="conformal-risk-control")
    fresh = pl.DataFrame({"score": [0.1] * 40, "wrong": [True] * 40})
    assert _rule(run, run, rule, fresh)[-1] == (
        "the share kept and wrong is 100 % here; the promise of at most 10 % is an average over "
        "calibration sets, which one rule can neither keep nor break"
    )
    sure = certify([0.1] * 300, [False] * 300, max_error=0.1)
    assert "does not hold here" in _rule(run, run, sure, fresh)[-1]


# What it says of itself


def test_run_json_the_page_and_the_card_tell_the_truth(
    trained: Team, later: Team, tmp_path: Path
) -> None:
    old = Run.load(trained.run)
    run = again(old, tmp_path / "new", later)
    facts, before = run.facts, old.facts
    for name in (
        "method",
        "backbone",
        "epochs",
        "random_state",
        "loss_curve",
        "options",
        "label_rule",
    ):
        assert facts[name] == before[name]
    assert facts.annotations.path == str(later.votes)
    assert facts.inputs.path == str(later.features)
    assert facts.splits == {"calibration": 150, "test": 150, "group": None}
    source = facts.recalibrated_from
    assert source["path"] == str(trained.run)
    assert (source["created"], source["splits"]) == (before["created"], before["splits"])

    page = write_report(run).read_text()
    assert "trained with pocc, calibrated again on new items; page made" in page
    assert "150 calibration, 150 test" in page
    rows = dict(provenance(facts, "today"))
    assert rows["model trained"] == before["created"]
    assert rows["model trained on"] == str(trained.votes)
    assert rows["calibrated again"] == facts.created
    assert rows["annotations"].startswith(f"{later.votes} (")
    for label, count in pl.read_csv(later.votes)["label"].value_counts().rows():
        assert run.items[f"n:{label}"].sum() == count  # no vote of the training is among them

    model, rest = card(run).split("## Data of the training")
    training, calibration = rest.split("## Data of the calibration")
    assert "| trained |" in model
    assert f"| train items | {before['splits']['train']} |" in training
    assert "calibration items" not in training
    assert "train items" not in calibration
    assert "| calibration items | 150 |" in calibration


def test_a_second_time_from_the_new_run(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    first = again(old, tmp_path / "first", later)
    other = new_team(tmp_path / "other", num_items=40, random_state=9)
    second = again(first, tmp_path / "second", other, group="patient")
    assert second.facts.recalibrated_from == first.facts.recalibrated_from
    assert second.facts.recalibrated_from.path == str(trained.run)
    named = second.items.filter(split="train").select("item", "group")
    assert named.equals(old.items.filter(split="train").select("item", "group"))
    told = still_holding(first, again(first, tmp_path / "third", later))
    assert told == [
        f"300 of the 300 items are calibration or test items of {first.path} too: they say nothing "
        "about whether it still holds"
    ]


def test_what_it_was_trained_or_calibrated_on_is_not_overwritten(
    trained: Team, later: Team, tmp_path: Path
) -> None:
    old = Run.load(trained.run)
    run, data = again(old, tmp_path / "new", later), tmp_path / "data.csv"
    data.write_bytes(later.features.read_bytes())
    for path in (trained.features, trained.votes, later.features, later.votes):
        with pytest.raises(CredalError, match=f"{path} is what .*new was trained or calibrated on"):
            predict(run, data, path, decide=False)


def test_a_card_of_the_old_run_stays_there(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    path = old.path / "model" / "MODEL_CARD.md"
    try:
        path.write_text(card(old))
        new = again(old, tmp_path / "new", later)
        assert not (new.path / "model" / path.name).exists()
        path.write_text("# Mine")
        new = again(old, tmp_path / "other", later)
        assert (new.path / "model" / path.name).read_text() == "# Mine"
    finally:
        path.unlink()


# Items, splits and truths


def test_items_of_the_training_are_left_out(
    trained: Team, later: Team, tmp_path: Path, capsys: Capture
) -> None:
    """An export of everything: the old training items go, old calibration and test items stay."""
    old, both = Run.load(trained.run), Team(tmp_path)
    for name in ("votes.csv", "features.csv"):
        tables = [pl.read_csv(team.folder / name) for team in (trained, later)]
        pl.concat(tables, how="diagonal").sample(fraction=1, shuffle=True, seed=1).write_csv(
            tmp_path / name
        )
    done = in_process(capsys, *given(trained, both, tmp_path / "new"))
    assert done.code == 0, done.err
    number, held_out = old.facts.splits.train, len(old.predictions)
    assert f"left out: {number} items that the model was trained on" in done.out
    assert f"{held_out} of the {300 + held_out} items are calibration or test items of" in done.out
    run = Run.load(tmp_path / "new")
    assert set(run.predictions["item"]) == {
        *old.predictions["item"],
        *pl.read_csv(later.features)["item"],
    }
    done = in_process(capsys, *given(trained, both, tmp_path / "g", "--group", "patient"))
    assert done.code == 0, done.err  # no patient of the training has other items
    assert "items of one patient are alike" in done.out

    learned_from = old.items.filter(split="train")
    pl.read_csv(trained.votes).join(learned_from, on="item", how="semi").write_csv(both.votes)
    done = in_process(capsys, *given(trained, both, tmp_path / "none", "--skip-missing"))
    assert done.code == 2
    assert f"is left to calibrate on: {400 - number + 300} without annotations, {number} that" in (
        done.err
    )
    assert not (tmp_path / "none").exists()


def test_other_items_of_a_patient_that_was_trained_on_are_left_out(
    trained: Team, later: Team, tmp_path: Path
) -> None:
    old = Run.load(trained.run)
    found, inputs = read(later, old, "patient")
    known = old.items.filter(split="train")["group"][0]
    first = pl.col("patient") == inputs.extra["patient"][0]
    extra = inputs.extra.with_columns(
        patient=pl.when(first).then(pl.lit(known)).otherwise(pl.col("patient"))
    )
    inputs = FeatureTable(inputs.path, inputs.items, inputs.names, inputs.values, extra)
    run = recalibrate_run(
        old, tmp_path / "new", found, inputs, RecalibrateOptions(group="patient", random_state=3)
    )
    assert run.facts.inputs.left_out == {"whose patient the model was trained on": 5}
    items = run.items.filter(pl.col("split") != "train")
    assert len(items) == 295
    assert items.group_by("group").agg(pl.col("split").n_unique())["split"].max() == 1
    splits = run.facts.splits
    assert abs(splits["calibration"] - splits["test"]) <= 5
    alone = recalibrate_run(old, tmp_path / "alone", found, inputs)
    assert alone.facts.inputs.left_out == {}


def test_items_of_later_rounds_are_left_out(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    found, inputs = read(later, old)
    chosen = pl.col("item").is_in(list(found.items[:20]))
    votes = pl.read_csv(later.votes)
    for name, some in (("first.csv", ~chosen), ("later.csv", chosen)):
        votes.filter(some).write_csv(tmp_path / name)
    first, second = (
        read_annotations(tmp_path / name, classes=old.classes)
        for name in ("first.csv", "later.csv")
    )
    run = recalibrate_run(old, tmp_path / "new", merge(first, second), inputs)
    assert run.facts.inputs.left_out == {"of later exports, which were chosen": 20}
    assert run.facts.later_items == 0
    assert not set(run.predictions["item"]) & set(found.items[:20])


def test_the_seed_draws_the_split(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    one, same, other = (
        again(old, tmp_path / name, later, random_state=random_state).items["split"].to_list()
        for name, random_state in (("a", 0), ("b", 0), ("c", 1))
    )
    assert one == same != other


def test_a_split_of_ones_own(trained: Team, later: Team, tmp_path: Path, capsys: Capture) -> None:
    own = Team(tmp_path)
    own.votes.write_bytes(later.votes.read_bytes())
    table = pl.read_csv(later.features)
    wanted = table["part"].replace("train", "test")
    table.with_columns(part=wanted).write_csv(own.features)
    done = in_process(capsys, *given(trained, own, tmp_path / "new", "--split", "part"))
    assert done.code == 0, done.err
    assert Run.load(tmp_path / "new").predictions["split"].to_list() == wanted.to_list()
    for value, told in (
        ("train", "has 'train'; nothing is trained here. To fix: write one of calibration, test"),
        ("tset", "has 'tset'. To fix: write 'test'"),
    ):
        table.with_columns(part=wanted.replace("calibration", value)).write_csv(own.features)
        done = in_process(capsys, *given(trained, own, tmp_path / "no", "--split", "part"))
        assert done.code == 2
        place = "features.csv, line 5: a split must be one of calibration, test; item 'new-003'"
        assert place in done.err
        assert told in done.err
    table.with_columns(part=pl.lit("test")).write_csv(own.features)
    done = in_process(capsys, *given(trained, own, tmp_path / "no", "--split", "part"))
    assert "no item is in the calibration split; both are needed" in done.err
    table.with_columns(part=wanted).write_csv(own.features)
    more = ("--split", "part", "--group", "patient")
    done = in_process(capsys, *given(trained, own, tmp_path / "no", *more))
    assert "so that what is calibrated on would be tested on" in done.err


def test_gold_labels(trained: Team, later: Team, tmp_path: Path) -> None:
    run = again(Run.load(trained.run), tmp_path / "new", later, gold="truth")
    assert run.truth == "gold"
    assert run.predictions["truth"].to_list() == pl.read_csv(later.features)["truth"].to_list()


def test_few_items(trained: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    two = again(old, tmp_path / "two", new_team(tmp_path / "a", num_items=2))
    assert sorted(two.predictions["split"]) == ["calibration", "test"]
    with pytest.raises(CredalError, match="1 items in 1 groups are too few for two splits"):
        again(old, tmp_path / "one", new_team(tmp_path / "b", num_items=1))


def test_counts_where_there_were_votes(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    found, inputs = read(later, old)
    table = {name: found.counts()[:, k] for k, name in enumerate(old.classes)}
    pl.DataFrame({"item": found.items, **table}).write_csv(tmp_path / "counts.csv")
    asked = {"format": "counts"}
    counts = read_new(old, tmp_path / "counts.csv", asked)
    run = recalibrate_run(old, tmp_path / "new", counts, inputs)
    assert run.predictions.equals(again(old, tmp_path / "votes", later).predictions)
    two = pl.DataFrame({"item": found.items, **table}).drop("owl")
    two.write_csv(tmp_path / "two.csv")
    with pytest.raises(CredalError, match=r"no column of the class 'owl', which .* with 0 where"):
        read_new(old, tmp_path / "two.csv", asked)
    shares = {name: values / 5 for name, values in table.items()}
    pl.DataFrame({"item": found.items, **shares}).write_csv(tmp_path / "shares.csv")
    told = read_annotations(tmp_path / "shares.csv", classes=old.classes)
    run = recalibrate_run(old, tmp_path / "shares", told, inputs)
    assert run.said == "probabilities"
    assert "| labels | votes by the rule relax-ties |" in card(run)  # those of the training


@pytest.mark.parametrize("method", ["deep-ensemble", "mc-dropout", "laplace-bridge", "softmax"])
def test_every_kind_of_model(tmp_path: Path, method: str) -> None:
    team = make_team(tmp_path)
    drop = ("patient", "truth", "part")
    inputs = read_features(team.features, drop=drop)
    options = TrainOptions(method=method, epochs=1)
    old = train_run(team.run, read_annotations(team.votes), inputs, options, verbose=False)
    run = again(old, tmp_path / "new", new_team(tmp_path / "later", num_items=40))
    assert run.facts.method == method
    assert run.predictions.columns == old.predictions.columns
    certify_run(run, capacity=0.5)
    write_report(run)


# Images


def test_images(later: Team, tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    items = [f"x{number:03d}" for number in range(60)]
    images = make_images(tmp_path / "images", items)
    done = in_process(
        capsys, *train_arguments(team, "--images", images, "--image-size", "12", "--epochs", "1")
    )
    assert done.code == 0, done.err
    # The same folder has grown; everything goes by another name in the new export.
    make_images(images, [f"y{number}" for number in range(30)], random_state=1)
    named = pl.read_csv(team.votes).with_columns(
        item=pl.concat_str(pl.lit("/data/local-files/?d="), "item", pl.lit(".png"))
    )
    more = named.with_columns(
        pl.col("item").str.replace(r"x0(\d\d)", "y${1}").str.replace(r"y0(\d)", "y${1}")
    ).filter(pl.col("item").str.contains(r"=y[12]?\d\."))
    pl.concat([named, more]).write_csv(tmp_path / "all.csv")
    new = tmp_path / "new"
    command = ["recalibrate", team.run, tmp_path / "all.csv", "-o", new]
    done = in_process(capsys, *command, "--images", images)
    assert done.code == 0, done.err
    assert "images found: 90 by path in the address" in done.out
    assert "left out: 36 items that the model was trained on" in done.out
    run = Run.load(new)
    assert run.facts.inputs.image_size == 12
    assert run.facts.splits == {"calibration": 27, "test": 27, "group": None}
    # Copied elsewhere they are told by what they hold, also when the first are gone.
    copied = shutil.copytree(images, tmp_path / "copied")
    for gone in (False, True):
        if gone:
            images.rename(tmp_path / "moved")
        command[-1] = tmp_path / f"copied-{gone}"
        done = in_process(capsys, *command, "--images", copied)
        assert "left out: 36 items that the model was trained on" in done.out, done.err
    (tmp_path / "moved").rename(images)
    done = in_process(capsys, *command[:-1], tmp_path / "no", "--features", later.features)
    assert f"the model of {team.run} takes images, and {later.features} is given as f" in done.err
    table = pl.read_csv(team.features).with_columns(pl.col("item").str.replace("x0", "y"))
    table.with_columns(pl.col("item").str.replace(r"y0", "y")).write_csv(tmp_path / "beside.csv")
    more.write_csv(tmp_path / "more.csv")
    command = ["recalibrate", team.run, tmp_path / "more.csv", "-o", tmp_path / "gold"]
    beside = ("--images", images, "--gold", "truth", "--table", tmp_path / "beside.csv")
    done = in_process(capsys, *command, *beside)
    assert done.code == 0, done.err
    assert Run.load(tmp_path / "gold").truth == "gold"


# What does not fit


def test_an_unknown_class_is_named(
    trained: Team, later: Team, tmp_path: Path, capsys: Capture
) -> None:
    team = Team(tmp_path)
    team.features.write_bytes(later.features.read_bytes())
    team.votes.write_text(later.votes.read_text().replace("owl", "bat", 1))
    done = in_process(capsys, *given(trained, team, tmp_path / "new"))
    assert done.code == 2
    assert f"votes.csv has the class 'bat', which the model of {trained.run} does not know" in (
        done.err
    )
    assert "To fix: write 'cat'; or, if it means that people do not know, name it with" in done.err
    done = in_process(capsys, *given(trained, team, tmp_path / "new", "--unsure", "bat"))
    assert done.code == 0, done.err
    old = Run.load(trained.run)
    found = read_annotations(later.votes, classes=("owl", "dog", "cat"))
    with pytest.raises(CredalError, match="was read with the classes 'owl', 'dog', 'cat'; those"):
        recalibrate_run(old, tmp_path / "no", found, read(later, old)[1])


def test_a_class_that_nobody_sees_any_more_is_no_error(
    trained: Team, later: Team, tmp_path: Path, capsys: Capture
) -> None:
    team = Team(tmp_path)
    pl.read_csv(later.votes).filter(pl.col("label") != "owl").write_csv(team.votes)
    team.features.write_bytes(later.features.read_bytes())
    done = in_process(capsys, *given(trained, team, tmp_path / "new", "--skip-missing"))
    assert done.code == 0, done.err
    assert Run.load(tmp_path / "new").classes == ("cat", "dog", "owl")


def test_features_by_name(trained: Team, later: Team, tmp_path: Path, capsys: Capture) -> None:
    old, team = Run.load(trained.run), Team(tmp_path)
    team.votes.write_bytes(later.votes.read_bytes())
    table = pl.read_csv(later.features)
    table.select("note", "weight", "item", "size").write_csv(team.features)  # in another order
    run = again(old, tmp_path / "new", team)
    assert run.predictions.equals(again(old, tmp_path / "same", later).predictions)
    table.rename({"size": "Size"}).write_csv(team.features)
    done = in_process(capsys, *given(trained, team, tmp_path / "no"))
    assert "lacks 1 of the model's 2 features: 'size'. To fix: rename 'Size' if" in done.err
    other = read_features(later.features, drop=("note", "patient", "truth", "part", "size"))
    with pytest.raises(CredalError, match="lacks 1 of the model's 2 features: 'size'"):
        recalibrate_run(old, tmp_path / "no", read(later, old)[0], other)
    swapped = read_features(later.features, names=["weight", "size"])
    run = recalibrate_run(old, tmp_path / "swapped", read(later, old)[0], swapped)
    assert run.predictions.equals(again(old, tmp_path / "again", later).predictions)
    done = in_process(
        capsys, *given(trained, later, tmp_path / "no")[:3], "-o", tmp_path / "no", "--images", "."
    )
    assert f"the model of {trained.run} takes features, and . is given as images" in done.err
    assert not (tmp_path / "no").exists()


def test_what_cannot_be_told_is_said(
    trained: Team, later: Team, tmp_path: Path, capsys: Capture
) -> None:
    told = "he model was trained with --group patient and calibrated again without it: nothing "
    told += "tells which of the new items are of groups that it has seen"
    assert f"t{told}\n" in in_process(capsys, *given(trained, later, tmp_path / "a")).out
    run = Run.load(tmp_path / "a")
    assert f"<li>T{told}.</li>" in write_report(run).read_text()
    assert f"\n- T{told}.\n" in card(run)
    done = in_process(capsys, *given(trained, later, tmp_path / "b", "--group", "patient"))
    assert told not in done.out
    for run in (Run.load(tmp_path / "b"), Run.load(trained.run)):
        assert told not in write_report(run, output=tmp_path / "page.html").read_text() + card(run)


@pytest.mark.parametrize(("before", "now"), [("p7", "p7 "), ("7", "7.0"), ("é", "e\u0301")])
def test_groups_are_the_same_however_they_are_written(
    before: str, now: str, later: Team, tmp_path: Path
) -> None:
    team = make_team(tmp_path)
    for each, name in ((team, before), (later, now)):
        table = pl.read_csv(each.features).with_columns(patient=pl.col("patient") + "x")
        first = pl.col("patient") == table["patient"][0]
        table = table.with_columns(
            patient=pl.when(first).then(pl.lit(name)).otherwise(pl.col("patient")),
            part=pl.when(first).then(pl.lit("train")).otherwise(pl.col("part")),
        )
        table.write_csv(tmp_path / f"{each is team}.csv")
    inputs = read_features(tmp_path / "True.csv", extra=("patient",), drop=("truth", "part"))
    options = TrainOptions(epochs=1, group="patient")
    found = read_annotations(team.votes)
    random_state = next(  # one that trains on the first patient
        random_state
        for random_state in range(20)
        if split_items(
            len(inputs.items), groups=inputs.extra["patient"].to_list(), random_state=random_state
        )[0]
        == "train"
    )
    options = replace(options, random_state=random_state)
    old = train_run(team.run, found, inputs, options, verbose=False)
    fresh = read_features(tmp_path / "False.csv", names=FEATURES, extra=("patient",))
    said = read_annotations(later.votes, classes=old.classes)
    new = recalibrate_run(old, tmp_path / "new", said, fresh, RecalibrateOptions(group="patient"))
    assert new.facts.inputs.left_out == {"whose patient the model was trained on": 5}


def test_a_promise_about_one_item_of_each_group_is_held_against_such_items(
    trained: Team, tmp_path: Path, capsys: Capture
) -> None:
    shutil.copytree(trained.run, tmp_path / "run")
    old, new = Run.load(tmp_path / "run"), new_team(tmp_path / "later", drift=True)
    asked = ("--max-error", "0.4", "--confidence", "0.9", "--one-a-group")
    done = in_process(capsys, "certify", old.path, *asked)
    assert done.code == 0, done.err
    assert re.search(r"On \d\d test items", done.out)  # of 80 items one of each patient
    command = ["recalibrate", old.path, *given(trained, new, tmp_path / "a")[2:]]
    done = in_process(capsys, *command)
    assert "is about one item of each patient: to hold these items against it, give --g" in done.out
    assert "does not hold" not in done.out
    command[-1] = tmp_path / "b"
    done = in_process(capsys, *command, "--group", "patient")
    groups = pl.read_csv(new.features)["patient"].n_unique()
    assert f"of the {groups} new items" in done.out
    assert re.search(r"promise of at most 40 %|above the 40 % of its promise", done.out)
    assert done.out.splitlines()[-1].endswith("--max-error 0.4 --confidence 0.9 --one-a-group")


def test_the_column_of_the_items_is_remembered(
    trained: Team, later: Team, tmp_path: Path, capsys: Capture
) -> None:
    old, new = Team(tmp_path / "old"), Team(tmp_path / "new")
    for team, renamed in ((trained, old), (later, new)):
        renamed.folder.mkdir()
        for path in (team.votes, team.features):
            table = pl.read_csv(path).rename({"item": "msg"}).drop("truth", "part", strict=False)
            table.write_csv(renamed.folder / path.name)
    given = ("train", old.votes, "--features", old.features, "--group", "patient", "-o", old.run)
    done = in_process(capsys, *given, "--item", "msg", "--epochs", "1")
    assert done.code == 0, done.err
    again = ("recalibrate", old.run, new.votes, "--features", new.features, "-o", new.run)
    done = in_process(capsys, *again)
    assert done.code == 0, done.err
    facts = Run.load(new.run).facts
    assert facts.inputs.item == facts.annotations.item == "msg"
    export = tmp_path / "export.json"
    export.write_text('[{"id": 1, "msg": "a", "data": {"text": "msg"}}]')
    assert known_item(Run.load(old.run), export) == "msg"
    assert known_item(Run.load(trained.run), export) is None  # the item of "item" is found anyway
    write_json(old.run / "run.json", facts | {"annotations": facts.annotations | {"item": "id"}})
    assert known_item(Run.load(old.run), export) is None  # a number of the tool's own
    assert known_item(Run.load(old.run), new.votes) is None


def test_rows_without_names(trained: Team, later: Team, tmp_path: Path, capsys: Capture) -> None:
    values = pl.read_csv(later.features).select(FEATURES).to_numpy()
    team = Team(tmp_path)
    names = pl.read_csv(later.features)["item"].to_list()
    np.savez(tmp_path / "named.npz", values=values, items=names)
    command = ["recalibrate", trained.run, later.votes, "-o", tmp_path / "new", "--features"]
    done = in_process(capsys, *command, tmp_path / "named.npz")
    assert done.code == 0, done.err
    assert Run.load(tmp_path / "new").facts.inputs.features == FEATURES
    np.save(tmp_path / "rows.npy", values)
    command[2:5] = [team.votes, "-o", tmp_path / "no"]
    rows = pl.col("item").str.replace("new-", "").cast(pl.Int64)
    pl.read_csv(later.votes).with_columns(rows).write_csv(team.votes)
    items = shutil.copytree(trained.run, tmp_path / "old") / "items.parquet"
    alike = pl.read_parquet(items).with_columns(digest=pl.lit("1"))  # where features tell little
    alike.write_parquet(items)
    done = in_process(capsys, "recalibrate", items.parent, *command[2:], tmp_path / "rows.npy")
    assert "rows.npy have no names, so nothing tells which of them the model was" in done.err
    np.save(tmp_path / "wide.npy", np.hstack([values, values]))
    done = in_process(capsys, *command, tmp_path / "wide.npy")
    assert "holds 4 features an item; this model takes 2" in done.err


def test_no_run_is_overwritten(trained: Team, later: Team, tmp_path: Path, capsys: Capture) -> None:
    before = snapshot(trained.folder)
    for output, told in (
        (trained.run, "is the run"),
        (trained.run / "new", "lies in the run"),
        (trained.run / ".." / "run", "is the run"),
    ):
        done = in_process(capsys, *given(trained, later, output))
        assert done.code == 2
        assert f"{output} {told} {trained.run}. To fix: name a folder beside it" in done.err
    assert snapshot(trained.folder) == before
    new = tmp_path / "new"
    assert in_process(capsys, *given(trained, later, new)).code == 0
    done = in_process(capsys, *given(trained, later, new))
    assert f"{new} holds a finished run. To fix: name a new folder" in done.err
    waiting = partial_of(tmp_path / "half") / "resume-12.safetensors"
    waiting.parent.mkdir()
    waiting.touch()
    done = in_process(capsys, *given(trained, later, tmp_path / "half"))
    assert "a training that was stopped waits at" in done.err
    assert waiting.exists()


def test_a_full_disk_leaves_nothing(trained: Team, later: Team, tmp_path: Path) -> None:
    old = Run.load(trained.run)
    found, inputs = read(later, old)
    with full_disk(2_000), pytest.raises(CredalError, match="cannot be written"):
        recalibrate_run(old, tmp_path / "new", found, inputs)
    assert not list(tmp_path.iterdir())
    assert recalibrate_run(old, tmp_path / "new", found, inputs).facts.method == "pocc"


def test_a_damaged_run_is_told(trained: Team, later: Team, tmp_path: Path, capsys: Capture) -> None:
    done = in_process(capsys, "recalibrate", tmp_path, later.votes, "-o", "x", "--features", "f")
    assert "run.json is missing" in done.err
    done = in_process(capsys, "recalibrate", trained.run, later.votes, "-o", tmp_path / "new")
    assert "give one of --features and --images" in done.err
    broken = shutil.copytree(trained.run, tmp_path / "broken")
    (broken / "run.json").write_text('{"classes"')
    done = in_process(capsys, "recalibrate", broken, later.votes, "-o", "x", "--features", "f")
    assert f"{broken / 'run.json'} cannot be read: " in done.err
    assert done.err.endswith("To fix: train again.\n")


def test_votes_with_an_id_of_their_own_go_by_the_better_name(tmp_path: Path) -> None:
    """The votes and the features of a run may call the item otherwise, each in its own file."""
    run = fake_run(tmp_path / "run", num_items=20)
    facts = run.facts
    facts.annotations.item = "id"
    write_json(run.path / "run.json", facts)
    votes = tmp_path / "votes.csv"
    votes.write_text("id,item,annotator,label\n1,x,ann,cat\n2,x,bo,dog\n")
    assert known_item(Run.load(run.path), votes) is None


def test_the_features_keep_their_own_column_of_items(tmp_path: Path, capsys: Capture) -> None:
    old, new = make_team(tmp_path / "old"), make_team(tmp_path / "new", random_state=1)
    for team in (old, new):
        votes, table = (pl.read_csv(path) for path in (team.votes, team.features))
        votes.rename({"item": "task"}).write_csv(team.votes)
        table.with_columns(pl.lit(0).alias("task")).write_csv(team.features)
    assert in_process(capsys, *train_arguments(old, "--drop", "task")).code == 0
    where = ("--features", new.features, "-o", tmp_path / "again")
    done = in_process(capsys, "recalibrate", old.run, new.votes, *where)
    assert (done.code, done.err) == (0, "")


def test_arrays_that_training_was_told_of_name_no_items(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    table = pl.read_csv(team.features)
    votes = pl.read_csv(team.votes).with_columns(pl.col("item").str.slice(1).cast(int))
    votes.write_csv(team.votes)
    rows, more = tmp_path / "rows.npz", tmp_path / "more.npz"
    values, patient = table.select(FEATURES).to_numpy(), table["patient"].to_numpy().astype(str)
    notes = np.full(len(table), "a remark")
    np.savez(rows, features=values, note=notes, patient=patient)
    np.savez(more, features=values + 0.01, note=notes, patient=np.char.add("new ", patient))
    asked = ("--features", rows, "--drop", "note", "--group", "patient", "--epochs", 2)
    assert in_process(capsys, "train", team.votes, *asked, "-o", team.run).code == 0
    given = ("--no-decision", "-o", tmp_path / "decided.csv")
    assert in_process(capsys, "predict", team.run, more, *given).code == 0
    assert pl.read_csv(tmp_path / "decided.csv")["item"].to_list() == list(range(len(table)))
    where = ("--features", more, "-o", tmp_path / "again")
    assert in_process(capsys, "recalibrate", team.run, team.votes, *where).code == 0
