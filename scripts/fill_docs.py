"""Put what commands print into the documents that quote it, so that no figure is typed by hand.

A block ``<!-- $ credalearn … -->`` … ``<!-- end -->`` in a document holds what that command prints,
and so does ``<!-- $ python benchmarks/… -->``. ``python scripts/fill_docs.py docs/*.md`` renews all
blocks; a test sees that they are fresh.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(
    r"(<!-- \$ ((?:credalearn|credalearn-experiments|python) .*?) -->\n).*?(<!-- end -->)",
    re.DOTALL,
)


def filled(text: str) -> str:
    """The text with every block renewed."""
    return _BLOCK.sub(lambda found: f"{found[1]}{_output(found[2])}{found[3]}", text)


def _output(command: str) -> str:
    program, *arguments = shlex.split(command)
    module = program.replace("-", "_")
    python = [sys.executable] if program == "python" else [sys.executable, "-m", module]
    done = subprocess.run(
        [*python, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return f"\n{done.stdout.strip()}\n\n"


def main() -> None:
    """Renew the documents that are named."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{path}: filled")


if __name__ == "__main__":
    main()
