"""A trained model on newly annotated items: what is left out, split, written and refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import credalearn as cl
from credalearn import CredalError
from credalearn.app.item_stream import known_items
from credalearn.app.run import Run
from report_pages import page_of, words_of
from team_files import Team, make_images, make_team, snapshot, team_data


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with groups and a guarantee; do not change it."""
    team = make_team(tmp_path_factory.mktemp("old"), num_items=300)
    run = cl.Run.train(team_data(team, group="patient"), team.run)
    run.certify(max_error=0.3, method="learn-then-test")
    return run


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Newly annotated items of new patients; do not change them."""
    team = make_team(tmp_path_factory.mktemp("later"), num_items=120, random_state=4)
    for path in (team.votes, team.features):
        table = pl.read_csv(path).with_columns(item="new-" + pl.col("item"))
        if "patient" in table.columns:
            table = table.with_columns(patient="q" + pl.col("patient"))
        table.write_csv(path)
    return team


def test_new_items_calibrate_and_test_half_and_half(old: Run, later: Team, tmp_path: Path) -> None:
    before = snapshot(old.path)
    found = old.recalibrate(later.votes, tmp_path / "new", features=later.features, group="patient")
    new = found.run
    assert snapshot(old.path) == before
    assert new.facts.splits == {"calibration": 60, "test": 60}
    assert new.facts.recalibrated_from == old.training
    assert new.facts.sha256["model"] == old.facts.sha256["model"]
    assert new.facts.options == old.facts.options
    assert (new.guarantee, new.requests) == (None, ())
    features = pl.read_csv(later.features)
    pred = old.load_model().predict_credal(features.select("size", "weight").to_numpy())
    table = new.held_out(score="lower-probability")
    assert table["item"].to_list() == features["item"].to_list()
    np.testing.assert_allclose(table["score"], pred.score("lower-probability"), atol=1e-6)
    groups = new.items.filter(split="calibration")["group"]
    assert not set(groups) & set(new.items.filter(split="test")["group"])
    assert len(found.lines) <= 8
    said = f"These are items of {old.path}, where the model was trained, not the new items above."
    assert said in words_of(page_of(new), "quality")
    assert "where the model was trained" not in page_of(old, output=tmp_path / "old.html")
    assert (
        found.lines[-1]
        == f"Next: credalearn certify {new.path} --max-error 0.3 --method learn-then-test"
    )


@pytest.mark.parametrize("name", ["ticket", "id"])
def test_the_column_of_items_is_remembered(later: Team, tmp_path: Path, name: str) -> None:
    first = make_team(tmp_path / "first", num_items=60)
    before, after = (
        [pl.read_csv(path).rename({"item": name}) for path in (team.votes, team.features)]
        for team in (first, later)
    )
    votes = cl.read_annotations(before[0], item=name)
    data = cl.Dataset(votes, features=before[1], item=name, drop=("patient",))
    run = cl.Run.train(data, tmp_path / "run")
    new = run.recalibrate(after[0], tmp_path / "new", features=after[1])
    assert new.run.facts.splits == {"calibration": 60, "test": 60}
    # Label Studio numbers its tasks as "id", next to the item.
    tasks = [
        {
            "id": number,
            "data": {"item": item},
            "annotations": [{"completed_by": 1, "result": [{"value": {"choices": [label]}}]}],
        }
        for number, (item, label) in enumerate(dict(after[0].select(name, "label").rows()).items())
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    given = {"features": after[1]} | ({"item": name} if name == "ticket" else {})
    again = run.recalibrate(tmp_path / "tasks.json", tmp_path / "again", **given)
    assert again.run.facts.splits == {"calibration": 60, "test": 60}


def test_training_items_are_left_out_by_content(old: Run, later: Team, tmp_path: Path) -> None:
    known = pl.read_csv(old.facts.inputs.path).head(100)
    votes = pl.read_csv(old.facts.annotations.path).filter(pl.col("item").is_in(known["item"]))
    name, group = "renamed-" + pl.col("item"), "q" + pl.col("patient")
    both = pl.concat([pl.read_csv(later.features), known.with_columns(item=name, patient=group)])
    both.write_csv(tmp_path / "features.csv")
    new_votes = pl.concat([pl.read_csv(later.votes), votes.with_columns(item=name)])
    found = old.recalibrate(
        new_votes, tmp_path / "new", features=tmp_path / "features.csv", group="patient"
    )
    trained = set(old.items.filter(split="train")["item"]) & set(known["item"])
    why = "that the model was trained on"
    assert found.facts["left_out"] == {why: len(trained)}
    assert found.facts["drift"]["items"] == 120  # of those, new to the old run
    assert found.lines[0].startswith(f"Left out: {len(trained)} items {why}. Not new, ")
    assert len(found.shared) == 100 - len(trained)
    names = set(found.run.held_out()["item"])
    assert not names & {f"renamed-{item}" for item in trained}
    assert len(names) == 220 - len(trained)


def test_a_group_is_known_by_its_longer_name(old: Run, later: Team, tmp_path: Path) -> None:
    longer = {"data.patient": pl.col("patient").str.strip_prefix("q")}
    table = pl.read_csv(later.features).with_columns(**longer).drop("patient")
    found = old.recalibrate(later.votes, tmp_path / "new", features=table, group="data.patient")
    trained = table["data.patient"].is_in(old.items.filter(split="train")["group"].to_list()).sum()
    assert found.run.lost_group == ""
    assert found.facts["left_out"] == {"whose patient the model was trained on": trained}


def test_requests_count_where_items_have_answered_them(old: Run, tmp_path: Path) -> None:
    """The whole export again: the old calibration items calibrate once more."""
    given = {"features": old.facts.inputs.path, "group": "patient"}
    found = old.recalibrate(old.facts.annotations.path, tmp_path / "new", **given)
    again = Run.load(tmp_path / "new")
    assert [each.risk for each in again.requests] == [each.risk for each in old.requests]
    shared = found.facts["shared_items"]
    said = f"test items of {old.path}: {len(shared)} items, '{shared[0]}', "
    assert said in found.lines[0]
    assert "The requests of that run count here, too. To fix: leave them out" in found.lines[0]
    assert found.lines[-1].endswith(" --again")
    with pytest.raises(
        CredalError, match=r"also calibrated .* answered a request"
    ):  # even the same
        again.certify(max_error=0.3, method="learn-then-test")
    promised = again.certify(max_error=0.3, method="learn-then-test", again=True).guarantee
    assert promised is not None
    assert [promised.requests, promised.confidence] == pytest.approx([2, 0.925])


def test_a_split_of_ones_own_and_gold_labels(old: Run, later: Team, tmp_path: Path) -> None:
    features = pl.read_csv(later.features)
    part = ["calibration"] * 100 + ["test"] * 20
    features = features.with_columns(part=pl.Series(part))
    new = old.recalibrate(
        later.votes, tmp_path / "new", features=features, split="part", gold="truth"
    ).run
    assert new.facts.splits == {"calibration": 100, "test": 20}
    assert new.truth == "gold"
    assert new.held_out()["truth"].to_list() == features["truth"].to_list()


def test_images_are_resized_as_in_training(tmp_path: Path) -> None:
    team = make_team(tmp_path)
    names = [f"x{number:03d}" for number in range(60)]
    photos = make_images(tmp_path / "photos", names)
    votes = cl.read_annotations(team.votes)
    old = cl.Run.train(cl.Dataset(votes, images=photos, image_size=8), tmp_path / "run", epochs=1)
    others = make_images(tmp_path / "others", names, random_state=1)
    new = old.recalibrate(votes, tmp_path / "new", images=others).run
    assert new.facts.inputs.image_size == 8
    assert len(new.held_out()) == 60
    with pytest.raises(CredalError, match=r"takes images\. To fix: pass images="):
        old.recalibrate(votes, tmp_path / "again", features=team.features)


def test_rejects_other_classes(old: Run, later: Team, tmp_path: Path) -> None:
    votes = pl.read_csv(later.votes).with_columns(pl.col("label").replace("owl", "fox"))
    with pytest.raises(CredalError, match="fox"):
        old.recalibrate(votes, tmp_path / "new", features=later.features)
    with pytest.raises(CredalError, match=r"has the classes .*'fox'.*; those of .* 'owl'"):
        old.recalibrate(cl.read_annotations(votes), tmp_path / "new", features=later.features)


def test_existing_runs_are_not_replaced(old: Run, later: Team, tmp_path: Path) -> None:
    features = {"features": later.features}
    for folder in (old.path, old.path / "new"):
        with pytest.raises(CredalError, match=r"is in the run .* To fix: choose another folder"):
            old.recalibrate(later.votes, folder, **features)
    old.recalibrate(later.votes, tmp_path / "new", **features)
    before = snapshot(tmp_path)
    with pytest.raises(CredalError, match=r"new contains a run\. To fix: choose a new folder"):
        old.recalibrate(later.votes, tmp_path / "new", **features)
    assert snapshot(tmp_path) == before


def test_equal_features_need_equal_names_where_many_items_share_them(old: Run) -> None:
    items, digests = old.items["item"].to_list(), old.items["digest"].to_list()
    trained = (old.items["split"] == "train").to_list()
    assert known_items(old, "train")(["other"] * len(items), digests) == trained
    same = replace(old, items=old.items.with_columns(digest=pl.lit("same")))
    by_name = known_items(same, "train")
    assert by_name(items, ["same"] * len(items)) == trained
    assert not any(by_name(["other"] * 3, ["same"] * 3))
    # A few that share one input, such as an empty text, leave the others as they are.
    few = ["empty"] * 5 + digests[5:]
    mixed = known_items(replace(old, items=old.items.with_columns(digest=pl.Series(few))), "train")
    assert mixed(["other"] * len(items), few) == [False] * 5 + trained[5:]
    assert mixed(items, few) == trained
