"""The report page without a browser: its numbers, its words, and that nothing from outside runs."""

import base64
import hashlib
import io
import itertools
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import binomtest

from credalearn import CredalError, from_votes, metrics
from credalearn.annotations import dawid_skene
from credalearn.conformal import Inflation
from credalearn.decide import DecisionRule
from credalearn.decide.sample import as_sample
from credalearn.labels import VOTE_RULES, VoteRule
from credalearn.report.page import HeldOut, LabelSets, PageRule, Walk, WidenedSets, walk
from credalearn.report.page.heldout import NO_TRUTH
from credalearn.report.page.html import element, json_in_html, percent, range_bar, short_percent
from credalearn.report.page.risk_line import nats, risk_line
from credalearn.report.page.sets import _beside_guessing, _infinite
from credalearn.report.page.verdict import verdict
from credalearn.report.page.walks import MOST_POSITIONS, OTHERS, class_groups
from credalearn.theory import RiskProfile, risk_profile
from credalearn.workflow import folder as folder_module
from credalearn.workflow.certifying import certify_run
from credalearn.workflow.covering import certify_sets, keep_sets
from credalearn.workflow.folder import RunFolder, read_json, write_json
from credalearn.workflow.reporting import write_report
from credalearn.workflow.tested import (
    read_label_sets,
    read_rule,
    read_test_items,
    read_widened,
)
from credalearn.workflow.thumbnails import MOST_BYTES, thumbnail
from credalearn.workflow.voted import said_of
from fake_run import add_rule, add_sets, fake_run, without_test_items

EVIL = ("<script>alert(1)</script>", "</script>", "a & \"b\" 'c'", "<!--", "{{x}} ${y} $title")
VENDORED = Path(__file__).parents[1] / "src" / "credalearn" / "report" / "page" / "vendor"


