"""The commands that read records, as a user calls them."""

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from credalearn_experiments.cli import main
from credalearn_experiments.records import Record, read_records, result_path, write_record
from credalearn_experiments.settings.paper import SETTINGS
from fake_records import fake_records


@dataclass(frozen=True, slots=True)
class Answer:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """``credalearn-experiments …`` in this process, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["credalearn-experiments", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return Answer(code, *capsys.readouterr())

    return run


def write(folder: Path, records: list[Record]) -> Path:
    for record in records:
        write_record(result_path(folder, record.setting, record.method, record.seed), record)
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


def refused(answer: Answer, message: str) -> None:
    assert answer.code == 2
    assert message in answer.err
    assert answer.err.count("\n") == 1


def test_rejects_folders_without_records(command: Command, tmp_path: Path) -> None:
    refused(command("table", "--records", "nowhere"), "nowhere")
    (tmp_path / "empty").mkdir()
    refused(command("table", "--records", "empty"), "no record of a finished run in empty")


def test_a_damaged_record_is_reported_and_the_others_are_read(
    command: Command, tmp_path: Path
) -> None:
    write(tmp_path, fake_records("micebone", seeds=(1,)))
    (tmp_path / "micebone/pocc-seed-1.json").write_text("{")
    answer = command("table", "micebone", "--records", ".")
    assert answer.code == 0
    assert "micebone/pocc-seed-1.json" in answer.err
    assert "| edl |" in answer.out
    assert "| pocc |" not in answer.out


def test_table_prints_settings_by_name_and_pattern(command: Command, results: Path) -> None:
    every = command("table", "--records", results).out
    assert "### lidc-votes" not in every  # families have their own command
    one = command("table", "mice*", "--records", results)
    assert one.out.strip() in every
    assert one.out.startswith("### micebone: Accuracy")
    assert "- 5 seeds of every method." in one.out
    refused(command("table", "treeversity", "--records", results), "no record of setting 'tree")


def test_table_is_narrowed_to_methods(command: Command, tmp_path: Path) -> None:
    name = "cifar10-smooth-0.05"
    write(tmp_path, fake_records(name, seeds=(1,)))
    write(tmp_path, fake_records(name, seeds=range(1, 6), methods=("softmax",)))
    asked = ("table", "--records", ".", "--method", "softmax")
    assert "| method (1 seed) | ACC" in command("table", "--records", ".").out
    assert "| method (5 seeds) | ACC" in command(*asked).out  # the ensemble's members are seeds
    two = command(*asked, "--method", "pocc").out
    assert "Seeds: pocc 1, softmax 5." in two
    assert "| edl" not in two
    refused(command("table", "--records", ".", "--balance", "softmx"), "--balance must be one of")


def test_table_is_narrowed_to_one_title(command: Command, results: Path) -> None:
    asked = ("table", "cifar10h", "--records", results, "--only")
    answer = command(*asked, "Balanced scores").out
    assert answer.startswith("### cifar10h: Balanced scores by score")
    assert answer.count("###") == 1
    assert "- 5 seeds of every method." in answer
    refused(command(*asked, "nix"), "no table has 'nix' in its title; there are ['cifar10h: Acc")


def test_differences_are_printed_per_metric(command: Command, results: Path) -> None:
    answer = command("differences", "cifar10h", "--than", "pocc", "--records", results)
    assert answer.out.startswith("### cifar10h minus pocc, paired by seed")
    assert answer.out.count("| edl (5 seeds) |") == 2


def test_differences_from_the_records_of_another_folder(command: Command, results: Path) -> None:
    records = [r for r in read_records(results).records if r.setting == "cifar10h"]
    better = [
        replace(r, metrics={**r.metrics, "accuracy": r.metrics["accuracy"] + 0.01}) for r in records
    ]
    write(Path("again"), better)
    answer = command("differences", "cifar10h", "--records", "again", "--than", results)
    assert "| pocc (5 seeds) | 1.00 ± 0.00 | 0.00 ± 0.00 |" in answer.out
    refused(command("differences", "cifar10h", "--records", "again", "--than", "gone"), "'gone'")


def test_rule_compares_one_label_rule(command: Command, results: Path) -> None:
    answer = command("rule", "idm", "--method", "pocc", "--records", results)
    assert "| lidc-votes, 3 | 5 |" in answer.out
    assert "- Of 1 cell: better in " in answer.out
    refused(command("rule", "hull", "--records", results), "no record of 'pocc-mean, hull'")


def test_state_lists_every_setting_of_the_paper(command: Command, results: Path) -> None:
    answer = command("state", "--records", results).out
    lines = {line.split("|")[1].strip(): line for line in answer.splitlines() if "|" in line}
    paper = [name for name, setting in SETTINGS.items() if setting.published]
    assert list(lines)[2:] == paper
    assert "| 5: the paper's 7, pocc-ensemble | 5 seeds | – |" in lines["cifar10h"]
    assert "| – | all | – | 0 of 28 |" in lines["cifar100-teacher-resnet20-1"]
    assert "- 2 of the paper's 26 settings have runs; " in answer


def test_votes_prints_a_table_and_draws_a_figure(
    command: Command, results: Path, tmp_path: Path
) -> None:
    asked = ("votes", "--family", "lidc-votes", "--records", results)
    answer = command(*asked, "--metric", "accuracy", "-o", "new/votes.png")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("### lidc-votes: accuracy\n\n| votes per item | 3 (%) ↑ |")
    assert (tmp_path / "new/votes.png").read_bytes().startswith(b"\x89PNG")
    refused(command(*asked, "-o", "a.gif"), "must end in one of .png")


def test_sets_compares_methods_at_equal_coverage(command: Command, results: Path) -> None:
    answer = command("sets", "--records", results)
    assert answer.out.startswith("### cifar10h-features: sets at equal coverage")
    refused(command("sets", "micebone", "--records", results), "no method of setting 'micebone'")


def test_compare_prints_the_chosen_settings(command: Command, results: Path) -> None:
    shown = command("compare", "micebone", "--records", results).out
    assert "### micebone: " in shown
    assert "### cifar10h: " not in shown


def test_figures_are_drawn_or_explained(command: Command, results: Path, tmp_path: Path) -> None:
    answer = command("figures", "cifar10h-features", "--records", results, "-o", "f")
    assert answer.out == "3 figures in f\n"
    assert len(list((tmp_path / "f").iterdir())) == 3
    write(tmp_path / "few", fake_records("micebone", seeds=(1,)))
    answer = command("figures", "--records", "few", "-o", "f")
    assert "no micebone-significance.png: two methods of setting 'micebone'" in answer.err


def test_records_are_copied_or_written_as_one_table(command: Command, results: Path) -> None:
    answer = command("records", "--store", results, "-o", "runs.CSV")
    records = read_records(results).records
    assert answer.out == f"{len(records)} records in runs.CSV\n"
    with Path("runs.CSV").open(encoding="utf-8", newline="") as file:
        for row, record in zip(csv.DictReader(file), records, strict=True):
            names = (row.pop("setting"), row.pop("method"), int(row.pop("seed")))
            assert names == (record.setting, record.method, record.seed)
            assert {name: float(x) for name, x in row.items() if x} == record.metrics
    command("records", "--store", results, "-o", "copy")
    assert read_records("copy").records == records
