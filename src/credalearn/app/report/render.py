"""Templates into text: the page as one HTML file, the model card as Markdown."""

import base64
import hashlib
import math
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from credalearn._formats import escape_markdown, many, number, percent, visible


def render_page(**content: Any) -> str:
    """The report page, one file: every value is escaped, and no script but its own may run."""
    library, script = Markup(_file("vendor", "echarts.common.min.js")), Markup(_file("page.js"))
    digests = (hashlib.sha256(each.encode()).digest() for each in (library, script))
    allowed = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    content |= {
        "policy": f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        "library": library,
        "script": script,
        "style": Markup(_file("page.css")),
    }
    return environment(html=True).get_template("page.html.j2").render(**content)


@cache
def environment(*, html: bool) -> Environment:
    """The templates; every value is escaped, and in Markdown it stays on one line."""
    environment = Environment(
        loader=PackageLoader("credalearn.app.report"),
        autoescape=html,
        finalize=_html_value if html else _markdown_value,
        undefined=StrictUndefined,
        trim_blocks=not html,  # in HTML the line break after a block separates sentences
        lstrip_blocks=not html,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {"percent": percent, "number": number, "many": many}
    environment.filters["nats"] = lambda risk: "∞" if math.isinf(risk) else f"{risk:.3f}"
    if html:
        unbroken = lambda share, **rounding: _unbroken(percent(share, **rounding))  # noqa: E731
        environment.filters |= {"percent": unbroken, "prose": _unbroken}
    return environment


def _html_value(value: Any) -> Any:
    """No control characters; autoescape does the rest."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)


def _unbroken(text: str) -> str:
    """Text without a line break between a number and its percent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _markdown_value(value: Any) -> str:
    """Text as it is in a cell of a Markdown table."""
    return escape_markdown(visible(number(value) if isinstance(value, float) else str(value)))


def _file(*parts: str) -> str:
    return resources.files("credalearn.app.report").joinpath(*parts).read_text(encoding="utf-8")
