"""What people read is spelled as in American English, in plain constructions."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("src", "experiments", "scripts", "benchmarks", "tests")
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "docs", "experiments")
# Words that are meant: misspelled input of tests, names in other packages, a title.
MEANT = (
    "atleast,certi,dialogues,itme,judgement,lable,larg,mesage,nd,trian,wieght,writeable,cancelled"
)
FORBIDDEN = re.compile(
    r"\b(told|whoever|beside|of which|Read are|of everything random|in words that travel)\b"
    r"|\b(anew|somebody|accuses?|thereof|wherein|classes alike|is to be|are to be)\b"
    r"|\bof the training\b(?! (data|images|items|labels|texts|values))"
    r"|\b(row|vote|item|annotator|matrix|label|answer|head|file|seed|%)s? +an? "
    r"(row|vote|item|group|class|annotator|person|cell)\b"
    r"|\bholds p(₀|\b)|\bcount(s|ed)? alike\b|\bis to see\b|\btells? (none|the class)\b"
    r"|\bcalled like\b|has no column [^;]* but '",
    re.IGNORECASE,
)


def texts() -> Iterator[tuple[Path, str]]:
    """Strings, comments and names of tests in code; pages; the report's templates and script."""
    for path in (path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        if path == Path(__file__):
            continue
        code = path.read_text(encoding="utf-8")
        yield from ((path, comment) for comment in re.findall(r"# .*", code))
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield path, node.name.replace("_", " ")
    for name in DOCUMENTS:
        for path in [ROOT / name, *(ROOT / name).rglob("*.md")]:
            if path.is_file():
                yield path, path.read_text(encoding="utf-8")
    report = ROOT / "src" / "credalearn" / "app" / "report"
    for path in (*report.glob("templates/*"), report / "page.js"):
        yield path, path.read_text(encoding="utf-8")


def test_no_forbidden_construction() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text[max(hit.start() - 30, 0) : hit.end() + 30]!r}"
        for path, text in texts()
        for hit in FORBIDDEN.finditer(text.replace("\n", " "))
    ]
    assert found == []


def test_messages_name_options_as_python_does() -> None:
    """The command spells them as flags; flags are in help, and in commands to be run."""
    flag, found = re.compile(r"(?<![\w-])--[a-z]"), []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "refuse"
            if called or isinstance(node, ast.Raise):
                text = " ".join(str(x.value) for x in ast.walk(node) if isinstance(x, ast.Constant))
                if flag.search(text) and "credalearn " not in text:
                    found.append(f"{path.name}: {text}")
    assert found == []


def test_spelling() -> None:
    words = ["--builtin", "clear,rare,en-GB_to_en-US", "--ignore-words-list", MEANT]
    skip = [
        "--skip",
        "*.png,*.csv,*.parquet,*.pyc,*.jsonl,*/vendor/*,*/results/*,*/results-rerun/*",
    ]
    places = [str(ROOT / name) for name in dict.fromkeys((*CODE, *DOCUMENTS))]
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", *words, *skip, *places],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
