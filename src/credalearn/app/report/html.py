"""HTML that cannot hold mark-up from outside: every string is text unless it was built here."""

import json
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from typing import Any

_VOID = frozenset({"br", "img", "input", "col"})


class Html(str):
    """Mark-up that was built here, and so is not escaped again.

    Example:
        >>> element("p", Html("a<br>b"))
        '<p>a<br>b</p>'
    """

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Html:
    """An element; whatever is not :class:`Html` becomes text, and attribute values are quoted.

    An attribute's ``_`` is written ``-``, and one at its end is left out (``class_``); True gives
    the bare name; None and False leave the attribute out.

    Example:
        >>> element("td", "<script>", class_="n", data_share=0.5, hidden=True)
        '<td class="n" data-share="0.5" hidden>&lt;script&gt;</td>'
    """
    written = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        bare = key.rstrip("_").replace("_", "-")
        written.append(bare if value is True else f'{bare}="{escape(str(value))}"')
    start = f"<{' '.join(written)}>"
    return Html(start if name in _VOID else f"{start}{join(*children)}</{name}>")


def join(*parts: object) -> Html:
    """Parts in a row; what is not :class:`Html` becomes text.

    Example:
        >>> join("a & ", element("b", "c"))
        'a &amp; <b>c</b>'
    """
    return Html("".join(part if isinstance(part, Html) else escape(str(part)) for part in parts))


def table(
    caption: object, headings: list[str], rows: list[list[object]], *, class_: str | None = None
) -> Html:
    """A table with its caption; the first cell of a row names it, the others are numbers.

    Example:
        >>> table("Votes", ["class", "votes"], [["cat", 3]]).count("<th")
        4
    """
    head = [element("th", text, scope="col") for text in headings]
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    return framed_table(caption, head, body, class_=class_)


def framed_table(
    caption: object, head: list[Html], body: list[Html], *, class_: str | None = None
) -> Html:
    """A table of cells and rows that are made already, in the frame that all tables have.

    Example:
        >>> framed_table("Votes", [element("th", "cat")], []).startswith('<div class="scroll"')
        True
    """
    # A wide table scrolls by itself, and by keyboard; the page never does.
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *head)),
            element("tbody", *body),
            class_=class_,
        ),
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label=plain(caption),
    )


def plain(content: object) -> str:
    """The words of a caption: up to the first tag."""
    text = str(content)
    return text.split("<", 1)[0].strip() or "table" if isinstance(content, Html) else text


def bar(share: float | None, *, digits: int = 1, class_: str = "") -> Html:
    """A share as a bar, for the eye only, and as a number; – for none.

    Example:
        >>> print(bar(0.5, class_="wide").split("<span")[1])
        class="bar wide" aria-hidden="true"><i style="width:50.0%"></i></span>
    """
    inner = element("i", style=f"width:{100 * min(max(share or 0, 0), 1):.1f}%")
    drawn = element("span", inner, class_=f"bar {class_}".strip(), aria_hidden="true")
    return join(drawn, element("span", percent(share, digits), class_="number"))


def range_bar(low: float, high: float, *, class_: str = "") -> Html:
    r"""An interval of shares as a bar, for the eye only, and as numbers, in whole per cent.

    Example:
        >>> print(range_bar(0.25, 0.75).split("<span")[1])
        class="bar" aria-hidden="true"><i style="margin-left:25.0%;width:50.0%"></i></span>
    """
    inner = element("i", style=f"margin-left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%")
    drawn = element("span", inner, class_=f"bar {class_}".strip(), aria_hidden="true")
    first, last = (percent(end, 0).removesuffix("\N{NO-BREAK SPACE}%") for end in (low, high))
    numbers = f"{first}–{last}\N{NO-BREAK SPACE}%" if first != last else percent(high, 0)
    return join(drawn, element("span", numbers, class_="number"))


def percent(share: float | None, digits: int = 1) -> str:
    r"""A share in per cent, rounded as the page's script rounds it; – for none.

    Example:
        >>> percent(0.12345), percent(0.75, 0), percent(None)
        ('12.3\xa0%', '75\xa0%', '–')
    """
    if share is None:
        return "–"
    # As toFixed does: the exact value of the double, halves away from zero.
    step = Decimal(1).scaleb(-digits)
    return f"{Decimal(100 * share).quantize(step, ROUND_HALF_UP)}\N{NO-BREAK SPACE}%"


def short_percent(share: float) -> str:
    r"""A share in per cent as people write it: all of its decimals, and none that are 0.

    Example:
        >>> short_percent(0.1), short_percent(0.9995)
        ('10\xa0%', '99.95\xa0%')
    """
    return f"{100 * share:.10g}\N{NO-BREAK SPACE}%"  # 0.07 is 7, not 7.000000000000001


def json_in_html(content: Any) -> Html:
    r"""JSON for a ``<script type="application/json">``: no character of it can end the element.

    Example:
        >>> json_in_html(["</script>"])
        '["\\u003c/script\\u003e"]'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)  # ASCII only
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Html(text)
