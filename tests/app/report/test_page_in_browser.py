"""The report page in a real browser: Chromium without a window, moved by keyboard and by script."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chromium import MISSING, needs_browser, open_browser
from credalearn.app.run import Run
from fake_run import add_rule, add_sets, fake_run
from report_pages import data_of, page_of

if not MISSING:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

pytestmark = needs_browser

EVIL = ("<script>window.ran=1</script>", "</script>", "a & \"b\" 'c'")


@pytest.fixture(scope="module")
def browser() -> "Iterator[webdriver.Chrome]":
    yield from open_browser()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("browser")
    names = [f"<img src=x onerror=window.ran=1> {n}" for n in range(1200)]
    run = add_sets(add_rule(fake_run(folder / "main", classes=EVIL, item_names=names)))
    page_of(run, fake_run(folder / "<script>window.ran=1", classes=EVIL, method="softmax"))
    return run


@pytest.fixture
def page(browser: "webdriver.Chrome", run: Run) -> "webdriver.Chrome":
    """The page, freshly opened in a light window of 1100 pixels, details too, with empty logs."""
    dress(browser, "light")
    resize(browser, 1100)
    for kind in ("browser", "performance"):
        log(browser, kind)
    browser.get((run.path / "report.html").as_uri())
    browser.execute_script("document.querySelectorAll('.details').forEach(d => d.open = true)")
    return browser


def dress(browser: "webdriver.Chrome", scheme: str, media: str = "") -> None:
    """Light or dark, and without motion: a page that still scrolls cannot be clicked."""
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wanted.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def log(browser: "webdriver.Chrome", kind: str) -> list[dict[str, Any]]:
    """What the browser logged since the last call."""
    read: Any = browser.get_log
    entries: list[dict[str, Any]] = read(kind)
    return entries


def resize(browser: "webdriver.Chrome", width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def slot(browser: "webdriver.Chrome", name: str) -> str:
    """The text of a slot, with plain spaces."""
    found = browser.find_element(By.CSS_SELECTOR, f"[data-reading={name}]")
    return str(found.get_property("textContent")).replace("\N{NO-BREAK SPACE}", " ")


def move(browser: "webdriver.Chrome", place: int) -> None:
    """As a mouse does: set the value, notify the page."""
    browser.execute_script(
        "const slider = document.getElementById('slider'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input', {bubbles: true}));",
        place,
    )


def check_readings(browser: "webdriver.Chrome", run: Run) -> None:
    """The page shows the reading of the slider's place, which test_report checks."""
    data = data_of((run.path / "report.html").read_text(encoding="utf-8"))
    reading = data["readings"][slider_place(browser)]
    for name in ("kept_count", "kept", "deferred", "error"):
        assert slot(browser, name) == reading["texts"][name]
    hours = browser.find_element(By.ID, "hours").text
    assert hours == f"{1000 * reading['share'] / 60:.1f}"
    rows = browser.find_elements(By.CSS_SELECTOR, "#deferrals tbody tr")
    for each, row in zip(reading["classes"], rows, strict=True):
        assert " ".join(row.text.split()).endswith(f" {each['deferred']} {each['share']}")


def slider_place(browser: "webdriver.Chrome") -> int:
    return int(browser.find_element(By.ID, "slider").get_attribute("value") or 0)


def standing(browser: "webdriver.Chrome") -> str:
    return browser.find_element(By.ID, "standing").text


