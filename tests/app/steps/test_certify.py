"""``certify`` on a run: the guarantee of its calibration items, checked on its test items."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

import credalearn as cl
from credalearn._formats import number as in_digits
from credalearn._formats import percent
from credalearn.app.report.baseline import above_promise
from credalearn.app.steps.certify import Certificate, certify
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.guarantees import CertifyMethod, Guarantee, by_capacity
from fake_run import fake_run, grouped, rows_of, with_facts, with_folds
from present import present
from team_files import full_disk, snapshot


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> cl.Run:
    """A run of 300 calibration and 300 test items, a few of them tied; do not change it."""
    return fake_run(tmp_path_factory.mktemp("runs") / "run")


def certified(run: cl.Run, **options: Any) -> tuple[Guarantee, Certificate]:
    (run.path / "requests.json").unlink(missing_ok=True)  # of other tests
    found = certify(run, CertifyOptions(**options))
    return present(found.guarantee), found


@pytest.mark.parametrize("method", get_args(CertifyMethod))
def test_certifies_the_calibration_items(run: cl.Run, method: Any) -> None:
    options = {"max_error": 0.1, "confidence": 0.9, "method": method}
    found, certificate = certified(run, **options)
    rows = rows_of(run, "calibration")[0]
    known = [row for row in rows if row["wrong"] is not None]
    wanted = cl.certify([row["score"] for row in known], [row["wrong"] for row in known], **options)
    kept = [row for row in rows if row["score"] <= wanted.threshold]
    ties = sum(row["wrong"] is None for row in kept)
    assert len(known) < len(rows)
    more: dict[str, Any] = {"left_out": len(rows) - len(known), "left_out_kept": ties}
    assert found == replace(wanted, **more, score="lower-probability")
    assert found.coverage == len(kept) / len(rows)
    assert cl.Run.load(run.path).guarantee == found == certificate.run.guarantee


def test_checks_on_the_test_items(run: cl.Run) -> None:
    found, certificate = certified(run, max_error=0.1)
    rows = rows_of(run, "test")[0]
    kept = [row for row in rows if row["score"] <= found.threshold]
    judged = [row for row in kept if row["wrong"] is not None]
    check = present(certificate.check)
    assert (check.items, check.kept, check.judged_kept) == (len(rows), len(kept), len(judged))
    assert check.errors == sum(row["wrong"] for row in judged)


@pytest.mark.parametrize(("wrong", "chance"), [(10, ""), (12, "30 %"), (60, "fewer than 0.1 %")])
def test_says_whether_chance_explains_more_errors_than_promised(wrong: int, chance: str) -> None:
    found = cl.certify([0.0] * 100, [False] * 100, max_error=0.1)
    said, contradicted = above_promise(found, wrong, 100)
    assert (bool(said), contradicted) == (bool(chance), wrong == 60)
    refuted = ", so they contradict the guarantee" if contradicted else ""
    assert said.endswith(
        chance and f"promised 10 %; chance alone gives that much in {chance} of cases{refuted}."
    )
    assert not above_promise(replace(found, num_groups=10), wrong, 100)[1]  # of like items


def test_errors_against_an_annotator_are_shares(run: cl.Run) -> None:
    found, certificate = certified(run, max_error=0.3, against="annotator")
    table = run.predictions.filter(split="calibration")
    score, shares = table["score"].to_numpy(), table["disagreement"].to_numpy()
    assert found == replace(cl.certify(score, shares, max_error=0.3), score="lower-probability")
    assert found.left_out == 0  # tied items have annotators too
    assert "compared with a random annotator" in " ".join(certificate.lines)
    rival, votes = present(certificate.baseline), rows_of(run, "test")[1]  # tied items, too
    shares = votes[:, run.classes.index(rival.name)] / votes.sum(1)
    assert rival.accuracy == pytest.approx(shares.mean())
    assert rival.truth == "a random annotator"
    recall = "Recall among the kept test items, compared with the class with the most votes: "
    assert recall in certificate.lines[-2]
    assert repr(certificate) == "\n".join(certificate.lines)


@pytest.mark.parametrize("kind", ["bounds", "probabilities"])
def test_compares_with_what_people_stated(tmp_path: Path, kind: Any) -> None:
    run = fake_run(tmp_path / "run")
    annotations = replace(run.facts.annotations, kind=kind, votes=None, votes_per_item=None)
    found, certificate = certified(with_facts(run, annotations=annotations), max_error=0.2)
    assert found.against == kind
    assert "votes" not in " ".join(certificate.lines)
    gold, _ = certified(with_facts(run, truth="gold"), max_error=0.2)
    assert gold.against == "gold"


def test_a_capacity_is_a_share_of_all_items(run: cl.Run) -> None:
    """Reviewers can take a quarter of all items, including those whose votes are tied."""
    found, _ = certified(run, capacity=0.25)
    every = run.predictions.filter(split="calibration")
    assert (every["score"] > found.threshold).sum() == len(every) // 4
    known = every.filter(pl.col("wrong").is_not_null())
    score, wrong = known["score"].to_numpy(), known["wrong"].to_numpy()
    kept = score <= found.threshold
    assert (found.kept, found.errors) == (kept.sum(), wrong[kept].sum())
    assert found.interval == by_capacity(score, wrong, defer=int((~kept).sum())).interval
    nothing, certificate = certified(run, capacity=1.0)
    assert nothing.threshold is None
    assert any(re.match(r"300 test items +0.0 % +–", line) for line in certificate.lines)
    assert "Caution" not in repr(certificate)


def test_a_target_out_of_reach_says_what_it_takes_and_changes_nothing(tmp_path: Path) -> None:
    run = certified(fake_run(tmp_path / "run", num_items=200), capacity=0.2)[1].run
    before = snapshot(run.path)
    with pytest.raises(cl.CredalError, match=r"answered a request \(--capacity 0\.2\)"):
        run.certify(max_error=0.01)  # its errors have been seen
    known = run.predictions.filter(pl.col("wrong").is_not_null() & (pl.col("split") != "test"))
    asked: dict[str, Any] = {"max_error": 0.01, "confidence": 0.975}  # half of the risk
    short = cl.certify(known["score"], known["wrong"], **asked).shortfall
    with pytest.raises(cl.CredalError, match=r"1 % with 92.5 % confidence cannot be") as raised:
        certify(run, CertifyOptions(max_error=0.01, set_coverage=0.8, again=True))
    assert f"no guarantee was changed. {short} To fix: " in str(raised.value)
    assert str(raised.value).endswith(
        "or ask for more error than that with again=True, which tests at half the risk."
    )
    after = snapshot(run.path)
    assert after.pop("requests.json") != before.pop("requests.json")
    assert after == before
    with pytest.raises(cl.CredalError, match=r"items of more groups \(patient\)") as raised:
        certify(grouped(run, 2), CertifyOptions(max_error=0.01))
    assert "calibration items of 25 groups (patient); " in str(raised.value)
    assert "groups of calibration items like these" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 25}, "capacity must be 0 or more and at most 1; got 25. To fix: write 25 %"),
        ({"max_error": 10}, "max_error must be above 0 and below 1; got 10. To fix: write 10 %"),
        ({"max_error": float("nan")}, "max_error must be a number"),
        ({"scale": "width"}, "scale must be one of"),
        ({"called": ("cat=2",)}, "called must be above 0"),
        ({"called": ("malignant",)}, "called must look like malignant=0.05; got 'malignant'"),
        ({"missed": ("malignant=often",)}, "missed must end with a number, such as =0.05; got"),
        ({"cost": ("malignant=5",)}, "cost must look like malignant:benign=5; got 'malignant=5'"),
        ({"cost": ("a:b=5",), "capacity": 0.2}, "cost must come with .* pass max_error=0.10"),
        ({"capacity": 0.25, "method": "sgr"}, "method must be left out with a capacity"),
        ({"called": ("a=0.1",), "against": "annotator"}, "classes and costs are about the true"),
        ({"per_class": True, "against": "annotator", "max_error": 0.1}, "costs are about the true"),
        ({"capacity": 0.2, "called": ("a=0.1",)}, "Pass either a capacity or promises about"),
        ({"per_class": True, "called": ("a=0.1",)}, "per_class certifies .* leave out .*called="),
        ({"per_class": True, "set_coverage": 0.9}, "pass max_error=0.10 with it"),
        ({"distance": "total-variation"}, "distance must come .* pass set_coverage=0.90 too"),
    ],
)
def test_rejects_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        CertifyOptions(**options)


def test_rejects_a_run_without_a_truth(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    nothing = {"wrong": pl.lit(None, pl.Boolean), "disagreement": pl.lit(float("nan"))}
    run = with_facts(run, predictions=run.predictions.with_columns(**nothing))
    with pytest.raises(cl.CredalError, match=r"votes are tied.*gold labels.* against='annot"):
        certify(run, CertifyOptions())
    for imported, verb in (("", "train"), ("scores.csv", "import")):
        with pytest.raises(cl.CredalError, match=rf"votes. To fix: {verb} with .* against='truth'"):
            certify(with_facts(run, imported=imported), CertifyOptions(against="annotator"))


def test_a_full_disk_leaves_the_older_guarantee(tmp_path: Path) -> None:
    run = certified(fake_run(tmp_path / "run", num_items=400), max_error=0.2)[1].run
    before = snapshot(run.path)
    with full_disk(100), pytest.raises(cl.CredalError, match=r"requests.json cannot be written"):
        certify(run, CertifyOptions(capacity=0.5))
    assert snapshot(run.path) == before


# Groups, out-of-fold predictions, classes


def test_groups_are_tested_by_betting(tmp_path: Path) -> None:
    run = grouped(fake_run(tmp_path / "run", num_items=2400), 3)
    found, certificate = certified(run, max_error=0.15)
    rows = [row for row in run.held_out("calibration").to_dicts() if row["wrong"] is not None]
    wanted = cl.certify(
        [row["score"] for row in rows],
        [row["wrong"] for row in rows],
        groups=[row["group"] for row in rows],
        max_error=0.15,
    )
    assert (found.method, found.group) == ("betting", "patient")
    assert (found.threshold, found.bound) == (wanted.threshold, wanted.bound)
    assert "a random item of a random new group (patient)" in " ".join(certificate.lines)
    assert "Groups are independent" in " ".join(certificate.assumptions)
    by_name, _ = certified(run, max_error=0.15, method="learn-then-test")
    assert by_name.kept > found.kept
    assert "assumes independent items" in by_name.sentence()


def test_out_of_fold_predictions_fix_the_sequence_and_the_score(tmp_path: Path) -> None:
    run = with_folds(fake_run(tmp_path / "run"), noise=0.3)
    assert run.deferral_score == "top-probability"
    found, certificate = certified(run, max_error=0.1)
    calibration, folds = (
        run.held_out(split).filter(pl.col("wrong").is_not_null())
        for split in ("calibration", "out-of-fold")
    )
    columns = ("top_probability", "wrong", "label", "truth")
    known, other = ([each[name] for name in columns] for each in (calibration, folds))
    reference = cl.ScoredItems(other[0], other[1], predicted=other[2], truth=other[3])
    wanted = cl.certify(known[0], known[1], max_error=0.1, reference=reference)
    assert (found.threshold, found.score) == (wanted.threshold, "top-probability")
    assert found.expected_threshold == wanted.expected_threshold is not None
    assert "the score is one minus the probability of the label, chosen" in certificate.lines[4]
    fixed = "start and order of the tests are fixed by out-of-fold predictions"
    assert fixed in " ".join(certificate.assumptions)
    by_class = certified(run, max_error=0.2, per_class=True, again=True)[1]
    assert fixed in " ".join(by_class.assumptions)
    sgr = certified(run, max_error=0.2, method="sgr", again=True)[1]
    assert "Thresholds are the calibration scores: exact" in " ".join(sgr.assumptions)
    lower, _ = certified(run, max_error=0.3, score="lower-probability")
    assert lower.score == "lower-probability"
    kept = lower.keeps(run.held_out("test", score="lower-probability")["score"].to_numpy())
    assert (
        kept.tolist()
        == (run.predictions.filter(split="test")["score"] <= lower.threshold).to_list()
    )


def test_promises_about_classes(run: cl.Run) -> None:
    found, certificate = certified(
        run, max_error=0.2, called=("malignant=0.2",), missed=("benign=0.3",)
    )
    assert [(each.kind, each.name, each.limit) for each in found.promises] == [
        ("called", "malignant", 0.2),
        ("missed", "benign", 0.3),
    ]
    assert "called malignant are wrong" in " ".join(certificate.lines)
    tested = run.held_out("test").drop_nulls("wrong")
    kept_items = tested.filter(found.keeps(tested["score"].to_numpy()))
    called, truly = kept_items.filter(label="malignant"), kept_items.filter(truth="benign")
    missed = truly.filter(pl.col("label") != "benign")
    assert [(each.kept, each.errors) for each in present(certificate.check).promises] == [
        (len(called), called["wrong"].sum()),
        (len(truly), len(missed)),
    ]
    share = percent(int(called["wrong"].sum()) / len(called), decimals=1)
    said = f"{share} of {len(called)} called malignant are wrong (at most 20 %)"
    assert said in repr(certificate)
    alone, _ = certified(run, called=("malignant=0.2",))
    assert alone.max_error is None
    costs, certificate = certified(
        run, max_error=0.3, cost=("malignant:benign=3",), set_coverage=0.9
    )
    assert len(certificate.lines) <= 8
    assert "calling malignant benign costs 3" in costs.sentence()
    dear, _ = certified(run, max_error=1.5, cost=("malignant:benign=20",))
    assert "is at most 1.5, where calling malignant benign costs 20" in dear.sentence()
    own, certificate = certified(run, max_error=0.15, per_class=True)
    tested = run.held_out("test")
    kept = own.keeps(tested["score"].to_numpy(), tested["label"].to_list())
    assert present(certificate.check).kept == kept.sum()
    limit = in_digits(present(own.class_thresholds[0][1]))
    assert f"the threshold of their class ('benign' {limit}, " in certificate.lines[4]
    with pytest.raises(cl.CredalError, match=r"no class 'cat'; its classes are: 'benign'"):
        certify(run, CertifyOptions(called=("cat=0.1",)))


# Choosing after looking


def test_a_second_request_is_refused_and_the_same_one_repeated(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    first = run.certify(max_error=0.1)
    assert "replaces" not in repr(first) + repr(run.certify(max_error=0.1))
    assert cl.Run.load(run.path).certify(max_error=0.1).guarantee == first.guarantee
    with pytest.raises(cl.CredalError, match=r"answered a request \(--max-error 0\.1\)") as no:
        cl.Run.load(run.path).certify(max_error=0.2)
    said = str(no.value)
    assert "recalibrate on new items, or pass again=True: the confidence is then 92.5 %" in said
    with pytest.raises(cl.CredalError, match="already answered"):
        run.certify(max_error=0.1, score="top-probability")
    run.certify(set_coverage=0.9)  # promises nothing about errors
    assert len(cl.Run.load(run.path).requests) == 1
    for capacity in (0.2, 0.3, 0.2):  # which show an error each
        run = cl.Run.load(run.path).certify(capacity=capacity).run
    assert [each.risk for each in run.requests] == pytest.approx([0.05, 0.025, 0.0125])


def test_further_requests_spend_half_of_what_is_left(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    run.certify(max_error=0.1)
    known = run.predictions.filter(pl.col("wrong").is_not_null(), split="calibration")
    for number, (error, confidence) in enumerate([(0.15, 0.925), (0.2, 0.9125)], start=2):
        found = cl.Run.load(run.path).certify(max_error=error, again=True)
        assert found.guarantee is not None
        assert "This replaces the earlier rule, which kept" in repr(found)
        assert found.guarantee.confidence == pytest.approx(confidence)
        assert found.guarantee.requests == number
        risk = 0.05 / 2 ** (number - 1)
        wanted = cl.certify(known["score"], known["wrong"], max_error=error, confidence=1 - risk)
        assert found.guarantee.threshold == wanted.threshold
        assert f"The confidence counts all {number} requests" in " ".join(found.lines)
    back = present(cl.Run.load(run.path).certify(max_error=0.1).guarantee)
    assert back.confidence == pytest.approx(0.9125)  # the first one, chosen after all others
    with pytest.raises(cl.CredalError, match="already answered"):
        cl.Run.load(run.path).certify(max_error=0.3, method="conformal-risk-control", again=True)


def test_requests_are_not_forgotten_with_their_file(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    run.certify(max_error=0.1)
    run.certify(max_error=0.15, again=True)
    path = run.path / "requests.json"
    path.write_text(path.read_text().replace("asked", "unasked"))
    with pytest.raises(cl.CredalError, match="restore the file, or recalibrate on new items"):
        cl.Run.load(run.path)
    path.unlink()
    with pytest.raises(cl.CredalError, match=r"already answered a request \(--max-error 0\.15\)"):
        cl.Run.load(run.path).certify(max_error=0.2)
    found = present(cl.Run.load(run.path).certify(max_error=0.2, again=True).guarantee)
    assert [found.requests, found.confidence] == pytest.approx([3, 0.9125])


def test_requests_that_fail_count_whichever_record_makes_them(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    other = cl.Run.load(run.path)
    for each in (run, cl.Run.load(run.path)):
        with pytest.raises(cl.CredalError, match="cannot be certified"):
            each.certify(max_error=0.01)
    assert [each.certified for each in cl.Run.load(run.path).requests] == [False]
    with pytest.raises(cl.CredalError, match=r"ERROR --again \(asked before: --max-error 0\.01\)"):
        cl.Run.load(run.path).predict(pl.DataFrame())
    for each in (run, other):
        with pytest.raises(cl.CredalError, match="already answered"):
            each.certify(max_error=0.3)
    found = present(other.certify(max_error=0.3, again=True).guarantee)
    assert found.confidence == pytest.approx(0.925)
    assert len(other.requests) == 2


def test_two_processes_cannot_both_make_the_first_request(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    other = cl.Run.load(run.path)  # as another process does at the same moment
    found = certify(run, CertifyOptions(max_error=0.3))
    with pytest.raises(cl.CredalError, match=r"by another process meanwhile\. To fix: run the"):
        certify(other, CertifyOptions(max_error=0.2))
    again = cl.Run.load(run.path)
    assert again.guarantee == found.guarantee
    assert [each.asked["max_error"] for each in again.requests] == [0.3]


# The verdict


def skewed(folder: Path, **changed: Any) -> cl.Run:
    """A run whose items are nearly all benign, and a model that says benign."""
    run = fake_run(folder, num_items=2000)
    rare = pl.int_range(pl.len()) % 40 == 0
    truth = pl.when(rare).then(pl.lit("malignant")).otherwise(pl.lit("benign"))
    items = run.items.with_columns(truth=truth)
    known = dict(items.select("item", "truth").iter_rows())
    truth = pl.col("item").replace_strict(known)
    predictions = run.predictions.with_columns(truth=truth, label=pl.lit("benign"))
    predictions = predictions.with_columns(wrong=pl.col("truth") != pl.col("label"))
    return with_facts(run, items=items, predictions=predictions.with_columns(**changed))


def test_constant_answer_is_certified_with_caution(tmp_path: Path) -> None:
    _, certificate = certified(skewed(tmp_path / "run"), max_error=0.1)
    rival = present(certificate.baseline)
    assert (rival.name, rival.certified) == ("benign", True)
    tested = certificate.run.held_out("test")
    kept = tested.filter(present(certificate.guarantee).keeps(tested["score"].to_numpy()))
    missed = (kept["truth"] == "malignant").sum()
    assert [(each["name"], each["items"], each["found"]) for each in rival.recalls] == [
        ("benign", len(kept) - missed, len(kept) - missed),
        ("malignant", missed, 0),
    ]
    notes = certificate.lines[-2]
    assert f"the kept test items: benign 100 % of {len(kept) - missed}" in notes
    assert f"Caution: no kept item is called 'malignant', missing {missed} kept test items" in notes
    assert "always answering 'benign' would have been certified too" in notes
    capacity = certificate.run.certify(capacity=0.25).lines  # likewise
    assert capacity[3].startswith("always 'benign', test items")
    assert "malignant 0 % of" in capacity[-2]


@pytest.mark.parametrize(
    ("options", "certified_too"),
    [
        ({"max_error": 0.1, "cost": ("malignant:benign=2",)}, True),
        ({"max_error": 0.04, "cost": ("malignant:benign=5",)}, False),  # its mean cost is 12.5 %
        ({"missed": ("benign=0.1",)}, True),
        ({"max_error": 0.1, "method": "conformal-risk-control"}, True),
        ({"max_error": 0.4, "against": "annotator"}, False),
    ],
)
def test_the_rival_is_judged_by_the_same_promises(
    tmp_path: Path, options: dict[str, Any], certified_too: bool
) -> None:
    run = skewed(tmp_path / "run", label=pl.col("truth"), disagreement=pl.lit(0.0))
    run = with_facts(run, predictions=run.predictions.with_columns(wrong=pl.lit(False)))
    rival = present(certified(run, **options)[1].baseline)
    assert (rival.name, rival.certified) == ("benign", certified_too)
    votes = rows_of(run, "test")[1]
    share = (votes[:, run.classes.index("benign")] / votes.sum(1)).mean()
    assert (rival.accuracy == pytest.approx(share)) == ("against" in options)


def test_prints_at_most_eight_lines(tmp_path: Path) -> None:
    run = skewed(tmp_path / "run").keeping(outdated="accuracy dropped.")
    both = certify(run, CertifyOptions(max_error=0.1, set_coverage=0.9))
    alone = certify(run, CertifyOptions(set_coverage=0.9))
    assert (len(both.lines), len(alone.lines)) == (8, 3)
    for found in (both, alone):
        assert sum("Out of date: accuracy dropped." in line for line in found.lines) == 1
    assert len(both.assumptions) <= 8
