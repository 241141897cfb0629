"""Widened sets of a run: calibrated, kept, predicted with, and gone with the next training."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import betabinom

from credalearn import CredalError, CredalPredictions
from credalearn.app.cli import options
from credalearn.app.run import Run
from credalearn.app.steps.card import card
from credalearn.app.steps.covering import (
    SetCertificate,
    certify_sets,
    keep_sets,
    kept_and_deferred,
)
from credalearn.app.steps.covering import widened as widened_sets
from credalearn.app.steps.predicting import SCHEMA, SET_SCHEMA, predict
from credalearn.app.steps.voted_items import read_voted
from credalearn.conformal import SCALES, Distance, Inflation, Scale
from fake_run import add_rule, add_sets, fake_run, with_facts
from small_run import FEATURES, features, make_run
from team_files import (
    Team,
    full_disk,
    in_process,
    make_team,
    snapshot,
    train_arguments,
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 300 calibration and 300 test items with four or five votes; do not change it."""
    return fake_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a model and a rule; do not change it."""
    return make_run(tmp_path_factory.mktemp("small") / "run")


def slowly(run: Run, split: str) -> tuple[CredalPredictions, np.ndarray]:
    """Sets and votes of a split, row by row from the two tables."""
    votes = {row["item"]: row for row in run.items.iter_rows(named=True)}
    rows = [row for row in run.predictions.iter_rows(named=True) if row["split"] == split]
    parts = (
        torch.tensor([[row[f"{part}:{name}"] for name in run.classes] for row in rows])
        for part in ("p", "lower", "upper")
    )
    said = [[votes[row["item"]][f"n:{name}"] for name in run.classes] for row in rows]
    return CredalPredictions(*(part.double() for part in parts)), np.array(said)


# Calibrating


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_sets_are_calibrated_on_calibration_items_and_seen_on_test_items(
    run: Run, coverage: float
) -> None:
    before = snapshot(run.path)
    found = certify_sets(run, coverage=coverage)
    assert snapshot(run.path) == before
    wanted = slowly(run, "calibration")[0].inflation(
        slowly(run, "calibration")[1], coverage=coverage
    )
    assert found.inflation.radius == pytest.approx(wanted.radius, rel=1e-5)
    assert (found.inflation.items, found.left_out, found.widened.seen) == (300, 0, 300)
    predicted, votes = slowly(run, "test")
    wide = predicted.conformalize(found.inflation)
    shares = torch.tensor(votes / votes.sum(1, keepdims=True))
    held = ((shares >= wide.lower - 1e-6) & (shares <= wide.upper + 1e-6)).all(1)
    assert found.widened.covered == int(held.sum())
    assert found.widened.width_before == pytest.approx(
        float((predicted.upper - predicted.lower).mean())
    )
    assert found.widened.width_after == pytest.approx(
        float((wide.upper - wide.lower).mean()), abs=1e-5
    )
    assert found.widened.width_after > found.widened.width_before
    # The share on 300 calibration and 300 other items: within 4 standard errors of both.
    assert abs(found.widened.covered / 300 - coverage) < 4 * math.sqrt(2 * 0.25 * 0.64 / 300)
    rank = math.ceil(301 * coverage)
    low, high = betabinom(300, rank, 301 - rank).ppf([0.025, 0.975]) / 300
    assert f"between {100 * low:.3g} % and {100 * high:.3g} % is usual." in found.test_line


@pytest.mark.parametrize("distance", get_args(Distance))
@pytest.mark.parametrize("scale", SCALES)
def test_distance_and_scale_are_those_of_the_predictions(
    run: Run, distance: Distance, scale: Scale
) -> None:
    found = certify_sets(run, coverage=0.9, distance=distance, scale=scale)
    predicted, votes = slowly(run, "calibration")
    wanted = predicted.inflation(votes, coverage=0.9, distance=distance, scale=scale)
    assert (found.inflation.distance, found.inflation.scale) == (distance, scale)
    assert found.inflation.radius == pytest.approx(wanted.radius, rel=1e-5)
    tested, votes = slowly(run, "test")
    assert found.widened.covered == int(tested.covers(votes, wanted).sum())
    by = "class by class" if distance == "box" else "in total variation"
    scaled = "not scaled" if scale == "none" else f"scaled by {scale}"
    assert f"radius {wanted.radius:.4g}, {by}, {scaled}: on the test items" in found.lines[1]


def test_items_with_one_vote_are_left_out(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    calibration = run.items.filter(split="calibration")["item"].to_list()
    test = run.items.filter(split="test")["item"].to_list()
    lonely, silent, tested = calibration[:7], calibration[7:10], test[:5]
    votes = run.annotations.with_columns(first=pl.int_range(pl.len()).over("item") == 0)
    one = pl.col("item").is_in([*lonely, *tested])
    votes = votes.filter((pl.col("first") | ~one) & ~pl.col("item").is_in(silent)).drop("first")
    unsure = votes.head(1).with_columns(item=pl.lit(lonely[0]), label=pl.lit(None, pl.String))
    pl.concat([votes, unsure]).write_parquet(run.path / "annotations.parquet")
    found = certify_sets(run, coverage=0.9)
    assert (found.inflation.items, found.left_out, found.widened.seen) == (90, 10, 95)
    assert found.lines[0] == "left out: 10 calibration items with fewer than two votes"
    assert "like these 90." in found.lines[1]


def test_what_is_held_of_the_kept_and_of_the_deferred(tmp_path: Path) -> None:
    run = add_sets(fake_run(tmp_path / "run"))
    assert run.sets is not None
    assert kept_and_deferred(run) == []  # without a rule
    rule = add_rule(run).rule
    assert rule is not None
    predicted, votes = slowly(run, "test")
    held = predicted.covers(votes, run.sets).numpy()
    score = run.predictions.filter(split="test")["score"].to_numpy()
    kept = score <= rule.threshold
    assert held[kept].mean() != held[~kept].mean()
    assert kept_and_deferred(run) == [
        f"The widened sets hold {100 * held[kept].mean():.3g} % of the {kept.sum()} items that the "
        f"rule keeps and {100 * held[~kept].mean():.3g} % of the {(~kept).sum()} that it defers; "
        "what is promised is the share of both together."
    ]
    add_rule(run, max_error=None, capacity=1.0)  # what it keeps is nothing
    assert kept_and_deferred(run) == []


def test_of_groups_few_that_are_covered_may_be_chance(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    narrow = Inflation(coverage=0.9, radius=0.01, distance="box", scale="none", items=77)
    found = SetCertificate(widened_sets(narrow, read_voted(run, "test")), 0)
    assert found.widened.short
    assert "% is usual. So few are not chance: are they drawn" in found.test_line
    of_groups = replace(found, about_groups="The calibration items are of 30 groups.")
    assert "% is usual of independent items. So few may be chance of groups." in of_groups.test_line


def as_counts(run: Run, votes: int | None) -> None:
    """Let the run be one on counts by class, or on probabilities."""
    names = [f"n:{name}" for name in run.classes]
    table = run.items.select("item", *(pl.col(n).alias(n[2:]) for n in names))
    table.write_parquet(run.path / "annotations.parquet")
    facts = run.facts
    facts.annotations |= {"votes": votes, "kind": "counts" if votes else "probabilities"}
    (run.path / "run.json").write_text(json.dumps(facts))


def test_counts_are_votes(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    wanted = certify_sets(run, coverage=0.9)
    as_counts(run, 2000)
    assert certify_sets(run, coverage=0.9).lines == wanted.lines
    one = pl.when(pl.col("item") == run.items.filter(split="calibration")["item"][0])
    items = run.items.with_columns(
        one.then(pl.lit(float(k == 0))).otherwise(pl.col(f"n:{name}")).alias(f"n:{name}")
        for k, name in enumerate(run.classes)
    )
    items.write_parquet(run.path / "items.parquet")
    assert certify_sets(run, coverage=0.9).left_out == 1


def test_probabilities_are_used_and_said_to_be_of_unknown_votes(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    wanted = certify_sets(run, coverage=0.9)
    total = pl.sum_horizontal(f"n:{name}" for name in run.classes)
    shares = run.items.with_columns(pl.col(f"n:{name}") / total for name in run.classes)
    shares.write_parquet(run.path / "items.parquet")
    as_counts(run, None)
    found = certify_sets(run, coverage=0.9)
    assert found.inflation.radius == pytest.approx(wanted.inflation.radius)
    assert found.lines[0] == "the items have probabilities: of how many votes is not known"
    assert "test items with shares" in found.test_line


def test_bounds_have_nothing_to_cover(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=100)
    table = pl.DataFrame({"item": ["x"], "label": [run.classes[0]], "at_least": [0.7]})
    table.write_parquet(run.path / "annotations.parquet")
    run = with_facts(run, annotations={"kind": "bounds"})
    with pytest.raises(CredalError, match=r"trained on stated bounds.*To fix: train on votes"):
        certify_sets(run, coverage=0.9)


def test_too_few_items_say_how_many_it_takes(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    found = certify_sets(run, coverage=0.95)
    assert found.inflation.vacuous
    assert "95 % takes 19 calibration items or more, and there are 15" in found.lines[0]
    assert found.widened.covered == found.widened.seen == 15
    assert len(found.lines) == 1  # that all are covered is no finding
    keep_sets(run, found.inflation)
    assert run.sets == found.inflation  # nothing was there
    good = certify_sets(run, coverage=0.8).inflation
    keep_sets(run, good)
    keep_sets(run, found.inflation)
    assert run.sets == good
    (run.path / "sets.json").write_text("{")
    keep_sets(run, found.inflation)
    assert run.sets == found.inflation


def test_without_items_of_two_votes_there_is_nothing(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    tested = run.items.filter(split="test")["item"].to_list()
    votes = run.annotations
    votes.filter(~pl.col("item").is_in(tested)).write_parquet(run.path / "annotations.parquet")
    found = certify_sets(run, coverage=0.9)
    assert found.test_line == "No test item is there with two votes or more to see it on."
    votes.unique("item").write_parquet(run.path / "annotations.parquet")
    with pytest.raises(CredalError, match=r"no calibration item .* has two votes or more.*To fix"):
        certify_sets(run, coverage=0.9)
    table = run.predictions.drop(f"lower:{run.classes[0]}")
    votes.write_parquet(run.path / "annotations.parquet")
    table.write_parquet(run.path / "predictions.parquet")
    with pytest.raises(CredalError, match=r"has no column 'lower:.*To fix: train again"):
        certify_sets(run, coverage=0.9)
    run.items.drop(f"n:{run.classes[0]}").write_parquet(run.path / "items.parquet")
    with pytest.raises(CredalError, match=r"items.parquet does not fit .*no column 'n:"):
        certify_sets(run, coverage=0.9)


# The file


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"coverage": 0.9}', b'{"radius": "x"}']
)
def test_a_damaged_file_is_named_with_its_remedy(content: bytes, tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    (run.path / "sets.json").write_bytes(content)
    with pytest.raises(CredalError, match=r"sets\.json: .*To fix: credalearn certify .*remove"):
        _ = run.sets


def test_a_full_disk_leaves_the_older_sets(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    keep_sets(run, certify_sets(run, coverage=0.8).inflation)
    before = snapshot(run.path)
    new = certify_sets(run, coverage=0.9).inflation
    with full_disk(50), pytest.raises(CredalError, match=r"sets.json cannot be written: .*To fix"):
        keep_sets(run, new)
    assert snapshot(run.path) == before


# Predicting


def data_file(folder: Path, num_items: int = 50) -> Path:
    values = features(num_items, random_state=7)
    table = {"item": [f"new-{row}" for row in range(num_items)]}
    path = folder / "data.csv"
    frame = pl.DataFrame(table | {n: values[:, k] for k, n in enumerate(FEATURES)})
    frame.with_columns(set_lower=pl.lit("theirs")).write_csv(path)
    return path


@pytest.fixture
def widened(small: Run) -> Any:
    """The small run with widened sets, as long as the test takes."""
    inflation = Inflation(coverage=0.9, radius=0.5, distance="box", scale="binomial", items=30)
    keep_sets(small, inflation)
    yield small, inflation
    (small.path / "sets.json").unlink()


def test_predict_adds_the_bounds_and_changes_nothing_else(
    widened: tuple[Run, Inflation], tmp_path: Path
) -> None:
    run, inflation = widened
    data = data_file(tmp_path)
    predict(run, data, tmp_path / "with.csv")
    (run.path / "sets.json").rename(run.path / "away")
    predict(run, data, tmp_path / "without.csv")
    (run.path / "away").rename(run.path / "sets.json")
    found, plain = pl.read_csv(tmp_path / "with.csv"), pl.read_csv(tmp_path / "without.csv")
    assert found.columns == [*SCHEMA, *SET_SCHEMA]
    assert plain.columns == list(SCHEMA)
    assert found.select(plain.columns).equals(plain)
    predicted = run.load_model().predict_credal(features(50, random_state=7))
    wide = predicted.conformalize(inflation)
    top = predicted.classes[:, None]
    for name, bounds in (("set_lower", wide.lower), ("set_upper", wide.upper)):
        np.testing.assert_allclose(found[name], bounds.gather(1, top)[:, 0], atol=1e-6)
    assert (found["set_lower"] <= found["lower"]).all()
    assert (found["set_upper"] >= found["upper"]).all()
    assert (found["set_upper"] - found["set_lower"] > found["upper"] - found["lower"]).any()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_sets_are_in_every_format_and_batch(
    widened: tuple[Run, Inflation], tmp_path: Path, suffix: str
) -> None:
    run, _ = widened
    data = data_file(tmp_path)
    outputs = []
    for number, rows in enumerate((7, 4096)):
        path = tmp_path / f"{number}{suffix}"
        predict(run, data, path, batch_rows=rows, decide=False)
        outputs.append(path)
    read = {
        ".csv": pl.read_csv,
        ".tsv": lambda path: pl.read_csv(path, separator="\t"),
        ".parquet": pl.read_parquet,
        ".jsonl": pl.read_ndjson,
    }[suffix]
    first, second = map(read, outputs)
    assert first.columns == [*list(SCHEMA)[:-1], *SET_SCHEMA]
    for name in SET_SCHEMA:
        np.testing.assert_allclose(first[name], second[name], atol=1e-6)


def test_predict_names_a_damaged_file_and_writes_nothing(
    widened: tuple[Run, Inflation], tmp_path: Path
) -> None:
    run, _ = widened
    (run.path / "sets.json").write_text('{"radius": 0.1}')
    with pytest.raises(CredalError, match=r"sets\.json: this is no inflation .*is missing. To fix"):
        predict(run, data_file(tmp_path), tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_sets_of_all_distributions_are_zero_to_one(
    widened: tuple[Run, Inflation], tmp_path: Path
) -> None:
    run, _ = widened
    few = Inflation(coverage=0.9, radius=math.inf, distance="box", scale="none", items=3)
    (run.path / "sets.json").write_text(few.to_json())
    predict(run, data_file(tmp_path), tmp_path / "out.csv")
    found = pl.read_csv(tmp_path / "out.csv")
    assert found["set_lower"].unique().to_list() == [0.0]
    assert found["set_upper"].unique().to_list() == [1.0]


def test_the_card_says_what_the_sets_promise(widened: tuple[Run, Inflation]) -> None:
    run, _ = widened
    text = card(run)
    assert "## Widened sets" in text
    assert "set in 90 % of cases or more" in text
    assert "outwards by 0.5, in units of the scale binomial (distance box)" in text
    few = Inflation(coverage=0.9, radius=math.inf, distance="box", scale="none", items=3)
    (run.path / "sets.json").write_text(few.to_json())
    assert "Nothing is promised" in card(run)
    assert "outwards" not in card(run)


def test_the_card_is_silent_without_sets(small: Run) -> None:
    assert "Widened" not in card(small)


# The command


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """A team with a finished run of three hundred items."""
    team = make_team(tmp_path_factory.mktemp("trained"), num_items=300)
    from credalearn.app.cli import app

    app(train_arguments(team, "--epochs", "10"), standalone_mode=False)
    return team


def test_labels_that_leave_everything_open_are_said_to(trained: Team, capsys: Capture) -> None:
    arguments = train_arguments(trained, "--epochs", "1", "--labels", "total-variation")
    arguments[arguments.index("-o") + 1] = str(trained.run.parent / "open")
    done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    said = r"leave much open \(mean diameter 0\.\d\d of 1 under 'total-variation'\)"
    assert re.search(said, done.out)
    facts = Run.load(trained.run).facts
    assert 0 < facts.label_diameter < 0.5


def test_the_command_widens_alone_or_beside_a_rule(trained: Team, capsys: Capture) -> None:
    done = in_process(capsys, "certify", trained.run, "--set-coverage", "0.9")
    assert done.code == 0, done.err
    assert not (trained.run / "guarantee.json").exists()
    assert "set in 90 % of cases or more" in done.out
    assert "a class's interval is" in done.out
    assert "is usual." in done.out
    assert "rule keeps" not in done.out
    assert "-o decisions.csv --no-decision; credalearn report" in done.out
    kept = Run.load(trained.run).sets
    assert kept is not None
    assert (kept.coverage, kept.items) == (0.9, 60)
    assert json.loads((trained.run / "sets.json").read_text())["sentence"] == kept.sentence()

    both = ("--capacity", "0.3", "--set-coverage", "0.8")
    done = in_process(capsys, "certify", trained.run, *both)
    assert done.code == 0, done.err
    assert "No error is promised" in done.out
    assert "set in 80 % of cases or more" in done.out
    assert re.search(r"is usual\.\nThe widened sets hold .* rule keeps and .*\nnext: ", done.out)
    assert "--no-decision" not in done.out
    kept = Run.load(trained.run).sets
    assert kept is not None
    assert kept.coverage == 0.8

    output = trained.folder / "decisions.csv"
    done = in_process(capsys, "predict", trained.run, trained.features, "-o", output)
    assert done.code == 0, done.err
    decisions = pl.read_csv(output)
    assert decisions.columns == [*SCHEMA, *SET_SCHEMA]
    # And back to the annotators: neither the data nor the decisions carry the bounds as a vote.
    for source in (trained.features, output):
        tasks = trained.folder / "tasks.csv"
        done = in_process(capsys, "defer", trained.run, source, "--to", "csv", "-o", tasks)
        assert done.code == 0, done.err
        assert {"item", "model_label", "label"} <= set(pl.read_csv(tasks).columns)


def test_the_command_offers_every_distance_and_scale(capsys: Capture) -> None:
    assert tuple(options.Distance) == get_args(Distance)
    assert list(options.Scale) == list(SCALES)
    asked = in_process(capsys, "certify", "--help").out
    assert {"--distance", "--scale"} <= set(asked.split())


def test_the_command_s_choice_is_kept_told_and_predicted_with(
    trained: Team, capsys: Capture
) -> None:
    chosen = ("--distance", "total-variation", "--scale", "top-probability")
    done = in_process(capsys, "certify", trained.run, "--set-coverage", "0.9", *chosen)
    assert done.code == 0, done.err
    assert "in total variation, scaled by top-probability: on the test items" in done.out
    kept = json.loads((trained.run / "sets.json").read_text())
    assert (kept["distance"], kept["scale"]) == ("total-variation", "top-probability")
    output = trained.folder / "chosen.csv"
    done = in_process(
        capsys, "predict", trained.run, trained.features, "-o", output, "--no-decision"
    )
    assert done.code == 0, done.err
    rows = pl.read_csv(output)
    room = kept["radius"] * (1 - rows["probability"] + 0.01)
    wanted = (rows["upper"] + room).clip(upper_bound=1.0).to_numpy()
    assert_allclose(rows["set_upper"], wanted, atol=1e-5)


def test_what_is_refused_changes_nothing(trained: Team, capsys: Capture) -> None:
    before = snapshot(trained.run)
    for arguments, message in (
        (("--set-coverage", "90"), "write 90 % as 0.9"),
        (("--set-coverage", "0.9", "--max-error", "10"), "max_error must lie in"),
        (("--set-coverage", "0.9", "--capacity", "20"), "write 20 % as 0.2"),
        (("--set-coverage", "1.5", "--capacity", "0.2"), "coverage must lie in"),
        ((), "--set-coverage 0.90 for the predicted sets alone"),
        (("--capacity", "0.2", "--scale", "none"), "--scale none say how sets are widened, and"),
        (("--max-error", "0.2", "--distance", "total-variation"), "add --set-coverage 0.90"),
    ):
        done = in_process(capsys, "certify", trained.run, *arguments)
        assert done.code != 0
        assert message in " ".join(done.err.split())
        assert snapshot(trained.run) == before


def test_too_few_items_are_one_message_and_exit_code_2(trained: Team, capsys: Capture) -> None:
    assert in_process(capsys, "certify", trained.run, "--set-coverage", "0.85").code == 0
    before = snapshot(trained.run)
    done = in_process(capsys, "certify", trained.run, "--set-coverage", "0.99")
    assert done.code == 2
    assert not done.out
    assert "99 % takes 99 calibration items or more, and there are 60" in done.err
    assert snapshot(trained.run) == before


def test_the_next_training_takes_the_sets_away(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=100)
    assert in_process(capsys, *train_arguments(team)).code == 0
    assert in_process(capsys, "certify", team.run, "--set-coverage", "0.8").code == 0
    assert (team.run / "sets.json").exists()
    again = train_arguments(team, "--random-state", "1")
    assert "holds certified sets" in in_process(capsys, *again).err
    assert in_process(capsys, *again, "--overwrite").code == 0
    assert not (team.run / "sets.json").exists()
    assert Run.load(team.run).sets is None
