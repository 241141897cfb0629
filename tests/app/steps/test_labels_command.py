"""`credalearn labels`, and the rules and skills that `credalearn train` takes."""

import csv
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest
from credalearn.app.steps.label_figure import coverage_figure, draw_coverage
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from credalearn.app.annotations import read_annotations
from credalearn.app.annotations.examples import three_items
from credalearn.app.cli.options import Labels, Skill
from credalearn.app.items.inputs import read_features
from credalearn.app.joined import options
from credalearn.app.joined.joining import prepare
from credalearn.app.joined.labeling import make_labels, training_labels
from credalearn.app.joined.options import TrainOptions
from credalearn.app.nodules import CLASSES, load_nodules
from credalearn.app.run import Run
from credalearn.app.steps.label_study import LabelStudy, Spread, study_labels
from credalearn.app.steps.label_words import LEGEND, recommendation, split_line
from credalearn.errors import CredalError
from credalearn.labels import PROMISING, VOTE_RULES, VoteRule, from_votes
from credalearn.labels.soft import SOFT_RULES
from credalearn.theory import RuleCoverage, coverage_of_rules, halves_of_counts
from team_files import command, full_disk, in_process, make_team, snapshot, train_arguments

Capture = pytest.CaptureFixture[str]


def write_counts(path: Path, counts: np.ndarray, classes: tuple[str, ...]) -> Path:
    columns = {name: counts[:, place] for place, name in enumerate(classes)}
    names = [f"x{number:04d}" for number in range(len(counts))]
    pl.DataFrame({"item": names, **columns}).write_csv(path)
    return path


# What the command says


def test_what_was_left_out_is_said(tmp_path: Path, capsys: Capture) -> None:
    votes = tmp_path / "votes.csv"
    rows = [f"x{i % 20},{who},{'cat' if i % 3 else 'dog'}" for i in range(40) for who in "abcd"]
    votes.write_text("\n".join(["item,annotator,label", *rows, ""]))
    asked = ("labels", votes, "--splits", "2", "--rule", "precise")
    assert "To fix: say --repeats last" in in_process(capsys, *asked).err
    said = in_process(capsys, *asked, "--repeats", "last").out.splitlines()[1]
    assert said == "repeated: 24; replaced by the annotator's last answer: 56"


