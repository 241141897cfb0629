"""A report page as its reader finds it: elements, words and the data of its script."""

import json
import re
from html.parser import HTMLParser
from typing import Any

from credalearn.app.run import Run
from credalearn.app.steps.report import ReportOptions, report


class Elements(HTMLParser):
    """Every element and text of a page, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)


def page_of(run: Run, *others: Run, **options: Any) -> str:
    """The HTML of a run's report."""
    return report(run, ReportOptions(**options), others).path.read_text(encoding="utf-8")


def data_of(page: str) -> dict[str, Any]:
    """The data that the page's script draws from."""
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


def words_of(page: str, section: str = "") -> str:
    """The words of a page, or of one section, with single plain spaces."""
    if section:
        found = re.search(rf'<section id="{section}".*?</section>', page, re.DOTALL)
        assert found is not None
        page = found[0]
    return " ".join(" ".join(Elements(page).texts).split())
