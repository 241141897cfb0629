"""The model next to simple rivals: where they are judged, and what is said of a useless model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import credalearn as cl
from credalearn.app.facts import ComparisonFacts
from credalearn.app.steps.baselines import find_leaks
from present import present
from team_files import Capture, in_process, make_team, succeed, train_arguments

NAMES = [f"i{number:03d}" for number in range(240)]


def votes_and_features(
    *, signal: float, random_state: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Five annotators per item; two columns, the first with more or less signal."""
    random = np.random.default_rng(random_state)
    X = random.normal(size=(len(NAMES), 2))
    share = 1 / (1 + np.exp(-signal * X[:, 0] - 0.5))
    dogs = random.binomial(5, share)
    votes = [
        {"item": name, "annotator": f"a{who}", "label": "dog" if who < count else "cat"}
        for name, count in zip(NAMES, dogs, strict=True)
        for who in range(5)
    ]
    return pl.DataFrame(votes), pl.DataFrame({"item": NAMES, "size": X[:, 0], "noise": X[:, 1]})


def trained(folder: Path, *, signal: float, **options: Any) -> tuple[cl.Run, ComparisonFacts]:
    votes, features = votes_and_features(signal=signal)
    data = cl.Dataset(cl.read_annotations(votes), features=features)
    run = cl.Run.train(data, folder / "run", **options)
    return run, present(run.facts.comparison)


def test_the_default_is_judged_out_of_fold(tmp_path: Path) -> None:
    run, found = trained(tmp_path, signal=3.0)
    assert found.where == "out of fold"
    assert list(found.models) == ["most frequent class", "logistic regression", "this model"]
    table = run.predictions.filter(pl.col("split") == "out-of-fold")
    judged = table.filter(pl.col("wrong").is_not_null())
    assert found.items == len(judged)
    assert found.models["this model"]["accuracy"] == pytest.approx(
        1 - judged["wrong"].to_numpy().mean(), abs=1e-4
    )
    right = judged.select(
        pl.when(truth="cat").then(pl.col("p:cat")).otherwise(pl.col("p:dog"))
    ).to_series()
    assert found.models["this model"]["log_likelihood"] == pytest.approx(
        right.log().mean(), abs=1e-3
    )
    share = judged["truth"].value_counts()["count"].max() / len(judged)  # type: ignore[operator]
    assert found.models["most frequent class"]["accuracy"] == pytest.approx(share, abs=0.02)
    assert not found.warning


def test_reports_a_model_without_signal(tmp_path: Path, capsys: Capture) -> None:
    votes, features = votes_and_features(signal=0.0)
    votes.write_csv(tmp_path / "votes.csv")
    features.write_csv(tmp_path / "items.csv")
    given = ("--features", tmp_path / "items.csv", "-o", tmp_path / "run")
    done = succeed(capsys, "train", tmp_path / "votes.csv", *given)
    warning = "This model is no better than always answering 'dog'"
    assert warning in done.out
    run = cl.Run.load(tmp_path / "run")
    assert run.facts.comparison is not None
    run.report()
    page = (run.path / "report.html").read_text()
    assert "This model is no better than always answering" in page
    assert "Is it better than simple rivals?" in page


def test_a_named_method_is_judged_on_calibration_items(tmp_path: Path) -> None:
    run, found = trained(tmp_path, signal=9.0, method="softmax", epochs=2)
    assert not found.warning
    first, last = found.models.values()
    too_sure = replace(found, models={"first": first, "last": last | {"log_likelihood": -2.0}})
    assert "but its probabilities are worse than the shares of the classes" in too_sure.warning
    lucky = {"accuracy": first["accuracy"] + 0.05, "log_likelihood": -2.0}
    by_chance = replace(found, models={"first": first, "last": last | lucky})
    assert "is not reliably better than always" in by_chance.warning
    assert found.where == "calibration"
    assert list(found.models) == ["most frequent class", "this model"]
    table = run.predictions.filter(split="calibration").filter(pl.col("wrong").is_not_null())
    assert found.items == len(table)
    assert found.models["this model"]["accuracy"] == pytest.approx(
        1 - table["wrong"].to_numpy().mean(), abs=1e-4
    )
    assert "out-of-fold" not in run.predictions["split"].to_list()