def test_the_radiologists(tmp_path: Path) -> None:
    votes = write_counts(tmp_path / "votes.csv", load_nodules().votes, CLASSES)
    table, figure = tmp_path / "table.csv", tmp_path / "coverage.png"
    done = command(
        *("labels", votes, "--format", "counts", "--splits", "5"),
        *("-o", table, "--figure", figure),
    )
    assert done.code == 0, done.err
    for said in (
        "votes.csv: 1,395 items, 3 classes (one row an item",
        "5 splits of each item's votes; votes an item: 2 build, 2 (1 to 2) held out",
        "No rule can be named by these votes: clopper-pearson has the smallest sets",
        "idm and hull fail.",
    ):
        assert said in done.out
    assert not done.err
    with table.open(newline="") as file:
        rows = {row["rule"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(VOTE_RULES)
    # Two radiologists who agree say 100 %; the next one agrees with them in under a half.
    assert float(rows["relax"]["stated"]) == pytest.approx(0.734, abs=0.01)
    assert float(rows["relax"]["held_out"]) == pytest.approx(0.433, abs=0.02)
    assert rows["relax"]["fails"] == "both"
    assert rows["idm"]["fails"] == "bound"
    assert rows["clopper-pearson"]["fails"] == ""
    assert rows["total-variation"]["votes_needed"] == ""  # nothing can reject a vacuous set
    assert figure.stat().st_size > 10_000


def test_named_annotators_are_split(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=80)
    table = tmp_path / "table.jsonl"
    done = in_process(
        *(capsys, "labels", team.votes, "--splits", 4, "--rule", "idm", "--rule", "relax"),
        *("--share", 0.6, "-o", table),
    )
    assert done.code == 0, done.err
    assert "80 items, 5 annotators, 3 classes" in done.out
    assert "4 splits of the annotators; votes an item: 3 build, 2 held out" in done.out
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    assert [row["rule"] for row in rows] == ["relax", "idm"]  # in the order of the rules
    again, other = (
        in_process(
            *(capsys, "labels", team.votes, "--splits", 4, "--rule", "idm", "--rule", "relax"),
            *("--share", 0.6, "--random-state", random_state),
        )
        for random_state in (0, 1)
    )
    assert again.out == done.out.replace(f"{table}\n", "")  # the same random_state, the same table
    assert other.out != again.out


def test_skill_stands_between_votes_and_rules(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=60)
    equal, skilled = (
        in_process(capsys, "labels", team.votes, "--splits", 2, "--rule", "idm", "--skill", skill)
        for skill in ("equal", "dawid-skene")
    )
    assert equal.code == skilled.code == 0, skilled.err
    assert equal.out != skilled.out


def test_help_names_every_rule(capsys: Capture) -> None:
    assert [each.value for each in Labels] == list(VOTE_RULES) == list(get_args(VoteRule))
    assert [each.value for each in Skill] == list(get_args(options.Skill))
    done = in_process(capsys, "labels", "--help")
    assert done.code == 0
    assert "--rule" in done.out


# What it refuses


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("item,cat,dog\nx,0.5,0.5\ny,0.25,0.75\n", (), "holds probabilities, of which nothing"),
        ("item,label,at_least\nx,cat,0.7\ny,dog,0.6\n", (), "holds bounds, of which nothing"),
        ("item,annotator,label\nx,ann,cat\ny,bo,dog\n", (), "no item of .* has two votes"),
        ("item,annotator,label\nx,ann,cat\nx,bo,cat\n", (), "every vote is for one class, 'cat'"),
        (
            "item,annotator,label,weight\nx,ann,cat,1\nx,bo,dog,0.5\n",
            ("--weight", "weight"),
            "item 'x' of .* has the weight 0.5. To fix: leave --weight out",
        ),
        (
            "item,annotator,label,weight\nx,ann,cat,2\nx,bo,dog,1\n",
            (),
            "item 'x' of .* has the weight 2. To fix: .*or drop the column 'weight'",
        ),
        (
            "item,annotator,label,weight\nx,ann,cat,2\nx,bo,dog,1\n",
            ("--skill", "dawid-skene"),
            "has the weight 2. To fix: .*or drop the column 'weight'",
        ),
        (
            "item,cat,dog\nx,30,5\ny,11,22\n",
            ("--format", "counts", "--skill", "dawid-skene"),
            "holds counts. To fix: .*leave --skill out",
        ),
        ("item,annotator,label\nx,ann,cat\nx,bo,dog\n", ("--share", "1"), r"share must lie in \(0"),
        (
            "item,annotator,label\nx,ann,cat\nx,bo,dog\n",
            ("--share", "0"),
            r"share must lie in .*; got 0.0. To fix: give a share",
        ),
        (
            "item,annotator,label\nx,ann,cat\nx,bo,dog\n",
            ("--s", "0"),
            "s must be above 0 and finite; got 0.0. To fix: give 1",
        ),
        (
            "item,annotator,label\nx,ann,cat\nx,bo,dog\n",
            ("--confidence", "95"),
            r"confidence must lie in \(0, 1\); got 95.0. To fix: write 95 % as 0.95",
        ),
        (
            "item,annotator,label\nx,ann,cat\nx,bo,dog\ny,ann,cat\n",
            (),
            "only one item of .* on both sides .*nothing can be told .*To fix: have more items",
        ),
        (
            "item,cat,dog\nx,1,2\ny,1e9,1\nz,2,2e9\n",
            ("--format", "counts"),
            "fewer than 1,000,000,000 votes to be split; row 1 has 1,000,000,001. To fix: leave it",
        ),
        ("item,annotator,label\nx,ann,cat\nx,bo,dog\n", ("--figure", "a.gif"), "one of .png, "),
        (
            "item,annotator,label\nx,ann,cat\nx,bo,dog\n",
            ("--classes", "cat,dog"),
            "--classes takes one class; got 'cat,dog'. To fix: repeat it: --classes cat --cl",
        ),
        ("item,annotator,label\nx,ann,cat\nx,bo,dog\n", ("-o", "a.xlsx"), "must end in one of"),
    ],
)
def test_bad_input_ends_with_one_message(
    tmp_path: Path, capsys: Capture, text: str, more: tuple[str, ...], message: str
) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text(text)
    done = in_process(capsys, "labels", votes, "--splits", 2, *more)
    assert done.code == 2
    assert done.err.startswith("credalearn: ")
    assert "Traceback" not in done.err
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(done.err)


