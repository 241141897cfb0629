"""Records of finished runs: one JSON file each, checked when it is read.

Tables, figures and comparisons read records and nothing else. In a store a record is
``SETTING/METHOD/seed-S/metrics.json``, among committed results ``SETTING/METHOD-seed-S.json``.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from credalearn._files import whole_file, writing
from credalearn.errors import CredalError

CURVE_POINTS = 101  # accuracy at rejection 0, 0.01, …, 1: the last is at the most certain item
# Of config: what runs that are compared must share.
KIND = ("epochs", "limit", "weights", "task_plugin")
_OF_A_STORE = ("files", "built_on")  # of config: digests of a store's files
_RENAMED = {"normalised_auarc": "normalized_auarc"}  # metrics, as records written before have them
_FIELDS = ("setting", "method", "seed", "metrics", "curves", "config", "versions", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one finished run found.

    Args:
        setting: Name of the setting.
        method: Name of the method.
        seed: Of the run.
        metrics: By name, as fractions.
        curves: By name; ``accuracy_rejection`` holds 101 accuracies.
        config: How the run was made, as plain JSON: the setting's ``as_plain()`` and ``members``
            (``shared`` or ``independent``), ``member_seeds``, ``epochs`` and ``limit``.
        versions: Of what made it.
        seconds: How long it took.

    Raises:
        CredalError: If a name is empty, or a number is missing or not finite.

    Example:
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.87})
        >>> record.metrics["accuracy"]
        0.87
    """

    setting: str
    method: str
    seed: int
    metrics: Mapping[str, float]
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("setting", "method"):
            value = getattr(self, name)
            self._check(isinstance(value, str) and value != "", f"{name} must be a name", value)
        whole = isinstance(self.seed, int) and not isinstance(self.seed, bool) and self.seed >= 0
        self._check(whole, "seed must be a whole number, 0 or more", self.seed)
        self._check(_is_number(self.seconds), "seconds must be a finite number", self.seconds)
        for name in ("metrics", "curves", "config", "versions"):
            value = getattr(self, name)
            self._check(isinstance(value, Mapping), f"{name} must be an object", value)
            object.__setattr__(self, name, dict(value))
        self._check(bool(self.metrics), "metrics must hold one or more", self.metrics)
        for name, value in self.metrics.items():
            self._check(_is_number(value), f"metrics[{name!r}] must be a finite number", value)
        for name, given in self.curves.items():
            right = isinstance(given, list | tuple) and all(_is_number(each) for each in given)
            self._check(right, f"curves[{name!r}] must be a list of finite numbers", given)
            if name == "accuracy_rejection":
                rule = f"curves[{name!r}] must hold {CURVE_POINTS} numbers"
                self._check(len(given) == CURVE_POINTS, rule, len(given))
        curves = {name: tuple(given) for name, given in self.curves.items()}
        object.__setattr__(self, "curves", curves)

    @property
    def name(self) -> str:
        """Setting, method and seed in one line.

        Example:
            >>> Record(setting="cifar10h", method="pocc", seed=1, metrics={"ece": 0.02}).name
            'cifar10h pocc seed 1'
        """
        return f"{self.setting} {self.method} seed {self.seed}"

    def _check(self, ok: bool, rule: str, value: object) -> None:
        if not ok:
            shown = repr(value)
            shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
            raise CredalError(f"{rule}; the record of {self.name} has {shown}.")


@dataclass(frozen=True, slots=True)
class Found:
    """What a folder holds.

    Args:
        records: In the order of their setting, method and seed.
        damaged: One line for each file that is no record: which, and why.
    """

    records: tuple[Record, ...]
    damaged: tuple[str, ...]


