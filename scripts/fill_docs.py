"""Put what commands print into the documents that quote it, so that no number is typed by hand.

A block ``<!-- $ credalearn-experiments … -->`` … ``<!-- end -->`` of a document contains what that
command prints; so does ``<!-- $ python benchmarks/… -->``. In a block of the language ``console``
every line that begins with ``$`` is a command, followed by what it prints. These commands and the
``python`` blocks of a page run from top to bottom in one empty folder. ``python
scripts/fill_docs.py FILES`` renews all blocks, and a test checks that they are current;
``tutorials/texts.md`` is also written as a Jupyter notebook.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- \$ ((?:credalearn|credalearn-experiments|python) .*?) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)

CODE = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)


def filled(text: str, output: Callable[[str], str]) -> str:
    """The text with every block renewed by what ``output`` returns for its command."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{output(found[2]).strip()}\n\n{found[3]}", text)


def run_page(text: str, folder: Path) -> tuple[str, list[tuple[str, str]]]:
    """The text with fresh output in its ``console`` blocks, and each Python block's output."""
    printed = []

    def renewed(found: re.Match[str]) -> str:
        language, block = found[1], found[2]
        if language == "python":
            printed.append((block, _output([sys.executable, "-W", "error", "-c", block], folder)))
            return found[0]
        shown = [
            f"$ {command}\n{_output(['bash', '-c', command], folder)}".strip()
            for command in _COMMAND.findall(block)
        ]
        return "```console\n" + "\n\n".join(shown) + "\n```"

    return CODE.sub(renewed, text), printed


def as_notebook(text: str) -> str:
    """The page as a Jupyter notebook, with the outputs that the page shows."""
    cells: list[dict[str, object]] = []

    def add(kind: str, source: str, output: str | None = None) -> None:
        cell: dict[str, object] = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}}
        cell["source"] = source.strip().splitlines(keepends=True)
        if output is not None:
            shown = {"name": "stdout", "output_type": "stream"}
            lines = output.splitlines(keepends=True)
            cell |= {"execution_count": None, "outputs": [{**shown, "text": lines}]}
        cells.append(cell)

    markdown, *blocks = re.split(r"^```(console|python)\n(.*?)^```$", text, flags=CODE.flags)
    add("markdown", markdown)
    for language, block, markdown in zip(*[iter(blocks)] * 3, strict=True):
        if language == "python":
            shown = "\n".join(re.findall(r"^# → (.*)", block, re.MULTILINE))
            add("code", re.sub(r"^# → .*\n", "", block, flags=re.MULTILINE), shown + "\n")
        else:
            for command in re.split(r"\n(?=\$ )", block.strip()):
                first, _, shown = command.partition("\n")
                add("code", f"!{first.removeprefix('$ ')}", shown.strip() + "\n")
        if markdown.strip():
            add("markdown", markdown)
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": cells, "metadata": python, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _output(words: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{words[-1]} failed:\n{done.stderr}")
    return done.stdout


def run(command: str) -> str:
    """What the command prints, in a process of its own."""
    program, *arguments = shlex.split(command)
    python = [] if program == "python" else ["-m", program.replace("-", "_")]
    words = [sys.executable, *python, *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Renew the documents that are named."""
    for name in sys.argv[1:]:
        path = Path(name)
        text = filled(path.read_text(encoding="utf-8"), run)
        with tempfile.TemporaryDirectory() as folder:
            text, _ = run_page(text, Path(folder))
        path.write_text(text, encoding="utf-8")
        if path.name == "texts.md":
            path.with_suffix(".ipynb").write_text(as_notebook(text), encoding="utf-8")
        print(f"{path}: filled")


if __name__ == "__main__":
    main()
