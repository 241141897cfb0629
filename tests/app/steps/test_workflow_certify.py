"""Certifying a run: the rule is that of the calibration items, and says what it is about."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import credalearn as cl
from credalearn.app.annotations import read_annotations
from credalearn.app.joined.rounds import read_rounds
from credalearn.app.run import Run
from credalearn.app.steps.card import card
from credalearn.app.steps.certifying import certify_run, draw_one_a_group
from credalearn.app.steps.covering import certify_sets, keep_sets
from credalearn.app.steps.inspecting import annotation_facts, inspection
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_rule, read_test_items
from credalearn.guarantees import Guarantee, by_capacity
from credalearn.guarantees.sample import as_sample
from credalearn.guarantees.search import selective_guaranteed_risk
from credalearn.guarantees.truths import LACKING
from fake_run import fake_run
from team_files import full_disk, snapshot


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fake_run(tmp_path_factory.mktemp("runs") / "run")


def kept_rule(run: Run) -> Guarantee:
    return Guarantee.from_json((run.path / "guarantee.json").read_text())


@pytest.mark.parametrize("method", ["sgr", "learn-then-test", "conformal-risk-control"])
@pytest.mark.parametrize("max_error", [0.05, 0.1, 0.2])
def test_the_rule_is_certifys_on_the_calibration_items(
    run: Run, method: Any, max_error: float
) -> None:
    (run.path / "guarantee.json").unlink(missing_ok=True)
    found = certify_run(run, max_error=max_error, confidence=0.9, method=method)
    rows = [
        row
        for row in run.predictions.iter_rows(named=True)
        if row["split"] == "calibration" and row["wrong"] is not None
    ]
    wanted = cl.certify(
        [row["score"] for row in rows],
        [row["wrong"] for row in rows],
        max_error=max_error,
        confidence=0.9,
        method=method,
    )
    ties = run.predictions.filter(pl.col("wrong").is_null() & (pl.col("split") == "calibration"))
    kept_ties = int(wanted.keeps(ties["score"].to_numpy()).sum())
    wanted = replace(wanted, left_out=len(ties), left_out_kept=kept_ties)
    assert found.rule == wanted == kept_rule(run)
    assert len(ties) > 0
    assert found.lines[0] == f"left out: {len(ties)} calibration items, {LACKING['majority']}"


def test_the_promise_is_about_items_with_a_majority_and_the_share_of_all(run: Run) -> None:
    found = certify_run(run, max_error=0.1)
    rule, every = found.rule, run.predictions.filter(pl.col("split") == "calibration")
    kept = every.filter(pl.col("score") <= rule.threshold)
    assert rule.coverage == len(kept) / len(every)
    assert rule.left_out + rule.num_items == len(every)
    said = f"items with a single most-voted class, drawn like the {rule.num_items} calibration "
    assert said in rule.sentence()
    assert f"the {rule.left_out} without took no part" in rule.sentence()
    share, judged = 100 * rule.coverage, 100 * rule.kept / rule.num_items
    assert found.lines[1].startswith(f"keep {share:.3g} % and defer")
    assert f"of the {len(every)} calibration items (score above" in found.lines[1]
    said = f"of the {rule.num_items} with a single most-voted class it keeps {judged:.3g} %"
    assert said in found.lines[1]
    page = read_rule(run)
    assert page is not None
    assert page.coverage == rule.coverage
    walked = read_test_items(run)
    observed = (walked.scores["lower-probability"] <= rule.threshold).mean()
    assert f"test items it predicts {100 * observed:.3g} %" in found.test_line


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("bounds", "the class with the largest stated bound"),
        ("probabilities", "the class with the largest stated probability"),
    ],
)
def test_the_truth_of_what_was_stated_is_no_majority(tmp_path: Path, kind: str, said: str) -> None:
    run = fake_run(tmp_path / "run")
    facts = run.facts
    facts.annotations |= {"kind": kind, "votes": None, "agreement": None}
    (run.path / "run.json").write_text(json.dumps(facts))
    found = certify_run(run, max_error=0.2)
    assert f"wrong against {said}" in found.rule.sentence()
    assert "most votes" not in " ".join(found.lines)
    assert "their largest" in found.lines[0]
    assert "most votes" not in card(run)
    facts.truth = "gold"
    (run.path / "run.json").write_text(json.dumps(facts))
    assert run.truth == "gold"


def test_the_test_items_have_no_part_in_it_and_are_reported(run: Run) -> None:
    found = certify_run(run, max_error=0.1)
    test = [
        row
        for row in run.predictions.iter_rows(named=True)
        if row["split"] == "test" and row["wrong"] is not None
    ]
    kept = [row for row in test if row["score"] <= found.rule.threshold]
    assert (found.judged, found.judged_kept) == (len(test), len(kept))
    assert found.errors == sum(row["wrong"] for row in kept)
    share, error = 100 * len(kept) / len(test), 100 * found.errors / len(kept)
    said = f"; on the {len(test)} with a single most-voted class {share:.3g} %, with an error of "
    assert found.test_line.endswith(f"{said}{error:.3g} %.")


def test_items_are_deferred_by_one_minus_their_lower_probability(run: Run) -> None:
    found = certify_run(run, max_error=0.1)
    table = run.predictions
    np.testing.assert_allclose(table["score"], 1 - table["lower"], atol=1e-6)
    decided = found.rule.decide(table["score"].to_numpy())
    lower = table["lower"].to_numpy()
    assert lower[decided == "predict"].min() > lower[decided == "defer"].max() - 1e-6


def test_against_an_annotator_errors_are_shares(run: Run) -> None:
    found = certify_run(run, max_error=0.3, against="annotator")
    table = run.predictions.filter(pl.col("split") == "calibration")
    wanted = cl.certify(
        table["score"].to_numpy(),
        table["disagreement"].to_numpy(),
        max_error=0.3,
        against="a random annotator",
    )
    assert found.rule == wanted
    assert found.rule.bound_by == "hoeffding-bentkus"
    assert found.rule.left_out == 0  # items whose votes tie have annotators too
    assert "a random annotator" in found.lines[-2]


def test_a_capacity_promises_nothing(run: Run) -> None:
    found = certify_run(run, capacity=0.25)
    # Reviewers can take a quarter of all items, those whose votes tie among them.
    every = run.predictions.filter(pl.col("split") == "calibration")["score"].to_numpy()
    assert found.rule.threshold is not None
    assert (every > found.rule.threshold).sum() == int(0.25 * len(every))
    rows = run.predictions.filter(
        pl.col("wrong").is_not_null() & (pl.col("split") == "calibration")
    )
    score, wrong = rows["score"].to_numpy(), rows["wrong"].to_numpy()
    kept = score <= found.rule.threshold
    assert (found.rule.kept, found.rule.errors) == (kept.sum(), wrong[kept].sum())
    assert found.rule.interval == by_capacity(score, wrong, defer=int((~kept).sum())).interval
    assert "No error is promised" in found.lines[-2]
    everything = certify_run(run, capacity=1.0)
    assert everything.test_line.endswith("it predicts none.")


def test_what_cannot_be_certified_leaves_a_rule_that_holds(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    (run.path / "guarantee.json").unlink(missing_ok=True)
    before = snapshot(run.path)
    with pytest.raises(cl.CredalError, match=r"0.1 % with 95 % confidence cannot be certified"):
        certify_run(run, max_error=0.001)
    assert snapshot(run.path) == before  # no rule
    good = certify_run(run, max_error=0.2).rule
    assert good.certified
    with pytest.raises(cl.CredalError, match=r"nothing was written.* The rule that was there stay"):
        certify_run(run, max_error=0.001)
    assert kept_rule(run) == good


def test_what_cannot_be_certified_says_what_it_takes(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=100)
    rows = run.predictions.filter(
        pl.col("wrong").is_not_null() & (pl.col("split") == "calibration")
    )
    score, wrong = rows["score"].to_numpy(), rows["wrong"].to_numpy()
    short = cl.certify(score, wrong, max_error=0.01).shortfall
    with pytest.raises(cl.CredalError) as raised:
        certify_run(run, max_error=0.01)
    assert str(short) in str(raised.value)
    assert "calibration items like these would do" in str(short)
    assert "can be certified, keeping" in str(short)
    fix = "To fix: have more items annotated and recalibrate, or give a larger --max-error."
    assert str(raised.value).endswith(fix)


def test_the_method_that_certifies_more_is_named(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)  # 40 to calibrate on
    right = run.predictions.with_columns(wrong=pl.lit(False))
    right.write_parquet(run.path / "predictions.parquet")
    with pytest.raises(cl.CredalError, match=r"To fix: give --method learn-then-test, .* twice th"):
        certify_run(run, max_error=0.1)
    assert certify_run(run, max_error=0.1, method="learn-then-test").rule.certified
    (run.path / "guarantee.json").unlink()
    with pytest.raises(cl.CredalError, match=r"cannot be certified") as raised:
        certify_run(run, max_error=0.01)
    assert "--method" not in str(raised.value)  # it would not help
    with pytest.raises(cl.CredalError, match=r"cannot be certified") as raised:
        certify_run(run, max_error=0.01, method="conformal-risk-control")
    assert "--method" not in str(raised.value)


def test_gold_labels_are_named(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    facts = run.facts
    (run.path / "run.json").write_text(json.dumps(facts | {"truth": "gold"}))
    found = certify_run(Run.load(run.path), max_error=0.2)
    assert found.rule.against == "gold"
    assert found.lines[0].endswith("they have no gold label")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give one of --max-error and --capacity"),
        ({"max_error": 0.1, "capacity": 0.1}, "give one of --max-error and --capacity"),
        ({"capacity": 25}, r"--capacity is a share .*got 25. To fix: write 25 % as 0.25; or, for 25"
         r" items of a file, credalearn predict … --defer 25"),
        ({"capacity": 0.2, "method": "sgr"}, "--capacity certifies nothing, so it has no --method"),
        ({"capacity": -1}, r"--capacity is a share .*got -1"),
        ({"capacity": float("inf")}, r"--capacity is a share .*got inf. To fix: give 0.25"),
        ({"max_error": 10}, r"max_error must lie in \(0, 1\); got 10"),
        ({"max_error": 0.1, "confidence": 95}, "confidence must lie in"),
        ({"max_error": float("nan")}, "max_error must lie in"),
    ],
)  # fmt: skip
def test_bad_options_change_nothing(run: Run, options: dict[str, Any], message: str) -> None:
    before = snapshot(run.path)
    with pytest.raises(cl.CredalError, match=message):
        certify_run(run, **options)
    assert snapshot(run.path) == before


def test_without_a_truth_there_is_nothing_to_certify(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    path = run.path / "predictions.parquet"
    table = run.predictions.with_columns(
        wrong=pl.lit(None, pl.Boolean), disagreement=pl.lit(float("nan"))
    )
    table.write_parquet(path)
    with pytest.raises(cl.CredalError, match=r"votes tie.*--gold COLUMN, or give --against annot"):
        certify_run(run, max_error=0.1)
    with pytest.raises(cl.CredalError, match=r"nobody voted.*leave --against out"):
        certify_run(run, max_error=0.1, against="annotator")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(cl.CredalError, match=r"predictions.parquet cannot be read"):
        certify_run(run, max_error=0.1)
    (run.path / "run.json").write_text('{"classes"')
    with pytest.raises(cl.CredalError, match=r"run.json cannot be read.*To fix: train again"):
        Run.load(run.path)
    (run.path / "run.json").write_text("{}")
    with pytest.raises(cl.CredalError, match=r"run.json lacks .classes.\. To fix: train again"):
        Run.load(run.path)


def test_a_damaged_rule_does_not_hide_why_nothing_can_be_certified(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    (run.path / "guarantee.json").write_text("{}")
    with pytest.raises(
        cl.CredalError, match=r"guarantee.json: this is no decision rule.*certify again"
    ):
        _ = run.guarantee
    with pytest.raises(cl.CredalError, match=r"cannot be certified.*The rule that was there stays"):
        certify_run(run, max_error=0.001)


def test_a_full_disk_leaves_the_older_rule(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    certify_run(run, max_error=0.2)
    before = snapshot(run.path)
    with (
        full_disk(100),
        pytest.raises(cl.CredalError, match=r"guarantee.json cannot be written: .*To "),
    ):
        certify_run(run, capacity=0.5)
    assert snapshot(run.path) == before


# Groups


def grouped(run: Run, size: int) -> Run:
    """The same run, as if so many items in a row were of one patient."""
    groups = pl.Series("group", [f"p{row // size}" for row in range(len(run.items))])
    run.items.with_columns(groups).write_parquet(run.path / "items.parquet")
    facts = run.facts
    facts.splits.group = "patient"
    (run.path / "run.json").write_text(json.dumps(facts))
    return Run.load(run.path)


def test_a_promise_about_items_of_groups_says_so(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    plain = certify_run(run, max_error=0.2).rule
    assert (plain.group, plain.num_groups, plain.about_groups) == (None, None, "")
    run = grouped(run, 10)
    found = certify_run(run, max_error=0.2)
    assert found.rule == replace(plain, group="patient", num_groups=30) == kept_rule(run)
    said = (
        f"The {plain.num_items} calibration items are of 30 groups ('patient'), and items of one "
        "group are alike: with few large groups the promise, which takes items as independent, is "
        "less sure than stated."
    )
    assert found.rule.sentence() == f"{plain.statement} {said}"
    remedy = "for a promise that does not take them so: certify with --one-a-group"
    assert found.lines[-3:-1] == (found.rule.sentence(), remedy)
    assert said in json.loads((run.path / "guarantee.json").read_text())["statement"]
    assert said in write_report(run).read_text().split('id="curve"')[0].replace("&#x27;", "'")
    assert "of 30 groups" in card(run)
    assert "large groups the interval, which" in certify_run(run, capacity=0.3).rule.sentence()
    sets = certify_sets(run, coverage=0.9)
    assert sets.lines[1].startswith("The calibration items are of 30 groups ('patient'), and items")
    assert sets.lines[1] not in card(run)  # they are not kept
    keep_sets(run, sets.inflation)
    assert f"\n\n{sets.lines[1]}\n\n" in card(run)
    everything = replace(sets.inflation, radius=float("inf"))  # promises nothing to be less sure of
    (run.path / "sets.json").write_text(everything.to_json())
    assert sets.lines[1] not in card(run)


def test_one_item_a_group_is_calibrated_on_where_that_is_asked_for(tmp_path: Path) -> None:
    run = grouped(fake_run(tmp_path / "run"), 3)
    rule = certify_run(run, max_error=0.2, one_a_group=True).rule
    assert rule.num_items + rule.left_out == 100
    assert "--one-a-group" not in " ".join(certify_run(run, max_error=0.2, one_a_group=True).lines)
    assert rule.num_groups == rule.num_items
    assert rule.one_per_group
    assert rule.sentence().endswith(
        f"The {rule.num_items} calibration items are one of each group ('patient'): this is about "
        "one item, drawn at random, of each new group; over all items, "
        "where large groups weigh more, the error may be larger."
    )
    assert certify_run(run, max_error=0.2, one_a_group=True).rule == rule
    with pytest.raises(cl.CredalError, match=r"--capacity is a share of all items, and --one-a-"):
        certify_run(run, capacity=0.2, one_a_group=True)
    alone = fake_run(tmp_path / "alone", num_items=60)
    with pytest.raises(cl.CredalError, match=r"items of .*alone are of no groups.*--group COLUMN"):
        certify_run(alone, max_error=0.2, one_a_group=True)


def test_a_group_with_one_known_truth_is_calibrated_on(tmp_path: Path) -> None:
    run = grouped(fake_run(tmp_path / "run"), 3)
    table = run.predictions.with_row_index()
    lacking = pl.when(pl.col("index") % 3 == 0).then(pl.col("wrong"))  # one of each group is left
    table.with_columns(wrong=lacking).drop("index").write_parquet(run.path / "predictions.parquet")
    rule = certify_run(Run.load(run.path), max_error=0.3, one_a_group=True).rule
    known = run.predictions.filter(split="calibration").with_row_index()
    assert rule.num_items > 0.9 * len(known) / 3
    assert rule.left_out < 0.1 * len(known) / 3


def test_one_item_a_group_keeps_the_promise_that_whole_groups_break() -> None:
    """Whole groups are wrong together, 16 % of them; an error of 15 % is certified falsely."""
    noise = np.random.default_rng(0)
    broken = {"all": 0, "one": 0}
    for _ in range(400):
        wrong = np.repeat(noise.random(80) < 0.16, 10)
        group = np.repeat(np.arange(80), 10)
        table = pl.DataFrame({"score": noise.random(800), "wrong": wrong, "group": group})
        for name, rows in (
            ("all", table),
            ("one", draw_one_a_group(table, pl.col("wrong").is_not_null())),
        ):
            sample = as_sample(rows["score"].to_numpy(), rows["wrong"].to_numpy())
            broken[name] += selective_guaranteed_risk(sample, 0.15, 0.05) is not None
    assert broken["all"] > 0.05 * 400
    assert broken["one"] <= 0.05 * 400


# Inspecting


def votes_file(folder: Path, *rows: str) -> Path:
    path = folder / "votes.csv"
    path.write_text("\n".join(["item,annotator,label", *rows, ""]))
    return path


def test_an_inspection_says_who_disagrees_about_what(tmp_path: Path) -> None:
    rows = []
    for number in range(40):
        label = ("horse", "zebra")[number % 2]
        rows += [f"x{number},{who},{label}" for who in ("ann", "bo", "cy")]
        rows.append(f"x{number},contrary,{('zebra', 'horse')[number % 2]}")
    rows += ["y,ann,horse", "y,bo,zebra", "z,ann,hrose", "z,bo,horse"]
    lines = inspection(read_annotations(votes_file(tmp_path, *rows)))
    text = "\n".join(lines)
    for said in (
        "42 items, 4 annotators, 164 votes; classes horse, hrose, zebra",
        "votes an item: 2 to 4, 4 in the middle",
        "0 % are unanimous and 4.76 % tie; Krippendorff's alpha -0.006",
        "people confuse most: horse and zebra (99.2 %)",
        "far from the rest: contrary agrees with the others' majority on 0 of 40 items",
        "a typo? 'hrose' is seen once and looks like 'horse', seen 82 times: 1 letter differs",
    ):
        assert said in text
    assert not [line for line in lines if "\n" in line]


def test_labels_that_may_be_no_answer_are_told_with_the_option(tmp_path: Path) -> None:
    rows = ("a,ann,cat", "a,bo,idk", "b,ann,dog", "b,bo,N/A", "c,ann,?", "c,bo,Don't know")
    path = votes_file(tmp_path, *rows)
    lines = inspection(read_annotations(path, unsure=["zebra"]))
    told = """if people mean that they do not know, say --unsure '?' --unsure 'Don'"'"'t know' """
    assert [line for line in lines if line.startswith("no answer?")] == [
        f"""no answer? '?', "Don't know", 'N/A', 'idk': {told}--unsure N/A --unsure idk"""
    ]
    assert "--unsure 'zebra' changes nothing: no answer is this" in lines
    unsure = ["?", "Don't know", "N/A", "idk"]
    text = "\n".join(inspection(read_annotations(path, unsure=unsure)))
    assert "no answer" not in text
    assert "unsure: 4" in text
    path.write_text("item,count_cat,count_idk\nx,1,2\ny,2,1\n")
    text = "\n".join(inspection(read_annotations(path, unsure=["idk"])))
    assert "--unsure 'idk' changes nothing: it is for votes one by one" in text


def test_what_was_merged_follows_the_first_line(tmp_path: Path) -> None:
    path = votes_file(tmp_path, "a,ann,cat", "b,bo,dog")
    lines = inspection(read_rounds(path, [path], {}))
    assert lines[0].startswith(f"{path}: one row a vote")
    assert lines[1] == f"{path} adds 0 items and 0 votes; 2 votes were there before"


def test_one_vote_an_item_is_said(tmp_path: Path) -> None:
    path = votes_file(tmp_path, "a,ann,cat", "b,bo,dog")
    lines = inspection(read_annotations(path))
    assert "one vote an item: labels collapse to hard ones" in lines[-1]
    facts = annotation_facts(read_annotations(path))
    assert facts.agreement.votes_an_item == [1, 1.0, 1]
    assert facts.agreement.alpha is None
    json.dumps(facts, allow_nan=False)


def test_shares_are_inspected_without_votes(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("item,cat,dog\nx,0.25,0.75\ny,1,0\n")
    lines = inspection(read_annotations(path))
    assert lines[1] == "2 items, probabilities of the classes cat, dog"
    assert annotation_facts(read_annotations(path))["agreement"] is None
