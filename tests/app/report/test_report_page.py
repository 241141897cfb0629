"""The report page without a browser: its numbers, its words, and what it is made from."""

import base64
import hashlib
import io
import itertools
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from credalearn import CredalError, metrics
from credalearn.app.items.thumbnails import MOST_BYTES, thumbnail
from credalearn.app.report.html import percent
from credalearn.app.run import Run, read_json
from credalearn.app.run import folder as folder_module
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_test_items
from credalearn.guarantees import Guarantee
from fake_run import add_rule, add_sets, fake_run, with_facts
from report_pages import Elements, data_of

VENDORED = Path(__file__).parents[1] / "src" / "credalearn" / "report" / "page" / "vendor"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return add_sets(add_rule(fake_run(tmp_path_factory.mktemp("page") / "nodules", images=True)))


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return write_report(run).read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_predictions_file(run: Run, page: str) -> None:
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
    rule = Guarantee.from_json((run.path / "guarantee.json").read_text())
    assert content["walks"][0]["threshold"][content["start"]] == rule.threshold
    share = (table["score"] <= rule.threshold).sum() / len(table)
    assert (content["region"]["coverage"], content["region"]["error"]) == (share, 0.1)
    deferred = table.filter(pl.col("score") > rule.threshold)
    by_class = [deferred.filter(pl.col("truth") == name).height for name in run.classes]
    ties = deferred.filter(pl.col("truth").is_null()).height
    assert content["walks"][0]["deferred"][content["start"]] == [*by_class, ties]


def test_quality_is_what_the_metrics_say(run: Run, page: str) -> None:
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
        for key in ("for", "aria-labeledby", "aria-describedby"):
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
    assert len(cards) == 24
    for card in cards:
        assert re.findall("<dt>(.*?)</dt>", card) == ["model says", "truth", "votes"]
        assert '<span class="hidden">widened set </span>' in card


@pytest.mark.parametrize(
    ("truth", "none", "why"),
    [
        ("majority", "no single most-voted class", "their votes tie, so they have no truth"),
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
    facts.annotations |= {"kind": said, "votes": None, "agreement": None}
    write_json(run.path / "run.json", facts)
    text = write_report(run).read_text(encoding="utf-8")
    assert f"Stated {said} by class, summed over items" in text
    assert f"sum of {said}" in text
    assert "Votes by class" not in text
    assert f"<dt>{said}</dt>" in text
    assert "<dt>votes</dt>" not in text
    assert "most votes" not in text


def test_thumbnails_are_small_jpegs_of_deferred_items(run: Run, page: str) -> None:
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


def test_runs_are_compared(run: Run, tmp_path: Path) -> None:
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
    other = fake_run(tmp_path / "other", random_state=1)
    read: list[str] = []
    monkeypatch.setattr(Run, "_table", counting(Run._table, read))
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
    with pytest.raises(CredalError, match=r"must end in one of .html, .htm; got .*page.csv"):
        write_report(run, output=tmp_path / "page.csv")
    votes = tmp_path / "votes.htm"
    votes.write_text("votes")
    run.facts.annotations.path = str(votes)
    other = fake_run(tmp_path / "other", num_items=100)
    with pytest.raises(CredalError, match=r"votes.htm is what .*run was trained on"):
        write_report(other, others=[run], output=votes)
    (run.path / "guarantee.json").write_text('{"threshold": 1}')
    with pytest.raises(CredalError, match=r"no decision rule: .* To fix: certify again"):
        write_report(run)
    (run.path / "guarantee.json").unlink()
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
