"""Fuzzing with fixed seeds: exports of every tool, and the files that the commands write.

Each function reads one changed file. It raises unless that ends in one message or in a result,
which must be right where the change was harmless.
"""

import hashlib
import io
import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from annotation_exports import EXPORTS, as_counts
from credalearn import _model_files
from credalearn._tensors import read_tensors, write_tensors
from credalearn.app import facts
from credalearn.app.readers import read_annotations
from credalearn.app.report.card import card
from credalearn.app.run import Run
from credalearn.app.steps.export import OUTPUTS
from credalearn.app.steps.inspect import consensus, inspect
from credalearn.errors import CredalError
from credalearn_experiments.log import read_log
from credalearn_experiments.records import Record, read_records, write_record
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.store import Store, read_predictions
from damage import DAMAGE, changed, harmless
from fake_run import add_sets
from small_run import make_run

RUN_FILES = (
    *("run.json", "guarantee.json", "sets.json", "model/model.safetensors"),
    *("annotations.parquet", "items.parquet", "predictions.parquet"),
)


def one_message(action: Callable[[], object], *, about: Path | None) -> bool:
    """Whether the action succeeds; it may fail with one line that names the place."""
    try:
        action()
    except CredalError as error:
        message = str(error)
        assert about is None or str(about) in message, message
        assert "\n" not in message, message
        assert len(message) < 2000, message
        return False
    return True


def read_changed_export(name: str, seed: int, path: Path) -> None:
    """Read an export after a change; every fifth change is harmless."""
    export, dice = EXPORTS[name], random.Random(f"{name} {seed}")
    right = seed % 5 == 0 and not name.endswith("parquet")
    change = harmless if right else dice.choice(DAMAGE)
    path.write_bytes(change(export.write(), dice))

    def read() -> None:
        found = read_annotations(path)
        assert found.sparse_counts().sum() > 0 or found.kind == "bounds"  # "at least 0" is one
        assert len(inspect(found).lines()) <= 8
        assert len(consensus(found)) == len(found.items)
        if right:
            counts, expected = as_counts(found), export.counts()
            assert counts.keys() == expected.keys()
            assert all(abs(counts[key] - expected[key]) < 1e-9 for key in counts)

    assert one_message(read, about=path) or not right, f"{name} {seed} was refused"


class ChangedRun:
    """A run whose files are damaged or forged, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "run"
        add_sets(make_run(self.path), coverage=0.7)
        self.files = {name: (self.path / name).read_bytes() for name in RUN_FILES}
        rows = [f"n{i},{0.1 * i},{-0.2 * i},{1.7e9 + i},=owl" for i in range(20)]
        self.data = folder / "items.csv"
        self.data.write_text("\n".join(["item,size,weight,seen,label", *rows]))

    def use_changed(self, name: str, seed: int, *, command: bool) -> None:
        """Load the run after a change of one file, or give it to a command."""
        dice = random.Random(f"{name} {seed}")
        before = {each: self.files[each] for each in ("run.json", "guarantee.json", "sets.json")}
        try:
            if dice.random() < 0.3:
                (self.path / name).write_bytes(dice.choice(DAMAGE)(self.files[name], dice))
            else:
                self._forge(name, dice)
            action = self._commands()[dice.choice(list(self._commands()))]
            one_message(action if command else self._load, about=None if command else self.path)
        finally:
            for each, content in {**before, name: self.files[name]}.items():
                (self.path / each).write_bytes(content)

    def _load(self) -> None:
        model = Run.load(self.path).load_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about names of features
            try:
                model.predict_credal(np.zeros((2, 3)))
            except ValueError as error:  # as scikit-learn words it for another number of columns
                if not str(error).startswith("X has 3 features"):
                    raise

    def _commands(self) -> dict[str, Callable[[], object]]:
        path, out = self.path, self.folder
        return {
            "certify": lambda: Run.load(path).certify(max_error=0.9, set_coverage=0.7).lines,
            "report": lambda: Run.load(path).report(output=out / "page.html").lines,
            "predict": lambda: Run.load(path).predict(self.data, out / "d.csv").lines,
            "defer": lambda: Run.load(path).defer(self.data, out / "t.json", threshold=0.0).lines,
            "card": lambda: card(Run.load(path), OUTPUTS),
            "load": self._load,
        }

    def _forge(self, name: str, dice: random.Random) -> None:
        """Another content with digests that fit it."""
        path = self.path / name
        if name.endswith(".json"):
            self._write_json(name, changed(json.loads(self.files[name]), dice))
        elif name.endswith(".parquet"):
            content = _forged_table(self.files[name], dice)
            path.write_bytes(content)
            stated = json.loads(self.files["run.json"])
            stated["sha256"][path.stem] = hashlib.sha256(content).hexdigest()
            self._write_json("run.json", stated)
            for rule in ("guarantee.json", "sets.json"):
                made = {"predictions_sha256": stated["sha256"]["predictions"]}
                self._write_json(rule, json.loads(self.files[rule]) | made)
        else:
            tensors, metadata = read_tensors(path, fix="")
            config = json.loads(metadata["config"])
            config.pop("config_sha256")
            config = changed(config, dice)
            if isinstance(config, dict):
                config["config_sha256"] = _model_files._digest(config)
            write_tensors(path, tensors, metadata={"config": json.dumps(config)})

    def _write_json(self, name: str, content: Any) -> None:
        if isinstance(content, dict):
            content = {key: value for key, value in content.items() if key != facts._SEAL}
            content[facts._SEAL] = facts._digest(content)
        (self.path / name).write_text(json.dumps(content))


def _forged_table(content: bytes, dice: random.Random) -> bytes:
    table = pl.read_parquet(io.BytesIO(content))
    column, what = dice.choice(table.columns), dice.random()
    row = dice.randrange(len(table))
    if what < 0.3:
        table = table.drop(column)
    elif what < 0.5:
        value = dice.choice([None, "x", -1, True, [1]])
        table = table.with_columns(pl.lit(value).alias(column))
    elif what < 0.7:
        fraction = dice.choice([0, 0.1, 2])
        table = table.sample(fraction=fraction, with_replacement=True, seed=dice.randrange(99))
    elif what < 0.8:
        table = table.rename({column: "gone"})
    else:
        other = pl.when(pl.int_range(pl.len()) != row).then(pl.col(column))
        table = table.with_columns(other.alias(column))
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def read_changed_result(seed: int, folder: Path) -> None:
    """Read the files of the experiments' store after a change of one of them."""
    dice = random.Random(seed)
    record = Record(setting="s", method="m", seed=1, metrics={"accuracy": 0.5}, seconds=1.0)
    place = folder / "s" / "m" / "seed-1"
    write_record(place / "metrics.json", record)
    tensors = {f"test.{name}": torch.full((2, 2), 0.5) for name in ("probs", "lower", "upper")}
    write_tensors(place / "predictions.safetensors", tensors)
    (place / "config.json").write_text('{"asked": {"method": "pocc", "seed": 1, "limit": null}}')
    (place / "log.jsonl").write_text('{"epoch": 1, "seconds": 0.5}\n{"epoch": 2, "seconds": 1}\n')
    path = place / dice.choice([each.name for each in sorted(place.iterdir())])
    path.write_bytes(dice.choice(DAMAGE)(path.read_bytes(), dice))
    assert len(read_log(place / "log.jsonl")) <= 6
    assert len(read_records(folder).records) + len(read_records(folder).damaged) == 1
    Store(folder).runs(ALL_SETTINGS["lidc-votes-all-relax"])
    one_message(lambda: read_predictions(folder, "s", "m", 1), about=None)
