"""The report page in a real browser: Chromium without a window, moved by keyboard and by script."""

import base64
import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from scipy.stats import binomtest

from credalearn.app.report.html import percent
from credalearn.app.run import Run
from credalearn.app.steps.reporting import write_report
from credalearn.app.steps.tested import read_rule
from fake_run import add_rule, add_sets, fake_run, without_test_items

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    MISSING.append("the Python package selenium")

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"the page is not tested in a browser: {', '.join(MISSING)} not installed"
)

EVIL = ("<script>window.ran=1</script>", "</script>", "a & \"b\" 'c'")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--window-size=1100,900"),
)


@pytest.fixture(scope="module")
def browser() -> "Iterator[webdriver.Chrome]":
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("browser")
    names = [f"<img src=x onerror=window.ran=1> {n}" for n in range(1200)]
    run = add_sets(add_rule(fake_run(folder / "main", classes=EVIL, item_names=names)))
    other = fake_run(folder / "<script>window.ran=1", classes=EVIL, method="softmax")
    write_report(run, others=[other])
    return run


@pytest.fixture
def page(browser: "webdriver.Chrome", run: Run) -> "webdriver.Chrome":
    """The page, freshly opened in a light window of 1100 pixels, and empty logs."""
    dress(browser, "light")
    resize(browser, 1100)
    for kind in ("browser", "performance"):
        log(browser, kind)
    browser.get((run.path / "report.html").as_uri())
    return browser


def dress(browser: "webdriver.Chrome", scheme: str, media: str = "") -> None:
    """Light or dark, and without motion: a page that still scrolls cannot be clicked."""
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def log(browser: "webdriver.Chrome", kind: str) -> list[dict[str, Any]]:
    """What the browser wrote down since it was last asked."""
    read: Any = browser.get_log
    entries: list[dict[str, Any]] = read(kind)
    return entries


