"""Fuzzing with fixed seeds: exports of every tool, and the files that the commands write.

Each function reads one changed file. It raises unless that ends in one message or in a result,
which must be right where the change was harmless.
"""

import json
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from annotation_exports import EXPORTS, as_counts
from credalearn import CredalError, Run, _files, read_annotations
from credalearn._tensors import read_tensors, write_tensors
from credalearn.app.report.card import card
from credalearn.app.steps.export import OUTPUTS
from credalearn.app.steps.inspect import consensus, inspect
from credalearn_experiments.records import Record, read_records, write_record
from credalearn_experiments.runs import Run as TrainedRun
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.store import Store, read_log, read_predictions
from damage import DAMAGE, changed, harmless
from small_run import make_run

_TRAINED = TrainedRun(replace(ALL_SETTINGS["lidc-votes-all-relax"], name="s"), "pocc", 1)
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
        assert len(inspect(found).lines) <= 8
        assert len(consensus(found)) == len(found.items)
        if right:
            counts, expected = as_counts(found), export.counts()
            assert counts.keys() == expected.keys()
            assert all(abs(counts[key] - expected[key]) < 1e-9 for key in counts)

    assert one_message(read, about=path) or not right, f"{name} {seed} was refused"


class ChangedRun:
    """A run whose files are damaged, and its model forged, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "run"
        make_run(self.path, rule=False).certify(max_error=0.9, set_coverage=0.7)
        self.files = {name: (self.path / name).read_bytes() for name in RUN_FILES}
        rows = [f"n{i},{0.1 * i},{-0.2 * i},{1.7e9 + i},=owl" for i in range(20)]
        self.data = folder / "items.csv"
        self.data.write_text("\n".join(["item,size,weight,seen,label", *rows]))

    def use_changed(self, name: str, seed: int, *, command: bool) -> None:
        """Load the run after a change of one file, or give it to a command."""
        dice = random.Random(f"{name} {seed}")
        try:
            if name.endswith("safetensors") and dice.random() < 0.7:
                self._forge_model(dice)
            else:
                (self.path / name).write_bytes(dice.choice(DAMAGE)(self.files[name], dice))
            action = self._commands()[dice.choice(list(self._commands()))]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a forged model may name features
                about = None if command else self.path
                used = one_message(action if command else self._load, about=about)
            if name.endswith("parquet"):
                same = (self.path / name).read_bytes() == self.files[name]
                assert used == same, f"{name} {seed}: a changed table was used"
        finally:
            (self.path / name).write_bytes(self.files[name])

    def _load(self) -> None:
        model = Run.load(self.path).load_model()
        try:
            model.predict_credal(np.zeros((2, 3)))
        except ValueError as error:  # a forged model may be whole and take other columns
            if not str(error).startswith("X "):
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

    def _forge_model(self, dice: random.Random) -> None:
        """Another configuration of the model, with a digest that fits it."""
        path = self.path / "model/model.safetensors"
        tensors, metadata = read_tensors(path, fix="")
        config = json.loads(metadata["config"])
        config.pop("config_sha256")
        config = changed(config, dice)
        if isinstance(config, dict):
            config["config_sha256"] = _files.digest_of_json(config)
        write_tensors(path, tensors, metadata={"config": json.dumps(config)})


def read_changed_result(seed: int, folder: Path) -> None:
    """Read the files of the experiments' store after a change of one of them."""
    dice = random.Random(seed)
    record = Record(setting="s", method="pocc", seed=1, metrics={"accuracy": 0.5}, seconds=1.0)
    place = folder / "s" / "pocc" / "seed-1"
    write_record(place / "metrics.json", record)
    tensors = {f"test.{name}": torch.full((2, 2), 0.5) for name in ("probs", "lower", "upper")}
    write_tensors(place / "predictions.safetensors", tensors)
    (place / "config.json").write_text('{"asked": {"method": "pocc", "seed": 1, "limit": null}}')
    (place / "log.jsonl").write_text('{"epoch": 1, "seconds": 0.5}\n{"epoch": 2, "seconds": 1}\n')
    path = place / dice.choice([each.name for each in sorted(place.iterdir())])
    path.write_bytes(dice.choice(DAMAGE)(path.read_bytes(), dice))
    assert len(read_log(place / "log.jsonl")) <= 6
    assert len(read_records(folder).records) + len(read_records(folder).damaged) == 1
    one_message(lambda: Store(folder).state(_TRAINED), about=None)
    one_message(lambda: read_predictions(folder, "s", "pocc", 1), about=None)
