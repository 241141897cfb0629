"""What predicting a table costs: rows a second, and memory that does not grow with the rows."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from core import Measurement

from credalearn.app.dataset import Dataset
from credalearn.app.readers import read_annotations
from credalearn.app.run import Run

_FEATURES = [f"x{number}" for number in range(20)]
_FEW, _MANY = 100_000, 1_000_000
_SLOWEST = 10_000  # rows a second

_CODE = """
import re, sys, time
from pathlib import Path
from credalearn import Run
run = Run.load(sys.argv[1])
started = time.monotonic()
found = run.predict(sys.argv[2], sys.argv[3], threshold=0.5)
seconds = time.monotonic() - started
# Not ru_maxrss, which a process inherits from the one that started it.
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(found.items / seconds, int(peak) / 1024)
"""


def predict_cost() -> list[Measurement]:
    """Twenty features, two heads, three classes: a hundred thousand rows and a million."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_run(folder / "run")
        for suffix, write in _WRITE.items():
            peaks = []
            for rows in (_FEW, _MANY):
                data = folder / f"data{suffix}"
                write(_table(rows), data)
                speed, peak = _measured(folder / "run", data, folder / f"out{suffix}")
                peaks.append(peak)
            kind = f"{suffix[1:]} to {suffix[1:]}"
            text = f"predict, {kind}: 10,000 rows of {_MANY:,}"
            found.append(Measurement(text, _SLOWEST / speed, "s", 1.0))
            text = f"predict, {kind}: peak memory, {_MANY:,} rows"
            found.append(Measurement(text, peaks[1], "MB"))
            found.append(Measurement(f"… / {_FEW:,} rows", peaks[1] / peaks[0], "×", 1.2))
    return found


def predict_texts_cost() -> list[Measurement]:
    """The command on 10,000 short texts, from the file to the decisions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        votes = _texts(1000).with_columns(label=pl.Series(["fine", "rude", "fine", "fine"] * 250))
        Run.train(Dataset(read_annotations(votes), text="text"), folder / "run")
        _texts(10_000).with_columns(item="new " + pl.col("item")).write_csv(folder / "new.csv")
        out = ["-o", str(folder / "out.csv"), "--threshold", "0.5"]
        command = [sys.executable, "-m", "credalearn", "predict", str(folder / "run")]
        started = time.monotonic()
        subprocess.run([*command, str(folder / "new.csv"), *out], capture_output=True, check=True)
        seconds = time.monotonic() - started
    return [Measurement("predict, 10,000 short texts, with the start", seconds, "s", 30.0)]


def _texts(rows: int) -> pl.DataFrame:
    """Messages of five to twenty words, of a vocabulary of 5,000."""
    random = np.random.default_rng(0)
    words = np.array(["".join(random.choice(list("abcdeiknorst"), 5)) for _ in range(5000)])
    texts = [" ".join(random.choice(words, random.integers(5, 21))) for _ in range(rows)]
    return pl.DataFrame({"item": [f"item-{row}" for row in range(rows)], "text": texts})


_WRITE: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".csv": lambda table, path: table.write_csv(path),
    ".parquet": lambda table, path: table.write_parquet(path),
}


def _table(rows: int) -> pl.DataFrame:
    values = np.random.default_rng(0).normal(size=(rows, len(_FEATURES))).round(4)
    items = pl.Series("item", [f"item-{row}" for row in range(rows)])
    return pl.DataFrame(values, schema=_FEATURES).insert_column(0, items)


def _make_run(folder: Path) -> None:
    """A run as ``credalearn train`` makes it: three classes, two votes per item."""
    features, votes = folder.with_name("features.csv"), folder.with_name("votes.csv")
    table = _table(300).with_columns(item="trained " + pl.col("item"))
    table.write_csv(features)
    top = table.select(_FEATURES[:3]).to_numpy().argmax(1)
    counts = pl.DataFrame(2 * np.eye(3, dtype=int)[top], schema=["cat", "dog", "owl"])
    counts.insert_column(0, table["item"]).write_csv(votes)
    data = Dataset(read_annotations(votes, format="counts"), features=features)
    Run.train(data, folder, method="pocc", epochs=2)


def _measured(run: Path, data: Path, output: Path) -> tuple[float, float]:
    command = [sys.executable, "-c", _CODE, str(run), str(data), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    speed, peak = map(float, done.stdout.split())
    return speed, peak


PREDICT_COST = (predict_cost, predict_texts_cost)
