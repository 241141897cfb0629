"""Widened sets on the report page: those that certifying saw, and what they hold."""

import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from scipy.stats import binomtest

from credalearn import CredalError
from credalearn.app.report import LabelSets, WidenedSets
from credalearn.app.report.html import percent, range_bar
from credalearn.app.run import Run
from credalearn.app.steps.covering import certify_sets, keep_sets, kept_and_deferred
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_widened
from credalearn.conformal import Inflation
from fake_run import add_rule, add_sets, fake_run, with_facts
from report_pages import a_profile, rests_on, told


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return add_sets(add_rule(fake_run(tmp_path_factory.mktemp("page") / "nodules", images=True)))


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return write_report(run).read_text(encoding="utf-8")


def test_widened_sets_are_what_certifying_saw(run: Run, page: str) -> None:
    seen = certify_sets(run, coverage=0.9)
    words, gallery = told(page), page.split('id="gallery"')[1].replace("\N{NO-BREAK SPACE}", " ")
    share = percent(seen.widened.covered / 300).replace("\N{NO-BREAK SPACE}", " ")
    exact = binomtest(seen.widened.covered, 300).proportion_ci(0.95, method="exact")
    ends = " to ".join(percent(end).replace("\N{NO-BREAK SPACE}", " ") for end in exact)
    for said in (
        "Widened by what was missed on 300 calibration items, it holds the shares of a new item’s "
        "votes in 90 % of cases or more",
        f"held on test items {share} 95 % interval {ends}; {seen.widened.covered} of 300 with two",
        f"width, as predicted {seen.widened.width_before:.3f} ",
        f"width, widened {seen.widened.width_after:.3f} ",
    ):
        assert said in words
    assert "promise to hold the observed shares of a new item’s votes" in rests_on(page)
    assert "certify" not in words
    assert kept_and_deferred(run)[0] in words
    assert "90 % of new items on average, of items such as these perhaps more, perhaps" in gallery
    assert "Fewer are held than that" not in words
    radius = f"{seen.inflation.radius:.4g}"
    assert f"Distance box, scale relative-variance, radius {radius}: unclear items are" in words
    assert "the box around it" not in words