def test_a_selected_model_without_heads_has_sets_of_votes(tmp_path: Path) -> None:
    run, _ = trained(tmp_path, signal=3.0, method="credal-bounds", backbone="linear")
    assert run.facts.model.startswith("a linear model")
    assert run.certify(set_coverage=0.8).sets is not None


def test_gold_labels_are_the_truth_of_training_too(tmp_path: Path) -> None:
    votes, features = votes_and_features(signal=3.0)
    opposite = votes.group_by("item").agg((pl.col("label") == "dog").sum().alias("dogs"))
    gold = opposite.select(
        "item", gold=pl.when(pl.col("dogs") > 2).then(pl.lit("cat")).otherwise(pl.lit("dog"))
    )
    table = features.join(gold, on="item")
    data = cl.Dataset(cl.read_annotations(votes), features=table, gold="gold")
    run = cl.Run.train(data, tmp_path / "run")
    assert run.facts.comparison is not None
    # People are wrong throughout: the temperature leaves nothing but the base rate of them.
    assert run.facts.comparison.models["this model"]["accuracy"] < 0.3
    assert run.facts.comparison.warning
    assert run.facts.temperatures["truth"] > 5 > run.facts.temperatures["votes"]


def test_skill_decides_the_truth_that_certify_uses(tmp_path: Path) -> None:
    pytest.importorskip("crowdkit")
    random = np.random.default_rng(0)
    y = random.random(240) < 0.5
    rows = []
    for name, is_dog in zip(NAMES, y, strict=True):
        for who in range(5):  # two experts, three who guess
            sure = is_dog if random.random() < (0.98 if who < 2 else 0.5) else not is_dog
            rows.append({"item": name, "annotator": f"a{who}", "label": "dog" if sure else "cat"})
    features = pl.DataFrame({"item": NAMES, "size": y + 0.3 * random.normal(size=240)})
    data = cl.Dataset(cl.read_annotations(pl.DataFrame(rows)), features=features)
    plain = cl.Run.train(data, tmp_path / "plain")
    run = cl.Run.train(data, tmp_path / "run", skill="dawid-skene")
    assert (plain.truth, run.truth) == ("majority", "dawid-skene")
    known = dict(zip(NAMES, np.where(y, "dog", "cat"), strict=True))
    for each, least, most in ((plain, 0.0, 0.95), (run, 0.95, 1.0)):
        table = each.predictions.filter(pl.col("truth").is_not_null())
        right = np.mean([known[i] == truth for i, truth in table["item", "truth"].iter_rows()])
        assert least <= right <= most
    found = present(run.certify(max_error=0.2).guarantee)
    assert "Dawid and Skene's model" in found.sentence()


