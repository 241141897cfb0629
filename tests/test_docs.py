"""Documents quote what commands print, and their links and examples work."""

import json
import re
import runpy
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from figures import FIGURES
from fill_docs import CODE, as_notebook, filled, run_page
from polars.testing import assert_frame_equal
from typer.main import get_command

import credalearn as cl
from credalearn.app.cli import app
from credalearn_experiments.cli import app as experiments
from credalearn_experiments.cli import main
from ray_cluster import QUIET, ray_cluster
from team_files import Capture, make_team
from tiny_runs import start

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "experiments" / "README.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "experiments" / "docs").glob("*.md")),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_are_what_the_commands_print(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def output(command: str) -> str:
        """In this process, since another takes two seconds to start."""
        program, *arguments = shlex.split(command)
        if program == "credalearn-experiments":
            monkeypatch.setattr(sys, "argv", [program, *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code, command
        else:
            monkeypatch.setattr(sys, "argv", arguments)
            runpy.run_path(arguments[0], run_name="__main__")
        return capsys.readouterr().out

    monkeypatch.chdir(ROOT)
    text = path.read_text(encoding="utf-8")
    exact = "python" not in re.findall(r"<!-- \$ (\S+)", text)  # those read records only
    fresh = filled(text, output)
    for old, new in zip(text.split("<!-- end -->"), fresh.split("<!-- end -->"), strict=True):
        assert old == new if exact else alike(old, new), f"run `make docs`; new text:\n{new}"


def alike(one: str, other: str, *, share: float = 0.0) -> bool:
    """The same words, and numbers within three units of their last digit, or this share of them.

    For blocks that train small networks: another processor may round their last digit differently.
    Whole numbers are counts and must be equal, except for percentages, which may differ by 1.
    """
    number = r"-?\d+(?:\.\d+)?(?: %)?"
    if re.split(number, one) != re.split(number, other):
        return False
    for a, b in zip(re.findall(number, one), re.findall(number, other), strict=True):
        if a == b:
            continue
        if a.endswith("%") != b.endswith("%"):
            return False
        digits = len(b.removesuffix(" %").partition(".")[2])
        allowed = 3.01 * 10**-digits if digits else 1.01 * b.endswith("%")
        value = float(b.removesuffix(" %"))
        if abs(float(a.removesuffix(" %")) - value) > max(allowed, share * abs(value)):
            return False
    return True


def test_another_number_or_word_is_another_text() -> None:
    assert alike("error 0.123 of 10, 43 %", "error 0.125 of 10, 44 %")
    assert not alike("43 %", "45 %")
    for other in ("error 0.129 of 10", "error 0.123 of 11", "loss 0.123 of 10", "error 0.123"):
        assert not alike("error 0.123 of 10", other)


NOTEBOOK = ROOT / "docs" / "tutorials" / "texts.md"  # and the same as a notebook
PAGES = [path for path in DOCUMENTS if CODE.search(path.read_text(encoding="utf-8"))]
PAGES.remove(NOTEBOOK)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    check_page(path, tmp_path)


def check_page(path: Path, folder: Path) -> None:
    """Run the blocks of a page in a folder and compare what they print."""
    text = path.read_text(encoding="utf-8")
    fresh, printed = run_page(text, folder)
    seconds = r"\d+(\.\d+)? s\b"
    old, new = (re.sub(seconds, "… s", each) for each in (text, fresh))
    assert alike(old, new, share=0.15), fresh
    for block, output in printed:
        shown = re.findall(r"# → (.*)", block)
        assert shown
        for line in shown:  # the beginning of a line, or all of it with numbers within 15 %
            lines = output.splitlines()
            assert line in output or any(alike(line, each, share=0.15) for each in lines), output


def test_commands_that_no_page_runs_have_valid_options() -> None:
    programs: Any = {"credalearn": get_command(app)}
    programs |= {"credalearn-experiments": get_command(experiments)}
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    plain = "".join(block.replace("\\\n", " ") for language, block in blocks if not language)
    lines = re.findall(r"^credalearn.*", plain, re.MULTILINE)
    assert len(lines) > 30
    for line in lines:
        program, name, *arguments = shlex.split(line, comments=True)
        programs[program].commands[name].make_context(name, arguments)


def test_the_tutorial_is_a_notebook_whose_cells_run_in_one_process(tmp_path: Path) -> None:
    check_page(NOTEBOOK, tmp_path)  # which leaves what its commands write
    notebook = NOTEBOOK.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert notebook == as_notebook(NOTEBOOK.read_text(encoding="utf-8")), "run `make docs`"
    cells = [
        "".join(cell["source"])
        for cell in json.loads(notebook)["cells"]
        if cell["cell_type"] == "code"
    ]
    assert [cell.split()[1] for cell in cells if cell.startswith("!")][:2] == ["inspect", "train"]
    page = "\n".join(cell for cell in cells if not cell.startswith("!"))
    _, [(_, output)] = run_page(f"```python\n{page}\n```", tmp_path)
    assert output.rstrip().endswith("['complaint'] linear")


@pytest.mark.skipif(not (find_spec("ray") and find_spec("pyarrow")), reason="needs ray[data]")
def test_a_ray_cluster_predicts_what_this_machine_predicts(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "ray.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(import ray[^`]*)```", text)
    team = make_team(tmp_path)
    items = pl.read_csv(team.features).select("item", "size", "weight")
    items.write_parquet(tmp_path / "items.parquet")
    run = cl.Run.train(cl.Dataset(cl.read_annotations(team.votes), features=items), team.run)
    run.certify(capacity=0.3)
    code = block.replace("/data/", f"{tmp_path}/").replace("10_000", "16")
    with ray_cluster() as address:
        process = start([sys.executable, "-c", code], RAY_ADDRESS=address, **QUIET)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    found = pl.read_parquet(tmp_path / "decisions" / "*.parquet").sort("item")
    here = run.predict(tmp_path / "items.parquet").to_polars()
    assert_frame_equal(found, here.sort("item"), check_exact=True)
    assert set(found["decision"]) == {"predict", "defer"}


def test_the_readme_is_short_and_every_picture_comes_from_a_command() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    drawn = {f"{name}.png" for name in (*FIGURES, "report")} | {"concepts/coverage-broken.png"}
    docs = ROOT / "docs"
    assert {path.relative_to(docs).as_posix() for path in docs.rglob("*.png")} == drawn


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (path.parent / target).exists(), f"{path.name} names {target}"
    for target in re.findall(r"(?:tests|benchmarks|scripts|src)/[a-z_/]+\.py", text):
        assert (ROOT / target).exists(), f"{path.name} names {target}"
