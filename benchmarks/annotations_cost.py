"""What reading votes costs: seconds, memory, and the time next to crowd-kit's majority vote.

The table: five votes per item by 2,000 people, in any order. Both start from the same file, each in
a process of its own, in turn.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from core import Measurement

_PEAK = """
import re, sys, time
from pathlib import Path
def report(seconds):
    # Not ru_maxrss, which a process inherits from the one that started it.
    kilobytes = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
    print(seconds, 1024 * int(kilobytes) / 1e9)
"""

_OURS = """
from credalearn.app.readers import read_annotations
started = time.perf_counter()
counts = read_annotations(sys.argv[1]).counts()
report(time.perf_counter() - started)
assert counts.sum() == int(sys.argv[2])
"""

# The package imports nltk and torch for methods that nobody asks for here: without its own
# __init__ it does not.
_CROWD_KIT = """
import importlib.util, types
root = Path(importlib.util.find_spec("crowdkit").origin).parent
for name in ("crowdkit.aggregation", "crowdkit.aggregation.classification"):
    package = types.ModuleType(name)
    package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package
from crowdkit.aggregation.classification.majority_vote import MajorityVote
import pandas as pd
started = time.perf_counter()
found = MajorityVote().fit_predict(pd.read_csv(sys.argv[1]))
report(time.perf_counter() - started)
assert len(found) == int(sys.argv[2]) // 5
"""


def write_votes(folder: Path, num_votes: int) -> None:
    """The same votes as CSV and as Parquet."""
    dice = np.random.default_rng(0)
    item = np.repeat(np.arange(num_votes // 5), 5)
    order = dice.permutation(num_votes)
    worker = 400 * np.tile(np.arange(5), num_votes // 5) + dice.integers(0, 400, num_votes)
    truth = dice.integers(0, 10, num_votes // 5)[item]
    label = np.where(dice.random(num_votes) < 0.7, truth, dice.integers(0, 10, num_votes))
    names = np.array(["bee", "cat", "cow", "dog", "eel", "fox", "hen", "owl", "pig", "yak"])
    table = pl.DataFrame(
        {"task": item[order], "worker": worker[order], "label": names[label[order]]}
    )
    table = table.with_columns(
        pl.format("image-{}.jpg", "task").alias("task"), pl.format("w{}", "worker").alias("worker")
    )
    table.write_csv(folder / "votes.csv")
    table.write_parquet(folder / "votes.parquet")


def _measured(code: str, path: Path, num_votes: int) -> tuple[float, float]:
    command = [sys.executable, "-c", _PEAK + code, str(path), str(num_votes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, gigabytes = map(float, done.stdout.split())
    return seconds, gigabytes


def _cost(
    num_votes: int, *, seconds: float, gigabytes: float, ratio: float | None
) -> list[Measurement]:
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_votes(folder, num_votes)
        ways = {"csv": _OURS, "parquet": _OURS, "crowd-kit": _CROWD_KIT}
        seconds_of: dict[str, float] = {}
        peak_of: dict[str, float] = {}
        for _ in range(2):  # in turn: other work can only slow a run down
            for way, code in ways.items():
                path = folder / ("votes.parquet" if way == "parquet" else "votes.csv")
                time, peak = _measured(code, path, num_votes)
                seconds_of[way] = min(time, seconds_of.get(way, time))
                peak_of[way] = max(peak, peak_of.get(way, peak))
    for way in ("csv", "parquet"):
        text = f"{num_votes:,} votes, {way}, read, checked, counted"
        found.append(Measurement(text, seconds_of[way], "s", seconds))
        found.append(Measurement("… and its peak memory", peak_of[way], "GB", gigabytes))
    text = f"{num_votes:,} votes, csv, time / crowd-kit's MajorityVote"
    return [*found, Measurement(text, seconds_of["csv"] / seconds_of["crowd-kit"], "×", ratio)]


def a_million_votes() -> list[Measurement]:
    """A tenth of what is promised, for the tests; too little to show the ratio."""
    return _cost(1_000_000, seconds=1.0, gigabytes=0.8, ratio=None)


def ten_million_votes() -> list[Measurement]:
    """What is promised."""
    return _cost(10_000_000, seconds=10.0, gigabytes=4.0, ratio=1.2)


ANNOTATIONS_COST = (a_million_votes,)
ANNOTATIONS_AT_FULL_SIZE = (ten_million_votes,)