@pytest.mark.parametrize("option", ["--figure", "-o"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: Capture, option: str
) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("item,annotator,label\nx,ann,cat\nx,bo,dog\n")
    path = f"/proc/x/y{'.png' if option == '--figure' else '.csv'}"
    done = in_process(capsys, "labels", votes, option, path)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(f"credalearn: {path} cannot be written: ")
    assert "To fix: name another file." in done.err.replace("\n", " ")


def test_votes_of_one_person_leave_nobody_to_ask(tmp_path: Path, capsys: Capture) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("item,annotator,label\nx,ann,cat\nx,,dog\ny,ann,dog\ny,,dog\n")
    done = in_process(capsys, "labels", votes)
    assert done.code == 2
    assert "2 items, 1 annotator, 2 classes" in done.out
    assert "names 'ann' alone and leaves 2 of 4 votes without a name" in done.err
    assert "To fix: name everybody, or drop the column of the names" in done.err
    votes.write_text("item,label\nx,cat\nx,dog\ny,dog\ny,dog\n")
    done = in_process(capsys, "labels", votes, "--rule", "idm")
    assert done.code == 0, done.err  # as the message says


@pytest.mark.parametrize(("flag", "name"), [("-o", "votes.csv"), ("--figure", "votes.png")])
@pytest.mark.parametrize("link", [False, True])
def test_the_votes_are_never_overwritten(
    tmp_path: Path, capsys: Capture, flag: str, name: str, link: bool
) -> None:
    votes = tmp_path / name
    votes.write_text("item,label\nx,cat\nx,dog\ny,dog\ny,dog\n")
    output = tmp_path / f"linked{votes.suffix}" if link else votes
    if link:
        output.symlink_to(votes)
    before = snapshot(tmp_path)
    done = in_process(capsys, "labels", votes, "--rule", "idm", "--splits", 2, flag, output)
    assert done.code == 2
    assert f"{output} is the data itself. To fix: name another output" in done.err
    assert not done.out  # before the work, not after it
    assert snapshot(tmp_path) == before


def test_items_that_never_return_tell_nothing(tmp_path: Path, capsys: Capture) -> None:
    """Each item has two people, who are on different sides in one of the two splits alone."""
    votes = tmp_path / "votes.csv"
    votes.write_text("item,annotator,label\nx,a,cat\nx,b,dog\ny,a,cat\ny,c,dog\n")
    done = in_process(capsys, "labels", votes, "--splits", 2, "--random-state", 6)
    assert done.code == 2
    assert "no item of" in done.err
    assert "votes on both sides of more than one split" in done.err
    assert "splits is 2. To fix: give --splits 20" in done.err
    done = in_process(capsys, "labels", votes, "--splits", 20)
    assert done.code == 0, done.err  # as the message says


def test_many_votes_of_an_item_take_no_memory(tmp_path: Path) -> None:
    """A list of every number of votes up to the most would be 450 million long."""
    many = np.array([[9 * 10**8, 1], [2, 8 * 10**8]])
    path = write_counts(tmp_path / "votes.csv", many, ("cat", "dog"))
    study = study_labels(read_annotations(path, format="counts"), rules=("idm",), splits=2)
    assert (study.building.fewest, study.building.most) == (4 * 10**8 + 1, 45 * 10**7 + 1)


def test_one_split_is_too_few() -> None:
    with pytest.raises(CredalError, match=r"splits must be 2 or more.*got 1. To fix: give 20"):
        study_labels(three_items(), splits=1)


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=30)
    before = snapshot(tmp_path)
    with full_disk(100):
        done = in_process(
            capsys, "labels", team.votes, "--splits", 2, "--figure", tmp_path / "coverage.png"
        )
    assert done.code == 2
    assert snapshot(tmp_path) == before


