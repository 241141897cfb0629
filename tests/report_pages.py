"""A report page as its reader finds it: elements, words, data; and a risk profile to show."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

from credalearn.theory import RiskProfile


class Elements(HTMLParser):
    """Every element and text of a page, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else self.inside

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.texts.append(data)


def data_of(text: str) -> dict[str, Any]:
    """The numbers that the page's script draws from."""
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content


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


def a_profile(best: float, worst: float, infinite: int = 0) -> RiskProfile:
    """Risks of ten items, so many of them infinite at worst."""
    return RiskProfile(
        optimistic=best,
        pessimistic=worst,
        optimistic_interval=(0.9 * best, 1.1 * best),
        pessimistic_interval=(0.9 * worst, 1.1 * worst),
        items=10,
        confidence=0.95,
        infinite_items=infinite,
    )
