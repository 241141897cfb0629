"""The documentation site: no warning, every public name, every screen."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from site_hooks import as_markdown

from chromium import needs_browser, open_browser

if TYPE_CHECKING:
    from selenium import webdriver

ROOT = Path(__file__).parents[1]
PAGES = ("", "concepts/guarantees/", "methods/", "reference/labels/", "experiments/docs/learners/")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = "".join(path.read_text() for path in (site / "reference").rglob("*.html"))
    names = {
        name
        for name in import_module("credalearn").__all__
        if name not in ("methods", "metrics", "theory")
    }
    for module in ("metrics", "theory"):
        names |= {f"{module}.{name}" for name in import_module(f"credalearn.{module}").__all__}
    missing = {name for name in names if f'id="credalearn.{name}"' not in pages}
    assert missing == set()


def test_docstrings_become_markdown(site: Path) -> None:
    for path in (site / "reference").rglob("*.html"):
        text = re.sub(r"<[^>]+>", "", path.read_text())
        assert re.findall(r":\w+:`|\.\. math|^ *=====|\\\(", text, re.MULTILINE) == []


def test_tables_keep_long_cells() -> None:
    text = "  ====  =====\n  name  what\n  ====  =====\n  a     one\n        two\n  ====  ====="
    lines = ["| name | what |", "| --- | --- |", "| a | one two |"]
    assert as_markdown(text) == "\n".join(f"  {line}" for line in lines)


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = partial(SilentHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> "Iterator[webdriver.Chrome]":
    yield from open_browser()


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_the_screen(
    browser: "webdriver.Chrome", address: str, page: str, width: int
) -> None:
    browser.set_window_size(width, 900)
    browser.get(address + page)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wide) <= 0
    assert browser.find_elements("css selector", "input.md-search__input")
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []  # type: ignore[no-untyped-call]
