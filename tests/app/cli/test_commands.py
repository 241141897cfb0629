"""Every command: its help, what it imports, bad input and Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from credalearn.app.cli import app
from credalearn.app.cli._command import _as_flags, command
from credalearn.app.cli.commands import COMMANDS
from credalearn.app.steps.certify_options import CertifyOptions
from small_run import make_run
from team_files import Capture, Team, in_process, make_images, make_team, snapshot, train_arguments

HEAVY = {"torch", "sklearn"}


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"], terminal_width=200).output
    for name, function in COMMANDS.items():
        assert name in shown
        assert str(function.__doc__)[:30] in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_option(name: str) -> None:
    shown = CliRunner(env={"COLUMNS": "300"}).invoke(app, [name, "--help"]).output
    assert str(COMMANDS[name].__doc__)[:30] in shown
    hints = get_type_hints(COMMANDS[name], include_extras=True).values()
    stated = [each.__metadata__[0] for each in hints if hasattr(each, "__metadata__")]
    for module, _, kind in (each.rpartition(".") for each in stated if isinstance(each, str)):
        for each in fields(getattr(import_module(f"credalearn.app.{module}"), kind)):
            if "help" in each.metadata:
                flag = f"--{each.name.replace('_', '-')}"
                assert all(flag in shown for flag in each.metadata["flags"] or (flag,))
                assert (f"--no-{flag[2:]}" in shown) == (each.default is True), flag
                default = each.metadata["show_default"] or each.default
                if isinstance(default, str) or type(default) in (int, float):
                    assert str(default)[:12] in shown, flag


def test_command_and_python_make_the_same_options() -> None:
    seen: list[CertifyOptions] = []

    def keep(*, options: CertifyOptions) -> None:
        seen.append(options)

    one = typer.Typer()
    one.command()(command(keep))
    CliRunner().invoke(one, ["--called", "a=0.1", "--called", "b=0.2", "--again"])
    assert seen == [CertifyOptions(called=("a=0.1", "b=0.2"), again=True)]


def modules_after(*arguments: object) -> set[str]:
    """The modules that a command imports, in a process of its own."""
    words = ["credalearn", *map(str, arguments)]
    code = (
        f"import sys; sys.argv = {words!r}\n"
        "from credalearn.app.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "print('modules:', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.partition("modules:")[2].split())


def test_help_imports_nothing_heavy() -> None:
    assert not {*HEAVY, "polars", "numpy", "scipy"} & modules_after("--help")


def test_inspect_and_certify_import_neither_torch_nor_sklearn(tmp_path: Path) -> None:
    assert not HEAVY & modules_after("inspect", make_team(tmp_path).votes)
    run = make_run(tmp_path / "RUN", rule=False)
    assert not HEAVY & modules_after("certify", run.path, "--max-error", "0.9")


def missing_image(team: Team) -> None:
    make_images(team.folder / "images", [f"x{number:03d}" for number in range(59)])


IMAGES = ("--images", "{folder}/images", "--image-size", "8")
Damage = Callable[[Team], object]
BAD: dict[str, tuple[Damage, tuple[str, ...], tuple[str, ...]]] = {
    "no export": (lambda t: t.votes.unlink(), (), ("there is no file", "votes.csv")),
    "binary export": (lambda t: t.votes.write_bytes(b"\x89PNG\0\0"), (), ("votes.csv", "binary")),
    "gzip": (lambda t: t.votes.write_bytes(b"\x1f\x8b"), ("--encoding", "utf-8"), ("with gzip",)),
    "wrong label column": (lambda t: None, ("--label", "labell"), ("'labell'", "label")),
    "wrong group column": (lambda t: None, ("--group", "pateint"), ("'pateint'", "patient")),
    "not a number": (lambda t: t.features.write_text("item,size\nx,red\n"), (), ("features.csv",)),
    "missing image": (missing_image, IMAGES, ("images", "x059")),
    "bad method": (lambda t: None, ("--method", "poc"), ("method must be one of", "'pocc'")),
    "output is a file": (lambda t: t.run.write_text(""), (), ("is a file, not a folder",)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_message_and_nothing_is_written(
    tmp_path: Path, capsys: Capture, name: str
) -> None:
    damage, more, said = BAD[name]
    team = make_team(tmp_path)
    damage(team)
    before = snapshot(tmp_path)
    arguments = train_arguments(team, *(each.format(folder=tmp_path) for each in more))
    done = in_process(capsys, *arguments)
    assert done.code == 2
    message = done.err.splitlines()[-1]
    assert message.startswith("credalearn: ")
    for text in said:
        assert text in message
    assert snapshot(tmp_path) == before


def test_an_argument_that_is_not_unicode_is_refused(capsys: Capture) -> None:
    refused = in_process(capsys, "inspect", os.fsdecode(b"\xff.csv"))
    message = "credalearn: '\\udcff.csv' is not valid Unicode. To fix: rename it.\n"
    assert (refused.code, refused.err) == (2, message)


def test_an_unknown_command_or_option_has_exit_code_2(capsys: Capture) -> None:
    for arguments in (["trian"], ["inspect"], ["certify", "run", "--max-eror", "0.1"]):
        done = in_process(capsys, *arguments)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_ctrl_c_is_one_line_and_exit_code_130(tmp_path: Path) -> None:
    arguments = train_arguments(make_team(tmp_path), "--method", "pocc", "--epochs", "100000")
    process = subprocess.Popen(
        [sys.executable, "-m", "credalearn", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while process.poll() is None and not any(
            name.startswith("resume") for _, _, names in os.walk(tmp_path) for name in names
        ):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("credalearn: stopped; the same command")


def test_errors_spell_keywords_as_options() -> None:
    said = {
        "with my_salt=1, or --my-salt=2": "with --my-salt 1, or --my-salt=2",
        "pass my_salt='sea', or my_salt='-1'.": "pass --my-salt sea, or --my-salt=-1.",
        "with my_salt='a b' (my_salt=True)": "with --my-salt 'a b' (--my-salt)",
        "pass my_salt='x,my_salt=y'": "pass --my-salt 'x,my_salt=y'",
        "the item's: leave out my_salt=": "the item's: leave out --my-salt",
        "credalearn x my_salt=1; or my_salt=False": "credalearn x my_salt=1; or --no-my-salt",
        "not your_my_salt=3, 'a my_salt=3' or runs/my_salt=3": None,
        "my_salt=1/votes.csv, https://x.org/?my_salt=1, my_salt=sea": None,
    }
    for python, flags in said.items():
        assert _as_flags(python, ["my_salt"]) == (flags or python)


WRONG = {
    "certify r --max-error 2": "--max-error must be above 0",
    "certify r --called cat=2": "--called must be above 0",
    "certify r --max-error 0.1 --capacity 0.2": "Pass --max-error 0.1 or --capacity 0.2, not both",
    "predict r d.csv -o o.csv --threshold 0.5 --no-decision": "--threshold must be left out",
    "train v.csv -o r --epochs 0": "--epochs must be 1 or more",
    "predict r d.csv -o o.csv --threshold 2": "--threshold .* at most 1; got 2.0.$",
    "certify r --max-error 0,1": "'--max-error': '0,1' is not a number. To fix: write 0.1. ",
}


@pytest.mark.parametrize("asked", WRONG)
def test_wrong_options_are_named_as_typed(capsys: Capture, asked: str) -> None:
    done = in_process(capsys, *asked.split())
    assert (done.code, bool(re.search(WRONG[asked], done.err))) == (2, True)
