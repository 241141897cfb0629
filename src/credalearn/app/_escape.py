"""Text from outside, made safe to stand in Markdown or CSV."""

import re
from contextlib import suppress

_MARKDOWN_SPECIALS = re.compile(r"([\\|*_`<>\[\]~&$])")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_markdown(text: str) -> str:
    r"""Text as it is in a cell of a Markdown table: no cell ends, no mark-up, no HTML."""
    return _MARKDOWN_SPECIALS.sub(r"\\\1", " ".join(text.splitlines()))


def escape_csv(text: str) -> str:
    """Text that no spreadsheet runs as a formula; quotes and commas are left to ``csv.writer``."""
    with suppress(ValueError):
        float(text)
        return text
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
