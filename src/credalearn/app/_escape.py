"""Text from outside, made safe to stand in Markdown, LaTeX or CSV."""

import re

_MARKDOWN_SPECIALS = re.compile(r"([\\|*_`<>\[\]~&$])")
_LATEX_SPECIALS = {
    **{each: rf"\{each}" for each in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{each: f"{{{each}}}" for each in "[]*"},  # after \\ these would be its options
}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_markdown(text: str) -> str:
    r"""Text as it is in a cell of a Markdown table: no cell ends, no mark-up, no HTML."""
    return _MARKDOWN_SPECIALS.sub(r"\\\1", _one_line(text))


def escape_latex(text: str) -> str:
    r"""Text as it is in a cell of a LaTeX table: no cell ends, no commands."""
    return "".join(_LATEX_SPECIALS.get(letter, letter) for letter in _one_line(text))


def escape_csv(text: str) -> str:
    """Text that no spreadsheet runs as a formula; quotes and commas are left to ``csv.writer``."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) and not _is_number(text) else text


def _one_line(text: str) -> str:
    """Without line ends, which would end the row."""
    return " ".join(text.splitlines())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