class Elements(HTMLParser):
    """Every element and text of a page, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else self.inside

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data: str) -> None:
        (self.scripts if self.inside else self.texts).append(data)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def some_items(seed: int, num_items: int, *, num_classes: int = 3, steps: int = 0) -> HeldOut:
    """Random test items; ``steps`` makes scores tie."""
    noise = np.random.default_rng(seed)
    probs = noise.dirichlet(np.ones(num_classes), size=num_items)
    score = 1 - probs.max(1)
    truth = noise.integers(NO_TRUTH, num_classes, size=num_items)
    truth[0] = 0  # one item has a truth
    return HeldOut(
        items=tuple(map(str, range(num_items))),
        classes=tuple(f"class {k}" for k in range(num_classes)),
        probs=probs,
        label=probs.argmax(1),
        truth=truth,
        scores={"mmi": (score * steps).round() / steps if steps else score},
        votes=noise.integers(0, 4, size=probs.shape).astype(float),
    )


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.sampled_from([0, 1, 5]),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_every_position_is_what_a_loop_counts(
    seed: int, num_items: int, steps: int, threshold: float | None
) -> None:
    items = some_items(seed, num_items, steps=steps)
    names, groups = class_groups(items)
    found = walk(items, "mmi", groups, len(names), threshold=threshold)
    assert found.kept[-1] == num_items
    assert (np.diff(found.kept) > 0).all()
    for place, limit in enumerate(found.thresholds):
        kept = [row for row in range(num_items) if items.scores["mmi"][row] <= limit]
        judged = [row for row in kept if items.truth[row] != NO_TRUTH]
        wrong = sum(items.truth[row] != items.label[row] for row in judged)
        assert (found.kept[place], found.judged[place]) == (len(kept), len(judged))
        assert found.wrong[place] == wrong
        for group in range(len(names)):
            gone = [r for r in range(num_items) if groups[r] == group and r not in kept]
            assert found.deferred[place, group] == len(gone)
        if judged:
            exact = binomtest(int(wrong), len(judged)).proportion_ci(0.95, method="exact")
            assert found.low[place] == pytest.approx(exact.low, abs=1e-9)
            assert found.high[place] == pytest.approx(exact.high, abs=1e-9)
        else:
            assert (found.low[place], found.high[place], found.error(place)) == (0, 1, None)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_certified_threshold_has_its_own_position(seed: int, threshold: float) -> None:
    items = some_items(seed, 2000)
    found = walk(items, "mmi", np.zeros(2000, dtype=np.int64), 1, threshold=threshold)
    assert len(found.kept) <= MOST_POSITIONS
    place = found.position(threshold)
    assert found.thresholds[place] == threshold
    assert found.kept[place] == (items.scores["mmi"] <= threshold).sum()


def test_the_walk_goes_by_what_certifying_knows() -> None:
    items = some_items(3, 80)
    items = replace(items, truth=np.where(items.truth == NO_TRUTH, 0, items.truth))
    found = walk(items, "mmi", np.zeros(80, dtype=np.int64), 1)
    sample = as_sample(items.scores["mmi"], items.wrong)
    np.testing.assert_array_equal(found.kept[1:], sample.kept)
    np.testing.assert_array_equal(found.thresholds[1:], sample.thresholds)
    np.testing.assert_array_equal(found.wrong[1:], sample.errors)
    with pytest.raises(CredalError, match=r"score must be one of mmi; got 'nonsense'"):
        walk(items, "nonsense", np.zeros(80, dtype=np.int64), 1)


def test_small_classes_share_a_row_and_ties_have_one() -> None:
    items = some_items(0, 3000, num_classes=60)
    names, groups = class_groups(items)
    assert len(names) == 26
    assert names[-2:] == (OTHERS, "no majority")
    assert (groups == 25).sum() == (items.truth == NO_TRUTH).sum()
    for row in range(50):
        if groups[row] < 24:
            assert names[groups[row]] == items.classes[items.truth[row]]
    for many, rows in ((24, 24), (25, 25), (26, 25)):  # a single class needs no row to share
        names, _ = class_groups(some_items(0, 3000, num_classes=many))
        assert (len(names) - 1, OTHERS in names) == (rows, many > 25)


def test_a_class_without_test_items_has_no_share(tmp_path: Path) -> None:
    run = without_test_items(add_rule(fake_run(tmp_path / "run")), "benign")
    text = write_report(run).read_text(encoding="utf-8").split("Deferred by class")[-1]
    row = re.search(r'<th scope="row">benign</th>(.*?)</tr>', text)
    assert row is not None
    assert row[1].startswith("<td>0</td><td>0</td>")
    assert row[1].endswith('<span class="number">–</span></td>')


def test_test_items_are_checked() -> None:
    items = some_items(0, 5)
    with pytest.raises(CredalError, match=r"probs must have shape \(5, 3\); got \(5, 2\)"):
        replace(items, probs=np.zeros((5, 2)))
    with pytest.raises(CredalError, match=r"scores\['mmi'\] of item '2' is nan"):
        replace(items, scores={"mmi": np.array([0, 0, np.nan, 0, 0])})
    nothing = np.full(5, NO_TRUTH)
    with pytest.raises(CredalError, match="none can be right or wrong: their votes tie"):
        replace(items, truth=nothing)
    with pytest.raises(CredalError, match=r"wrong: they have no gold label\. To fix: train with"):
        replace(items, truth=nothing, against="gold")
    with pytest.raises(CredalError, match="one test item and one score or more; got 5 items and 0"):
        replace(items, scores={})


def a_walk() -> Walk:
    """Keep none, 75 or all of 100 items; of the 75, 6 are wrong."""
    kept, wrong = np.array([0, 75, 100]), np.array([0, 6, 20])
    low, high = np.array([0, 0.03, 0.13]), np.array([1, 0.166, 0.29])
    return Walk("mmi", np.array([-1, 0.4, 0.9]), kept, kept, wrong, low, high, np.zeros((3, 1)))


MAJORITY = "the majority of the annotators"


@pytest.mark.parametrize(
    ("rule", "state", "sentence"),
    [
        (None, "open", "No rule has been made yet."),
        (
            PageRule("mmi", 0.4, max_error=0.1, confidence=0.95, coverage=0.75),
            "certified",
            "Keep 75 % of the items at an error of at most 10 % with 95 % confidence; 25 % go to a "
            "human.",
        ),
        (
            PageRule("mmi", 0.4, "kept-and-wrong", max_error=0.005, coverage=0.7461),
            "certified",
            "Keep 74.6 % of the items; at most 0.5 % of all items are expected to be kept and "
            "wrong. 25.4 % go to a human.",
        ),
        (
            PageRule("mmi", 0.4, "capacity", coverage=2 / 3),
            "capacity",
            "Defer the least certain 33.3 % to a human and keep 66.7 % of the items.",
        ),
        (
            PageRule("mmi", None, max_error=0.01, confidence=0.9995, why_not="30 are too few."),
            "refused",
            "An error of at most 1 % with 99.95 % confidence cannot be certified with these data.",
        ),
    ],
)
def test_the_verdict_is_a_sentence(rule: PageRule | None, state: str, sentence: str) -> None:
    said = verdict(rule, a_walk(), command="credalearn certify RUN", counted=MAJORITY)
    assert said.state == state
    assert said.sentence.replace("\N{NO-BREAK SPACE}", " ") == sentence
    notes = " ".join(said.notes).replace("\N{NO-BREAK SPACE}", " ")
    if rule is not None and rule.threshold is not None:
        assert "keeps 75.0 %, with an observed error of 8.0 % (95 % interval 3.0 % to" in notes
    assert ("30 are too few. Until then" in notes) == (state == "refused")
    assert ("6.0 % of all items with a truth are kept and wrong" in notes) == (
        rule is not None and rule.quantity == "kept-and-wrong"
    )
    assert (said.command == "credalearn certify RUN") == (state == "open")


def test_a_promise_about_annotators_is_not_checked_against_the_majority_alone() -> None:
    rule = PageRule("mmi", 0.4, max_error=0.3, confidence=0.95, truth="a random annotator")
    said = verdict(rule, a_walk(), command="", counted=MAJORITY, disagreement=0.25)
    notes = " ".join(said.notes).replace("\N{NO-BREAK SPACE}", " ")
    assert "an observed error of 8.0 % against the majority of the annotators" in notes
    assert "A random annotator disagrees with a label that is kept 25.0 % of the time." in notes


def test_a_rule_must_say_something() -> None:
    with pytest.raises(CredalError, match="a threshold or say why there is none"):
        PageRule("mmi", None, max_error=0.1)
    with pytest.raises(CredalError, match="must hold the max_error asked for"):
        PageRule("mmi", 0.2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return add_sets(add_rule(fake_run(tmp_path_factory.mktemp("page") / "nodules", images=True)))


@pytest.fixture(scope="module")
def page(run: RunFolder) -> str:
    return write_report(run).read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_predictions_file(run: RunFolder, page: str) -> None:
    content = data_of(page)
    table = run.predictions.filter(pl.col("split") == "test")
    columns = ("score", "mmi", "top_probability")
    assert content["items"] == len(table) == 300
    for found, column in zip(content["walks"], columns, strict=True):
        for place, limit in enumerate(found["threshold"]):
            kept = table.filter(pl.col(column) <= limit)
            judged = kept.filter(pl.col("wrong").is_not_null())
            assert found["kept"][place] == len(kept)
            assert found["judged"][place] == len(judged)
            assert found["wrong"][place] == judged["wrong"].sum()
    rule = DecisionRule.from_json((run.path / "rule.json").read_text())
    assert content["walks"][0]["threshold"][content["start"]] == rule.threshold
    share = (table["score"] <= rule.threshold).sum() / len(table)
    assert (content["region"]["coverage"], content["region"]["error"]) == (share, 0.1)
    deferred = table.filter(pl.col("score") > rule.threshold)
    by_class = [deferred.filter(pl.col("truth") == name).height for name in run.classes]
    ties = deferred.filter(pl.col("truth").is_null()).height
    assert content["walks"][0]["deferred"][content["start"]] == [*by_class, ties]


def test_quality_is_what_the_metrics_say(run: RunFolder, page: str) -> None:
    table = run.predictions.filter((pl.col("split") == "test") & pl.col("truth").is_not_null())
    probs = table.select(f"p:{name}" for name in run.classes).to_numpy()
    y = np.array([run.classes.index(name) for name in table["truth"]])
    row = re.search(r"<tr><th scope=\"row\">nodules</th>(.*?)</tr>", page)
    assert row is not None
    shown = re.findall(r"<td>(.*?)</td>", row[1])
    assert shown[:4] == [
        "pocc",
        percent(metrics.accuracy(probs, y)),
        percent(metrics.ece(probs, y)),
        percent(metrics.auarc(probs, y, table["score"].to_numpy())),
    ]


def test_the_page_reads_without_a_script(page: str) -> None:
    parsed = Elements(page)
    words = " ".join(parsed.texts)
    for said in ("Certified", "go to a human.", "Krippendorff’s alpha", "0.61", "12 skipped"):
        assert said in words
    # Headings go down one step at a time, and every table has a caption.
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(new <= old + 1 for old, new in itertools.pairwise(levels))
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("table") == tags.count("caption") > 25
    assert {"header", "main", "nav", "footer"} <= set(tags)
    # Names that others point to are there, once.
    names = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(names) == len(set(names))
    for _, attrs in parsed.tags:
        for key in ("for", "aria-labelledby", "aria-describedby"):
            assert set((attrs.get(key) or "").split()) <= set(names)
        assert (attrs.get("href") or "#").lstrip("#") in {*names, "", "data:,"}
    linked = [attrs.get("href") for tag, attrs in parsed.tags if tag == "a"]
    parts = [attrs["id"] for tag, attrs in parsed.tags if tag == "section"]
    assert linked == [f"#{name}" for name in ["verdict", *parts[1:]]]
    charts = [attrs for tag, attrs in parsed.tags if attrs.get("role") == "img"]
    assert len(charts) == 3
    assert all(len(attrs["aria-label"] or "") > 80 for attrs in charts)


def test_the_page_may_ask_for_nothing(page: str) -> None:
    parsed = Elements(page)
    policy = next(a["content"] for t, a in parsed.tags if a.get("http-equiv")) or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    ran = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in ran}
    assert hashes == allowed
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
    for tag, attrs in parsed.tags:
        for key in ("src", "href", "action", "srcset", "data"):
            assert (attrs.get(key) or "#").startswith(("#", "data:")), (tag, attrs)
        assert not [key for key in attrs if key.startswith("on")]
    assert len(page.encode()) < 3_000_000


def test_every_card_of_the_gallery_has_its_facts(page: str) -> None:
    cards = page.split('<ul class="gallery">')[1].split("</ul>")[0].split("<li>")[1:]
    for card in cards:
        assert re.findall("<dt>(.*?)</dt>", card) == ["model says", "truth", "votes"]
        assert '<span class="hidden">widened set </span>' in card


@pytest.mark.parametrize(
    ("truth", "none", "why"),
    [
        ("majority", "no majority", "their votes tie, so they have no truth"),
        ("gold", "no gold label", "they have no gold label"),
    ],
)
def test_items_without_a_truth_are_called_what_they_are(
    tmp_path: Path, truth: str, none: str, why: str
) -> None:
    run = with_facts(fake_run(tmp_path / "run", num_items=400), truth=truth)
    text = write_report(run).read_text(encoding="utf-8")
    lacking = run.predictions.filter(pl.col("split") == "test")["truth"].null_count()
    assert f"{lacking} test items are not counted: {why}." in text
    assert f"Items without {none.replace('no', 'a', 1)} count as kept or deferred" in text
    assert f'<th scope="row">{none}</th><td>{lacking}</td>' in text
    assert f"<dt>truth</dt><dd>{none}</dd>" in text
    assert text.lower().count("tied") == 1  # the share of ties among the votes


def test_thumbnails_are_small_jpegs_of_deferred_items(run: RunFolder, page: str) -> None:
    images = re.findall(r'<img src="(data:image/jpeg;base64,[^"]+)" alt="Image of ([^"]+)">', page)
    assert len(images) == 24
    assert all(len(uri) < MOST_BYTES for uri, _ in images)
    table = run.predictions.filter(pl.col("split") == "test").sort("score", descending=True)
    assert [name for _, name in images] == table["item"].to_list()[:24]
    first = Image.open(io.BytesIO(base64.b64decode(images[0][0].split(",")[1])))
    assert first.format == "JPEG"
    assert first.size == (64, 48)


def test_thumbnails_of_odd_images(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    big = noise.integers(0, 256, size=(192, 192, 3), dtype=np.uint8)
    deep = noise.integers(900, 1100, size=(50, 40)).astype(np.uint16)
    images = {
        "noise.png": Image.fromarray(big),  # the worst that JPEG can meet
        "deep.png": Image.fromarray(deep),
        "clear.png": Image.new("RGBA", (30, 30)),
        "palette.gif": Image.new("P", (30, 30)),
        "thin.png": Image.new("L", (3000, 1)),
    }
    for name, image in images.items():
        image.save(tmp_path / name)
        uri = thumbnail(tmp_path / name)
        assert uri is not None, name
        assert len(uri) < MOST_BYTES
        assert max(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))).size) <= 192
    uri = thumbnail(tmp_path / "deep.png")
    assert uri is not None
    levels = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))))
    assert levels.max() > 200  # 16 bits are stretched, not cut
    (tmp_path / "broken.png").write_bytes((tmp_path / "noise.png").read_bytes()[:1000])
    (tmp_path / "text.png").write_text("no image")
    assert thumbnail(tmp_path / "broken.png") is None
    assert thumbnail(tmp_path / "text.png") is None


@pytest.mark.parametrize("ruled", [True, False])
def test_what_comes_from_outside_stays_text(tmp_path: Path, ruled: bool) -> None:
    names = [f"<img src=x onerror=alert({n})>&'\"" for n in range(400)]
    run = fake_run(tmp_path / "<b>run", classes=EVIL, num_items=400, item_names=names)
    facts = run.facts
    facts["annotations"]["path"] = facts["method"] = "<svg onload=alert(1)>"
    facts["annotations"]["left_out"] = {"<i>": 3}
    facts["versions"] = facts["options"] = {"</table>": "<script>"}
    facts["splits"]["group"] = "</ul><script>"
    write_json(run.path / "run.json", facts)
    if ruled:
        add_sets(add_rule(run, max_error=0.3))
    other = fake_run(tmp_path / "x" / "</script><script>alert(2)", classes=EVIL, num_items=400)
    text = write_report(run, others=[other], title="</title><script>").read_text(encoding="utf-8")
    parsed = Elements(text)
    plain = Elements(write_report(fake_run(tmp_path / "plain")).read_text(encoding="utf-8"))
    assert {tag for tag, _ in parsed.tags} <= {tag for tag, _ in plain.tags}
    assert [tag for tag, _ in parsed.tags].count("script") == 3
    assert not [key for _, attrs in parsed.tags for key in attrs if key.startswith("on")]
    words = " ".join(parsed.texts)
    for name in (*EVIL, "<svg onload=alert(1)>", "</title><script>", names[-1][:20]):
        assert name in words
    assert [each["name"] for each in data_of(text)["runs"]][1] == "script><script>alert(2)"


@given(st.text() | st.text(alphabet="<>&'\"/ax=;"))
@example("\"><img src=x onerror='alert(1)'>")
def test_any_text_stays_text(text: str) -> None:
    written = element("td", text, title=text)
    assert str(written).startswith("<td ")
    parsed = Elements(str(written))
    assert parsed.tags == [("td", {"title": text})]
    assert "".join(parsed.texts) == text
    inside = json_in_html({text: [text]})
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {text: [text]}


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_shares_round_as_in_the_browser(part: int, whole: int) -> None:
    value = 100 * (part / whole)
    # toFixed: the nearest tenth of the double, the larger of two.
    tenths = int(value * 10)
    exact = value.as_integer_ratio()
    nearest = min((tenths - 1, tenths, tenths + 1), key=lambda t: _distance(t, exact))
    assert percent(part / whole) == f"{nearest // 10}.{nearest % 10}\N{NO-BREAK SPACE}%"


def _distance(tenths: int, exact: tuple[int, int]) -> tuple[int, int]:
    return abs(10 * exact[0] - tenths * exact[1]), -tenths


@pytest.mark.parametrize("method", ["pocc", "softmax"])
@pytest.mark.parametrize("kind", ["open", "refused", "capacity", "everything", "conformal"])
def test_every_kind_of_rule_has_a_page(tmp_path: Path, kind: str, method: str) -> None:
    run = fake_run(tmp_path / kind, method=method, num_items=200, classes=("yes", "no"))
    options: dict[str, Any] = {
        "refused": {"max_error": 0.001},
        "capacity": {"capacity": 0.25},
        "everything": {"capacity": 1.0},
        "conformal": {"max_error": 0.05, "method": "conformal-risk-control"},
    }
    if kind != "open":
        add_rule(run, **options[kind])
    text = write_report(run).read_text(encoding="utf-8")
    said = {
        "open": "No rule has been made yet.",
        "refused": "cannot be certified with these data.",
        "capacity": "Defer the least certain 2",
        "everything": "Defer the least certain 100",
        "conformal": "are expected to be kept and wrong.",
    }
    assert said[kind] in text
    assert ("pessimist" in text) == (method == "pocc")
    assert (f"credalearn certify {run.path} --max-error 0.10" in text) == (kind == "open")
    content = data_of(text)
    shown = text.split('<ul class="gallery">')[1].split("</ul>")[0] if "<h3>" in text else ""
    assert shown.count("<li>") == min(24, _gallery_size(run))
    assert content["region"] is None
    assert (content["rule"] is None) == (kind in ("open", "refused"))
    assert content["walks"][0]["kept"][content["start"]] == _kept(run)


def _gallery_size(run: RunFolder) -> int:
    total = run.predictions.filter(pl.col("split") == "test").height
    kept = _kept(run)
    return total - kept if kept < total else total


def _kept(run: RunFolder) -> int:
    table = run.predictions.filter(pl.col("split") == "test")
    rule = read_rule(run)
    if rule is None or rule.threshold is None:
        return len(table)
    return int((table["score"] <= rule.threshold).sum())


def test_runs_are_compared(run: RunFolder, tmp_path: Path) -> None:
    same = add_rule(fake_run(tmp_path / "softmax", method="softmax"))
    other = fake_run(tmp_path / "nodules", num_items=800, sharpness=3)
    text = write_report(run, others=[same], output=tmp_path / "two.html").read_text("utf-8")
    assert "Methods compared" in text
    assert "kept at an error of 10\N{NO-BREAK SPACE}%, observed" in text
    assert "Not tested on the same items" not in text
    assert [each["name"] for each in data_of(text)["runs"]] == ["nodules", "softmax"]
    text = write_report(run, others=[other], output=tmp_path / "two.html").read_text("utf-8")
    assert "Not tested on the same items" in text
    # Two runs of one name are told apart by their paths.
    assert [each["name"] for each in data_of(text)["runs"]] == [str(run.path), str(other.path)]


def test_a_large_problem_is_a_small_page(tmp_path: Path) -> None:
    names = [f"a rather long name of class number {n}" for n in range(300)]
    run = add_rule(fake_run(tmp_path / "many", classes=names, num_items=2000), max_error=0.4)
    add_sets(run)
    path = write_report(run)
    assert path.stat().st_size < 3_000_000
    assert "the most frequent" in path.read_text(encoding="utf-8")


def test_long_names_are_cut_and_pages_dated(tmp_path: Path) -> None:
    names = [f"{n} {'word ' * 500}" for n in range(200)]
    run = fake_run(tmp_path / "long", num_items=200, item_names=names)
    text = write_report(run, now=datetime(2026, 1, 2, tzinfo=UTC)).read_text(encoding="utf-8")
    assert "word " * 100 not in text
    assert "2026-01-02 00:00 UTC" in text


def test_a_report_reads_no_file_of_a_run_over_and_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = add_rule(fake_run(tmp_path / "run"), max_error=0.3)
    other = fake_run(tmp_path / "other", seed=1)
    read: list[str] = []
    monkeypatch.setattr(RunFolder, "_table", counting(RunFolder._table, read))
    monkeypatch.setattr(folder_module, "read_json", counting(read_json, read))
    write_report(run, others=[other])
    assert read.count("predictions.parquet") == 2  # of each run once
    assert "run.json" not in read  # once, when it was opened


def counting(function: Callable[..., Any], read: list[str]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        read.append(Path(given[-1]).name)
        return function(*given)

    return counted


def test_bad_runs_are_named(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=100)
    with pytest.raises(CredalError, match=r"there is no folder .*nowhere of images"):
        write_report(run, images=tmp_path / "nowhere")
    with pytest.raises(CredalError, match=r"cannot be written: .* To fix: name another file"):
        write_report(run, output=tmp_path / "run" / "run.json" / "page.html")
    with pytest.raises(CredalError, match=r"must end in .html or .htm; got .*page.csv"):
        write_report(run, output=tmp_path / "page.csv")
    votes = tmp_path / "votes.htm"
    votes.write_text("votes")
    run.facts["annotations"]["path"] = str(votes)
    other = fake_run(tmp_path / "other", num_items=100)
    with pytest.raises(CredalError, match=r"votes.htm is what .*run was trained on"):
        write_report(other, others=[run], output=votes)
    (run.path / "rule.json").write_text('{"threshold": 1}')
    with pytest.raises(CredalError, match=r"no decision rule: .* To fix: certify again"):
        write_report(run)
    (run.path / "rule.json").unlink()
    run.predictions.drop("mmi").write_parquet(run.path / "predictions.parquet")
    with pytest.raises(CredalError, match=r"does not fit run.json: .*mmi.* To fix: train again"):
        read_test_items(run)
    assert not (run.path / "report.html").exists()


def test_the_chart_library_is_the_one_named() -> None:
    library = (VENDORED / "echarts.common.min.js").read_bytes()
    notes = (VENDORED / "README.md").read_text()
    assert hashlib.sha256(library).hexdigest() in notes
    assert b'version="6.1.0"' in library
    assert b"</script" not in library
    assert "Apache License" in (VENDORED / "LICENSE-echarts").read_text()
    for name in ("NOTICE-echarts", "LICENSE-zrender", "LICENSE-d3"):
        assert name in notes
        assert (VENDORED / name).stat().st_size > 100


# What the sets hold


def told(text: str) -> str:
    """The words of the section about sets, with plain spaces."""
    found = re.search(r'<section id="sets".*?</section>', text, re.DOTALL)
    assert found is not None
    return spaced(found[0])


def rests_on(text: str) -> str:
    """The words of the assumptions, with plain spaces."""
    return spaced(text.split('<section id="assumptions"')[1])


def spaced(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def with_facts(run: RunFolder, **changed: Any) -> RunFolder:
    write_json(run.path / "run.json", run.facts | changed)
    return RunFolder(run.path)


def as_bounds(run: RunFolder) -> RunFolder:
    """Let the run be one whose people stated that the first class has .7 or more."""
    first, *others = run.classes
    zeros = (pl.lit(0.0).alias(f"n:{name}") for name in others)
    items = run.items.with_columns(pl.lit(0.7).alias(f"n:{first}"), *zeros)
    items.write_parquet(run.path / "items.parquet")
    said = items.select("item", pl.lit(first).alias("label"), pl.lit(0.7).alias("at_least"))
    said.write_parquet(run.path / "annotations.parquet")
    return run


def predicted_and_said(run: RunFolder) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and votes of the test items, row by row from the two files."""
    votes = {row["item"]: row for row in run.items.iter_rows(named=True)}
    rows = [row for row in run.predictions.iter_rows(named=True) if row["split"] == "test"]
    probs = [[row[f"p:{name}"] for name in run.classes] for row in rows]
    said = [[votes[row["item"]][f"n:{name}"] for name in run.classes] for row in rows]
    return np.array(probs), np.array(said)


