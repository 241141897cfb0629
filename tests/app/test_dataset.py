"""The noun Dataset: items joined with inputs, groups, gold labels and a split."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import credalearn as cl
from credalearn.app.annotations.merge import merge
from credalearn.app.dataset import Dataset
from made_annotations import votes_of
from present import present
from team_files import CLASSES, Team, make_images, make_team, team_data


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return make_team(tmp_path_factory.mktemp("team"))


def test_items_are_joined_by_name_in_the_order_of_the_votes(team: Team) -> None:
    table = pl.read_csv(team.features).reverse()
    data = Dataset(cl.read_annotations(team.votes), features=table.select("weight", "item", "size"))
    assert data.items == [f"x{number:03d}" for number in range(60)]
    wanted = pl.read_csv(team.features).select("weight", "size").to_numpy()
    assert (wanted == data.X).all()
    assert data.counts.sum(1).tolist() == [5] * 60
    assert data.inputs.features == ("weight", "size")


def test_tables_have_a_row_per_item(team: Team) -> None:
    data = team_data(team, group="patient", gold="truth").split()
    table = data.to_polars()
    assert table.columns[:5] == ["item", "split", "group", "truth", "digest"]
    assert table["truth"].to_list() == pl.read_csv(team.features)["truth"].to_list()
    assert table["size"].to_list() == np.asarray(data.X)[:, 0].tolist()
    assert set(table["split"]) == {"train", "calibration", "test"}
    frame = data.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["n:cat"].tolist() == data.counts[:, 0].tolist()
    assert data.lines[0] == "60 items with features size, weight; 12 groups by patient"
    assert team_data(team).to_polars()["split"].null_count() == 60


def test_items_without_counterpart_are_refused_or_left_out(tmp_path: Path) -> None:
    votes = votes_of([("a", "ann", "cat"), ("b", "ann", "dog")])
    features = pl.DataFrame({"item": ["b", "c", "d"], "size": [1.0, 2.0, 3.0]})
    with pytest.raises(cl.CredalError, match=r"1 of 2 items has no features in .*'a'.*skip_mis"):
        Dataset(votes, features=features)
    with pytest.raises(cl.CredalError, match=r"2 of 3 items have no annotations in .*: 'c', 'd'"):
        Dataset(votes_of([("b", "ann", "cat"), ("b", "bo", "dog")]), features=features)
    data = Dataset(votes, features=features, skip_missing=True)
    assert data.items == ["b"]
    assert repr(data) == "Dataset(1 item with features)"
    assert repr(votes).startswith("Annotations('votes', 2 items, 2 classes, from '")
    assert data.inputs.left_out == {"without features": 1, "without annotations": 2}
    with pytest.raises(
        cl.CredalError, match=r"are 'a', 'b'; those of the table of features are 'x'.*item="
    ):
        Dataset(votes, features=pl.DataFrame({"item": ["x"], "size": [1.0]}))
    np.save(tmp_path / "f.npy", np.eye(2))
    with pytest.raises(cl.CredalError, match=r"npy are '0', '1'\. To fix: save an .npz with"):
        Dataset(votes, features=tmp_path / "f.npy")
    with pytest.raises(cl.CredalError, match=r"must contain numbers; it has the dtype object"):
        Dataset(votes, features=features.to_numpy())


def test_items_are_found_under_the_field_of_a_tool_and_in_every_file() -> None:
    first = pl.DataFrame({"data.key_of": ["a", "b"], "label": ["cat", "dog"]})
    later = first.with_columns(pl.Series("data.key_of", ["c", "d"]))
    table = pl.DataFrame({"key_of": ["a", "b"], "size": [1.0, 2.0]})
    votes = cl.read_annotations(first, item="data.key_of")
    assert Dataset(votes, features=table).items == ["a", "b"]
    other = table.rename({"key_of": "item"}).with_columns(pl.Series("twin.key_of", ["b", "a"]))
    data = Dataset(votes, features=other, drop=("twin.key_of",))
    assert np.ravel(data.X).tolist() == [1.0, 2.0]  # named by "item", not by the twin
    votes = cl.read_annotations(first, item="data.key_of", merge=later)
    with pytest.raises(cl.CredalError, match=r"no item of .* has features .* are 'c', 'd';"):
        Dataset(votes, features=table, skip_missing=True)


@pytest.mark.parametrize("counted", [False, True])
def test_items_without_a_vote_have_no_annotation(counted: bool) -> None:
    table = pl.DataFrame({"item": ["a", "b", "c"], "cat": [1, 0, 0], "dog": [1, 0, 2]})
    votes = cl.read_annotations(table, format="counts")
    if not counted:
        rows = [("a", "cat"), ("a", "dog"), ("b", None), ("c", "dog"), ("c", "dog")]
        votes = cl.read_annotations(pl.DataFrame(rows, schema=["item", "label"], orient="row"))
    assert votes.items == ("a", "b", "c")
    features = pl.DataFrame({"item": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]})
    with pytest.raises(cl.CredalError, match=r"1 of 3 items has no annotations in .*: 'b'"):
        Dataset(votes, features=features)
    data = Dataset(votes, features=features, skip_missing=True)
    assert data.items == ["a", "c"]
    assert data.inputs.left_out == {"without annotations": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "f.csv", "text": "t"}, "Pass only one of text=, features= and images="),
        ({"images": Path("img"), "drop": ("a",)}, "drop must be left out without features"),
        ({"features": "f.csv", "random_state": -1}, "random_state must be 0 or more; got -1"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        Dataset(votes_of([("a", "ann", "cat"), ("a", "bo", "dog")]), **options)


def test_a_table_of_votes_is_not_annotations() -> None:
    table: Any = pl.DataFrame({"item": ["a"], "label": ["cat"]})
    with pytest.raises(cl.CredalError, match=r"got DataFrame.*read_annotations"):
        Dataset(table, features=table)


def test_gold_labels_are_classes() -> None:
    votes = votes_of([("a", "ann", "cat"), ("b", "ann", "dog"), ("c", "ann", "dog")])
    table = pl.DataFrame({"item": ["a", "b", "c"], "size": [1, 2, 3], "is": ["dog ", None, "cat"]})
    assert Dataset(votes, features=table, gold="is").truth.tolist() == [1, -1, 0]
    merged = cl.read_annotations(votes.table.drop("weight"), map=("cat,kitten=feline dog=canine",))
    kitten = table.with_columns(pl.Series("is", ["kitten", None, "feline"]))
    assert Dataset(merged, features=kitten, gold="is").truth.tolist() == [0, -1, 0]
    # Gold labels that are classes already, as in ConvAbuse, where label 1 is class 0.
    rated = pl.DataFrame({"item": ["a", "b", "c"], "label": ["-2", "1", "0"]})
    abuse = cl.read_annotations(rated, map=("-3,-2,-1=1 0,1=0",))
    hard = table.with_columns(pl.Series("is", ["1", "0", "0"]))
    found = Dataset(abuse, features=hard, gold="is")
    assert [abuse.classes[index] for index in found.truth] == ["1", "0", "0"]
    wrong = table.with_columns(pl.Series("is", ["dogg", None, "cat"]))
    with pytest.raises(cl.CredalError, match=r"row 1: the gold label of item 'a' .* got 'dogg'"):
        Dataset(votes, features=wrong, gold="is")
    empty = table.with_columns(pl.Series("is", ["", None, " "]))
    with pytest.raises(cl.CredalError, match=r"no item has a gold label in 'is'"):
        Dataset(votes, features=empty, gold="is")


def test_the_users_own_split_is_kept(team: Team) -> None:
    data = team_data(team, split="part").split()
    assert present(data.part).tolist() == pl.read_csv(team.features)["part"].to_list()
    with pytest.raises(cl.CredalError, match=r"line 5: 'p0' is in two splits, 'train' and 'cal"):
        team_data(team, split="part", group="patient").split()


def test_items_may_be_their_own_groups(team: Team) -> None:
    data = team_data(team, group="item")
    assert data.groups == data.items


@settings(max_examples=20)
@given(st.integers(0, 99), st.booleans())
def test_later_rounds_are_trained_on_only(random_state: int, grouped: bool) -> None:
    random = np.random.default_rng(random_state)
    items = [f"x{number}" for number in range(40)]
    group = random.integers(0, 12, size=40)
    label = random.choice(["cat", "dog"], size=40)
    rows = list(zip(items, ["ann"] * 40, label, strict=True))
    votes = merge(votes_of(rows[:30]), votes_of([*rows[30:], ("x0", "bo", "cat")]))
    table = pl.DataFrame({"item": items, "size": range(40), "of": [f"g{each}" for each in group]})
    options: dict[str, Any] = {"group": "of"} if grouped else {"drop": ("of",)}
    data = Dataset(votes, features=table, random_state=random_state, **options)
    assert data.later.tolist() == [False] * 30 + [True] * 10
    found = data.split()
    split = dict(zip(found.items, present(found.part), strict=True))
    assert {split[item] for item in items[30:] if item in split} <= {"train"}
    first = Dataset(votes_of(rows[:30]), features=table[:30], random_state=random_state, **options)
    assert first.split().part.tolist() == [split[item] for item in items[:30]]  # type: ignore[union-attr]
    left_out = len(items) - len(found.items)
    assert sum(found.inputs.left_out.values()) == left_out
    if grouped:
        held_out = {group[number] for number in range(30) if split[items[number]] != "train"}
        assert left_out == sum(group[number] in held_out for number in range(30, 40))
    halves = data.split(("calibration", "test"))
    assert halves.items == items[:30]


# Images


def test_images_keep_groups_splits_and_gold_labels(team: Team, tmp_path: Path) -> None:
    votes, table = cl.read_annotations(team.votes), pl.read_csv(team.features)
    folder = make_images(tmp_path / "images", list(votes.items))
    with pytest.raises(cl.CredalError, match=r"images have no column 'patient'.*table='votes.csv'"):
        Dataset(votes, images=folder, group="patient")
    other_names = pl.col("item").str.replace("^", "/data/local-files/?d=") + ".png"
    for renamed in (table, table.with_columns(other_names).reverse()):
        data = Dataset(
            votes, images=folder, table=renamed, image_size=8, group="patient", gold="truth"
        )
        assert data.X.shape == (60, 3, 8, 8)
        assert data.X.dtype == np.float32
        assert data.groups == table["patient"].to_list()
        assert [CLASSES[index] for index in data.truth] == table["truth"].to_list()
    with pytest.raises(cl.CredalError, match=r"10 of 60 items have no row in"):
        Dataset(votes, images=folder, table=table[10:], group="patient")
    twice = pl.concat([table, table[:1].with_columns(patient=pl.lit("p9"))])
    with pytest.raises(cl.CredalError, match=r"row 61: item 'x000' has 'p9' .* here and 'p0'"):
        Dataset(votes, images=folder, table=twice, group="patient")


def test_equal_images_are_in_one_split(team: Team, tmp_path: Path) -> None:
    votes = cl.read_annotations(team.votes)
    folder = make_images(tmp_path / "images", list(votes.items), size=8)
    for number in range(0, 60, 2):  # every second image is the one before it
        copy = folder / f"x{number + 1:03d}.png"
        copy.write_bytes((folder / f"x{number:03d}.png").read_bytes())
    data = Dataset(votes, images=folder, image_size=8).split()
    assert data.part is not None
    assert len(set(data.digests)) == 30
    assert (data.part[::2] == data.part[1::2]).all()


@pytest.mark.catches("app/_split.py", "held = set(groups[unvoted])", "held = set(groups[~unvoted])")
def test_gold_labeled_items_without_votes_calibrate_and_test(team: Team, tmp_path: Path) -> None:
    table = pl.read_csv(team.features)
    votes, features = pl.read_csv(team.votes), table.select("item", "size", "weight")
    voted = votes.filter(pl.col("item") < "x030")
    gold = table.select("item", gold="truth").filter(pl.col("item") >= "x030")
    gold.write_csv(tmp_path / "gold.csv")
    found = Dataset(cl.read_annotations(voted), features=features, gold=str(tmp_path / "gold.csv"))
    assert found.truth_source == "gold"
    assert found.unvoted.tolist() == [False] * 30 + [True] * 30
    assert found.counts[30:].sum() == 0
    data = found.split()
    assert data.part is not None
    assert (data.part[:30] == "train").all()
    assert set(data.part[30:]) == {"calibration", "test"}
    assert (data.truth[:30] == -1).all()
    assert [CLASSES[index] for index in data.truth[30:]] == gold["gold"].to_list()
    note = "30 items with a gold label and no votes: for calibration and test only"
    assert note in data.lines
    grouped = features.join(table.select("item", "patient"), on="item")
    grouped = grouped.with_columns(patient=pl.col("patient").replace("p6", "p5"))
    held = Dataset(cl.read_annotations(voted), features=grouped, gold=gold, group="patient").split()
    assert "train" not in present(held.part)[25:]  # patient p5 has items of both kinds
    one = grouped.with_columns(patient=pl.lit("p0"))
    alone = Dataset(cl.read_annotations(voted), features=one, gold=gold, group="patient")
    with pytest.raises(cl.CredalError, match=r"no item is left to train on"):
        alone.split()


def test_a_few_items_without_votes_do_not_calibrate_alone(team: Team) -> None:
    table = pl.read_csv(team.features).drop("patient", "part")
    voted = cl.read_annotations(pl.read_csv(team.votes).filter(pl.col("item") < "x055"))
    data = Dataset(voted, features=table, gold="truth").split()
    assert data.part is not None
    assert set(data.part[55:]) == {"calibration", "test"}
    sizes = [(data.part == name).sum() for name in ("train", "calibration", "test")]
    assert min(sizes) >= 10
    one = Dataset(voted, features=table.filter(pl.col("item") < "x056"), gold="truth").split()
    assert present(one.part)[55] == "test"
    few = table.with_columns(pl.when(pl.col("item") >= "x055").then("truth").alias("truth"))
    alone = Dataset(voted, features=few, gold="truth").split()
    assert (present(alone.part)[:55] == "train").all()  # nothing else has a gold label


def test_gold_columns_and_own_splits_may_name_items_without_votes(team: Team) -> None:
    table = pl.read_csv(team.features).drop("patient")
    voted = cl.read_annotations(pl.read_csv(team.votes).filter(pl.col("item") < "x030"))
    data = Dataset(voted, features=table, gold="truth", split="part").split()
    assert data.inputs.left_out == {"in training without votes": 18}
    kept = table.filter((pl.col("item") < "x030") | (pl.col("part") != "train"))
    assert data.items == kept["item"].to_list()
    twice = pl.DataFrame({"item": ["x040", "x040"], "gold": ["cat", "dog"]})
    with pytest.raises(
        cl.CredalError, match=r"label 'dog' here and 'cat' in the table of gold labels, row 1"
    ):
        Dataset(voted, features=table, gold=twice)
    with pytest.raises(cl.CredalError, match=r"no column name looks like a true class"):
        Dataset(voted, features=table, gold=twice.rename({"gold": "size"}).with_columns(more=1))
    other = twice[:1].rename({"gold": "is"})
    assert Dataset(voted, features=table, gold=other, skip_missing=True).truth_source == "gold"
    wrong = pl.DataFrame({"item": ["x040"], "gold": ["catt"]})
    with pytest.raises(cl.CredalError, match=r"row 1: the gold label of item 'x040' .*got 'catt'"):
        Dataset(voted, features=table.drop("truth", "part"), gold=wrong, skip_missing=True)


def test_gold_labeled_images_need_no_votes(team: Team, tmp_path: Path) -> None:
    table = pl.read_csv(team.features).select("item", "truth")
    folder = make_images(tmp_path / "images", table["item"].to_list())
    voted = cl.read_annotations(pl.read_csv(team.votes).filter(pl.col("item") < "x030"))
    data = Dataset(voted, images=folder, image_size=8, gold=table)
    assert data.unvoted.sum() == 30
    assert (data.truth >= 0).all()
    called = table.with_columns(item="uploads/" + pl.col("item") + ".png")
    same = Dataset(voted, images=folder, image_size=8, gold=called)
    assert (same.items[:30], same.truth.tolist()) == (data.items[:30], data.truth.tolist())
