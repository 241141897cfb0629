"""The report page without a browser: its numbers, its words, and what it is made from."""

import base64
import hashlib
import io
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from credalearn import CredalError, CredalPredictions, Run, metrics
from credalearn._formats import percent
from credalearn.app.images import THUMBNAIL_BYTES
from credalearn.app.report.baseline import baseline
from credalearn.app.steps.certify import certify
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.app.steps.report import report
from credalearn.conformal import score_strata
from fake_run import add_rule, add_sets, fake_run, with_facts
from present import present
from report_pages import Elements, data_of, page_of, words_of
from team_files import Capture, succeed

VENDOR = Path(__file__).parents[3] / "src" / "credalearn" / "app" / "report" / "vendor"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return add_sets(add_rule(fake_run(tmp_path_factory.mktemp("page") / "nodules", images=True)))


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return page_of(run)


def held_out(run: Run) -> pl.DataFrame:
    return run.predictions.filter(split="test")


def test_slider_readings_match_the_predictions(run: Run, page: str) -> None:
    data, table = data_of(page), held_out(run)
    limits = sorted({-1.0, *table["score"].to_list(), present(run.guarantee).threshold})
    counts = {(table["score"] <= limit).sum(): limit for limit in limits}
    assert len(data["readings"]) == len(counts)
    for (count, limit), reading in zip(counts.items(), data["readings"], strict=True):
        kept = table.filter(pl.col("score") <= limit)
        deferred = table.filter(pl.col("score") > limit)
        judged = kept["wrong"].drop_nulls()
        texts = reading["texts"]
        assert (texts["kept_count"], texts["deferred_count"]) == (str(count), str(300 - count))
        shares = (percent(count / 300), percent(1 - count / 300))
        assert (texts["kept"], texts["deferred"]) == shares
        assert texts["error"] == percent(judged.mean() if len(judged) else None)  # type: ignore[arg-type]
        assert (texts["wrong"], texts["judged"]) == (str(judged.sum()), str(len(judged)))
        by_class = [deferred.filter(pl.col("truth") == name).height for name in run.classes]
        by_class.append(deferred["truth"].null_count())
        assert [each["deferred"] for each in reading["classes"]] == list(map(str, by_class))
    for x, low, high in data["band"][1:]:
        mistakes = table.sort("score")[: round(3 * x)]["wrong"].drop_nulls()
        assert low <= 100 - 100 * int(mistakes.sum()) / max(len(mistakes), 1) <= high or not len(
            mistakes
        )
    for curve, column in zip(
        data["chart"]["curves"], ("score", "mmi", "top_probability"), strict=True
    ):
        for x, y, *_ in curve["points"][::25]:
            kept = table.sort(column)[: round(x * 3)]
            assert y == pytest.approx(100 - 100 * kept["wrong"].mean())  # type: ignore[operator]


def test_the_headline_and_the_slider_are_about_the_same_items(run: Run, page: str) -> None:
    assert run.guarantee is not None
    share = (held_out(run)["score"] <= run.guarantee.threshold).mean()
    data = data_of(page)
    start = data["readings"][data["start"]]["texts"]
    assert start["kept"] == percent(share)  # type: ignore[arg-type]
    words = words_of(page, "verdict")
    assert f"Keep the model’s label for {start['kept']} of the items" in words
    error = float(held_out(run).filter(pl.col("score") <= run.guarantee.threshold)["wrong"].mean())  # type: ignore[arg-type]
    assert f"300 test items (not used before) {start['kept']} {percent(error, decimals=1)}" in words
    shares = (run.guarantee.coverage, run.guarantee.errors / run.guarantee.kept)
    found = " ".join(percent(each, decimals=1) for each in shares)
    assert f"calibration items (used to choose the threshold) {found}" in words
    assert run.guarantee.sentence() in words
    shown = words_of(page, "curve")
    for text in (start["kept"], start["error"], start["deferred"]):
        assert text in shown
    assert data["region"] == {"right": pytest.approx(100 * share), "bottom": 90.0}  # type: ignore[operator]


CONTROL = {"max_error": 0.05, "method": "conformal-risk-control"}


