"""Templates into text: the page as one HTML file, the model card as Markdown."""

import base64
import hashlib
import math
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from credalearn._formats import number, percent
from credalearn.app._escape import escape_markdown

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def render_html(template: str, **content: Any) -> str:
    """Fill an HTML template; every value is escaped."""
    return _environment(html=True).get_template(template).render(**content)


def render_markdown(template: str, **content: Any) -> str:
    """Fill a Markdown template; every value is escaped and stays on one line."""
    return _environment(html=False).get_template(template).render(**content)


def page_scripts() -> tuple[Markup, Markup]:
    """The chart library and the page's own script."""
    return Markup(_file("vendor", "echarts.common.min.js")), Markup(_file("page.js"))


def page_style() -> Markup:
    """The page's style sheet."""
    return Markup(_file("page.css"))


def content_policy(*scripts: str) -> str:
    """A content security policy: no request of any kind, and no script but these."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _environment(*, html: bool) -> Environment:
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
    environment.filters |= {"percent": percent, "number": number, "nats": _nats}
    if html:
        environment.filters |= {"percent": _unbroken_percent, "prose": _unbroken}
    return environment


def _html_value(value: Any) -> Any:
    """No control characters; autoescape does the rest."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", value)


def _unbroken(text: str) -> str:
    """Text without a line break between a number and its percent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _unbroken_percent(share: float | None, decimals: int | None = None) -> str:
    return _unbroken(percent(share, decimals=decimals))


def _markdown_value(value: Any) -> str:
    text = number(value) if isinstance(value, float) else str(value)
    return escape_markdown(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def _nats(risk: float) -> str:
    """A risk to three decimals."""
    return "∞" if math.isinf(risk) else f"{risk:.3f}"


def _file(*parts: str) -> str:
    return resources.files("credalearn.app.report").joinpath(*parts).read_text(encoding="utf-8")
