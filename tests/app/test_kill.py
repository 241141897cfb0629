"""Commands that are killed, and two commands at the same time: nothing torn, mixed or left."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kills import COMMANDS, Server, kill_at_changes, make_states, run_pair

# Where only every n-th change is tried; scripts/attack.py tries all, and export, which is slow.
STEPS = {"train again": 4, "defer": 4, "recalibrate": 12, "experiments": 14}
LAST = {"train again": 16}  # the changes that put one run in the place of another: every one
NAMES = [name for name in COMMANDS if name != "export"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as found:
        yield found


@pytest.fixture(scope="module")
def before(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_states(server, tmp_path_factory.mktemp("kill"), NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_killed_command_gives_the_same_result_when_repeated(
    name: str, server: Server, before: dict[str, Path], tmp_path: Path
) -> None:
    step, last = STEPS.get(name, 1), LAST.get(name, 0)
    kills = kill_at_changes(server, name, before[name], tmp_path / "work", step=step, last=last)
    assert kills >= 5


@pytest.mark.parametrize("second", ["train again", "certify", "defer", "report", "recalibrate"])
def test_two_commands_on_one_run_leave_it_whole(
    second: str, server: Server, before: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(before["certify"], tmp_path / "work")
    run_pair(server, folder, "train again", second)