def test_the_risk_lies_between_what_relaxed_labels_cost_at_best_and_at_worst(
    run: RunFolder, page: str
) -> None:
    best, worst = [], []
    for p, votes in zip(*predicted_and_said(run), strict=True):
        cost, top = -np.log(p), int(votes.argmax())
        kept = votes[top] / votes.sum()
        best.append(kept * cost[top] + (1 - kept) * cost.min())
        worst.append(kept * cost[top] + (1 - kept) * cost.max())
    low, high = nats(float(np.mean(best))), nats(float(np.mean(worst)))
    words = told(page)
    assert f"on the 300 test items lies between {low} and {high} nats" in words
    chances = [percent(math.exp(-np.mean(each))) for each in (worst, best)]
    between = f"a probability between {chances[0]} and {chances[1]}."
    assert between.replace("\N{NO-BREAK SPACE}", " ") in words
    assert "Guessing all 3 classes alike scores 1.099 nats (the logarithm of 3), or 33.3 %" in words
    assert ("even at worst the model does better" in words) == (np.mean(worst) < math.log(3))
    spread = np.std(best) / np.sqrt(300)
    interval = re.search(r"at best, R₊ .*? 95 % interval (\S+) to (\S+)", words)
    assert interval is not None
    assert abs(float(interval[1]) - (np.mean(best) - 1.96 * spread)) < 0.4 * spread
    assert abs(float(interval[2]) - (np.mean(best) + 1.96 * spread)) < 0.4 * spread


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_labels_are_made_by_the_rule_of_the_run(tmp_path: Path, rule: VoteRule) -> None:
    run = with_facts(fake_run(tmp_path / "run", num_items=200), label_rule=rule)
    found = read_label_sets(run, read_test_items(run))
    probs, votes = predicted_and_said(run)
    assert found.profile == risk_profile(probs, from_votes(votes, rule=rule))
    assert found.promised == (rule.startswith("clopper") or rule == "total-variation")
    text = write_report(run).read_text(encoding="utf-8")
    assert f"rule {rule} " in told(text)
    rests = rests_on(text)
    assert (f"By the rule {rule} each does so with a probability of 95 %" in rests) == (
        found.promised
    )
    assert (f"an assumption: the rule {rule} does not promise it" in rests) == (not found.promised)
    assert ("the model’s true cross-entropy on the 50 test items is" in told(text)) == (
        rule == "precise"
    )
    assert ("price of imprecise labels" in told(text)) == (rule != "precise")