def test_gaps_and_categories_from_file_to_decisions(tmp_path: Path, capsys: Capture) -> None:
    votes, features = votes_and_features(signal=3.0)
    number = pl.int_range(pl.len())
    table = features.with_columns(
        size=pl.when(number % 7 == 0).then(None).otherwise(pl.col("size")),
        site=pl.when(number % 3 == 0).then(pl.lit("north")).otherwise(pl.lit("south")),
    )
    votes.write_csv(tmp_path / "votes.csv")
    table.write_csv(tmp_path / "items.csv")
    unseen = {"noise": pl.when(number > 2).then("noise"), "site": pl.lit("w")}
    new = table.with_columns(pl.col("size") + 99, item="new-" + pl.col("item"), **unseen)
    new.write_parquet(tmp_path / "new.parquet")
    given = ("--features", tmp_path / "items.csv", "-o", tmp_path / "run")
    succeed(capsys, "train", tmp_path / "votes.csv", *given)
    run = cl.Run.load(tmp_path / "run")
    assert run.facts.inputs.categories == ("site",)
    encoder = run.load_model()._encoder
    assert encoder is not None
    assert encoder.names == ["size", "size missing", "noise", "site=north", "site=south"]
    said = (
        "Caution: 'site' is 'w', not seen in training (240 items); 'size' is outside the range of "
        "training (205 items); 'noise' is missing, unlike in training (3 items). To fix: check the "
        "data, or recalibrate on such items."
    )
    for name, warnings in (("items.csv", ()), ("new.parquet", (said,))):
        found = run.predict(tmp_path / name, decision=False)
        assert (len(found.to_polars()), found.warnings) == (240, warnings)
        tasks = run.defer(tmp_path / name, tmp_path / "tasks.json", threshold=0.0)
        assert tasks.lines[: len(warnings)] == found.lines[: len(warnings)] == list(warnings)
    gaps = run.predict(table.with_columns(site=pl.lit(None, pl.String)), decision=False)
    assert gaps.warnings[0].startswith(
        "Caution: 'site' is missing, unlike in training (240 items)."
    )
    run.defer(tmp_path / "items.csv", tmp_path / "tasks.json", threshold=0.0)
    rows = [each["data"]["row"] for each in json.loads((tmp_path / "tasks.json").read_text())]
    assert sum("size" not in row for row in rows) == 35  # JSON has no NaN
    wrong = table.with_columns(size=pl.lit("big"))
    with pytest.raises(cl.CredalError, match=r"finite numbers, or empty; 'size' is 'big' for item"):
        run.predict(wrong, decision=False)
    onnxruntime = pytest.importorskip("onnxruntime")
    run.export(onnx=tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    kept = json.loads(session.get_modelmeta().custom_metadata_map["encoder"])
    assert [each["name"] for each in kept] == ["size", "noise", "site"]
    names = "size, size missing, noise, site=north, site=south."
    card = (tmp_path / "model.md").read_text()
    assert f"(N, {session.get_inputs()[0].shape[1]}): the columns of the table" in card
    assert f"in this order: {names}" in card


def test_finds_numbers_and_texts_that_predict_the_class() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(-1, 3, 600)
    honest = truth + rng.normal(0, 0.5, 600)
    table = pl.DataFrame(
        {
            "honest": honest,
            "code": np.array([7.0, 3.0, 5.0, 1e300])[truth],
            "batch": [("b-first", "a-second", "c-third", None)[k] for k in truth],
            "gaps": np.where(rng.random(600) < 0.1, np.nan, honest),
        }
    )
    found = find_leaks(table, truth, table.columns)
    assert found == {"code": 1.0, "batch": 1.0}
    matrix = table.drop("batch").to_numpy()
    assert find_leaks(matrix, truth, ["honest", "code", "gaps"]) == {"code": 1.0}


def test_votes_may_differ_from_the_label_that_a_column_was_made_from() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    column = np.where(rng.random(400) < 0.03, 1 - truth, truth).astype(float)[:, None]
    assert list(find_leaks(column, truth, ["queue"])) == ["queue"]


@pytest.mark.catches(
    "app/steps/baselines.py",
    "tree.score(column[held_out], truth[held_out])",
    "tree.score(column[seen], truth[seen])",
)
def test_ignores_rare_classes_and_few_items() -> None:
    rare = np.zeros(1000, int)
    rare[::100] = 1  # answering 0 is right for 99 %
    noise = np.random.default_rng(0).normal(size=(1000, 1))
    assert find_leaks(noise, rare, ["x"]) == {}
    assert find_leaks(rare[:, None].astype(float), rare, ["x"]) == {"x": 1.0}
    assert find_leaks(np.eye(2)[:1].repeat(40, 0), np.arange(40) % 2, ["x", "y"]) == {}
    assert find_leaks(noise, np.zeros(1000, int), ["x"]) == {}
    assert find_leaks(noise[:60], np.arange(60) % 15, ["x"]) == {}  # a tree can learn 30 by heart


def test_train_warns_of_a_column_made_from_the_labels(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=200)
    done = in_process(capsys, *train_arguments(team))
    assert "it alone predicts the class" not in done.out
    votes = pl.read_csv(team.votes).group_by("item").agg(pl.col("label").mode().sort().first())
    codes = votes.with_columns(pl.col("label").replace_strict({"cat": 2, "dog": 0, "owl": 1}))
    table = pl.read_csv(team.features).join(codes.rename({"label": "queue no"}), on="item")
    table.write_csv(team.features)
    done = in_process(capsys, *train_arguments(team))
    assert "Column 'queue no': it alone predicts the class of 100 %" in done.out
    assert "--drop 'queue no'" in done.out
    assert cl.Run.load(team.run).facts.leaks == {"queue no": 1.0}
    succeed(capsys, "report", team.run)
    assert "it alone predicts the class" in (team.run / "report.html").read_text()
