"""Hooks of the documentation site: pages from outside ``docs``, formulas, and docstrings.

A link in a page leads to a file of the repository, as in any viewer of it. On the site the pages
of ``docs`` are at the top, and the others have the same path as in the repository. Formulas become
MathML, which browsers show without a script from elsewhere.
"""

import html
import posixpath
import re
from pathlib import Path
from typing import Any

from griffe import Extension
from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
_BORDER = r"=+(?:  =+)+$\n"
_TABLE = re.compile(rf"^( *){_BORDER}(?:.*\n)+?\1{_BORDER}(?:.*\n)+?\1{_BORDER[:-2]}", re.MULTILINE)
_SESSION = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def _outside() -> list[Path]:
    """Files of the site that are not in ``docs``: the experiments and what contributors read."""
    pages = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "README.md"]
    folder = ROOT / "experiments" / "docs"
    return [*pages, *sorted(folder.glob("*.md")), *sorted(folder.glob("*.png"))]


def on_files(files: Any, config: Any) -> Any:
    """Add the files from outside ``docs``."""
    from mkdocs.structure.files import File

    for path in _outside():
        uri = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **rest: Any) -> str:  # noqa: ARG001
    """Turn links between files of the repository into links between pages of the site."""
    uri = page.file.src_uri
    here = uri if (ROOT / uri).exists() else f"docs/{uri}"

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), found[1]))
        target = target.removeprefix("docs/")
        return f"]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}"

    return _LINK.sub(moved, markdown)


def on_page_content(html: str, **rest: Any) -> str:  # noqa: ARG001
    """Replace formulas by MathML."""
    return _FORMULA.sub(_mathml, html)


def _mathml(found: re.Match[str]) -> str:
    formula = html.unescape(found[2]).strip()
    if found[1] == "span":
        return str(convert(formula))
    shown = convert(formula, display="block")
    return f'<div style="overflow-x: auto">{shown}</div>'  # on narrow screens it scrolls


class MarkdownDocstrings(Extension):
    """Docstrings are written for ``help``, with the roles of Sphinx; the site needs Markdown."""

    def on_object(self, *, obj: Any, **rest: Any) -> None:  # noqa: ARG002
        """Rewrite the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The text with roles, formulas and tables as Markdown has them."""
    text = re.sub(r":math:`([^`]*)`", r"\\(\1\\)", text)
    text = re.sub(r":(?:class|func|meth|mod|data):`~?([^`]*)`", _name, text)
    text = re.sub(r"\.\. math::((?: .*|\n {4,}.*)+)", _display, text)
    text = _TABLE.sub(_table, text)
    return _SESSION.sub(r"\1```pycon\n\g<0>\n\1```", text)


def _name(found: re.Match[str]) -> str:
    shown = re.fullmatch(r"(.*?) <.*>", found[1])
    return f"`{(shown[1] if shown else found[1]).removeprefix('credalearn.')}`"


def _display(found: re.Match[str]) -> str:
    return f"\\[{' '.join(found[1].split())}\\]"


def _table(found: re.Match[str]) -> str:
    """A table of two columns; a line that begins with spaces continues the last cell."""
    border, *lines, _ = [line.removeprefix(found[1]) for line in found[0].splitlines()]
    second = border.index("=", border.index(" "))
    rows: list[list[str]] = []
    for line in lines:
        first, rest = line[:second].strip(), line[second:].strip()
        if line.startswith("="):
            rows.append(["---", "---"])
        elif first:
            rows.append([first, rest])
        else:
            rows[-1][1] += f" {rest}"
    return "\n".join(f"{found[1]}| {' | '.join(row)} |" for row in rows)
