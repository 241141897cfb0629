"""Runs and plans: what is built on what, seeds, and the configuration in committed records."""

from collections import Counter
from pathlib import Path

import pytest

from credalearn import CredalError
from credalearn.methods import METHODS
from credalearn_experiments.cli_results import RESULTS
from credalearn_experiments.records import read_records
from credalearn_experiments.runs import Run, member_seeds, parse_seeds, plan
from credalearn_experiments.settings.catalog import ALL_SETTINGS

SETTING = ALL_SETTINGS["cifar10h"]


def test_a_plan_trains_each_network_once_and_before_what_is_built_on_it() -> None:
    runs = plan([SETTING])
    assert len(set(runs)) == len(runs)
    trained = Counter(run.method for run in runs if not run.bases)
    assert trained == {"edl": 10, "dappr": 10, "pocc": 10, "mc-dropout": 10, "softmax": 14}
    place = {run: number for number, run in enumerate(runs)}
    for run in runs:
        assert all(place[base] < place[run] for base in run.bases)
        assert len(run.bases) in (0, METHODS[run.method].num_members)
    wanted = {(run.method, run.seed) for run in runs}
    assert wanted >= {(method, seed) for method in SETTING.methods for seed in SETTING.seeds}


def test_the_members_of_a_run_do_not_depend_on_what_else_is_asked_for() -> None:
    narrow = SETTING.narrowed(methods=("pocc-ensemble",), seeds=(9,))
    assert [base.seed for base in plan([narrow])[-1].bases] == [9, 10, 1, 2, 3]
    assert [base.seed for base in Run(narrow, "pocc-ensemble", 12).bases] == [12, 13, 14, 15, 16]
    # Five seeds, taken cyclically, would make every ensemble the same.
    assert member_seeds("pocc-ensemble", 3, (1, 2, 3, 4, 5)) == (3, 4, 5, 6, 7)


def test_a_file_of_weights_is_part_of_the_configuration(tmp_path: Path) -> None:
    photos = ALL_SETTINGS["micebone"].narrowed(methods=("pocc",), seeds=(1,))
    file = tmp_path / "weights.pt"
    file.write_bytes(b"one")
    [first] = plan([photos], weights=file)
    assert first.weights is not None
    assert first.weights.startswith("weights.pt, sha256 ")
    file.write_bytes(b"two")
    [second] = plan([photos], weights=file)
    assert second.asked["weights"] != first.asked["weights"]
    [without] = plan([photos], weights=Path("none"))
    assert without.weights == "random"
    [not_pretrained] = plan([SETTING.narrowed(methods=("pocc",), seeds=(1,))], weights=file)
    assert not_pretrained.weights is None


def test_seeds_are_a_count_or_named() -> None:
    assert [parse_seeds(text) for text in ("3", "2-4", "4-4")] == [(1, 2, 3), (2, 3, 4), (4,)]


@pytest.mark.parametrize("text", ["", ",", "0", "x", "1-", "-3", "3-2", "1.5", "0-2", "1-9999"])
def test_rejects_other_seeds(text: str) -> None:
    with pytest.raises(CredalError, match=r"seeds must be a count such as 3, or a range such as"):
        parse_seeds(text)


def test_committed_records_have_the_configuration_of_their_settings() -> None:
    records = [
        record
        for name in ("lidc-votes-3-relax", "cifar10h", "cifar10h-features", "cifar10h-warm")
        for record in read_records(RESULTS / name).records
    ]
    assert len(records) > 100
    for record in records:
        run = Run(ALL_SETTINGS[record.setting], record.method, record.seed)
        assert run.asked == {name: record.config[name] for name in run.asked}, record.name
