"""Guarantees on real items: the splits, the lines and the tables."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from credalearn_experiments.data import DataFolders
from credalearn_experiments.guarantees import (
    Voted,
    _sharp,
    load_voted,
    measure,
    splits,
    table,
    write,
)


def texts(folder: Path, name: str) -> None:
    """Files as LeWiDi 2023 has them: a word decides, and annotators disagree."""
    rng = np.random.default_rng(0)
    (folder / "lewidi").mkdir(exist_ok=True)
    for part, number in (("train", 300), ("dev", 100), ("test", 100)):
        items = {}
        for row in range(number):
            bad = rng.random() < 0.4
            said = rng.random(3) < (0.9 if bad else 0.1)
            words = [("bad" if bad else "good"), *rng.choice(["a", "b", "c"], 4)]
            votes = ",".join(str(-int(x) if name == "ConvAbuse" else int(x)) for x in said)
            items[str(row)] = {"text": " ".join(words), "annotations": votes}
        content = gzip.compress(json.dumps(items).encode())
        (folder / "lewidi" / f"{name}_{part}.json.gz").write_bytes(content)


@pytest.mark.parametrize("name", ["ConvAbuse", "ArMIS"])
def test_reports_what_is_kept_and_covered(tmp_path: Path, name: str) -> None:
    texts(tmp_path, name)
    lines = measure(name, DataFolders((tmp_path,)), 2)
    assert [each.what for each in lines] == [
        *("SGR", "learn then test", "betting"),
        *("sets, one radius", "sets by stratum"),
    ]
    assert all(0 <= each.kept <= 1 for each in lines[:3])
    write(lines, tmp_path / "lines.csv")
    shown = list(table(tmp_path / "lines.csv"))
    assert sum(line.startswith(f"| {name} |") for line in shown) == 5
    assert shown[2].startswith(f"| {name} | {100 * lines[0].promise:g} % | SGR | 2 |")


def test_groups_stay_in_one_part_and_folds_are_out_of_fold() -> None:
    rng = np.random.default_rng(0)
    votes = rng.multinomial(3, [0.5, 0.5], 200)
    data = Voted(rng.normal(size=(200, 3)), votes, np.arange(200) // 2, 0.1, _sharp)
    for split in splits(data, 2):
        parts = [set(each.tolist()) for each in split.groups.values() if each is not None]
        assert len(set.union(*parts)) == sum(map(len, parts)) == 100
        assert [len(each) for each in split.probs.values()] == [120, 40, 40]


def test_nodules_come_with_the_package() -> None:
    data = load_voted("LIDC", DataFolders())
    assert data.groups is not None
    assert len(data.votes) == len(data.groups) == 1395
