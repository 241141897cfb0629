"""Records of finished runs: one JSON file each, checked when it is read.

Tables, figures and comparisons read records and nothing else. In a store a record is
``SETTING/METHOD/seed-S/metrics.json``, among committed results ``SETTING/METHOD-seed-S.json``.
"""

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from credalearn._files import whole_file, writing
from credalearn.errors import CredalError

CURVE_POINTS = 101  # accuracy at rejection 0, 0.01, …, 1: the last is at the most certain item
KIND = ("epochs", "limit", "weights", "task_plugin")
"""Entries of ``config`` that runs must share to be compared."""
_RENAMED = {"normalised_auarc": "normalized_auarc"}  # metrics, as records written before have them


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one finished run found."""

    setting: str
    method: str
    seed: int
    metrics: Mapping[str, float]  # as fractions
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)  # what was asked, as plain JSON
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        # What is of another type raises a TypeError here, which read_record reports.
        for name in ("metrics", "config", "versions"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        curves = {name: tuple(each) for name, each in self.curves.items()}
        object.__setattr__(self, "curves", curves)
        curve = self.curves.get("accuracy_rejection", ())
        numbers = [*self.metrics.values(), *(x for each in self.curves.values() for x in each)]
        names = (self.setting, self.method)
        rules = {
            "setting and method must be names": all(isinstance(x, str) and x for x in names),
            "seed must be a whole number": type(self.seed) is int and self.seed >= 0,
            "metrics must have at least one entry": bool(self.metrics),
            "numbers must be finite": all(map(math.isfinite, [*numbers, self.seconds])),
            f"a curve must have {CURVE_POINTS} numbers": len(curve) in (0, CURVE_POINTS),
        }
        for rule, holds in rules.items():
            if not holds:
                raise CredalError(f"{rule}; the record of {self.name} breaks this.")

    @property
    def name(self) -> str:
        """Setting, method and seed in one line."""
        return f"{self.setting} {self.method} seed {self.seed}"


class Found(NamedTuple):
    """What a folder contains: records in order, and one line for each file that is damaged."""

    records: list[Record]
    damaged: list[str]


def read_records(folder: str | Path) -> Found:
    """Every record below the folder: of a store, of committed results, or of both."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CredalError(f"records are read from a folder; there is none at {folder}.")
    found = Found([], [])
    for path in sorted(folder.resolve().rglob("*.json")):
        if path.name != "config.json":
            try:
                found.records.append(read_record(path))
            except (CredalError, OSError) as error:
                found.damaged.append(f"{path}: {error}")
    found.records.sort(key=lambda record: (record.setting, record.method, record.seed))
    return found


def read_record(path: Path) -> Record:
    """The record in this file; a ``CredalError`` if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        metrics = content["metrics"]
        content["metrics"] = {_RENAMED.get(name, name): x for name, x in metrics.items()}
        return Record(**content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        names = ", ".join(each.name for each in fields(Record))
        raise CredalError(f"this is not a record, a JSON object of {names} ({error}).") from error


def write_record(path: Path, record: Record) -> None:
    """Write the record whole or not at all, with six significant digits and a curve in one line."""
    content = asdict(record) | {
        "metrics": {name: _rounded(value) for name, value in record.metrics.items()},
        "curves": {name: [*map(_rounded, curve)] for name, curve in record.curves.items()},
        "seconds": _rounded(record.seconds),
    }
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # JSON's strings contain no line breaks, so this finds lists of numbers only.
    text = re.sub(r"\[\n([^\[\]{}\"]*)\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    with whole_file(path, other=None) as partial:
        partial.write_text(f"{text}\n", encoding="utf-8")


def metric_of(*parts: str) -> str:
    """The name of a metric from its parts, such as ``auroc_fashion_mnist``."""
    return "_".join(parts).replace("-", "_")


def result_path(folder: Path, record: Record) -> Path:
    """Where a record is among committed results."""
    return folder / record.setting / f"{record.method}-seed-{record.seed}.json"


def copy_records(records: Iterable[Record], folder: Path) -> None:
    """Write records as committed results; none if one would replace a record of another kind."""
    paths = {result_path(folder, each): each for each in records}
    for path, record in paths.items():
        there = read_record(path).config if path.exists() else record.config
        for what in KIND:
            old, new = there.get(what), record.config.get(what)
            if old != new:
                raise CredalError(
                    f"a record can only replace one of its kind; {path} has {what}={old}, the new "
                    f"one {what}={new}. To fix: pass another --output, or delete that file."
                )
    with writing(folder, other="name another folder with --output"):
        for path, record in paths.items():
            write_record(path, record)


def write_table(records: Sequence[Record], path: Path) -> None:
    """One line per record in a CSV file: setting, method, seed and every metric."""
    metrics = sorted({name for record in records for name in record.metrics})
    with whole_file(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        names = ["setting", "method", "seed", *metrics]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for each in records:
            writer.writerow({**each.metrics, **{x: getattr(each, x) for x in names[:3]}})


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
