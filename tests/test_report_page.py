"""The report page without a browser: its numbers, its words, and that nothing from outside runs."""

import base64
import hashlib
import io
import itertools
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import binomtest

from credalearn import CredalError, metrics
from credalearn.decide import DecisionRule, coverage_curve
from credalearn.report.page import HeldOut, PageRule, Walk, walk
from credalearn.report.page.heldout import NO_TRUTH
from credalearn.report.page.html import element, json_in_html, percent
from credalearn.report.page.verdict import verdict
from credalearn.report.page.walks import MOST_POSITIONS, OTHERS, TIED, class_groups
from credalearn.workflow.folder import RunFolder, write_json
from credalearn.workflow.reporting import write_report
from credalearn.workflow.tested import read_rule, read_test_items
from credalearn.workflow.thumbnails import MOST_BYTES, thumbnail
from fake_run import add_rule, fake_run

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


def test_the_walk_is_the_curve_that_certifying_knows() -> None:
    items = some_items(3, 80)
    items = replace(items, truth=np.where(items.truth == NO_TRUTH, 0, items.truth))
    found = walk(items, "mmi", np.zeros(80, dtype=np.int64), 1)
    curve = coverage_curve(items.scores["mmi"], items.wrong)
    np.testing.assert_array_equal(found.kept[1:], curve.kept)
    np.testing.assert_array_equal(found.thresholds[1:], curve.thresholds)
    np.testing.assert_allclose(found.wrong[1:] / found.judged[1:], curve.error)
    np.testing.assert_allclose(found.high[1:], curve.high)
    with pytest.raises(CredalError, match=r"score must be one of mmi; got 'nonsense'"):
        walk(items, "nonsense", np.zeros(80, dtype=np.int64), 1)


def test_small_classes_share_a_row_and_ties_have_one() -> None:
    items = some_items(0, 3000, num_classes=60)
    names, groups = class_groups(items)
    assert len(names) == 26
    assert names[-2:] == (OTHERS, TIED)
    assert (groups == 25).sum() == (items.truth == NO_TRUTH).sum()
    for row in range(50):
        if groups[row] < 24:
            assert names[groups[row]] == items.classes[items.truth[row]]


def test_test_items_are_checked() -> None:
    items = some_items(0, 5)
    with pytest.raises(CredalError, match=r"probs must have shape \(5, 3\); got \(5, 2\)"):
        replace(items, probs=np.zeros((5, 2)))
    with pytest.raises(CredalError, match=r"scores\['mmi'\] of item '2' is nan"):
        replace(items, scores={"mmi": np.array([0, 0, np.nan, 0, 0])})
    with pytest.raises(CredalError, match="people tie on each"):
        replace(items, truth=np.full(5, NO_TRUTH))
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
    return add_rule(fake_run(tmp_path_factory.mktemp("page") / "nodules", images=True))


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
    charts = [attrs for tag, attrs in parsed.tags if attrs.get("role") == "img"]
    assert len(charts) == 2
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
        add_rule(run, max_error=0.3)
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
    path = write_report(run)
    assert path.stat().st_size < 3_000_000
    assert "the most frequent" in path.read_text(encoding="utf-8")


def test_long_names_are_cut_and_pages_dated(tmp_path: Path) -> None:
    names = [f"{n} {'word ' * 500}" for n in range(200)]
    run = fake_run(tmp_path / "long", num_items=200, item_names=names)
    text = write_report(run, now=datetime(2026, 1, 2, tzinfo=UTC)).read_text(encoding="utf-8")
    assert "word " * 100 not in text
    assert "2026-01-02 00:00 UTC" in text


def test_bad_runs_are_named(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=100)
    with pytest.raises(CredalError, match=r"there is no folder .*nowhere of images"):
        write_report(run, images=tmp_path / "nowhere")
    with pytest.raises(CredalError, match=r"cannot be written to .* To fix: name another file"):
        write_report(run, output=tmp_path / "run" / "run.json" / "page.html")
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
