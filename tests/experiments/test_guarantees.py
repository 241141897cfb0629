"""Guarantees on real items: the parts of a split, the lines and the tables."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from credalearn_experiments.data import DataFolders
from credalearn_experiments.data.crowd_sets import CROWD_SETS
from credalearn_experiments.guarantees import measure, predict_parts, table


def write_texts(folder: Path, name: str) -> DataFolders:
    """Files as LeWiDi 2023 has them: a word decides, and annotators disagree."""
    rng = np.random.default_rng(0)
    (folder / "lewidi").mkdir()
    for part, number in (("train", 300), ("dev", 100), ("test", 100)):
        items = {}
        for row in range(number):
            bad = rng.random() < 0.4
            said = rng.random(3) < (0.9 if bad else 0.1)
            words = [("bad" if bad else "good"), *rng.choice(["one", "two", "three"], 4)]
            votes = ",".join(str(-int(x) if name == "ConvAbuse" else int(x)) for x in said)
            text = " ".join(words)
            items[str(row)] = {"text": text, "annotators": "a,b,c", "annotations": votes}
        content = gzip.compress(json.dumps(items).encode())
        (folder / "lewidi" / f"{name}_{part}.json.gz").write_bytes(content)
    return DataFolders((folder,))


@pytest.mark.parametrize("name", ["ConvAbuse", "ArMIS"])
def test_reports_what_is_kept_and_covered(tmp_path: Path, name: str) -> None:
    found = measure([name], write_texts(tmp_path, name), 2)
    assert found["what"].to_list() == [
        *("SGR", "learn then test", "betting"),
        *("sets, one radius", "sets by stratum"),
    ]
    assert found["kept"][:3].is_between(0, 1).all()
    found.write_csv(tmp_path / "lines.csv")
    shown = list(table(tmp_path / "lines.csv"))
    assert sum(line.startswith(f"| {name} |") for line in shown) == 5
    assert shown[2].startswith(f"| {name} | {100 * found['promise'][0]:g} % | SGR | 2 |")


def test_groups_stay_in_one_part() -> None:
    data = CROWD_SETS["LIDC"](DataFolders(), 1)
    train, calibration, test = predict_parts(data, 1)
    parts = [set(each.groups) for each in (train, calibration, test) if each.groups is not None]
    assert len(parts) == 3
    assert len(set.union(*parts)) == sum(map(len, parts))
    for part, rows in zip((train, calibration, test), data.split, strict=True):
        assert len(part.predicted) == len(rows)
        items = part.items("top-probability", by_group=True)
        assert len(items["groups"]) == len(items["score"]) == (data.truth[rows] >= 0).sum()