def read_records(folder: str | Path) -> Found:
    """Every record below the folder: of a store, of committed results, or of both.

    Files named ``config.json`` are not looked at. A file that cannot be read, is no record, or
    stands where another run's record belongs, is named among the damaged; the others are read.

    Raises:
        CredalError: If there is no such folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.87})
        >>> write_record(result_path(folder, "cifar10h", "pocc", 1), record)
        >>> [each.name for each in read_records(folder).records]
        ['cifar10h pocc seed 1']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CredalError(f"records are read from a folder; there is none at {folder}.")
    records, damaged = [], []
    for path in sorted(folder.resolve().rglob("*.json")):
        if path.name == "config.json" or path.name.startswith("."):
            continue
        try:
            record = read_record(path)
            _check_place(path, record)
        except (CredalError, OSError) as error:
            damaged.append(f"{path}: {error}")
        else:
            records.append(record)
    records.sort(key=lambda record: (record.setting, record.method, record.seed))
    return Found(tuple(records), tuple(damaged))


def read_record(path: Path) -> Record:
    """The record in this file.

    Raises:
        CredalError: If it is none.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "cifar10h" / "pocc-seed-1.json"
        >>> write_record(path, Record(setting="cifar10h", method="pocc", seed=1, metrics={"a": 1}))
        >>> read_record(path).seed
        1
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON and of UTF-8
        raise CredalError(f"this is no JSON: {error}. To fix: delete it and run again.") from error
    if not isinstance(content, dict) or not set(content) <= set(_FIELDS):
        held = list(content)[:9] if isinstance(content, dict) else type(content).__name__
        raise CredalError(f"a record is an object of {', '.join(_FIELDS)}; this holds {held}.")
    missing = [name for name in ("setting", "method", "seed", "metrics") if name not in content]
    if missing:
        raise CredalError(f"a record must have {', '.join(missing)}; this has {list(content)}.")
    metrics = content["metrics"]
    if isinstance(metrics, dict):
        content["metrics"] = {_RENAMED.get(name, name): x for name, x in metrics.items()}
    return Record(**content)


def write_record(path: Path, record: Record) -> None:
    """Write the record whole or not at all, the same bytes for the same record.

    Numbers of metrics, curves and seconds have six significant digits, keys are in order and a
    curve is one line: so changes are small to read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "record.json"
        >>> write_record(path, Record(setting="s", method="pocc", seed=1, metrics={"ece": 0.02}))
        >>> path.read_text().splitlines()[4:7]
        ['  "metrics": {', '    "ece": 0.02', '  },']
    """
    content = asdict(record)
    content["metrics"] = {name: _rounded(value) for name, value in record.metrics.items()}
    curves = record.curves.items()
    content["curves"] = {name: [_rounded(value) for value in curve] for name, curve in curves}
    content["seconds"] = _rounded(record.seconds)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # A line break never stands within JSON's strings, so this finds lists of numbers alone.
    text = re.sub(r"\[\n([^\[\]{}\"]*)\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    with whole_file(path, other=None) as partial:
        partial.write_text(f"{text}\n", encoding="utf-8")


def result_path(folder: Path, setting: str, method: str, seed: int) -> Path:
    """Where the record of a run stands among committed results.

    Example:
        >>> result_path(Path("results"), "cifar10h", "pocc", 1).as_posix()
        'results/cifar10h/pocc-seed-1.json'
    """
    return folder / setting / f"{method}-seed-{seed}.json"


def copy_records(records: Iterable[Record], folder: Path) -> None:
    """Write records as committed results, without what they say of a store's files.

    Args:
        records: Of finished runs.
        folder: Of results. A record that is there already is replaced, as is a damaged one.

    Raises:
        CredalError: If a record there is of another kind, as a rehearsal is, and then nothing is
            written; or if the folder cannot be written.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.87})
        >>> copy_records([record], folder)
        >>> [path.name for path in folder.rglob("*.json")]
        ['pocc-seed-1.json']
    """
    paths = {result_path(folder, each.setting, each.method, each.seed): each for each in records}
    for path, record in paths.items():
        _check_kind(path, record)
    with writing(folder, other="name another folder with --output"):
        for path, record in paths.items():
            config = {name: x for name, x in record.config.items() if name not in _OF_A_STORE}
            write_record(path, replace(record, config=config))


def _check_kind(path: Path, record: Record) -> None:
    """Refuse to replace a record of another kind."""
    try:
        there = read_record(path)
    except (CredalError, OSError):  # none, or none that can be read
        return
    for what in KIND:
        old, new = there.config.get(what), record.config.get(what)
        if old != new:
            raise CredalError(
                f"a record is replaced by one of its kind alone; {path} has {what}={old}, that of "
                f"the store {what}={new}. To fix: name another folder with --output, or delete "
                "that file."
            )


def _check_place(path: Path, record: Record) -> None:
    """A copied or renamed file would count one run as two."""
    if path.name == "metrics.json":
        expected = Path(record.setting, record.method, f"seed-{record.seed}", "metrics.json")
    else:
        expected = result_path(Path(), record.setting, record.method, record.seed)
    if path.parts[-len(expected.parts) :] != expected.parts:
        raise CredalError(
            f"this is the record of {record.name}, which belongs at {expected.as_posix()}. "
            "To fix: move it there, or delete it."
        )


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of an int that no float can hold
        return False


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
