"""Deliberate faults in the core: each must be caught by the test that names it.

Every fault is one replacement in one source file of a copy of the package, named by the decorator
``@pytest.mark.catches`` of a test. That test runs against the copy and must fail.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent


class Fault(NamedTuple):
    file: str
    right: str
    wrong: str
    guard: str


def faults() -> Iterator[Fault]:
    """Those that ``@pytest.mark.catches(file, right, wrong)`` names at the test that catches it."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.catches":
                    file, right, wrong = map(ast.literal_eval, mark.args)
                    case = "".join(f"[{ast.literal_eval(each.value)}]" for each in mark.keywords)
                    guard = f"{path.relative_to(TESTS)}::{node.name}{case}"
                    yield Fault(file, right, wrong, guard)


FAULTS = list(faults())

# Importing torch and the rest takes longer than most guards: once, and a fork for each fault.
SERVER = """
import gc, os, sys
sys.path.append("tests")
import hypothesis, numpy, pandas, pytest, scipy.optimize, scipy.stats, sklearn.metrics, torch
import torchvision_shim, torchmetrics
gc.freeze()  # half a second less in each fork
for line in sys.stdin:
    folder, *arguments = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        sys.path.insert(0, folder)  # before the installed package
        written = os.open(f"{folder}/output", os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        code = int(pytest.main(arguments))
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

# pytest warns that it can no longer rewrite hypothesis's assertions.
ALREADY = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"


@dataclass(frozen=True)
class Guards:
    """A process that runs tests against copies of the package."""

    process: "subprocess.Popen[str]"

    def run(self, folder: Path, *guards: str) -> tuple[int, str]:
        """Exit code and output of pytest on these tests, with the package in this folder."""
        # The copy, not src, which pytest's own setting would put first.
        asked = ["-o", f"pythonpath={folder} experiments tests benchmarks scripts"]
        asked += ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", ALREADY]
        asked += [f"tests/{guard}" for guard in guards]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\t".join([str(folder), *asked]) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return code, (folder / "output").read_text()


@pytest.fixture(scope="module")
def guards() -> Iterator[Guards]:
    command = [sys.executable, "-c", SERVER]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True
    ) as process:
        yield Guards(process)
        assert process.stdin is not None
        process.stdin.close()


def test_unchanged_copy_passes(guards: Guards, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "credalearn", tmp_path / "credalearn")
    assert len(FAULTS) > 40
    code, output = guards.run(tmp_path, *sorted({fault.guard for fault in FAULTS}))
    assert code == 0, output


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file} {fault.wrong}")
def test_fault_is_caught(fault: Fault, guards: Guards, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "credalearn", tmp_path / "credalearn")
    path = tmp_path / "credalearn" / fault.file
    text = path.read_text()
    assert text.count(fault.right) == 1, "the fault's place has moved: name it again"
    path.write_text(text.replace(fault.right, fault.wrong))
    code, output = guards.run(tmp_path, fault.guard)
    assert code == 1, f"{fault.guard} does not fail:\n{output}"
