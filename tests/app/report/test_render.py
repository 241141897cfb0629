"""Templates: what comes from outside stays text, in HTML and in Markdown."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from credalearn._formats import visible
from credalearn.app.report.render import environment
from fake_run import add_rule, add_sets, fake_run, training_options, with_facts
from report_pages import Elements, data_of, page_of

EVIL = ("<script>alert(1)</script>", "</script>", "a & \"b\" 'c'", "<!--", "{{x}} {% y %} $title")


@pytest.mark.parametrize("certified", [True, False])
def test_hostile_names_are_escaped_on_the_page(tmp_path: Path, certified: bool) -> None:
    names = [f"<img src=x onerror=alert({n})>&'\"\x1b" for n in range(400)]
    run = fake_run(tmp_path / "<b>run", classes=EVIL, num_items=400, item_names=names)
    evil = "<svg onload=alert(1)>"
    run = with_facts(
        run,
        annotation_facts=replace(run.facts.annotations, path=evil, left_out={"<i>": 3}),
        options=training_options(method=evil),
        versions={"</table>": "<script>"},
        splits=replace(run.facts.splits, group="</ul><script>"),
    )
    if certified:
        run = add_sets(add_rule(run, max_error=0.3))
    other = fake_run(tmp_path / "x" / "</script><script>alert(2)", classes=EVIL, num_items=400)
    page = page_of(run, other, title="</title><script>")
    parsed = Elements(page)
    plain = add_sets(add_rule(fake_run(tmp_path / "plain")))
    known = {tag for tag, _ in Elements(page_of(plain, fake_run(tmp_path / "other"))).tags}
    assert {tag for tag, _ in parsed.tags} <= known | {"code"}
    assert [tag for tag, _ in parsed.tags].count("script") == 3
    assert not [key for _, attrs in parsed.tags for key in attrs if key.startswith("on")]
    assert "\x1b" not in page
    words = " ".join(parsed.texts)
    for name in (*EVIL, evil, "</title><script>", names[-1][:20]):
        assert name in words
    assert data_of(page)["runs"]["curves"][1]["name"] == "script><script>alert(2)"


@given(st.text() | st.text(alphabet="<>&'\"/ax=;"))
@example("\"><img src=x onerror='alert(1)'>")
def test_any_text_stays_text_in_html(text: str) -> None:
    source = (
        '<p title="{{ text }}">{{ text }}</p><script id="d">{{ {text: [text]}|tojson }}</script>'
    )
    written = environment(html=True).from_string(source).render(text=text)
    parsed = Elements(written)
    shown = visible(text)
    assert parsed.tags == [("p", {"title": shown}), ("script", {"id": "d"})]
    assert "".join(parsed.texts) == shown
    inside = written.split('"d">')[1].removesuffix("</script>")
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {text: [text]}


@given(st.text() | st.text(alphabet="|*_`<>[]~&$\\\n#a"))
def test_any_text_stays_in_its_markdown_cell(text: str) -> None:
    written = environment(html=False).from_string("| {{ text }} |").render(text=text)
    assert len(written.splitlines()) == 1
    inside = written.removeprefix("| ").removesuffix(" |")
    assert not re.search(r"[|*_`<>\[\]~&$]", re.sub(r"\\.", "", inside))
