"""One formatter for numbers and names that people read."""

import math
import re
import unicodedata
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

import credalearn
from credalearn._formats import aligned, many, percent, visible

SOURCE = Path(credalearn.__file__).parent
# A placeholder with a percent sign behind it, or a number format that ends in one; a share times
# 100; a threshold with digits of its own. Templates: significant digits, or a percent sign.
BY_HAND = {
    ".py": re.compile(
        r"(?<!SPACE)\}(?: |\\xa0|\\N\{NO-BREAK SPACE\})?%|:[.\d]*%\}|%\.\d[fg] ?%%"
        r"|\{100 \* [^{}]*:|\{[^{}]*(threshold|edge|limit)[^{}]*:[^{}]*\.\d+[fg]\}"
    ),
    ".j2": re.compile(r'"%[.\d]*g"\|format|%%"\|format'),
}


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 6))
def test_percent_is_close_and_never_rounds_up_to_all(share: float, digits: int) -> None:
    number = float(percent(share, digits=digits).removesuffix(" %"))
    assert number < 100
    assert math.isclose(number, 100 * share, rel_tol=10.0 ** (1 - digits), abs_tol=1e-300)


def test_percent_has_two_digits_below_ten_percent_unless_it_is_exact() -> None:
    found = [percent(share) for share in (0.209302, 0.071301, 0.0051912, 0.0125, 0.075)]
    assert found == ["20.9 %", "7.1 %", "0.52 %", "1.25 %", "7.5 %"]


@given(st.floats(0, 1), st.integers(0, 4))
def test_percent_with_decimals(share: float, decimals: int) -> None:
    text = percent(share, decimals=decimals).removesuffix(" %")
    assert len(text.partition(".")[2]) == decimals
    assert abs(float(text) - 100 * share) <= 0.5 * 10.0**-decimals + 1e-9


@given(st.text())
@example("\x1b]0;title\x07 \x9b31m\u202eab\u2066\u2028\ud800\r\n")
def test_visible_text_is_printable_and_on_one_line(text: str) -> None:
    found = visible(text)
    assert len(found.splitlines()) <= 1
    for letter in found:
        kept = letter in text and unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp")
        assert kept or letter in "\\abcdefnrtux0123456789"
    assert not set(found) & set(
        "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    )


def test_visible_text_keeps_letters_and_joiners() -> None:
    for text in ("café", "日本", "👩\u200d🚀", "می\u200cخواهم", "C:\\new"):
        assert visible(text) == text


def test_many_is_singular_only_for_one() -> None:
    found = [many(count, "vote") for count in (0, 1, 1000)]
    assert found == ["0 votes", "1 vote", "1,000 votes"]


def test_numbers_are_formatted_in_one_place() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix in BY_HAND and path.name != "_formats.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if BY_HAND[path.suffix].search(line)
    ]
    assert not found, "use credalearn._formats:\n" + "\n".join(found)


def test_tables_are_aligned() -> None:
    rows = [("items", "kept"), ("a", "9 %"), ("test items", "100 %")]
    assert aligned(rows) == ["items        kept", "a             9 %", "test items  100 %"]