# The recommendation, case by case


def rule_of(name: str, **changes: float) -> RuleCoverage:
    plain = RuleCoverage(name, 100, 0.2, 0.97, 0.01, 1.0, 0.6, 0.7, 0.01, 2.0)
    return replace(plain, **changes)  # type: ignore[arg-type]


def study_of(*rules: RuleCoverage, most: int = 9) -> LabelStudy:
    spread = Spread(1, 1.0, most)
    return LabelStudy(rules, 100, spread, spread, 20, people=True, confidence=0.95)


def test_the_smallest_sets_that_hold_are_named() -> None:
    study = study_of(
        rule_of("relax", diameter=0.1, agree=0.90),
        rule_of("precise", diameter=0.0, stated=0.73),
        rule_of("idm", diameter=0.3),
        rule_of("hull", diameter=0.4, agree=0.99),
    )
    assert study.best is study.rules[2]
    assert [study.fails(each) for each in study.rules] == ["agree", "bound", "", ""]
    assert recommendation(study).startswith("Take idm: the one of smallest sets of the rules whose")
    only = study_of(study.rules[0], study.rules[3])
    assert recommendation(only).startswith("Take hull: the only one of the rules whose")


def test_what_agreement_is_worth_is_said_with_the_price_of_a_promise() -> None:
    """Whatever is to be taken, the user learns which rules promise more, and how wide they are."""
    assert set(PROMISING) < set(VOTE_RULES)
    wide = rule_of("clopper-pearson", diameter=0.5)
    wrong = rule_of("total-variation", diameter=0.75, agree=0.5)
    for best in (rule_of("idm"), rule_of("idm", testable=0.3)):
        told = recommendation(study_of(best, wide, wrong))
        assert told.startswith("Take idm")
        assert "Coverage is at most agree / 0.95, and may be far less" in told
        promise = "clopper-pearson (mean diameter 0.500) and total-variation (mean diameter 0.750, "
        assert f"promise it of independent votes: {promise}fails here).\nWhich rule to" in told
    untried = recommendation(study_of(rule_of("idm")))
    assert (
        "clopper-pearson-intervals and total-variation, none of them tried here.\nWhich" in untried
    )
    hard = recommendation(study_of(rule_of("idm", testable=0.0), wide))
    assert "promise it of independent votes: clopper-pearson (mean diameter 0.500)." in hard
    skilled = recommendation(replace(study_of(rule_of("idm"), wide), skill="dawid-skene"))
    assert "no rule promises to contain a distribution." in skilled


