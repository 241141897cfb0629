"""The demo: what it prints is what its commands print; the nodules that it uses."""

import re
from pathlib import Path

from credalearn.app.run import Run
from team_files import Capture, facts_of, succeed


def test_the_demo_prints_its_commands_and_what_they_print(tmp_path: Path, capsys: Capture) -> None:
    done = succeed(capsys, "demo", "-o", tmp_path / "d")
    steps = re.split(r"^\$ credalearn ", done.out, flags=re.MULTILINE)[1:]
    names = ["inspect", "train", "certify", "predict", "report"]
    assert [step.split()[0] for step in steps] == names
    for step in steps:
        assert len(step.strip().splitlines()) <= 9 + 4  # the command and at most eight lines
    run = Run.load(tmp_path / "d" / "run")
    assert run.guarantee is not None
    assert run.guarantee.sentence() in steps[2]
    assert run.sets is not None
    assert (tmp_path / "d" / "run" / "report.html").exists()
    before = (tmp_path / "d" / "decisions.csv").read_bytes()
    for step in (steps[0], steps[3]):
        command, *printed = step.strip().splitlines()
        again = succeed(capsys, *command.split())
        assert again.out.splitlines()[: len(printed)] == printed
    assert (tmp_path / "d" / "decisions.csv").read_bytes() == before
    assert facts_of(capsys, "demo", "-o", tmp_path / "e")["run"] == str(tmp_path / "e" / "run")
