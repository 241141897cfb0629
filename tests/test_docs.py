"""Documents quote what commands print: their blocks are fresh, and their pictures are there."""

import re
from pathlib import Path

import pytest
from fill_docs import filled

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_are_what_the_commands_print(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert filled(text) == text, "run `make docs`"


def test_a_stale_block_is_seen() -> None:
    text = "<!-- $ credalearn --version -->\nold\n<!-- end -->"
    assert re.search(r"-->\n\ncredalearn \d+\.\d+\.\d+\n\n<!-- end", filled(text))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{path.name} names {target}"
