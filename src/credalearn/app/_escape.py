"""Text from outside, made safe to stand in Markdown or CSV."""

import re

_MARKDOWN_SPECIALS = re.compile(r"([\\|*_`<>\[\]~&$])")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_markdown(text: str) -> str:
    r"""Text as it is in a cell of a Markdown table: no cell ends, no mark-up, no HTML."""
    return _MARKDOWN_SPECIALS.sub(r"\\\1", " ".join(text.splitlines()))


def escape_csv(text: str) -> str:
    """Text that no spreadsheet runs as a formula; quotes and commas are left to ``csv.writer``."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