def test_stated_bounds_are_taken_as_they_are(tmp_path: Path) -> None:
    run = as_bounds(fake_run(tmp_path / "run", num_items=200))
    found = read_label_sets(run, read_test_items(run))
    cost = -np.log(predicted_and_said(run)[0])
    assert found.profile is not None
    assert found.profile.optimistic == pytest.approx((0.7 * cost[:, 0] + 0.3 * cost.min(1)).mean())
    assert found.profile.pessimistic == pytest.approx((0.7 * cost[:, 0] + 0.3 * cost.max(1)).mean())
    text = write_report(run).read_text(encoding="utf-8")
    assert "People stated bounds such as “at least 70 %”" in told(text)
    assert "Nobody voted, people stated bounds" in told(text)
    assert "--set-coverage" not in text
    assert "what people stated is taken at their word" in rests_on(text)


def test_weights_are_shares(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    run.items.with_columns(pl.col(f"n:{name}") / 3 for name in run.classes).write_parquet(
        run.path / "items.parquet"
    )
    whole = read_label_sets(fake_run(tmp_path / "whole", num_items=200), read_test_items(run))
    found = read_label_sets(run, read_test_items(run))
    assert found.profile is not None
    assert whole.profile is not None
    assert found.profile.pessimistic == pytest.approx(whole.profile.pessimistic)
    found = read_label_sets(with_facts(run, label_rule="idm"), read_test_items(run))
    assert "the rule 'idm' counts votes" in found.why_not


def test_annotators_are_weighed_by_skill_where_training_weighed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    run = with_facts(run, label_rule="idm", options={"skill": "dawid-skene"})
    items = read_test_items(run)
    found = read_label_sets(run, items)
    said = said_of(run)
    posterior = dict(zip(said.items, dawid_skene(said), strict=True))
    probs, votes = predicted_and_said(run)
    best = []
    for item, p, total in zip(items.items, probs, votes.sum(1), strict=True):
        lower = posterior[item] * total / (total + 1)
        best.append(-lower @ np.log(p) - (1 - lower.sum()) * np.log(p.max()))
    assert found.profile is not None
    assert found.profile.optimistic == pytest.approx(np.mean(best))
    text = write_report(run).read_text(encoding="utf-8")
    assert "Dawid and Skene’s model weighs the votes on an item" in told(text)
    assert "that the model of the annotators is right" in rests_on(text)
    for name in [name for name in sys.modules if name.split(".")[0] == "crowdkit"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert "There is no risk profile: Dawid and Skene's model is crowd-kit's" in words
    assert "To fix: pip install 'credalearn[crowd]'" in words


def test_a_run_without_its_annotations_has_a_page_all_the_same(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    (run.path / "annotations.parquet").unlink()
    text = write_report(run).read_text(encoding="utf-8")
    assert re.search(r"no risk profile: .*annotations.parquet cannot be read", told(text))
    assert "The risk lies between" not in rests_on(text)
    run = with_facts(fake_run(tmp_path / "odd", num_items=200), label_rule="<script>")
    words = told(write_report(run).read_text(encoding="utf-8"))
    assert "no risk profile: rule must be one of 'relax'" in words
    assert "got '<script>'" in words


def a_profile(best: float, worst: float, infinite: int = 0) -> RiskProfile:
    return RiskProfile(
        optimistic=best,
        pessimistic=worst,
        optimistic_interval=(0.9 * best, 1.1 * best),
        pessimistic_interval=(0.9 * worst, 1.1 * worst),
        items=10,
        confidence=0.95,
        infinite_items=infinite,
    )


@pytest.mark.parametrize(
    ("best", "worst", "said"),
    [
        (0.2, 0.6, "even at worst the model does better. The width of 0.400 nats"),
        (0.2, 0.7, "at worst the model does no better. The width of 0.500 nats"),
        (0.7, 0.9, "even at best the model does no better. The width of 0.200 nats"),
        (0.5, 0.5, "even at worst the model does better. Brackets"),
        (0.5, math.inf, "at worst the model does no better. Brackets"),
    ],
)
def test_risks_are_set_beside_guessing(best: float, worst: float, said: str) -> None:
    profile = a_profile(best, worst, infinite=3 * math.isinf(worst))
    words = _beside_guessing(profile, 2)
    assert f": {said}" in words
    assert words.startswith("Guessing all 2 classes alike scores 0.693 nats")
    warned = "".join(_infinite(profile))
    assert ("on 3 test items the model gives a probability of exactly 0" in warned) == (
        worst == math.inf
    )


@given(
    st.floats(0, 20),
    st.one_of(st.floats(0, 20), st.just(math.inf)),
    st.integers(2, 1000),
)
@example(0.0, 0.0, 2)
def test_the_line_of_risks_is_drawn_to_scale(best: float, more: float, num_classes: int) -> None:
    profile = a_profile(best, best + more, infinite=int(more == math.inf))
    drawn = Elements(risk_line(profile, num_classes))
    attributes = {(attrs.get("class") or "").split()[0]: attrs for _, attrs in drawn.tags}
    pieces = {
        name: [float(n) for n in re.findall(r"([\d.]+)%", attributes[name].get("style") or "")]
        for name in ("between", "guess")
    }
    (left, width), (guess, _) = pieces["between"], pieces["guess"]
    assert 0 <= left <= left + width <= 100.01
    scale = guess / math.log(num_classes)
    rounding = 0.01 * (1 + (best + more) / math.log(num_classes))
    assert left == pytest.approx(best * scale, abs=min(rounding, 1))
    if more < math.inf:
        assert width == pytest.approx(more * scale, abs=min(rounding, 1))
    else:
        assert left + width == pytest.approx(100, abs=0.02)
    assert (attributes["between"].get("class") == "between open") == (more == math.inf)
    assert attributes["risk"].get("role") == "img"
    label = attributes["risk"].get("aria-label") or ""
    for number in (best, best + more, math.log(num_classes)):
        assert nats(number) in label
        assert nats(number) in " ".join(drawn.texts)


def test_widened_sets_are_what_certifying_saw(run: RunFolder, page: str) -> None:
    seen = certify_sets(run, coverage=0.9)
    words = told(page)
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
        known = run.facts["annotations"] | {"votes": 1000 if kind == "counts" else None}
        run = with_facts(run, annotations=known)
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
    assert "Fewer are held than that" in told(text)
    assert "missed on 77 calibration items" in told(text)
    assert "No error on this page is guaranteed" in rests_on(text)


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


def test_the_gallery_shows_the_widened_bounds(run: RunFolder, page: str) -> None:
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


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_range_is_drawn_from_its_lower_to_its_upper_end(one: float, other: float) -> None:
    low, high = sorted((one, other))
    drawn = range_bar(low, high)
    left, width = map(float, re.findall(r"([\d.]+)%", drawn.split("</i>")[0]))
    assert left == pytest.approx(100 * low, abs=0.06)
    assert left + width == pytest.approx(100 * high, abs=0.12)
    first, last = percent(low, 0), percent(high, 0)
    assert drawn.count("\N{NO-BREAK SPACE}%") == 1
    assert f">{last}<" in drawn if first == last else f"{first[:-2]}–{last}<" in drawn


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


# What is not about votes


@pytest.mark.parametrize("said", ["bounds", "probabilities"])
def test_what_was_stated_is_not_called_votes(tmp_path: Path, said: str) -> None:
    run = fake_run(tmp_path / "run", num_items=200)
    items = run.items.with_columns(pl.col("^n:.*$") * 0.17)
    items.write_parquet(run.path / "items.parquet")
    table: dict[str, Any] = {"item": items["item"]}
    table |= {name: items[f"n:{name}"] for name in run.classes}
    if said == "bounds":
        table = {"item": items["item"], "label": run.classes[0], "at_least": 0.17}
    pl.DataFrame(table).write_parquet(run.path / "annotations.parquet")
    facts = run.facts
    facts["annotations"] |= {"votes": None, "agreement": None}
    write_json(run.path / "run.json", facts)
    text = write_report(run).read_text(encoding="utf-8")
    assert f"Stated {said} by class, summed over items" in text
    assert f"sum of {said}" in text
    assert "Votes by class" not in text
    assert f"<dt>{said}</dt>" in text
    assert "<dt>votes</dt>" not in text
    assert "the majority" not in text


def test_the_verdict_says_what_the_promise_is_about(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    rule = certify_run(run, max_error=0.1).rule
    text = write_report(run).read_text(encoding="utf-8")
    share = short_percent(round(rule.coverage, 3))
    assert f"Keep {share} of the items at an error of at most" in text
    assert "among those with a majority, with" in text
    total = rule.num_items + rule.left_out
    assert f"Of the {total} calibration items {rule.left_out} have none and took no part" in text
    assert f"from {rule.num_items} calibration items with a majority by" in text
    assert "for new items with a majority. It holds" in text
    kept = run.predictions.filter((pl.col("split") == "test") & (pl.col("score") <= rule.threshold))
    judged = kept["wrong"].count()
    assert judged < len(kept)
    assert f"among the {judged} kept that have a truth (95" in text