def test_fifty_votes_do_not_make_a_point_hold() -> None:
    """Agreement of 95 % where 6 % of the sets hold the truth: the sentence must not hide that."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(10, 0.1), 1000)
    halves = list(halves_of_counts(rng.multinomial(50, probs), splits=2))
    (idm,) = coverage_of_rules(halves, rules=["idm"])
    truly = from_votes(halves[0].building, rule="idm").contains(probs).double().mean().item()
    assert idm.agree > 0.94
    assert truly < 0.1
    assert "Coverage is at most agree / 0.95" in LEGEND
    assert "Coverage is at most agree / 0.95" in recommendation(study_of(idm))


def test_what_is_said_of_learning_stays_true_whatever_is_measured() -> None:
    told = recommendation(study_of(rule_of("idm")))
    assert "docs/few-votes.md shows how accurately models learned" in told
    for text in (told, from_votes.__doc__ or ""):
        assert "docs/few-votes.md" in text
        assert "wherever it was measured" not in text


def test_a_confidence_is_not_rounded_up_to_certainty() -> None:
    study = replace(study_of(rule_of("idm", agree=1.0)), confidence=0.999999999)
    assert "for 99.9999999 % of the items" in recommendation(study)
    assert "100 %" not in recommendation(study)
    axes = Figure().subplots()
    draw_coverage(axes, study)
    assert "wanted: 99.9999999 %" in axes.get_legend_handles_labels()[1]
    assert axes.get_ylabel().endswith("coverage is at most this / 0.95")


def test_two_standard_errors_are_forgiven_and_no_more() -> None:
    assert study_of(rule_of("idm", agree=0.931)).best is not None
    assert study_of(rule_of("idm", agree=0.929)).best is None
    assert study_of(rule_of("idm", stated=0.719)).best is not None
    assert study_of(rule_of("idm", stated=0.721)).best is None


def test_few_votes_are_said_to_be_few() -> None:
    weak = study_of(rule_of("idm", testable=0.3, votes_needed=7.0))
    assert "with care" in recommendation(weak)
    assert "1 (1 to 9) held-out votes an item can reject only 30 %" in recommendation(weak)
    assert "It takes 7 held-out votes an item" in recommendation(weak)
    none = study_of(
        rule_of("relax", agree=0.8),
        rule_of("idm", testable=0.0, votes_needed=float("inf")),
        most=1,
    )
    told = recommendation(none)
    assert told.startswith("No rule can be named by these votes: idm has the smallest sets")
    assert "1 held-out vote an item can reject none of its sets" in told
    assert "No number of held-out votes" in told
    assert "What can be told: relax fails.\n" in told


def test_where_no_rule_holds_that_is_said() -> None:
    study = study_of(rule_of("relax", agree=0.8), rule_of("precise", agree=0.9, stated=0.8))
    told = recommendation(study)
    assert told.startswith("No rule of these holds: precise, which comes nearest, agrees with")
    assert "the held-out votes for 90 % and not 95 %" in told
    assert "states 80 % where the held-out votes give 70 %" in told


def test_items_left_out_are_counted() -> None:
    study = replace(study_of(rule_of("idm")), items=130)
    assert "30 items never have votes on both sides and are left out" in split_line(study)
    study = replace(study, items=101)
    assert "1 item never has votes on both sides and is left out" in split_line(study)
    alone = study_of(rule_of("idm", testable=0.3, votes_needed=1.0))
    assert "It takes 1 held-out vote an item" in recommendation(alone)


@pytest.mark.parametrize(
    "points",
    [  # diameter and agreement as radiologists, CIFAR-10H and CIFAR-10N give them
        [
            (0.27, 0.73),
            (0.21, 0.68),
            (0, 0.55),
            (0.33, 1),
            (0.93, 1),
            (0.95, 1),
            (1, 1),
            (0.53, 0.55),
        ],
        [
            (0.05, 0.84),
            (0.04, 0.84),
            (0, 0.72),
            (0.04, 1),
            (0.24, 1),
            (0.27, 1),
            (0.48, 1),
            (0.41, 0.72),
        ],
        [
            (0.14, 0.89),
            (0.11, 0.87),
            (0, 0.83),
            (0.33, 1),
            (0.95, 1),
            (0.96, 1),
            (1, 1),
            (0.28, 0.83),
        ],
    ],
)
def test_names_in_the_figure_do_not_meet(points: list[tuple[float, float]]) -> None:
    rules = [
        rule_of(name, diameter=diameter, agree=agree)
        for name, (diameter, agree) in zip(VOTE_RULES, points, strict=True)
    ]
    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    axes = FigureCanvasAgg(figure).figure.subplots()
    draw_coverage(axes, study_of(*rules))
    figure.draw_without_rendering()
    legend = axes.get_legend()
    assert legend is not None
    names = {text.get_text(): text.get_window_extent() for text in legend.get_texts()}
    assert list(names) == [*VOTE_RULES, "wanted: 95 %"]
    assert not axes.texts  # no name among the points
    for first, second in combinations(names.values(), 2):
        assert not first.overlaps(second)
    for box in names.values():
        assert axes.get_window_extent().x1 < box.x0
        assert box.x1 <= figure.bbox.x1


def test_of_points_at_one_place_each_is_seen() -> None:
    """Of two votes relax-ties and precise make the same sets."""
    study = study_of(*(rule_of(name, diameter=0.0, agree=0.6) for name in VOTE_RULES))
    axes = Figure().subplots()
    draw_coverage(axes, study)
    points = [line for line in axes.lines if line.get_label() in VOTE_RULES]
    looks = [(point.get_markersize(), point.get_marker()) for point in points]
    assert looks == sorted(looks, key=lambda look: -look[0])  # drawn later, smaller
    assert len(set(looks)) == len({size for size, _ in looks}) == len(VOTE_RULES)
    assert {point.get_markerfacecolor() for point in points} == {"none"}


def test_the_figure_says_what_a_name_s_look_means() -> None:
    study = study_of(
        rule_of("precise", agree=0.5), rule_of("idm", diameter=0.3), rule_of("hull", testable=0.0)
    )
    axes = Figure().subplots()
    draw_coverage(axes, study)
    legend = axes.get_legend()
    assert legend is not None
    looks = {
        text.get_text(): (text.get_fontweight(), text.get_fontstyle())
        for text in legend.get_texts()
    }
    assert looks["precise"] == ("normal", "normal")
    assert looks["hull"][1] == "italic"
    assert "slanted: too few votes to test it" in legend.get_title().get_text()
    assert study.best is not None
    assert looks[study.best.rule][0] == "bold"
    assert "bold: smallest sets of the filled" in legend.get_title().get_text()
    axes = Figure().subplots()
    draw_coverage(axes, study_of(rule_of("precise", agree=0.5)))
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "hollow: something speaks against it"


@pytest.mark.parametrize("suffix", ["png", "PNG", "svg", "pdf"])
def test_the_figure_is_what_its_name_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"coverage.{suffix}"
    coverage_figure(study_of(rule_of("idm"), rule_of("hull", agree_error=float("inf"))), path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(start[suffix.lower()])
    (tmp_path / "a.png").mkdir()
    with pytest.raises(CredalError, match="is a folder"):
        coverage_figure(study_of(rule_of("idm")), tmp_path / "a.png")


# Labels to learn from


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_an_item_that_all_are_unsure_of_is_open_under_every_rule(rule: VoteRule) -> None:
    counts = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    posterior = np.array([[0.9, 0.1, 0.0], [0.4, 0.3, 0.3], [0.0, 1.0, 0.0]])
    for labels in (
        make_labels(three_items(), counts, rule),
        make_labels(three_items(), counts, rule, posterior=posterior),
    ):
        assert labels.lower[1].tolist() == [0, 0, 0]
        assert labels.upper[1].tolist() == [1, 1, 1]
        assert labels.diameter()[1] == 1
        assert labels.diameter()[2] < 1  # the others are as the rule makes them
        assert labels.contains(labels.reference).all()


@pytest.mark.parametrize("rule", sorted(set(VOTE_RULES) - set(SOFT_RULES)))
def test_rules_that_count_refuse_weights(rule: VoteRule) -> None:
    with pytest.raises(CredalError, match=rf"the rule '{rule}' counts votes.*such as 0.5"):
        make_labels(three_items(), np.array([[0.5, 1.0]]), rule)
    found = three_items()
    twice = replace(found, table=found.table.with_columns(weight=pl.lit(2.0)), known=None)
    with pytest.raises(
        CredalError, match=rf"'{rule}' counts votes; .*has the weight 2. .*'weight'.*relax-ties"
    ):
        make_labels(twice, twice.counts(), rule)


@pytest.mark.parametrize("rule", SOFT_RULES)
def test_shares_are_enough_for_the_rest(rule: VoteRule) -> None:
    weighted = make_labels(three_items(), np.array([[1.5, 0.5], [0.0, 0.0]]), rule)
    counted = make_labels(three_items(), np.array([[3.0, 1.0], [0.0, 0.0]]), rule)
    np.testing.assert_array_equal(weighted.lower, counted.lower)


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_training_takes_every_rule(tmp_path: Path, capsys: Capture, rule: str) -> None:
    team = make_team(tmp_path, num_items=40)
    done = in_process(capsys, *train_arguments(team, "--labels", rule, "--epochs", "1"))
    assert done.code == 0, done.err
    assert Run.load(team.run).facts.label_rule == rule


def test_training_takes_the_annotators_skill(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path, num_items=60)
    arguments = train_arguments(team, "--skill", "dawid-skene", "--labels", "idm", "--epochs", "1")
    done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    facts = Run.load(team.run).facts
    assert facts.options.skill == "dawid-skene"
    assert facts.truth == "majority"
    plain = make_team(tmp_path / "plain", num_items=60)
    done = in_process(capsys, *train_arguments(plain, "--labels", "idm", "--epochs", "1"))
    items, others = Run.load(team.run).items, Run.load(plain.run).items
    assert items.equals(others)  # the split and the truth are the same
    assert facts.loss_curve != Run.load(plain.run).facts.loss_curve


def test_skill_is_learned_from_training_items_alone(tmp_path: Path) -> None:
    """Other answers about calibration and test items must not move a label that is learned from."""
    team = make_team(tmp_path, num_items=60)
    chosen = TrainOptions(skill="dawid-skene", labels="idm")
    drop = ("patient", "truth", "part")
    table = read_features(team.features, drop=drop)
    said = read_annotations(team.votes)
    first = prepare(said, table, chosen)
    labels = training_labels(said, first, chosen)
    training = np.array(first.split) == "train"
    held_out = {item for item, used in zip(first.items, training, strict=True) if not used}
    votes = pl.read_csv(team.votes)
    swapped = pl.when(pl.col("item").is_in(sorted(held_out))).then(pl.lit("cat"))
    votes.with_columns(label=swapped.otherwise(pl.col("label"))).write_csv(team.votes)
    said = read_annotations(team.votes)
    second = prepare(said, table, chosen)
    assert second.split == first.split
    np.testing.assert_array_equal(labels.lower, training_labels(said, second, chosen).lower)
    assert len(labels) == training.sum()
    assert (labels.lower.sum(1) > 0.5).all()
    assert (first.truth[~training] != second.truth[~training]).any()


def test_skill_and_a_split_of_ones_own(tmp_path: Path) -> None:
    team = make_team(tmp_path, num_items=60)
    table = read_features(team.features, extra=("part",), drop=("patient", "truth"))
    chosen = TrainOptions(skill="dawid-skene", split="part")
    found = prepare(read_annotations(team.votes), table, chosen)
    assert found.split == pl.read_csv(team.features)["part"].to_list()


def test_skill_of_stated_bounds_is_refused(tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("item,label,at_least\nx,cat,0.7\ny,dog,0.6\n")
    with pytest.raises(CredalError, match="label rules are held against votes"):
        study_labels(read_annotations(votes), skill="dawid-skene")
    with pytest.raises(CredalError, match="skill must be one of 'equal'"):
        TrainOptions(skill="best")  # type: ignore[arg-type]


def test_who_stops_it_is_told_that_nothing_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("credalearn.app.steps.label_study.study_labels", stop)
    team = make_team(tmp_path)
    before = snapshot(tmp_path)
    done = in_process(capsys, "labels", team.votes, "-o", tmp_path / "out.csv")
    assert (done.code, done.err) == (130, "credalearn: stopped; nothing was written\n")
    assert snapshot(tmp_path) == before
    monkeypatch.setattr("credalearn.app.joined.rounds.read_rounds", stop)
    done = in_process(capsys, "inspect", team.votes)
    assert (done.code, done.err) == (130, "credalearn: stopped\n")
