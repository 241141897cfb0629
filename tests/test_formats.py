"""One formatter for people's numbers."""

import math
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import credalearn
from credalearn._formats import many, percent

SOURCE = Path(credalearn.__file__).parent
# A placeholder with a percent sign behind it, or a number format that ends in one.
BY_HAND = re.compile(r"(?<!SPACE)\}(?: |\\xa0|\\N\{NO-BREAK SPACE\})?%|:[.\d]*%\}|%\.\d[fg] ?%%")


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 6))
def test_percent_is_close_and_never_rounds_up_to_all(share: float, digits: int) -> None:
    number = float(percent(share, digits=digits).removesuffix(" %"))
    assert number < 100
    assert math.isclose(number, 100 * share, rel_tol=10.0 ** (1 - digits), abs_tol=1e-300)


@given(st.floats(0, 1), st.integers(0, 4))
def test_percent_with_decimals(share: float, decimals: int) -> None:
    text = percent(share, decimals=decimals).removesuffix(" %")
    assert len(text.partition(".")[2]) == decimals
    assert abs(float(text) - 100 * share) <= 0.5 * 10.0**-decimals + 1e-9


def test_many_is_singular_only_for_one() -> None:
    assert [many(n, "vote") for n in (0, 1, 2, 1000)] == [
        "0 votes",
        "1 vote",
        "2 votes",
        "1,000 votes",
    ]


def test_percentages_are_formatted_in_one_place() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "_formats.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if BY_HAND.search(line)
    ]
    assert not found, "use credalearn._formats.percent:\n" + "\n".join(found)