def resize(browser: "webdriver.Chrome", width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def text(browser: "webdriver.Chrome", identity: str) -> str:
    return str(browser.find_element(By.ID, identity).get_property("textContent"))


def move(browser: "webdriver.Chrome", place: int) -> None:
    """As a mouse does: set the value, tell the page."""
    browser.execute_script(
        "const slider = document.getElementById('slider'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input', {bubbles: true}));",
        place,
    )


def threshold(browser: "webdriver.Chrome", score: int = 0) -> float:
    """The threshold at which the slider stands."""
    script = (
        "const data = JSON.parse(document.getElementById('page-data').textContent);"
        "return data.walks[arguments[0]].threshold[document.getElementById('slider').value];"
    )
    return float(browser.execute_script(script, score))


def check_readings(browser: "webdriver.Chrome", run: Run, column: str, limit: float) -> None:
    """What the page says at a threshold is what the predictions file says."""
    table = run.predictions.filter(pl.col("split") == "test")
    kept, deferred = table.filter(pl.col(column) <= limit), table.filter(pl.col(column) > limit)
    judged = kept.drop_nulls("wrong")
    assert text(browser, "coverage") == percent(len(kept) / len(table))
    assert text(browser, "coverage-note") == f"{len(kept)} of {len(table)} test items"
    assert text(browser, "deferred") == percent(len(deferred) / len(table))
    wrong = int(judged["wrong"].sum())
    assert text(browser, "error") == (percent(wrong / len(judged)) if len(judged) else "–")
    low, high = clopper_pearson(wrong, len(judged))
    interval = f"95 % interval {percent(low)} to {percent(high)}"
    assert text(browser, "error-note") == f"{interval}; {wrong} wrong of {len(judged)}"
    assert (f"({interval})" in text(browser, "reading")) == bool(len(judged))
    assert text(browser, "hours") == f"{1000 * len(deferred) / len(table) / 60:.1f}"
    rows = browser.find_elements(By.CSS_SELECTOR, "#deferrals tbody tr")
    shown = {
        row.find_element(By.TAG_NAME, "th").text: [
            cell.text for cell in row.find_elements(By.TAG_NAME, "td")
        ]
        for row in rows
    }
    for name in run.classes:
        total = table.filter(pl.col("truth") == name).height
        count = deferred.filter(pl.col("truth") == name).height
        share = percent(count / total).replace("\N{NO-BREAK SPACE}", " ")
        found = [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in shown[name]]
        assert found == [str(total), str(count), share]


def clopper_pearson(wrong: int, judged: int) -> tuple[float, float]:
    """The exact 95 % interval of a share, by scipy; of nothing anything."""
    if not judged:
        return 0.0, 1.0
    found = binomtest(wrong, judged).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def test_images_are_drawn_and_the_slider_moves_beside_them(
    browser: "webdriver.Chrome", tmp_path: Path
) -> None:
    run = add_rule(fake_run(tmp_path / "run", images=True, num_items=400), capacity=0.1)
    browser.get(write_report(run).as_uri())
    pictures = browser.find_elements(By.CSS_SELECTOR, "#gallery img")
    cards = browser.find_elements(By.CSS_SELECTOR, "#gallery h3")
    assert 0 < len(pictures) == len(cards) <= 24
    drawn = (
        "arguments[0].scrollIntoView(); const done = arguments[1], found = arguments[0];"
        "found.decode().then(() => done([found.naturalWidth, found.naturalHeight]), done);"
    )
    for picture, name in zip(pictures, cards, strict=True):
        with Image.open(tmp_path / "images" / name.text) as image:
            size = image.size
        shown: list[int] = browser.execute_async_script(drawn, picture)
        assert shown[0] * size[1] == shown[1] * size[0] > 0  # decoded, in its proportions
        assert picture.is_displayed()
        assert picture.get_attribute("alt") == f"Image of {name.text}"
    check_readings(browser, run, "score", threshold(browser))
    move(browser, 20)
    check_readings(browser, run, "score", threshold(browser))
    assert log(browser, "browser") == []


def test_a_class_without_test_items_has_no_share(
    browser: "webdriver.Chrome", tmp_path: Path
) -> None:
    run = without_test_items(add_rule(fake_run(tmp_path / "run", num_items=400)), "benign")
    browser.get(write_report(run).as_uri())
    for place in (0, 20):
        move(browser, place)
        row = browser.find_element(By.CSS_SELECTOR, "#deferrals tbody tr")
        assert row.text.split() == ["benign", "0", "0", "–"]
    assert log(browser, "browser") == []


def test_the_slider_starts_at_the_rule(page: "webdriver.Chrome", run: Run) -> None:
    rule = read_rule(run)
    assert rule is not None
    assert threshold(page) == rule.threshold
    check_readings(page, run, "score", threshold(page))
    assert text(page, "reading").endswith("This is the certified threshold.")


def test_the_numbers_follow_the_slider(page: "webdriver.Chrome", run: Run) -> None:
    last = int(page.find_element(By.ID, "slider").get_attribute("max") or 0)
    assert last > 100
    seen = set()
    for place in (0, 1, last // 3, last // 2, last - 1, last):
        move(page, place)
        check_readings(page, run, "score", threshold(page))
        seen.add(text(page, "reading"))
    assert len(seen) == 6
    assert text(page, "reading").endswith(
        "Beyond the certified threshold: nothing is promised here."
    )
    page.find_element(By.ID, "reset").click()
    assert text(page, "reading").endswith("This is the certified threshold.")


def test_the_keyboard_moves_the_slider(page: "webdriver.Chrome", run: Run) -> None:
    slider = page.find_element(By.ID, "slider")
    start = int(slider.get_attribute("value") or 0)
    before = text(page, "reading")
    slider.send_keys(Keys.ARROW_LEFT)
    assert int(slider.get_attribute("value") or 0) == start - 1
    assert text(page, "reading") != before
    check_readings(page, run, "score", threshold(page))
    slider.send_keys(Keys.PAGE_DOWN)
    assert int(slider.get_attribute("value") or 0) == start - 11
    slider.send_keys(Keys.END)
    assert text(page, "coverage") == percent(1)
    slider.send_keys(Keys.HOME)
    assert text(page, "coverage") == percent(0)
    assert text(page, "error") == "–"
    assert slider.get_attribute("aria-valuetext") == f"keeps {percent(0)}, error –"


def test_another_score_is_another_walk(page: "webdriver.Chrome", run: Run) -> None:
    choice = Select(page.find_element(By.ID, "score"))
    for number, column in ((1, "mmi"), (2, "top_probability"), (0, "score")):
        choice.select_by_value(str(number))
        move(page, 60)
        check_readings(page, run, column, threshold(page, number))


def test_reviewer_hours_follow_their_fields(page: "webdriver.Chrome", run: Run) -> None:
    for identity, value in (("minutes", "2.5"), ("plan", "20000")):
        field = page.find_element(By.ID, identity)
        field.clear()
        field.send_keys(value)
    table = run.predictions.filter(pl.col("split") == "test")
    share = table.filter(pl.col("score") > threshold(page)).height / len(table)
    assert text(page, "hours") == f"{share * 20000 * 2.5 / 60:.1f}"
    page.find_element(By.ID, "minutes").send_keys(Keys.CONTROL, "a", Keys.BACKSPACE)
    assert text(page, "hours") == "0.0"


def test_labels_stay_text_and_nothing_leaves_the_page(page: "webdriver.Chrome") -> None:
    chart = page.find_element(By.ID, "compared-chart")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    webdriver.ActionChains(page).move_to_element(chart).move_by_offset(40, 0).perform()
    tip = chart.find_element(By.CLASS_NAME, "tip")
    assert "<script>window.ran=1:" in tip.text
    assert not tip.find_elements(By.TAG_NAME, "script")
    names = {row.text for row in page.find_elements(By.CSS_SELECTOR, "#deferrals tbody th")}
    assert set(EVIL) <= names
    assert page.find_elements(By.CSS_SELECTOR, "#gallery h3")[0].text.startswith("<img src=x oner")
    assert page.execute_script("return window.ran") is None
    assert log(page, "browser") == []
    asked = [
        message["params"]["request"]["url"]
        for entry in log(page, "performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert asked  # the page itself
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert len([url for url in asked if url.startswith("file:")]) == 1


def test_the_policy_stops_what_is_injected(page: "webdriver.Chrome") -> None:
    script = """
        const done = arguments[arguments.length - 1];
        const found = document.createElement('script');
        found.textContent = 'window.ran = 1';
        document.body.appendChild(found);
        fetch('https://example.com/').then(() => done('left'), () => done('stopped'));
    """
    assert page.execute_async_script(script) == "stopped"
    assert page.execute_script("return window.ran") is None
    log(page, "browser")  # says that the policy was violated, as it should


@pytest.mark.parametrize("width", [360, 768, 1100])
def test_no_width_scrolls_sideways(page: "webdriver.Chrome", width: int) -> None:
    resize(page, width)
    wide = "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    drawn = "return document.querySelector('#curve-chart svg').getBoundingClientRect().width"

    def fits(browser: "webdriver.Chrome") -> bool:
        chart = browser.execute_script(drawn)
        return bool(max(browser.execute_script(wide)) <= width and chart > 0.75 * min(width, 960))

    # Charts follow the window a frame later, on a busy machine several.
    WebDriverWait(page, 10).until(fits, f"the page is not {width} px wide")


@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("ends", [None, ("0%", "0%", "0%"), ("80%", "80%", "80%")])
def test_the_line_of_risks_keeps_its_labels_apart(
    page: "webdriver.Chrome", width: int, ends: tuple[str, str, str] | None
) -> None:
    resize(page, width)
    boxes = """
        const box = (name) => document.querySelector('.risk .' + name).getBoundingClientRect();
        if (arguments[0]) {
          const [low, high, guess] = arguments[0];
          const style = (name) => document.querySelector('.risk .' + name).style;
          style('low').right = `min(100% - 3.2rem, 100% - ${low})`;
          style('high').left = `max(3.2rem, ${high})`;
          style('guess').left = guess;
        }
        const found = {};
        for (const name of ['low', 'high', 'zero', 'between', 'guess', 'line']) {
          const {left, right, top, bottom} = box(name);
          found[name] = [left, right, top, bottom];
        }
        return found;
    """
    found: dict[str, list[float]] = page.execute_script(boxes, ends)
    left, right = found["line"][:2]
    assert 0 < left < right < width
    assert left - 1 <= found["low"][0]
    assert found["low"][1] <= found["high"][0] + 0.1  # their padding is between them
    assert found["high"][1] <= width
    assert found["low"][3] <= found["between"][2] + 1  # labels stand above the bar
    assert found["zero"][2] >= found["guess"][3] - 1
    if ends is None:
        assert found["between"][1] - found["between"][0] > 20
        assert abs(found["low"][1] - found["between"][0]) < 2
        assert abs(found["high"][0] - found["between"][1]) < 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_of_sets_are_seen_in_every_light(page: "webdriver.Chrome", scheme: str) -> None:
    dress(page, scheme)
    script = """
        const rgb = (text) => {
          const canvas = document.createElement('canvas').getContext('2d');
          canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const color = (query, what) => rgb(getComputedStyle(document.querySelector(query))[what]);
        return {paper: color('body', 'backgroundColor'), card: color('.tile', 'backgroundColor'),
                between: color('.risk .between', 'backgroundColor'),
                guess: color('.risk .guess', 'borderLeftColor'),
                spread: color('.risk .spread', 'borderLeftColor'),
                widened: color('.heads .bar.widened i', 'backgroundColor')};
    """
    found: dict[str, list[int]] = page.execute_script(script)
    for name in ("between", "guess", "spread"):
        assert contrast(found[name], found["paper"]) > 3, name
    assert contrast(found["widened"], found["card"]) > 3
    assert contrast(found["spread"], found["between"]) > 1.7  # brackets cross the bar's ends


def test_dark_windows_get_a_dark_page(page: "webdriver.Chrome") -> None:
    light = colors(page)
    dress(page, "dark")
    page.execute_async_script("setTimeout(arguments[0], 100)")
    dark = colors(page)
    assert sum(light["paper"]) > 700 > 100 > sum(dark["paper"])
    assert sum(light["ink"]) < 200 < 600 < sum(dark["ink"])
    assert light["line"] != dark["line"]
    for each in (light, dark):  # as WCAG asks of body text, and of lines
        assert contrast(each["ink"], each["paper"]) > 7
        assert contrast(each["soft"], each["paper"]) > 4.5
        assert contrast(each["line"], each["paper"]) > 3


def colors(browser: "webdriver.Chrome") -> dict[str, list[int]]:
    script = """
        const rgb = (text) => {
          const canvas = document.createElement('canvas').getContext('2d');
          canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const body = getComputedStyle(document.body);
        const note = getComputedStyle(document.querySelector('.note'));
        const lines = [...document.querySelectorAll('#curve-chart svg path')]
          .filter((path) => path.getAttribute('stroke-width') === '2.5');
        return {paper: rgb(body.backgroundColor), ink: rgb(body.color), soft: rgb(note.color),
                line: rgb(lines[0].getAttribute('stroke'))};
    """
    found: dict[str, list[int]] = browser.execute_script(script)
    return found


def contrast(one: list[int], other: list[int]) -> float:
    """Contrast ratio of two colors (WCAG 2.1)."""

    def light(color: list[int]) -> float:
        shares = np.array(color) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_print_has_the_verdict_and_the_chosen_place(page: "webdriver.Chrome") -> None:
    printed: dict[str, Any] = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF-")
    assert b"/Count " in content
    assert pieces(content) > 100_000  # charts are drawn, not left out
    # What paper shows is what the print style leaves.
    dress(page, "light", "print")
    shown = page.find_element(By.TAG_NAME, "body").text
    assert "go to a human." in page.find_element(By.ID, "verdict").text
    assert "This is the certified threshold." in shown
    assert not page.find_element(By.ID, "slider").is_displayed()
    assert not page.find_element(By.TAG_NAME, "nav").is_displayed()
    assert page.find_element(By.CSS_SELECTOR, "#curve-chart svg").is_displayed()
    assert page.find_element(By.CSS_SELECTOR, ".risk .between").is_displayed()
    assert len(shown) > 2000


def pieces(pdf: bytes) -> int:
    """Bytes of all that a PDF draws, unpacked."""
    total = 0
    for part in pdf.split(b"stream\r\n" if b"stream\r\n" in pdf else b"stream\n")[1:]:
        try:
            total += len(zlib.decompressobj().decompress(part.split(b"endstream")[0]))
        except zlib.error:
            continue
    return total


def test_the_page_is_whole_without_scripts(page: "webdriver.Chrome") -> None:
    off = "Emulation.setScriptExecutionDisabled"
    page.execute_cdp_cmd(off, {"value": True})
    try:
        page.refresh()
        body = page.find_element(By.TAG_NAME, "body").text
    finally:
        page.execute_cdp_cmd(off, {"value": False})
    assert "go to a human." in body
    assert "need JavaScript; all their numbers are in the tables" in body
    assert "Deferred by class" in body
    assert "true cross-entropy on the 300 test items lies between" in body
    assert "it holds the shares of a new item’s votes in 90" in body
    assert "Back to the rule" not in body


def test_names_and_roles_are_there_for_a_screen_reader(page: "webdriver.Chrome") -> None:
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            role = node["role"]["value"]
            named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert named["slider"] == ["Items kept, from none to all"]
    assert [name.strip() for name in named["spinbutton"]] == [
        "Reviewer minutes an item",
        "Items to decide",
    ]
    assert len(named["image"]) == 4
    kinds = ("Line chart", "Reliability diagram", "A line from 0 to", "Line chart")
    for name, kind in zip(named["image"], kinds, strict=True):
        assert name.startswith(kind)
    for role in ("main", "navigation", "banner", "contentinfo", "status"):
        assert role in named
    assert all(named["table"])  # every table has its caption for a name