@pytest.mark.parametrize(
    ("method", "options", "state", "said"),
    [
        ("pocc", None, "open", "No threshold has been chosen"),
        ("pocc", {"capacity": 0.25}, "capacity", "Chosen by capacity, not certified"),
        ("softmax", {"capacity": 1.0}, "capacity", "send 100 % to a human"),
        ("softmax", {"max_error": 0.3}, "certified", "✓ Certified"),
        ("pocc", CONTROL, "certified", "are kept and wrong."),
    ],
)
def test_every_kind_of_guarantee_has_a_verdict(
    tmp_path: Path, options: dict[str, Any] | None, state: str, said: str, method: str
) -> None:
    run = fake_run(tmp_path / "a run", method=method, num_items=200, classes=("yes", "no"))
    if options is not None:
        run = add_rule(run, **options)
    page = page_of(run)
    words, data = words_of(page, "verdict"), data_of(page)
    assert said in words
    assert f'class="verdict {state}"' in page
    assert run.guarantee is None or run.guarantee.sentence() in words
    assert (f"credalearn certify '{run.path}' --max-error 0.10" in words) == (state == "open")
    assert "<h3>item-" not in page or ("pessimist" in page) == (method == "pocc")
    assert ("region" in data) == (options == {"max_error": 0.3})
    kept = 50
    if decided := run.guarantee is not None:
        kept = run.guarantee.keeps(held_out(run)["score"].to_numpy()).sum()
    assert data["readings"][data["start"]]["texts"]["kept_count"] == str(kept)
    assert page.count("<h3>item-") == min(24, 50 - kept if decided else 50)
    assert ("on this page is guaranteed" in page) == (state != "certified")
    table = held_out(run).drop_nulls("wrong")
    if run.guarantee is not None and run.guarantee.method == "conformal-risk-control":
        both = table.filter("wrong", pl.col("score") <= run.guarantee.threshold)
        assert f", {percent(len(both) / len(table))} are kept and wrong." in words


def test_the_verdict_counts_what_the_guarantee_is_about(tmp_path: Path) -> None:
    options = CertifyOptions(max_error=0.4, against="annotator")
    found = certify(fake_run(tmp_path / "run"), options)
    words = words_of(page_of(found.run), "verdict")
    assert "compared with a random annotator" in words
    for line in found.lines[1:3]:  # the rows of the command's table: kept and wrong
        name, numbers = line.split("  ")[0], " ".join(line.split()[-4:])
        assert re.search(rf"{name}s? .*?\) {numbers}", words.replace("calibration items", name))
    share = present(present(found.check).error)
    assert "test items, compared with a random annotator: " in words
    assert " , compared with the class with the most votes" in words_of(page_of(found.run), "curve")
    assert "by true class, compared with the class with the most votes" in words
    assert f"On average, {percent(share)} of an item’s votes differ from a kept label." in words


def test_the_verdict_shows_the_baseline_and_every_class(run: Run, page: str) -> None:
    words = words_of(page, "verdict")
    assert "✓ Certified" in words
    rival = present(baseline(run, present(run.guarantee)))
    assert f", always answering {rival.name}, the most frequent class, is right for" in words
    wrong = percent(1 - present(rival.accuracy), decimals=1)
    assert f"always answering {rival.name}, test items 100.0 % {wrong}" in words
    for each in rival.recalls:
        assert f"{each['name']} {each['items']} {each['found']} {percent(each['recall'])}" in words


