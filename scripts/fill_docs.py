"""Put what commands print into the documents that quote it, so that no number is typed by hand.

A block ``<!-- $ credalearn-experiments … -->`` … ``<!-- end -->`` of a document holds what that
command prints; so does ``<!-- $ python benchmarks/… -->``. ``python scripts/fill_docs.py FILES``
renews all blocks, and a test checks that they are current.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- \$ ((?:credalearn|credalearn-experiments|python) .*?) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)


def filled(text: str, output: Callable[[str], str]) -> str:
    """The text with every block renewed by what ``output`` returns for its command."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{output(found[2]).strip()}\n\n{found[3]}", text)


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
        path.write_text(filled(path.read_text(encoding="utf-8"), run), encoding="utf-8")
        print(f"{path}: filled")


if __name__ == "__main__":
    main()
