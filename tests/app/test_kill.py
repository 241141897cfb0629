"""Killed at any change to a file, every command leaves a run that loads, and can be run again."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import credalearn as cl
from credalearn.app.dataset import Dataset
from credalearn.app.run import Run
from killed import changes, kill_at
from team_files import Team, make_team, snapshot

Verb = Callable[[Path], object]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return make_team(tmp_path_factory.mktemp("team"), num_items=300)


@pytest.fixture(scope="module")
def data(team: Team) -> Dataset:
    drop = ("patient", "truth", "part")
    return Dataset(cl.read_annotations(team.votes), features=team.features, drop=drop)


@pytest.fixture(scope="module")
def trained(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Run.train(data, tmp_path_factory.mktemp("trained") / "run", epochs=5).path


def content(folder: Path) -> dict[str, str]:
    """All files with their digests; without times and the folder's own name."""
    found = snapshot(folder)
    for path in folder.rglob("report.html"):
        page = path.read_text().replace(str(folder), "")
        found[path.relative_to(folder).as_posix()] = re.sub(r"\d\d:\d\d(:\d\d)?", "", page)
    for path in folder.rglob("run.json"):
        facts = json.loads(path.read_text())
        name = path.relative_to(folder).as_posix()
        found[name] = str({k: v for k, v in facts.items() if k not in ("created", "seconds")})
    return found


def check(start: Path, folder: Path, verb: Verb) -> None:
    """Kill a verb at each of its changes in turn, load what is left, and run it again."""
    whole = folder / "whole"
    shutil.copytree(start, whole / "run")
    number = changes(whole, lambda: verb(whole / "run"))
    assert number > 2
    for stop in range(number):
        place = folder / str(stop)
        shutil.copytree(start, place / "run")
        kill_at(stop, place, lambda place=place: verb(place / "run"))  # type: ignore[misc]
        Run.load(place / "run")
        verb(place / "run")
        assert content(place) == content(whole), f"killed at change {stop} of {number}"


def test_train_over_an_older_run(data: Dataset, trained: Path, tmp_path: Path) -> None:
    (trained / "notes.txt").write_text("mine")
    check(trained, tmp_path, lambda run: Run.train(data, run, epochs=1, random_state=1))
    assert (tmp_path / "whole" / "run" / "notes.txt").exists()


def test_certify(trained: Path, tmp_path: Path) -> None:
    check(trained, tmp_path, lambda run: Run.load(run).certify(max_error=0.5, set_coverage=0.9))


def test_report(trained: Path, tmp_path: Path) -> None:
    check(trained, tmp_path, lambda run: Run.load(run).report())
