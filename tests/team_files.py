"""Files of an annotating team, and the command as the team runs it."""

import hashlib
import json
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import pytest
from PIL import Image

from credalearn import Dataset, read_annotations
from credalearn.app.cli import main

Capture = pytest.CaptureFixture[str]
CLASSES = ("cat", "dog", "owl")
PEOPLE = ("ann", "bo", "cy", "dee", "eve")


@dataclass(frozen=True)
class Team:
    """A folder with ``votes.csv`` (one row per vote) and ``features.csv`` (one row per item)."""

    folder: Path

    @property
    def votes(self) -> Path:
        return self.folder / "votes.csv"

    @property
    def features(self) -> Path:
        return self.folder / "features.csv"

    @property
    def run(self) -> Path:
        return self.folder / "run"


def make_team(folder: Path, *, num_items: int = 60, random_state: int = 0) -> Team:
    """Items of three classes with two features; five people vote, and differ near the borders."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(random_state)
    values = rng.normal(size=(num_items, 2))
    names = [f"x{number:03d}" for number in range(num_items)]
    logits = 3 * np.stack([values[:, 0], values[:, 1], -values.sum(1)], axis=1)
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    rows = [
        (item, who, rng.choice(CLASSES, p=share))
        for item, share in zip(names, shares, strict=True)
        for who in PEOPLE
    ]
    votes = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    votes.write_csv(folder / "votes.csv")
    truth = [CLASSES[index] for index in shares.argmax(1)]
    split = [("train", "train", "train", "calibration", "test")[n % 5] for n in range(num_items)]
    table = {
        "item": names,
        "patient": [f"p{number // 5}" for number in range(num_items)],
        "truth": truth,
        "part": split,
        "size": values[:, 0],
        "weight": values[:, 1],
    }
    pl.DataFrame(table).write_csv(folder / "features.csv")
    return Team(folder)


def team_data(team: Team, **options: Any) -> Dataset:
    """A team's items; what the options do not name is left out."""
    drop = tuple(name for name in ("patient", "truth", "part") if name not in options.values())
    votes = read_annotations(team.votes)
    return Dataset(votes, features=team.features, **{"drop": drop} | options)


def train_arguments(team: Team, *more: object) -> list[str]:
    """The train command on a team's files, quick; what is given more comes last."""
    wanted = [str(each) for each in more]
    given = ["train", str(team.votes), "-o", str(team.run)]
    if "--images" not in wanted:
        given += ["--features", str(team.features)]
        for column, flag in (("patient", "--group"), ("truth", "--gold"), ("part", "--split")):
            given += [] if flag in wanted else ["--drop", column]
    return given + wanted


def make_images(folder: Path, names: list[str], *, size: int = 10, random_state: int = 0) -> Path:
    """A small PNG of each item."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(random_state)
    for name in names:
        pixels = rng.integers(0, 256, size=(size, size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder


class Done(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


def in_process(capsys: Capture, *arguments: object, program: Callable[[], object] = main) -> Done:
    """The command, in this process: a second less than a new one."""
    before = sys.argv
    sys.argv = ["credalearn", *map(str, arguments)]
    try:
        program()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    finally:
        sys.argv = before
    out, err = capsys.readouterr()
    return Done(code, out, err)


def succeed(capsys: pytest.CaptureFixture[str], *arguments: object) -> Done:
    """The command, which must succeed."""
    done = in_process(capsys, *arguments)
    assert done.code == 0, done.err
    return done


def facts_of(capsys: Capture, *arguments: object) -> dict[str, Any]:
    """What the command prints with ``--json``."""
    found: dict[str, Any] = json.loads(succeed(capsys, *arguments, "--json").out)
    return found


def as_json(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts of Python, as a command prints them."""
    plain = lambda value: value.item() if hasattr(value, "item") else str(value)  # noqa: E731
    found: dict[str, Any] = json.loads(msgspec.json.encode(facts, enc_hook=plain))
    return found


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its bytes, and every folder."""
    return {
        path.relative_to(folder).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        )
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """No file grows beyond so many bytes: writing ends with an error, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
