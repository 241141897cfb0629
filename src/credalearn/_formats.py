"""Numbers, values and names as messages show them."""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from math import isclose

from credalearn.errors import CredalError

_MARKDOWN_SPECIALS = re.compile(r"([\\|*_`<>\[\]~&$])")
_LONGEST = 60  # characters of a value that a message shows
# Control characters, line ends, marks that turn the direction of text or cannot be seen, and halves
# of surrogate pairs. The joiners U+200C and U+200D, which change letters, stay.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"
)


def percent(share: float | None, *, digits: int | None = None, decimals: int | None = None) -> str:
    """A share as a percentage, never rounded up to 100 %; None is a dash."""
    if share is None:
        return "–"
    if decimals is not None:  # as JavaScript's toFixed: the exact value of the double
        rounded = Decimal(100 * share).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        return f"{rounded} %"
    if digits is None:  # 20.9 %, 7.1 %; but 1.25 % stays, as what is promised must not change
        exact = isclose(float(f"{100 * share:.3g}"), 100 * share, rel_tol=1e-9)
        digits = 3 if exact or share >= 0.1 else 2
    texts = (f"{100 * share:.{each}g}" for each in range(digits, 18))  # 17 distinguish all floats
    return next(text for text in texts if not share < 1 or float(text) < 100) + " %"


def number(value: float) -> str:
    """A number for people: whole numbers in full, others to four significant digits."""
    return f"{int(value):,}" if value == int(value) else f"{value:,.4g}"


def escape_markdown(text: str) -> str:
    """Text as it is in a cell of a Markdown table: no cell ends, no mark-up, no HTML."""
    return _MARKDOWN_SPECIALS.sub(r"\\\1", " ".join(text.splitlines()))


def visible(text: str) -> str:
    r"""Text for a terminal or a document: on one line, what cannot be seen as ``\x1b``."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(value: object) -> str:
    """A value in a message: quoted, on one line, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def check_unicode(text: str) -> None:
    """Raise if a name has bytes that are not UTF-8, which no JSON or Parquet file can contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CredalError(f"{shown(text)} is not valid Unicode. To fix: rename it.") from None


def listed(values: Sequence[object], most: int = 8) -> str:
    """The first few values of a sequence, as in "'cat', 'dog' and 1 more"."""
    text = ", ".join(shown(value) for value in values[:most])
    return text if len(values) <= most else f"{text} and {len(values) - most:,} more"


def enumerated(names: Sequence[str]) -> str:
    """All names, as in "cat, dog and owl"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def many(count: int, one: str, more: str | None = None) -> str:
    """A count with its noun, as in "2,000 items"."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for a terminal: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([f"{x:>{w}}" for x, w in zip(row, widths, strict=True)] for row in rows)
    return ["  ".join([first.strip().ljust(widths[0]), *others]) for first, *others in cells]


def about_groups(
    num_groups: int | None, items: int, group: str | None, what: str = "guarantee"
) -> str:
    """What groups do to a promise about independent items; nothing where there are none."""
    if num_groups is None or num_groups == items:
        return ""
    name = f" ({group})" if group else ""
    return (
        f"The {what} assumes independent items; these come from {many(num_groups, 'group')}{name}, "
        "and with few large groups it is weaker than stated."
    )