def test_the_page_says_what_was_chosen_of_how_sets_are_widened(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    add_sets(run, distance="total-variation", scale="none")
    assert run.sets is not None
    words = told(write_report(run).read_text(encoding="utf-8"))
    chosen = f"Distance total-variation, scale none, radius {run.sets.radius:.4g}:"
    assert f"{chosen} all items are widened alike." in words
    assert "the widths are those of the box around it, which holds more." in words


@pytest.mark.parametrize(("items", "seen"), [(30, 20), (300, 50), (50, 400)])
def test_the_usual_share_is_that_of_drawing_both_kinds_of_items(items: int, seen: int) -> None:
    noise = np.random.default_rng(0)
    found = Inflation(coverage=0.9, radius=0.4, distance="box", scale="none", items=items)
    bounds = np.zeros((seen, 2))
    low, high = WidenedSets(found, bounds, bounds, seen, 0, 0.0, 0.0).usual
    shares = []
    for _ in range(4000):  # any continuous nonconformity will do
        radius = np.sort(noise.random(items))[math.ceil(0.9 * (items + 1)) - 1]
        shares.append((noise.random(seen) <= radius).mean())
    below, above = (np.array(shares) < low).mean(), (np.array(shares) > high).mean()
    assert below <= 0.025 + 0.008  # three standard errors of a simulated share
    assert above <= 0.025 + 0.008
    step = 1 / seen  # the next share inwards leaves out too many
    assert (np.array(shares) < low + 1.5 * step).mean() >= 0.025 - 0.008
    assert (np.array(shares) > high - 1.5 * step).mean() >= 0.025 - 0.008
    short = int(low * seen + 0.5) - 1
    assert WidenedSets(found, bounds, bounds, seen, short, 0.0, 0.0).short
    assert not WidenedSets(found, bounds, bounds, seen, short + 1, 0.0, 0.0).short


@pytest.mark.parametrize("kind", ["votes", "counts", "probabilities"])
def test_widened_sets_are_seen_on_the_items_that_certifying_saw_them_on(
    tmp_path: Path, kind: str
) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    test = run.items.filter(split="test")["item"].to_list()
    names = [f"n:{name}" for name in run.classes]
    items = run.items
    if kind == "votes":  # one vote of the first five items, of weight 5; unsure ones of the next
        votes = run.annotations.with_columns(first=pl.int_range(pl.len()).over("item") == 0)
        votes = votes.filter(pl.col("first") | ~pl.col("item").is_in(test[:5])).drop("first")
        unsure = pl.col("item").is_in(test[5:8])
        votes = votes.with_columns(label=pl.when(~unsure).then("label"))
        votes.write_parquet(run.path / "annotations.parquet")
        left_out = 8
    else:
        one = pl.when(~pl.col("item").is_in(test[:5]))
        items = items.with_columns(one.then(name).otherwise(name == names[0]) for name in names)
        total = pl.sum_horizontal(names) if kind == "probabilities" else 1.0
        items = items.with_columns(pl.col(name).cast(pl.Float64) / total for name in names)
        items.write_parquet(run.path / "items.parquet")
        columns = (pl.col(name).alias(name[2:]) for name in names)
        items.select("item", *columns).write_parquet(run.path / "annotations.parquet")
        run = with_facts(run, annotations=run.facts.annotations | {"kind": kind})
        left_out = 5 if kind == "counts" else 0
    wanted = certify_sets(run, coverage=0.8)
    keep_sets(run, wanted.inflation)
    found = read_widened(run)
    assert found is not None
    assert (found.seen, found.covered) == (wanted.widened.seen, wanted.widened.covered)
    assert found.seen == 100 - left_out
    assert found.width_before == pytest.approx(wanted.widened.width_before)
    assert found.width_after == pytest.approx(wanted.widened.width_after)
    assert found.counted == (kind != "probabilities")
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert ("of how many votes is not known" in words) == (kind == "probabilities")


def test_the_stored_radius_counts_and_not_a_new_one(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    stored = Inflation(coverage=0.9, radius=0.01, distance="box", scale="none", items=77)
    keep_sets(run, stored)
    found = read_widened(run)
    assert found is not None
    assert found.inflation == stored
    assert found.short
    text = write_report(run).read_text(encoding="utf-8")
    assert "in 19 draws of 20." in told(text)
    assert "Fewer are held than that: test and calibration items may not" in told(text)
    assert "missed on 77 calibration items" in told(text)
    assert "No error on this page is guaranteed" in rests_on(text)
    run = with_facts(run, splits=run.facts.splits | {"group": "patient"})
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert "in 19 draws of 20, were they independent." in words
    assert "Fewer are held than that; of groups it may be chance." in words
    assert "may not have come alike" not in words


def test_without_widened_sets_the_page_says_how_to_make_them(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "a run", num_items=200)
    text = write_report(run).read_text(encoding="utf-8")
    assert f"credalearn certify '{run.path}' --set-coverage 0.90" in told(text)
    assert "Nothing on this page is guaranteed" in rests_on(text)
    assert "widened set" not in text.split('<section id="gallery"')[1]
    add_sets(run, coverage=0.99)  # takes 99 items, and there are 50
    text = write_report(run).read_text(encoding="utf-8")
    assert "99 % takes 99 calibration items or more, and there are 50" in told(text)
    assert "held on test items" not in told(text)
    assert "Nothing on this page is guaranteed" in rests_on(text)
    assert "widened set" not in text.split('<section id="gallery"')[1]
    (run.path / "sets.json").write_text("{")
    with pytest.raises(CredalError, match=r"sets\.json: .*To fix: credalearn certify"):
        write_report(run)


def test_items_that_nobody_voted_on_twice_show_no_coverage(tmp_path: Path) -> None:
    run = add_sets(fake_run(tmp_path / "run", num_items=200))
    test = run.items.filter(split="test")["item"].to_list()
    said = run.annotations.filter(~pl.col("item").is_in(test))
    said.write_parquet(run.path / "annotations.parquet")
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert "held on test items – none is with two votes or more" in words
    assert "width" not in words.split("held on test items")[1]


def test_the_gallery_shows_the_widened_bounds(run: Run, page: str) -> None:
    inflation = run.sets
    assert inflation is not None
    table = run.predictions.filter(split="test").sort("score", descending=True)
    cards = page.split('<ul class="gallery">')[1].split("</ul>")[0].split("<li>")[1:]
    assert len(cards) == 24
    for row, card in zip(table.iter_rows(named=True), cards, strict=False):
        parts = (
            torch.tensor([[row[f"{part}:{name}"] for name in run.classes]])
            for part in ("lower", "upper", "p")
        )
        lower, upper = (bound[0].tolist() for bound in inflation.widen(*parts))
        shown = re.findall(r'rowspan="2">(.*?)</th>.*?widened set .*?number">(.*?)</span>', card)
        assert len(shown) == 3
        for name, numbers in shown:
            k = run.classes.index(name)
            assert numbers in range_bar(lower[k], upper[k])


def test_runs_are_compared_by_sets_of_equal_coverage(tmp_path: Path) -> None:
    one, other, wide, none = (
        fake_run(tmp_path / name, method=method, num_items=400)
        for name, method in (("a", "pocc"), ("b", "softmax"), ("c", "pocc"), ("d", "pocc"))
    )
    add_sets(one)
    add_sets(wide, coverage=0.95)
    heading = "width of sets that hold 90\N{NO-BREAK SPACE}%"
    assert heading not in write_report(one).read_text(encoding="utf-8")
    assert heading not in write_report(one, others=[wide]).read_text(encoding="utf-8")
    assert heading not in write_report(other, others=[one]).read_text(encoding="utf-8")
    add_sets(other)
    text = write_report(one, others=[other, wide, none]).read_text(encoding="utf-8")
    assert heading in text
    rows = re.findall(r'<tr><th scope="row">([abcd])</th>.*?<td>([^<]*)</td></tr>', text)
    widths = [
        f"{certify_sets(each, coverage=0.9).widened.width_after:.3f}" for each in (one, other)
    ]
    assert rows == list(zip("abcd", [*widths, "–", "–"], strict=True))
    add_sets(other, scale="binomial")
    assert heading in write_report(one, others=[other]).read_text(encoding="utf-8")
    add_sets(other, distance="total-variation")  # whose box is more than the set
    assert heading not in write_report(one, others=[other]).read_text(encoding="utf-8")


def test_what_sets_hold_is_checked() -> None:
    with pytest.raises(CredalError, match="hold a risk profile or say why there is none"):
        LabelSets("relax", None)
    found = Inflation(coverage=0.9, radius=0.4, distance="box", scale="none", items=300)
    with pytest.raises(CredalError, match=r"one shape \(N, K\); got \(3, 2\) and \(2, 2\)"):
        WidenedSets(found, np.zeros((3, 2)), np.ones((2, 2)), 1, 1, 0.1, 0.2)
    with pytest.raises(CredalError, match="got 3 covered of 2 seen of 3"):
        WidenedSets(found, np.zeros((3, 2)), np.ones((3, 2)), 2, 3, 0.1, 0.2)
    profile = a_profile(0.2, 0.6)
    assert LabelSets("total-variation", profile).promised
    assert not LabelSets("total-variation", profile, skilled=True).promised
    none = WidenedSets(found, np.zeros((3, 2)), np.ones((3, 2)), 0, 0, 0.0, 0.0)
    assert none.saying_nothing == 1
    half = np.array([[0.0, 0.0], [0.1, 0.0]])
    assert WidenedSets(found, half, 1 - half, 0, 0, 0.0, 0.0).saying_nothing == 1
    some = WidenedSets(found, half + np.array([0.0, 0.1]), 1 - half, 0, 0, 0.0, 0.0)
    assert some.saying_nothing == 0.5
    assert not none.short
