"""Templates: what comes from outside stays text, in HTML and in Markdown."""

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from credalearn._formats import visible
from credalearn.app.report.render import environment
from report_pages import Elements


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
