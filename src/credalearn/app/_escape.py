"""Text from outside, made safe to stand in a cell of a Markdown table."""

import re

_MARKDOWN_SPECIALS = re.compile(r"([\\|*_`<>\[\]~&$])")


def escape_markdown(text: str) -> str:
    r"""Text as it is, on one line: no cell ends, no mark-up, no HTML."""
    return _MARKDOWN_SPECIALS.sub(r"\\\1", " ".join(text.splitlines()))
