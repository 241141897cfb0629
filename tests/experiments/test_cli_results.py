"""The commands that read records, as a user calls them."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from credalearn_experiments.records import Record, read_records, result_path, write_record
from fake_records import fake_records

Command = Callable[..., Any]


def write(folder: Path, records: list[Record]) -> Path:
    for record in records:
        write_record(result_path(folder, record), record)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of settings with foreign images, without, and with votes."""
    names = (
        "cifar10h",
        "micebone",
        "cifar10h-features",
        "lidc-votes-3-idm",
        "lidc-votes-3-precise",
    )
    records = [record for name in names for record in fake_records(name, seeds=range(1, 6))]
    return write(tmp_path_factory.mktemp("results"), records)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("table", "there is no record of a finished run in "),
        ("table treeversity", "no setting with records matches 'tree"),
        ("table --balance softmx", "--balance must be one of"),
        ("table cifar10h --only nix", "no table has 'nix' in its title; there are ['cifar10h: Acc"),
        ("differences cifar10h --than gone", "'gone'"),
        ("rule hull", "no record of 'pocc-mean, hull'"),
        ("votes --family lidc-votes -o a.gif", "must end in one of .png"),
        ("votes --family lidc-votes -o a.png --row nix", "--row must be one of"),
    ],
)
def test_rejects_what_the_records_cannot_answer(
    words: str, message: str, experiments: Command, results: Path, tmp_path: Path
) -> None:
    records = tmp_path if words == "table" else results
    code, _, err = experiments(*words.split(), "--records", records)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_a_damaged_record_is_reported_and_the_others_are_read(
    experiments: Command, tmp_path: Path
) -> None:
    write(tmp_path, fake_records("micebone", seeds=(1,)))
    (tmp_path / "micebone/pocc-seed-1.json").write_text("{")
    answer = experiments("table", "micebone", "--records", ".")
    assert answer.code == 0
    assert "micebone/pocc-seed-1.json" in answer.err
    assert "| edl |" in answer.out
    assert "| pocc |" not in answer.out


def test_table_is_narrowed_to_methods(experiments: Command, tmp_path: Path) -> None:
    name = "cifar10-smooth-0.05"
    write(tmp_path, fake_records(name, seeds=(1,)))
    write(tmp_path, fake_records(name, seeds=range(1, 6), methods=("softmax",)))
    asked = ("table", "--records", ".", "--method", "softmax")
    assert "| method (1 seed) | ACC" in experiments("table", "--records", ".").out
    assert "| method (5 seeds) | ACC" in experiments(*asked).out  # the ensemble's members are seeds
    two = experiments(*asked, "--method", "pocc").out
    assert "Seeds: pocc 1, softmax 5." in two
    assert "| edl" not in two


def test_votes_prints_a_table_and_draws_a_figure(
    experiments: Command, results: Path, tmp_path: Path
) -> None:
    asked = ("votes", "--family", "lidc-votes", "--records", results)
    answer = experiments(*asked, "--metric", "accuracy", "-o", "new/votes.png")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("### lidc-votes: accuracy\n\n| votes per item | 3 (%) ↑ |")
    assert (tmp_path / "new/votes.png").read_bytes().startswith(b"\x89PNG")


def test_figures_are_drawn_or_explained(
    experiments: Command, results: Path, tmp_path: Path
) -> None:
    answer = experiments("figures", "cifar10h-features", "--records", results, "-o", "f")
    assert answer.out == "2 figures in f\n"
    assert len(list((tmp_path / "f").iterdir())) == 2
    write(tmp_path / "few", fake_records("micebone", seeds=(1,)))
    answer = experiments("figures", "--records", "few", "-o", "f")
    assert "no micebone-foreign.png: no record of setting 'micebone'" in answer.err


def test_records_are_copied_or_written_as_one_table(experiments: Command, results: Path) -> None:
    answer = experiments("records", "--store", results, "-o", "runs.CSV")
    records = read_records(results).records
    assert answer.out == f"{len(records)} records in runs.CSV\n"
    with Path("runs.CSV").open(encoding="utf-8", newline="") as file:
        for row, record in zip(csv.DictReader(file), records, strict=True):
            names = (row.pop("setting"), row.pop("method"), int(row.pop("seed")))
            assert names == (record.setting, record.method, record.seed)
            assert {name: float(x) for name, x in row.items() if x} == record.metrics
    experiments("records", "--store", results, "-o", "copy")
    assert read_records("copy").records == records
