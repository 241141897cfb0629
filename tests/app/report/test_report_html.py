"""Texts and numbers as HTML: what comes from outside stays text, shares round as in a browser."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from credalearn.app.report.html import element, json_in_html, percent, range_bar
from credalearn.app.steps.reporting import write_report
from fake_run import add_rule, add_sets, fake_run
from report_pages import Elements, data_of

EVIL = ("<script>alert(1)</script>", "</script>", "a & \"b\" 'c'", "<!--", "{{x}} ${y} $title")


@pytest.mark.parametrize("ruled", [True, False])
def test_what_comes_from_outside_stays_text(tmp_path: Path, ruled: bool) -> None:
    names = [f"<img src=x onerror=alert({n})>&'\"" for n in range(400)]
    run = fake_run(tmp_path / "<b>run", classes=EVIL, num_items=400, item_names=names)
    facts = run.facts
    facts.annotations.path = facts.method = "<svg onload=alert(1)>"
    facts.annotations.left_out = {"<i>": 3}
    facts.versions = {"</table>": "<script>"}
    facts.options |= facts.versions
    facts.splits.group = "</ul><script>"
    write_json(run.path / "run.json", facts)
    if ruled:
        add_sets(add_rule(run, max_error=0.3))
    other = fake_run(tmp_path / "x" / "</script><script>alert(2)", classes=EVIL, num_items=400)
    text = write_report(run, others=[other], title="</title><script>").read_text(encoding="utf-8")
    parsed = Elements(text)
    plain = Elements(write_report(fake_run(tmp_path / "plain")).read_text(encoding="utf-8"))
    assert {tag for tag, _ in parsed.tags} <= {tag for tag, _ in plain.tags}
    assert [tag for tag, _ in parsed.tags].count("script") == 3
    assert not [key for _, attrs in parsed.tags for key in attrs if key.startswith("on")]
    words = " ".join(parsed.texts)
    for name in (*EVIL, "<svg onload=alert(1)>", "</title><script>", names[-1][:20]):
        assert name in words
    assert [each["name"] for each in data_of(text)["runs"]][1] == "script><script>alert(2)"


@given(st.text() | st.text(alphabet="<>&'\"/ax=;"))
@example("\"><img src=x onerror='alert(1)'>")
def test_any_text_stays_text(text: str) -> None:
    written = element("td", text, title=text)
    assert str(written).startswith("<td ")
    parsed = Elements(str(written))
    assert parsed.tags == [("td", {"title": text})]
    assert "".join(parsed.texts) == text
    inside = json_in_html({text: [text]})
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {text: [text]}


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_shares_round_as_in_the_browser(part: int, whole: int) -> None:
    value = 100 * (part / whole)
    # toFixed: the nearest tenth of the double, the larger of two.
    tenths = int(value * 10)
    exact = value.as_integer_ratio()
    nearest = min((tenths - 1, tenths, tenths + 1), key=lambda t: _distance(t, exact))
    assert percent(part / whole) == f"{nearest // 10}.{nearest % 10}\N{NO-BREAK SPACE}%"


def _distance(tenths: int, exact: tuple[int, int]) -> tuple[int, int]:
    return abs(10 * exact[0] - tenths * exact[1]), -tenths


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_range_is_drawn_from_its_lower_to_its_upper_end(one: float, other: float) -> None:
    low, high = sorted((one, other))
    drawn = range_bar(low, high)
    left, width = map(float, re.findall(r"([\d.]+)%", drawn.split("</i>")[0]))
    assert left == pytest.approx(100 * low, abs=0.06)
    assert left + width == pytest.approx(100 * high, abs=0.12)
    first, last = percent(low, 0), percent(high, 0)
    assert drawn.count("\N{NO-BREAK SPACE}%") == 1
    assert f">{last}<" in drawn if first == last else f"{first[:-2]}–{last}<" in drawn