def test_the_numbers_follow_the_slider(page: "webdriver.Chrome", run: Run) -> None:
    check_readings(page, run)
    assert standing(page) == "This is the certified threshold."
    last = int(page.find_element(By.ID, "slider").get_attribute("max") or 0)
    for place in (0, 1, last // 3, last - 1, last):
        move(page, place)
        check_readings(page, run)
    assert slot(page, "kept") == "100 %"
    assert standing(page) == "Beyond the certified threshold: nothing is guaranteed here."
    page.find_element(By.ID, "reset").click()
    assert standing(page) == "This is the certified threshold."


def test_the_keyboard_moves_the_slider(page: "webdriver.Chrome", run: Run) -> None:
    slider = page.find_element(By.ID, "slider")
    start = slider_place(page)
    slider.send_keys(Keys.ARROW_LEFT)
    assert slider_place(page) == start - 1
    assert standing(page) == "More cautious than the certified threshold."
    check_readings(page, run)
    slider.send_keys(Keys.PAGE_DOWN)
    assert slider_place(page) == start - 11
    slider.send_keys(Keys.HOME)
    assert (slot(page, "kept"), slot(page, "error")) == ("0 %", "–")
    assert slider.get_attribute("aria-valuetext") == "keeps 0 %, error –"


def test_names_stay_text_and_nothing_leaves_the_page(page: "webdriver.Chrome") -> None:
    chart = page.find_element(By.ID, "comparison-chart")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
    webdriver.ActionChains(page).move_to_element(chart).move_by_offset(40, 0).perform()
    tip = chart.find_element(By.CLASS_NAME, "tip")
    assert "<script>window.ran=1:" in tip.text
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
    assert [url for url in asked if not url.startswith("data:")] == [page.current_url]


def test_thresholds_per_class_have_no_slider_and_no_error(
    browser: "webdriver.Chrome", tmp_path: Path
) -> None:
    run = fake_run(tmp_path / "run")
    page_of(run.certify(max_error=0.15, per_class=True).run)
    browser.get((run.path / "report.html").as_uri())
    assert len(browser.find_elements(By.CSS_SELECTOR, ".chart svg")) == 2
    assert not browser.find_elements(By.ID, "slider")
    assert log(browser, "browser") == []


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_bars_have_contrast(page: "webdriver.Chrome", scheme: str) -> None:
    dress(page, scheme)
    script = """
        const rgb = (text) => {
          const canvas = document.createElement('canvas').getContext('2d');
          canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const color = (query, what) => rgb(getComputedStyle(document.querySelector(query))[what]);
        const line = [...document.querySelectorAll('#curve-chart svg path')]
          .find((path) => path.getAttribute('stroke-width') === '2.5');
        return {paper: color('body', 'backgroundColor'), card: color('.tile', 'backgroundColor'),
                ink: color('body', 'color'), soft: color('header .note', 'color'),
                between: color('.risk .between', 'backgroundColor'),
                guess: color('.risk .guess', 'borderLeftColor'),
                widened: color('.heads .bar.widened i', 'backgroundColor'),
                line: rgb(line.getAttribute('stroke'))};
    """
    found: dict[str, list[int]] = page.execute_script(script)
    assert (sum(found["paper"]) > 700) == (scheme == "light")
    wanted = {"ink": 7.0, "soft": 4.5, "line": 3.0, "between": 3.0, "guess": 3.0}  # WCAG 2.1
    for name, least in wanted.items():
        assert contrast(found[name], found["paper"]) > least, name
    assert contrast(found["widened"], found["card"]) > 3


def contrast(one: list[int], other: list[int]) -> float:
    """Contrast ratio of two colors (WCAG 2.1)."""

    def light(color: list[int]) -> float:
        shares = np.array(color) / 255
        linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_paper_has_the_verdict_and_the_charts(page: "webdriver.Chrome") -> None:
    printed: dict[str, Any] = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert len(base64.b64decode(printed["data"])) > 50_000
    dress(page, "light", "print")
    assert "to a human." in page.find_element(By.ID, "verdict").text
    for shown in ("#verdict svg", "#curve-chart svg", ".risk .between"):
        assert page.find_element(By.CSS_SELECTOR, shown).is_displayed()
    for hidden in ("#slider", "nav"):
        assert not page.find_element(By.CSS_SELECTOR, hidden).is_displayed()


def test_the_summary_fits_one_screen_and_one_sheet(browser: "webdriver.Chrome", run: Run) -> None:
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    dress(browser, "light")
    for width, part in ((390, "#verdict figure"), (1280, "#verdict")):
        resize(browser, width)
        browser.get((run.path / "report.html").as_uri())
        assert browser.execute_script(bottom, part) < 800
    assert "nats" not in browser.find_element(By.TAG_NAME, "body").text
    dress(browser, "light", "print")
    for width, height in ((695, 1017), (718, 950)):  # A4 and Letter without their margins
        resize(browser, width)
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        drawn = browser.execute_script(bottom, "#curve-chart svg")
        assert drawn <= browser.execute_script(bottom, "#curve-chart") < height
        browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    dress(browser, "light")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_matrix_of_twelve_classes_has_no_cut_off_column(
    browser: "webdriver.Chrome", tmp_path: Path, width: int
) -> None:
    run = fake_run(tmp_path / "run", classes=tuple(f"class {k}" for k in range(12)))
    page_of(add_rule(run))
    resize(browser, width)
    browser.get((run.path / "report.html").as_uri())
    wide = "return [...document.querySelectorAll('.scroll:has(.matrix)')]"
    cut = browser.execute_script(f"{wide}.map(each => each.scrollWidth - each.clientWidth)")
    assert cut == [0, 0]


def test_policy_blocks_injected_scripts_and_requests(page: "webdriver.Chrome") -> None:
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


def test_page_is_complete_without_scripts(page: "webdriver.Chrome") -> None:
    off = "Emulation.setScriptExecutionDisabled"
    page.execute_cdp_cmd(off, {"value": True})
    try:
        page.refresh()
        body = page.find_element(By.TAG_NAME, "body").text
    finally:
        page.execute_cdp_cmd(off, {"value": False})
    for said in ("to a human.", "need JavaScript.", "Deferred test items by true class"):
        assert said in body
    for control in ("Review minutes", "Back to the chosen threshold"):
        assert control not in body


def test_screen_readers_get_names_and_roles(page: "webdriver.Chrome") -> None:
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            role = node["role"]["value"]
            named.setdefault(role, []).append(node.get("name", {}).get("value", ""))
    assert named["slider"] == ["Items kept, from none to all"]
    fields = [name.strip() for name in named["spinbutton"]]
    assert fields == ["Review minutes per item", "Items to decide"]
    kinds = ("A line from 0", "Line chart", "Line chart", "Of 100 items", "Reliability diagram")
    for name, kind in zip(sorted(named["image"]), kinds, strict=True):
        assert name.startswith(kind)
    for role in ("main", "navigation", "banner", "contentinfo"):
        assert role in named
    assert all(named["table"])  # every table has a caption
