"""A real browser for tests: Chromium without a window."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium import webdriver

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
if find_spec("selenium") is None:
    MISSING.append("the Python package selenium")
needs_browser = pytest.mark.skipif(
    bool(MISSING), reason=f"not tested in a browser: {', '.join(MISSING)} not installed"
)

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--window-size=1100,900"),
)


def open_browser() -> "Iterator[webdriver.Chrome]":
    """A browser that keeps logs, closed at the end."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    yield driver
    driver.quit()
