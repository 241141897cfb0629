"""See ``credalearn.app.sources``."""

import re


def looks_like_json(start: bytes) -> bool:
    """Whether a file begins like JSON."""
    text = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    return re.match(rb'\[\s*([\[{"\d\]-]|$)|\{\s*("|\}|$)', text) is not None