def test_constant_answer_is_amber_and_outdated_rule_is_marked(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    label = pl.col("truth").fill_null("benign").replace("malignant", "benign")
    predictions = run.predictions.with_columns(label=label)
    changed = predictions.with_columns(wrong=pl.col("truth") != pl.col("label"))
    run = certify(with_facts(run, predictions=changed), CertifyOptions(max_error=0.5)).run
    page = page_of(run)
    assert 'class="verdict cautious"' in page
    words = words_of(page, "verdict")
    assert "! Certified, with caution" in words
    assert "Caution: no kept item is called 'malignant', missing " in words
    assert "no kept item is called so" in words.split("recall")[1]
    for each in (run, fake_run(tmp_path / "uncertified", num_items=60)):
        old = page_of(each.keeping(outdated="accuracy dropped significantly for newer items."))
        assert "Caution: out of date, accuracy dropped significantly" in words_of(old, "verdict")


def test_thresholds_per_class_have_a_verdict_and_no_place_on_the_slider(tmp_path: Path) -> None:
    run = certify(fake_run(tmp_path / "run"), CertifyOptions(max_error=0.15, per_class=True)).run
    page = page_of(run)
    tested = run.held_out("test")
    kept = present(run.guarantee).keeps(tested["score"].to_numpy(), tested["label"].to_list())
    words = words_of(page, "verdict")
    assert f"Keep the model’s label for {percent(kept.mean())} of the items" in words
    assert "region" not in data_of(page)
    assert not re.search('id="slider"|Deferred test items by true class', page)


def test_the_page_shows_what_the_test_items_say(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    found = certify(run, CertifyOptions(max_error=0.3, cost=("malignant:benign=3",)))
    outcomes = present(found.check).outcomes
    assert f" {outcomes} Of 100 items" in words_of(page_of(found.run), "verdict")
    words = words_of(page_of(found.run.certify(capacity=0.3).run), "verdict")
    assert ("not certified: " in words, "always answering" in words) == (False, True)
    other = add_rule(fake_run(tmp_path / "other"), max_error=0.3)
    low = replace(present(other.guarantee), max_error=0.01, bound=0.01)
    words = words_of(page_of(other.keeping(guarantee=low)), "verdict")
    assert "✗ Certified, but contradicted by the test items Caution: the test items" in words


def test_quality_is_what_the_metrics_say(run: Run, page: str) -> None:
    table = held_out(run).drop_nulls("truth")
    probs = table.select(f"p:{name}" for name in run.classes).to_numpy()
    y = np.array([run.classes.index(name) for name in table["truth"]])
    words = words_of(page, "quality")
    assert f"accuracy {percent(metrics.accuracy(probs, y))} of all labels" in words
    assert f"calibration error {percent(metrics.ece(probs, y))} " in words
    assert f"AUARC {percent(metrics.auarc(probs, y, table['score'].to_numpy()))} " in words
    cells = re.findall(r'<td class="(?:right|wrong)"[^>]*>([\d,]+)</td>', page)
    pairs = table.select("score", "truth", "label").rows()
    for place, kept in ((0, True), (9, False)):
        counted = [
            sum(
                t == truth and p == said and (score <= present(run.guarantee).threshold) == kept
                for score, t, p in pairs
            )
            for truth in run.classes
            for said in run.classes
        ]
        assert list(map(int, cells[place : place + 9])) == counted
    wrong = table["wrong"].sum()
    counts = re.findall(r"test items: (\d+) with a truth, (\d+) wrong", words)
    assert sum(int(n) for n, _ in counts) == len(table)
    assert sum(int(n) for _, n in counts) == wrong
    lacking = len(held_out(run)) - len(table)
    assert f"Not counted: {lacking} test items without a truth; their votes are tied." in words


def test_the_page_reads_without_a_script(page: str) -> None:
    parsed = Elements(page)
    words = " ".join(parsed.texts)
    for said in ("Certified", "to a human.", "Krippendorff’s alpha", "0.61", "12 skipped"):
        assert said in words
    assert "relax skill equal" in words_of(page, "provenance")  # no settings of other rules
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(new <= old + 1 for old, new in itertools.pairwise(levels))
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("table") == tags.count("caption") > 25
    names = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(names) == len(set(names))
    for _, attrs in parsed.tags:
        for key in ("for", "aria-labelledby", "aria-describedby"):
            assert set((attrs.get(key) or "").split()) <= set(names)
    links = [attrs.get("href") for tag, attrs in parsed.tags if tag == "a"]
    sections = [attrs["id"] for tag, attrs in parsed.tags if tag == "section"]
    assert links == [f"#{name}" for name in sections]
    charts = [attrs for _, attrs in parsed.tags if attrs.get("role") == "img"]
    assert len(charts) == 4
    assert all(len(attrs["aria-label"] or "") > 80 for attrs in charts)


def test_the_page_sends_no_request(page: str) -> None:
    parsed = Elements(page)
    policy = next(attrs["content"] for _, attrs in parsed.tags if attrs.get("http-equiv")) or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    ran = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in ran}
    assert hashes == allowed
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
    for tag, attrs in parsed.tags:
        for key in ("src", "href", "action", "srcset", "data"):
            assert (attrs.get(key) or "#").startswith(("#", "data:")), (tag, attrs)
    assert len(page.encode()) < 3_000_000


def test_the_gallery_shows_the_least_certain_deferred_items(run: Run, page: str) -> None:
    images = re.findall(r'<img src="(data:image/jpeg;base64,[^"]+)" alt="Image of ([^"]+)">', page)
    table = held_out(run).sort("score", descending=True)
    assert [name for _, name in images] == table["item"].to_list()[:24]
    assert all(len(uri) < THUMBNAIL_BYTES for uri, _ in images)
    first = Image.open(io.BytesIO(base64.b64decode(images[0][0].split(",")[1])))
    assert (first.format, first.size) == ("JPEG", (64, 48))
    cards = page.split('<ul class="gallery">')[1].split("</ul>")[0].split("<li>")[1:]
    assert run.sets is not None
    predicted = CredalPredictions(
        *(
            torch.tensor(table.select(f"{part}:{name}" for name in run.classes).to_numpy())
            for part in ("p", "lower", "upper")
        )
    )
    strata = score_strata(table["score"].to_numpy(), run.sets.edges)
    wide = predicted.conformalize(run.sets, strata=strata)
    for row, text in enumerate(cards):
        assert re.findall("<dt>(.*?)</dt>", text) == ["model", "truth", "votes"]
        shown = re.findall(
            r'rowspan="2">(.*?)</th>.*?widened set .*?number">(.*?)</span>', text, re.S
        )
        assert len(shown) == 3
        heads = re.findall(r'bar head-\d" .*?number">(\d+)', text, re.S)
        wanted = [table[f"v{head}:{name}"][row] for name, _ in shown for head in (0, 1)]
        assert heads == [percent(value, decimals=0)[:-2] for value in wanted]
        for name, numbers in shown:
            k = run.classes.index(name)
            low, high = (
                percent(float(bound[row, k]), decimals=0) for bound in (wide.lower, wide.upper)
            )
            assert numbers == f"{low[:-2]}–{high}".replace(" %", "\N{NO-BREAK SPACE}%")


def test_no_items_keeps_every_item_out_of_the_page(
    run: Run, page: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "page.html"
    succeed(capsys, "report", run.path, "--no-items", "-o", path)
    text = path.read_text()
    assert all(re.fullmatch(r"item-\d{4}\.png", item) for item in run.items["item"])
    shown, hidden = (re.findall(r"item-\d{4}", each) for each in (page, text))
    assert len(shown) > len(hidden) == 0
    assert 'class="gallery"' in page
    assert 'class="gallery"' not in text
    assert "#gallery" not in text
    assert data_of(text) == data_of(page)


def test_widened_sets_are_checked_on_the_test_items(run: Run, page: str, tmp_path: Path) -> None:
    assert run.sets is not None
    words = words_of(page, "sets")
    assert run.sets.sentence() in words
    assert re.search(r"on the test items [\d.]+ % \d+ of 300 with two votes or more", words)
    plain = fake_run(tmp_path / "plain", num_items=200)
    asked = f"credalearn certify {plain.path} --set-coverage 0.90"
    page = page_of(plain)
    assert asked in words_of(page, "sets")
    assert "widened set" not in words_of(page, "gallery")
    assert "Nothing on this page is guaranteed" in words_of(page, "assumptions")
    narrow = replace(run.sets, radius=0.01, scale="none", strata=())
    page = page_of(plain.keeping(sets=narrow))
    assert "Fewer are contained than usual. The test items may differ" in words_of(page, "sets")
    assert "No error rate on this page is guaranteed" in words_of(page, "assumptions")


def test_runs_are_compared(run: Run, tmp_path: Path) -> None:
    same = add_rule(fake_run(tmp_path / "softmax", method="softmax"))
    page = page_of(run, same, output=tmp_path / "two.html")
    words = words_of(page, "comparison")
    assert "kept at an observed error of 10 %" in words
    assert "not tested on the same items" not in words
    assert [each["name"] for each in data_of(page)["runs"]["curves"]] == ["nodules", "softmax"]
    other = fake_run(tmp_path / "nodules", num_items=800, sharpness=3)
    page = page_of(run, other, output=tmp_path / "two.html")
    words = words_of(page, "comparison")
    assert "not tested on the same items" in words
    names = [each["name"] for each in data_of(page)["runs"]["curves"]]
    assert names == [str(run.path), str(other.path)]  # two runs of one name
    assert 'id="comparison"' not in page_of(run, output=tmp_path / "one.html")
    cats = with_facts(other, classes=["cat", "dog", "owl"])
    with pytest.raises(CredalError, match=r"must have the same classes; .* has 'cat'"):
        page_of(run, cats)


def test_a_large_problem_is_a_small_page(tmp_path: Path) -> None:
    classes = [f"a rather long name of class number {n}" for n in range(300)]
    names = [f"{n} {'word ' * 500}" for n in range(2000)]
    run = fake_run(tmp_path / "many", classes=classes, num_items=2000, item_names=names)
    path = report(add_sets(add_rule(run, max_error=0.4))).path
    page = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    assert "the most frequent mistakes" in page
    assert "word " * 100 not in page
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", page)


def test_the_chart_library_is_the_one_named() -> None:
    library = (VENDOR / "echarts.common.min.js").read_bytes()
    notes = (VENDOR / "README.md").read_text()
    assert hashlib.sha256(library).hexdigest() in notes
    assert b'version="6.1.0"' in library
    assert b"</script" not in library
    for name in ("LICENSE-echarts", "NOTICE-echarts", "LICENSE-zrender", "LICENSE-d3"):
        assert (VENDOR / name).stat().st_size > 100
