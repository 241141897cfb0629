"""The commands ``credalearn-experiments …``, as a user gives them and reads their answers."""

import csv
import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from credalearn.app.cli import bench_results, main
from credalearn_experiments.cli_results import VoteFamily
from credalearn_experiments.records import read_records, result_path, write_record
from credalearn_experiments.results.compare import compare
from credalearn_experiments.results.vote_tables import METRICS
from credalearn_experiments.settings.catalog import ALL_SETTINGS, family_of
from credalearn_experiments.settings.costs import trainings
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.settings.votes import FAMILIES
from fake_records import fake_records
from tiny_data import write_tiny_data

REHEARSAL = ("--epochs", "1", "--limit", "4")
POCC = ("run", "cifar10h", "--method", "pocc", "--seeds", "1", *REHEARSAL)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command left: exit code, and what it wrote."""

    code: int
    out: str
    err: str


Bench = Callable[..., Answer]


@pytest.fixture
def bench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Bench:
    """``credalearn-experiments …`` in this process, which spares the second that torch takes to import.

    It is the whole command, with what turns errors into messages, in a folder of the test's own.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")
    monkeypatch.delenv("CREDALEARN_DATA", raising=False)

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["credalearn", "bench", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=20)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of two settings, one of them with foreign sets."""
    folder = tmp_path_factory.mktemp("results")
    for record in (*fake_records("cifar10h"), *fake_records("micebone")):
        write_record(result_path(folder, record.setting, record.method, record.seed), record)
    return folder


def refused(answer: Answer, message: str) -> None:
    """One line that says what is wrong, and exit code 2."""
    assert answer.code == 2
    assert re.search(message, answer.err), answer.err
    assert answer.err.startswith("credalearn: ")
    assert answer.err.count("\n") == 1
    assert not answer.out


def rows(table: str) -> dict[str, list[str]]:
    """The rows of a table, by their first cell, whatever stands between the cells."""
    cells = [re.split(r"\s*[│┃]\s*|\s{2,}", line.strip("│┃ ")) for line in table.splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) > 2 and row[0] != "setting"}


def test_list_shows_every_setting_by_its_whole_name(bench: Bench) -> None:
    answer = bench("list")
    assert answer.code == 0
    assert not answer.err
    shown = rows(answer.out)
    alone = {name for name in ALL_SETTINGS if family_of(name) is None}
    folded = {f"{family}-K-RULE" for family in FAMILIES}
    # A name that is cut cannot be given to run.
    assert set(shown) == {*SETTINGS, *alone, *folded, "together"}
    network, methods, seeds, epochs, networks, minutes = shown["cifar10h"]
    assert (network, methods, seeds, epochs, networks) == ("resnet18", "8", "10", "150", "54")
    assert 10 < float(minutes) < 30
    total = sum(trainings(setting) for setting in ALL_SETTINGS.values())
    assert f"{total:,}" in shown["together"]
    assert "estimated" in answer.out
    assert "--all shows a line for each" in answer.out
    assert shown["cifar10h-votes-K-RULE"][:5] == ["resnet18", "3", "3", "150", "108"]
    assert shown["cifar10h-features"][-1] == "none"  # no GPU
    every = bench("list", "--all")
    assert set(rows(every.out)) == {*ALL_SETTINGS, "together"}
    assert "--all" not in every.out
    some = bench("list", "cifar10h-votes-3-*", "cifar10h")
    rules = ("precise", "relax", "relax-ties", "idm", "clopper-pearson")
    assert list(rows(some.out)) == [
        *(f"cifar10h-votes-3-{rule}" for rule in rules),
        *("cifar10h", "together"),
    ]


@pytest.mark.parametrize(
    ("options", "methods", "seeds", "epochs", "networks"),
    [
        ([], "8", "10", "150", "54"),
        (["--independent-members"], "8", "10", "150", "150"),
        (["--seeds", "3"], "8", "3", "150", "23"),  # softmax and POCC 1 to 7, three others 1 to 3
        (["--seeds", "2,4", "--method", "pocc"], "1", "2", "150", "2"),
        (["--method", "decalibration", "--method", "laplace-bridge"], "2", "10", "150", "10"),
        (["--method", "deep-ensemble", "--seeds", "1-2"], "1", "2", "150", "6"),
        (["--epochs", "2"], "8", "10", "2", "54"),
    ],
)
def test_list_is_narrowed(
    options: list[str], methods: str, seeds: str, epochs: str, networks: str, bench: Bench
) -> None:
    answer = bench("list", "cifar10h", *options)
    assert answer.code == 0
    shown = rows(answer.out)
    assert set(shown) == {"cifar10h", "together"}
    assert shown["cifar10h"][1:5] == [methods, seeds, epochs, networks]


@pytest.mark.parametrize("command", ["list", "run", "status"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cifar10-h"], "setting 'cifar10-h' is unknown; close are cifar10h. .* --all`"),
        (
            ["mnist-*"],
            r"no setting fits 'mnist-\*'. To fix: see `credalearn-experiments list --all`",
        ),
        (
            ["cifar10h", "--method", "poc"],
            "method 'poc' .* is unknown. To fix: take some of pocc, ",
        ),
        (["cifar10h", "--seeds", "some"], "seeds are .* such as 3, .*; got 'some'"),
        (["cifar10h", "--seeds", "0"], "seeds are .*; got '0'"),
        (["cifar10h", "--seeds", "5-2"], "seeds are .*; got '5-2'"),
    ],
)
def test_unknown_names_are_refused(
    command: str, arguments: list[str], message: str, bench: Bench, data: Path
) -> None:
    options = ["--data", data] if command == "run" else []
    refused(bench(command, *arguments, *options), message)


@pytest.mark.parametrize(
    ("option", "value"), [("--epochs", "0"), ("--limit", "1"), ("--workers", "0")]
)
def test_options_out_of_range_are_refused(option: str, value: str, bench: Bench) -> None:
    answer = bench("run", "cifar10h", option, value)
    assert answer.code == 2
    assert option in answer.err
    assert "Traceback" not in answer.err
    assert not answer.out


def test_run_wants_a_setting_a_data_folder_and_a_device(bench: Bench, data: Path) -> None:
    refused(bench("run"), "one setting or more; got none. To fix: .*`credalearn-experiments list`")
    refused(bench(*POCC), "no data folder is named. To fix: give --data .* CREDALEARN_DATA")
    refused(bench(*POCC, "--data", "nowhere"), "a data folder must exist; 'nowhere' does not")
    for device in ("gpu", "cuda:99"):
        answer = bench(*POCC, "--data", data, "--device", device)
        refused(answer, f"device '{device}' .* To fix: .*auto")
    assert not Path("store").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("cifar10h", r"no cifar10h/cifar10h-counts\.npy or .* To fix: put .* from https://"),
        ("micebone", r"no MiceBone/annotations\.json .* To fix: unpack MiceBone\.zip .*https://"),
        ("treeversity", r"no Treeversity#1/annotations\.json .* To fix: unpack .*https://"),
        ("cifar10-smooth-0.05", r"no cifar-10-batches-py/data_batch_1 .* To fix: unpack https://"),
        ("cifar100-smooth-0.05", r"no cifar-100-python/train or .* To fix: unpack https://"),
        ("cifar10h-votes-3-idm", r"no cifar10h/cifar10h-counts\.npy in .* To fix: put .*https://"),
        ("cifar10h-features", r"no cifar10h/cifar10h-counts\.npy in .* To fix: put .* https://"),
    ],
)
def test_a_missing_data_set_names_the_file_and_where_it_is(
    setting: str, message: str, bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    refused(bench("run", setting, "--data", "empty", "--weights", "none"), message)
    # Nothing was begun: another try may ask for something else in the same store.
    assert not list(tmp_path.rglob("config.json"))


@pytest.mark.parametrize("model", ["resnet20", "shufflenetv2_x0_5", "mobilenetv2_x0_5"])
def test_a_missing_teacher_names_the_file_and_where_it_is(
    model: str, bench: Bench, tmp_path: Path
) -> None:
    write_tiny_data(tmp_path / "less", items=10)
    for path in (tmp_path / "less/teachers").glob(f"cifar10_{model}-*.pt"):
        path.unlink()
    name = f"cifar10-teacher-{model.partition('_')[0]}-1"
    answer = bench("run", name, "--data", "less", "--seeds", "1", *REHEARSAL)
    assert answer.code == 2
    last = answer.err.splitlines()[-1]  # those before say that the tiny files are not official
    assert re.search(rf"no teachers/cifar10_{model}-[0-9a-f]{{8}}\.pt in less", last)
    assert re.search(r"To fix: download https://.* into teachers/", last)


def test_a_file_that_is_not_the_official_one_is_named(
    bench: Bench, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED")
    refused(bench(*POCC, "--data", data), r"cifar10h-counts\.npy is damaged .* To fix: ")


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.*") if path.is_file()}


def test_a_rehearsal_from_run_to_table(
    bench: Bench, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench("status").out == "store holds no runs yet.\n"
    monkeypatch.setenv("CREDALEARN_DATA", str(data))
    asked = ["cifar10h", "--method", "pocc", "--method", "decalibration", *REHEARSAL]
    first = bench("run", *asked, "--seeds", "1")
    assert first.code == 0, first.err
    assert first.out == "3 of 3 runs are done in store\n"
    assert "cifar10h/pocc/seed-1: epoch 1/1  loss " in first.err
    assert "cifar10h/softmax/seed-1: epoch 1/1  loss " in first.err

    before = stamps(tmp_path / "store")
    second = bench("run", *asked, "--seeds", "1")
    assert (second.code, second.out, second.err) == (0, first.out, "")
    assert stamps(tmp_path / "store") == before

    status = bench("status", *asked, "--seeds", "1")
    assert status.out == "cifar10h: 3 of 3 runs done\n"
    wider = bench("status", *asked, "--seeds", "2").out
    assert re.match(r"cifar10h: 3 of 6 runs done, 3 not begun; about \d+ s left\n$", wider)
    without_a_name = bench("status", *asked[1:], "--seeds", "1")
    assert without_a_name.out == status.out

    other = ["run", "cifar10h", "--method", "pocc", "--seeds", "1", "--limit", "4"]
    refused(bench(*other, "--epochs", "2"), r"epochs \(1 there, 2 here\).* To fix: .*--store")
    refused(bench(*other), r"epochs \(1 there, 150 here\)")
    more = [*other[:-1], "5", "--epochs", "1"]
    refused(bench(*more), r"limit \(4 there, 5 here\).* To fix: .*--store")
    assert stamps(tmp_path / "store") == before

    # Without options the store says how the runs were asked for.
    held = bench("status", "--store", "store")
    assert held.code == 0, held.err
    assert re.match(r"cifar10h: 3 of \d\d runs done, \d\d not begun; about .* left\n$", held.out)
    assert bench("status", "cifar10h").out == held.out
    refused(bench("status", "--limit", "5"), r"limit \(4 there, 5 here\)")

    again = bench("measure", *asked, "--seeds", "2")
    assert again.out == "3 of 6 runs were done in store and are measured once more\n"
    again = bench("measure")
    assert re.match(r"3 of \d\d runs were done in store and are measured once more", again.out)

    copied = bench("records", "--output", "copied")
    assert copied.out == "3 records in copied\n"
    paths = sorted((tmp_path / "copied").rglob("*.*"))
    names = ["decalibration-seed-1.json", "pocc-seed-1.json", "softmax-seed-1.json"]
    assert [path.name for path in paths] == names  # no predictions, no weights
    for path in paths:
        assert "files" not in json.loads(path.read_text())["config"]
    table = bench("table", "--records", "copied")
    assert table.code == 0
    assert "A rehearsal: epochs 1, not 150." in table.out
    assert table == bench("table", "--records", "store")

    # A rehearsal replaces no record of a whole run.
    whole = tmp_path / "copied/cifar10h/pocc-seed-1.json"
    whole.write_text(whole.read_text().replace('"epochs": 1,', '"epochs": 150,'))
    before = stamps(tmp_path / "copied")
    refused(
        bench("records", "--output", "copied"),
        r"copied/cifar10h/pocc-seed-1\.json has epochs=150, that of the store epochs=1\. To fix",
    )
    assert stamps(tmp_path / "copied") == before


def test_independent_members_are_trained_recorded_and_told_of(
    bench: Bench, data: Path, tmp_path: Path
) -> None:
    asked = ["cifar10h-features", "--method", "deep-ensemble", "--seeds", "2", *REHEARSAL]
    done = bench("run", *asked, "--data", data, "--independent-members")
    assert done.code == 0, done.err
    assert done.out == "12 of 12 runs are done in store\n"  # two ensembles of five networks
    records = read_records(tmp_path / "store").records
    ensembles = {r.seed: r.config for r in records if r.method == "deep-ensemble"}
    own = {1: [100, 101, 102, 103, 104], 2: [200, 201, 202, 203, 204]}
    assert {seed: list(config["member_seeds"]) for seed, config in ensembles.items()} == own
    assert {config["members"] for config in ensembles.values()} == {"independent"}
    members = {record.seed for record in records if record.method == "softmax"}
    assert members == {*own[1], *own[2]}
    table = bench("table", "--records", "store")
    assert table.code == 0, table.err
    told = "Members of deep-ensemble are independent: every ensemble has networks of its own.\n"
    assert told in table.out
    assert "\n| softmax |" not in table.out  # the networks are members, no method of their own
    # The same without the option would be other ensembles.
    refused(bench("run", *asked, "--data", data), r"members \(independent there, shared here\)")


def test_time_that_is_up_leaves_the_rest_for_another_call(bench: Bench, data: Path) -> None:
    asked = ["run", "cifar10h", "--method", "pocc", "--seeds", "4", *REHEARSAL, "--data", data]
    part = bench(*asked, "--minutes", "0.01")
    assert part.code == 0
    done = int(part.out.split()[0])
    assert done < 4  # a network takes half a second or more
    assert part.out.splitlines()[1] == "Not all: give the same command again to go on."
    whole = bench(*asked)
    assert whole.out == "4 of 4 runs are done in store\n"
    trained = re.findall(r"seed-\d: epoch 1/1", whole.err)
    assert len(trained) == 4 - done


def test_a_failed_run_is_named_and_done_again_when_asked(
    bench: Bench, data: Path, tmp_path: Path
) -> None:
    asked = [*POCC, "--data", data]
    assert bench(*asked).code == 0
    folder = tmp_path / "store/cifar10h/pocc/seed-1"
    (folder / "metrics.json").unlink()
    (folder / "failure.txt").write_text("the loss of epoch 1 is nan\n")
    status = bench("status", *POCC[1:])
    assert status.out.splitlines()[0] == "cifar10h: 0 of 1 runs done, 1 failed"
    assert "cifar10h/pocc/seed-1: failed: the loss of epoch 1 is nan" in status.out
    again = bench(*asked)
    assert again.code == 1
    assert again.out.startswith("0 of 1 runs are done in store\n")
    assert "failed: cifar10h/pocc/seed-1: the loss of epoch 1 is nan" in again.err
    assert again.err.endswith("To fix: mend what they say and give --retry-failed.\n")
    assert bench(*asked, "--retry-failed").out == "1 of 1 runs are done in store\n"
    assert bench("status", *POCC[1:]).out == "cifar10h: 1 of 1 runs done\n"


@pytest.mark.parametrize("file", ["model.safetensors", "predictions.safetensors", "metrics.json"])
def test_a_damaged_run_is_named_and_done_again(
    file: str, bench: Bench, data: Path, tmp_path: Path
) -> None:
    asked = [*POCC, "--data", data]
    assert bench(*asked).code == 0
    path = tmp_path / "store/cifar10h/pocc/seed-1" / file
    path.write_bytes(path.read_bytes()[:-9])
    status = bench("status", *POCC[1:])
    assert re.match("cifar10h: 0 of 1 runs done, 1 (damaged|to be measured again)", status.out)
    assert file in status.out
    again = bench(*asked)
    assert again.out == "1 of 1 runs are done in store\n"
    word = "measured" if file == "predictions.safetensors" else "done"
    assert re.search(rf"{file}.*cifar10h/pocc/seed-1 is {word} again", again.err)
    assert bench("status", *POCC[1:]).out == "cifar10h: 1 of 1 runs done\n"


def test_damage_of_any_kind_holds_nothing_up(bench: Bench, data: Path, tmp_path: Path) -> None:
    asked = ["cifar10h", "--method", "pocc", "--seeds", "3", *REHEARSAL]
    first, second, third = (tmp_path / f"store/cifar10h/pocc/seed-{seed}" for seed in (1, 2, 3))
    assert bench("run", *asked, "--data", data, "--seeds", "2").code == 0
    content = json.loads((first / "metrics.json").read_text())
    content["config"]["files"] = None
    (first / "metrics.json").write_text(json.dumps(content))
    (second / "metrics.json").unlink()
    (second / "failure.txt").write_bytes(b"\xff")
    third.mkdir()
    (third / "config.json").write_bytes((second / "config.json").read_bytes())
    text = (third / "config.json").read_text().replace('"seed": 2', '"seed": 3')
    (third / "config.json").write_text(text)
    (third / "log.jsonl").write_bytes(b'\xff\n{"epoch": 1e999, "seconds": 1}\n')
    status = bench("status", *asked)
    assert status.code == 0, status.err
    assert "metrics.json is not what this run wrote" in status.out
    assert "seed-2: failed: \ufffd" in status.out
    assert "seed-3: epoch 0/1, stopped; will be begun again" in status.out
    again = bench("run", *asked, "--data", data)
    assert (again.code, again.out) == (1, "2 of 3 runs are done in store\n")
    assert "failed: cifar10h/pocc/seed-2: \ufffd" in again.err
    assert "cifar10h/pocc/seed-1 is done again" in again.err


def test_photos_start_from_a_file_or_from_random_weights_as_asked(
    bench: Bench, data: Path, tmp_path: Path
) -> None:
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    asked = ["run", "micebone", "--method", "pocc", "--seeds", "1", "--epochs", "1", "--limit", "2"]
    asked += ["--data", str(data)]
    refused(bench(*asked), "micebone starts from weights .* --weights, or give --weights none")
    refused(bench(*asked, "--weights", "absent.pth"), r"no file absent\.pth\. To fix: download .*")
    torch.save(torchvision.models.densenet121(weights=None).state_dict(), tmp_path / "file.pth")
    told = "1 of 1 runs are done in {}\n"
    answer = bench(*asked, "--weights", "file.pth", "--store", "from-file")
    assert (answer.code, answer.out) == (0, told.format("from-file"))
    answer = bench(*asked, "--weights", "none", "--store", "random")
    assert (answer.code, answer.out) == (0, told.format("random"))


def test_records_need_a_store(bench: Bench) -> None:
    refused(bench("records", "--store", "nowhere"), "records are read from a folder; .* nowhere")


@pytest.mark.parametrize("command", ["table", "compare", "figures", "votes", "sets"])
def test_what_reads_records_needs_some(command: str, bench: Bench, tmp_path: Path) -> None:
    refused(bench(command, "--records", "nowhere"), "records are read .* there is none at nowhere")
    (tmp_path / "empty").mkdir()
    refused(bench(command, "--records", "empty"), "empty holds no records?")
    refused(bench(command), "there is none at results. To fix: give --records store for the runs")


def test_a_damaged_record_is_named_and_the_others_are_read(bench: Bench, tmp_path: Path) -> None:
    for record in fake_records("micebone", seeds=(1,)):
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    (tmp_path / "micebone/pocc-seed-1.json").write_text("{")
    answer = bench("table", "micebone", "--records", ".")
    assert answer.code == 0
    assert re.match(r"left out: .*micebone/pocc-seed-1\.json: this is no JSON", answer.err)
    assert "| edl |" in answer.out
    assert "| pocc |" not in answer.out


def test_tables_say_whose_they_are_and_what_they_rest_on(bench: Bench, results: Path) -> None:
    answer = bench("table", "--records", results)
    assert answer.code == 0
    assert not answer.err
    heads = [line for line in answer.out.splitlines() if line.startswith("#")]
    ours, theirs = (
        next(place for place, head in enumerate(heads) if name in head)
        for name in ("cifar10h", "micebone")
    )
    assert ours == 0 < theirs  # every table stands below the name of its setting
    for title in ("AUARC by score", "Normalized AUARC", "Rank correlation", "AUROC, foreign"):
        assert any(title in head for head in heads[:theirs]), title
    assert not any("AUROC" in head for head in heads[theirs:])
    assert answer.out.count("10 seeds of every method.") == 2
    assert "Members of deep-ensemble and pocc-ensemble are shared" in answer.out
    one = bench("table", "micebone", "--records", results)
    assert one.out in answer.out
    assert "mc-dropout" not in one.out
    refused(bench("table", "treeversity", "--records", results), "no record of .*'treeversity'")


def test_a_table_without_the_ensemble_counts_its_members_as_seeds(
    bench: Bench, tmp_path: Path
) -> None:
    records = [
        *fake_records("cifar10-smooth-0.05", seeds=(1,)),
        *fake_records("cifar10-smooth-0.05", seeds=(1, 2, 3, 4, 5), methods=("softmax",)),
    ]
    for record in records:
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    every = bench("table", "--records", ".")
    assert "1 seed of every method." in every.out
    alone = bench("table", "--records", ".", "--method", "softmax")
    assert "| method (5 seeds) | ACC" in alone.out
    assert "pocc" not in alone.out
    two = bench("table", "--records", ".", "--method", "softmax", "--method", "pocc")
    assert "Seeds: pocc 1, softmax 5." in two.out
    assert "edl" not in two.out
    assert "Not in these tables" not in two.out  # what was left out on purpose
    refused(
        bench("table", "--records", ".", "--method", "softmx"),
        "--method 'softmx' has no record. To fix: take one of .*softmax",
    )


def test_a_method_must_have_records_in_one_of_the_settings_named(
    bench: Bench, results: Path
) -> None:
    asked = ("--records", results, "--method", "mc-dropout")  # micebone has none
    other = bench("table", "micebone", *asked)
    refused(
        other,
        "--method 'mc-dropout' has no record in micebone; it has in 'cifar10h'. To fix: take one",
    )
    assert "mc-dropout" not in other.err.split("To fix")[1]
    alone = bench("table", "cifar10h", *asked)
    both = bench("table", "cifar10h", "micebone", *asked)
    assert both.code == 0, both.err
    assert both.out == alone.out == bench("table", "*", *asked).out
    refused(bench("table", "treeversity", *asked), "no record of setting 'treeversity'")


def test_a_method_to_be_compared_must_have_runs_in_one_of_the_settings(
    bench: Bench, results: Path
) -> None:
    asked = ("--balance", "pocc", "--balance", "mc-dropout")
    refused(
        bench("table", "--records", results, *asked, "--balance", "poc"),
        "--balance 'poc' has no run in these settings. To fix: take one of edl, .*mc-dropout",
    )
    refused(
        bench("table", "micebone", "--records", results, *asked),
        "--balance 'mc-dropout' has no run in these settings. To fix: take one of edl",
    )
    both = bench("table", "--records", results, *asked)  # micebone has no mc-dropout
    assert both.code == 0, both.err
    assert both.out.count("BQS and BQS-ST compare pocc, mc-dropout over the 10 seeds") == 1
    assert both.out.count("BQS and BQS-ST compare") == 1


def test_records_are_one_table_with_a_row_a_run(bench: Bench, results: Path) -> None:
    answer = bench("records", "--store", results, "-o", "new/runs.CSV")
    kept = read_records(results).records
    assert answer.out == f"{len(kept)} records in new/runs.CSV\n"
    with Path("new/runs.CSV").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert list(written[0])[:4] == ["setting", "method", "seed", "accuracy"]
    for row, record in zip(written, kept, strict=True):
        names = (row.pop("setting"), row.pop("method"), int(row.pop("seed")))
        assert names == (record.setting, record.method, record.seed)
        assert {name: float(x) for name, x in row.items() if x} == record.metrics
    Path("taken.csv").mkdir()
    refused(bench("records", "--store", results, "-o", "taken.csv"), "taken.csv cannot be written")


def test_what_there_are_records_of_is_said_shortly(bench: Bench, voted: Path) -> None:
    short = r"there are some of [a-z0-9, -]*cifar10h-votes-K-RULE[A-Za-z0-9, -]*\."
    refused(bench("sets", "nothere", "--records", voted), rf"setting 'nothere'; {short}")
    refused(
        bench("votes", "--records", voted, "--family", "cifar10h-features-votes"),
        rf"the family 'cifar10h-features-votes'; {short} To fix",
    )


def test_differences_from_a_method_and_from_a_setting(bench: Bench, tmp_path: Path) -> None:
    for setting in ("cifar10h", "cifar10h-warm"):
        for record in fake_records(setting, seeds=(1, 2)):
            write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    beside = bench("differences", "cifar10h-warm", "--than", "pocc", "--records", ".")
    assert (beside.code, beside.err) == (0, "")
    assert "## cifar10h-warm less pocc, paired by seed" in beside.out
    assert "## cifar10h-warm: seeds on which it is better than pocc" in beside.out
    assert beside.out.count("| softmax (2 seeds) |") == 2
    assert "| pocc (" not in beside.out
    other = bench("differences", "cifar10h-warm", "--than", "cifar10h", "--records", ".")
    assert other.out.count("| pocc (2 seeds) |") == 2
    assert "pocc-center" not in other.out  # the published recipe's setting has none
    for answer in (beside, other):
        assert answer.out.count("Members of deep-ensemble and pocc-ensemble are shared") == 1
        assert "the same training run twice ends elsewhere" in answer.out
    form = ("--records", ".", "--format", "csv")
    text = bench("differences", "cifar10h-warm", "--than", "pocc", *form).out
    assert text.startswith("# ")
    assert "\nmethod,ACC mean,ACC standard error,ECE mean,ECE standard error," in text
    assert '\nmethod,ACC,ECE,"AUARC, own score",' in text  # of counts
    for wrong in ("nix", "cifar10h-warm"):
        answer = bench("differences", "cifar10h-warm", "--than", wrong, "--records", ".")
        said = f"another setting that has records; got '{wrong}'. To fix: take one of edl"
        refused(answer, said)
    refused(bench("differences", "nix", "--than", "pocc", "--records", "."), "setting 'nix'")


def test_tables_as_latex_and_csv(bench: Bench, results: Path) -> None:
    latex = bench("table", "micebone", "--records", results, "--format", "latex").out
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 4
    for line in latex.splitlines():
        assert not line.startswith("#")
        if "seeds of every method" in line:
            assert line.startswith("% ")
    text = bench("table", "micebone", "--records", results, "--format", "csv").out
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    heads = [row for row in csv.reader(lines) if row[0].startswith("method")]
    assert len(heads) == 4
    for command in ("table", "differences"):
        words = re.sub(r"[\s│]+", " ", bench(command, "--help").out)
        assert "one CSV a table; for one table of all runs: bench records -o runs.csv." in words
    assert all(len(row) in {len(head) for head in heads} for row in csv.reader(lines))
    wrong = bench("table", "--records", results, "--format", "word")
    assert wrong.code == 2
    assert "--format" in wrong.err


def test_the_comparison_is_printed_and_written(
    bench: Bench, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = bench("compare", "--records", results, "--output", "new/figures.csv")
    assert answer.code == 0
    assert not answer.err
    assert "### cifar10h: tab:result" in answer.out
    assert re.search(r"\| pocc \| 10 \| .* \(87\.0 ± 0\.4, [+−]\d", answer.out)
    with (tmp_path / "new/figures.csv").open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    expected = compare(read_records(results).records)
    assert len(written) == len(expected) > 100
    assert answer.out.rstrip().splitlines()[-1] == f"{len(expected)} figures in new/figures.csv"
    for row, each in zip(written, expected, strict=True):
        assert row["method"] == each.method
        assert float(row["mean"]) == pytest.approx(each.mean, rel=1e-5, abs=1e-9)
    assert bench("compare", "--records", results).out in answer.out
    choose = Mock(wraps=bench_results._chosen)
    monkeypatch.setattr(bench_results, "_chosen", choose)
    one = bench("compare", "micebone", "--records", results).out
    assert choose.call_count == 1  # not once a row
    assert "### micebone: " in one
    assert "### cifar10h: " not in one


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of two families, of every method on features, and of a setting without votes."""
    folder = tmp_path_factory.mktemp("voted")
    settings = [each.name for name in VoteFamily for each in FAMILIES[name].settings]
    for name in (*settings, "cifar10h-features", "micebone"):
        if not name.startswith("cifar10h-features-votes"):
            for record in fake_records(name):
                path = result_path(folder, record.setting, record.method, record.seed)
                write_record(path, record)
    return folder


def test_votes_shows_rules_by_votes_and_says_what_is_worse(bench: Bench, voted: Path) -> None:
    assert {family.value for family in VoteFamily} == set(FAMILIES)
    answer = bench("votes", "--records", voted)
    assert answer.code == 0
    assert not answer.err
    heads = [line for line in answer.out.splitlines() if line.startswith("## ")]
    assert heads[0] == "## cifar10h-votes: accuracy"
    assert heads[1].startswith("## cifar10h-votes: accuracy less that of softmax on soft labels")
    assert len(heads) == 1 + len(METRICS)
    assert "| votes an item | 1 (%) ↑ | 2 (%) ↑ | 3 (%) ↑ |" in answer.out
    assert answer.out.count("| pocc, idm |") == 1 + len(METRICS)
    assert re.search(r"^- pocc, relax: (worse|better|not told apart) at ", answer.out, re.MULTILINE)
    assert "- Worse is a mean difference of 0.1 points or more below 0 whose 95 %" in answer.out
    assert "No correction is made for the number of cells" in answer.out
    assert answer.out.splitlines()[-1].startswith("3 seeds of every run.")
    for other in ("--results", "--store"):  # one name for where records are read from
        assert "No such option" in bench("votes", other, voted).err
    one = bench("votes", "--records", voted, "--family", "cifar10n-votes", "--metric", "ece")
    assert one.out.startswith("## cifar10n-votes: ECE\n\n| votes an item | 3 (%) ↓ |")
    assert "less that of" not in one.out
    refused(
        bench("votes", "--records", voted, "--family", "cifar10h-features-votes"),
        r"no record of the family 'cifar10h-features-votes'; .* run 'cifar10h-features-votes-\*'",
    )
    refused(bench("votes", "--records", voted, "--metric", "f1"), "metric must be one of .*'f1'")


def test_votes_takes_the_family_that_there_is(bench: Bench, tmp_path: Path) -> None:
    for record in fake_records("lidc-votes-3-idm", seeds=(1, 2, 3)):
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    answer = bench("votes", "--records", ".", "--metric", "accuracy")
    assert answer.code == 0, answer.err
    assert answer.out.startswith("## lidc-votes: accuracy\n")


def test_votes_as_latex_csv_and_figure(bench: Bench, voted: Path, tmp_path: Path) -> None:
    latex = bench("votes", "--records", voted, "--metric", "accuracy", "--format", "latex").out
    assert latex.count(r"\begin{tabular}") == 2
    kinds = ("%", "\\", "votes", "softmax", "pocc", "")
    assert all(line.startswith(kinds) or not line for line in latex.splitlines())
    text = bench("votes", "--records", voted, "--metric", "accuracy", "--format", "csv").out
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    table = list(csv.reader(lines))
    assert table[0] == ["votes an item", *(f"{k} {w}" for k in KS for w in ("mean", "std"))]
    assert table[7] == [head.replace("std", "standard error") for head in table[0]]
    assert len(table) == 1 + 6 + 1 + 5
    answer = bench("votes", "--records", voted, "--metric", "ece", "-o", "new/votes.png")
    assert answer.code == 0
    assert (tmp_path / "new/votes.png").read_bytes().startswith(b"\x89PNG")
    assert answer.out.splitlines()[-1] == "1 figure in new/votes.png"
    refused(bench("votes", "--records", voted, "-o", "votes.gif"), r"must end in one of \.png")
    refused(bench("compare", "--records", voted, "-o", "a.txt"), r"end in \.csv; .* name it a\.csv")


KS = ("1", "2", "3", "5", "10", "all")


def test_sets_shows_methods_at_equal_coverage(bench: Bench, voted: Path) -> None:
    answer = bench("sets", "cifar10h-features", "--records", voted)
    assert answer.code == 0
    assert not answer.err
    assert answer.out.startswith("## cifar10h-features: sets at equal coverage of people's votes")
    assert "| method (10 seeds) | width at 90 % ↓ | covered at 90 % |" in answer.out
    assert "10 seeds of every method." in answer.out
    assert "BQS" not in answer.out
    assert "means over 20 halvings a seed" in answer.out.splitlines()[-1]
    assert "items measured here are among these" in answer.out.splitlines()[-1]
    every = bench("sets", "--records", voted).out
    assert every.count("## ") == 1  # of families only where they are named, micebone has none
    assert bench("sets", "cifar10n-*", "--records", voted).out.count("## ") == 5
    assert bench("sets", "cifar10h-votes-*", "--records", voted).out.count("## ") == 30
    assert (
        r"\begin{tabular}"
        in bench("sets", "cifar10h-features", "--records", voted, "--format", "latex").out
    )
    refused(bench("sets", "micebone", "--records", voted), "no method of setting 'micebone' has")


def test_sets_of_other_data_say_nothing_of_ours(bench: Bench, tmp_path: Path) -> None:
    for record in fake_records("cifar10h-features", seeds=(1,)):
        path = result_path(tmp_path, "my-setting", record.method, record.seed)
        write_record(path, replace(record, setting="my-setting"))
    answer = bench("sets", "--records", ".")
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[-1].endswith("means over 20 halvings a seed, ± over seeds.")


def test_status_names_settings_that_are_not_known(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "store/my-setting/pocc/seed-1"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert bench("status").out.startswith("my-setting: runs of a setting that is not known; ")
    assert "my-setting" not in bench("status", "cifar10h").out


def test_the_plugin_of_the_document_runs_in_workers_too(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "docs/extending.md").read_text(encoding="utf-8")
    found = re.search(r"```py\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (tmp_path / "mine.py").write_text(found[1], encoding="utf-8")
    options = ["--seeds", "1", "--epochs", "1", "--device", "cpu", "--workers", "2"]
    command = [sys.executable, "-m", "credalearn", "bench", "--plugin", "mine.py", "run"]
    done = subprocess.run(
        [*command, "my-setting", "--method", "pocc-dropout", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1 of 1 runs are done in store\n"), done.stderr


def test_a_plugin_that_is_not_there_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(bench("--plugin", "absent.py", "list"), r"a Python file; there is none at .*absent\.py")
    monkeypatch.setenv("CREDALEARN_PLUGIN", "other.py")
    refused(bench("status"), r"a Python file; there is none at .*other\.py")


def test_what_an_own_task_costs_is_not_known(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(ALL_SETTINGS["cifar10h"], name="my-setting", task="my-task")
    monkeypatch.setitem(ALL_SETTINGS, own.name, own)
    answer = bench("list", "my-setting", "cifar10h")
    assert answer.code == 0, answer.err
    assert rows(answer.out)["my-setting"][-1] == "?"
    assert rows(answer.out)["together"][-1] == "?"  # the sum of one that is not known is not known


def test_sets_of_records_without_votes_are_refused(bench: Bench, results: Path) -> None:
    refused(bench("sets", "--records", results), "holds no record with sizes of sets. To fix: run")


def test_table_and_status_take_patterns(bench: Bench, results: Path) -> None:
    assert bench("table", "mice*", "--records", results) == bench(
        "table", "micebone", "--records", results
    )
    refused(bench("table", "cifar100*", "--records", results), r"no setting fits 'cifar100\*'")
    lines = bench("status", "cifar10n-votes-3-*").out.splitlines()
    assert lines[0] == "cifar10n-votes-3-precise: 0 of 3 runs done, 3 not begun"
    assert len(lines) == 5


def test_a_rehearsal_on_features_from_run_to_votes_and_sets(bench: Bench, data: Path) -> None:
    asked = ["run", "cifar10h-features-votes-1-*", "cifar10h-features-votes-all-precise"]
    asked += ["--epochs", "1", "--limit", "8", "--seeds", "2", "--data", str(data)]
    answer = bench(*asked)
    assert answer.code == 0, answer.err
    assert answer.out == "24 of 24 runs are done in store\n"
    shown = bench("votes", "--records", "store", "--family", "cifar10h-features-votes")
    assert shown.code == 0, shown.err
    assert "A rehearsal: 8 training and test items at most." in shown.out
    assert "| pocc-center, idm |" in shown.out
    rules = FAMILIES["cifar10h-features-votes"].rules
    assert shown.out.count("| 1 (%) ↑ | all (%) ↑ |") >= 2
    assert all(f", {rule} |" in shown.out for rule in rules)
    sets = bench("sets", "cifar10h-features-votes-1-idm", "--records", "store")
    assert "| pocc-center |" in sets.out


def test_figures_are_drawn(bench: Bench, results: Path, tmp_path: Path) -> None:
    answer = bench("figures", "micebone", "--records", results, "--output", "drawn")
    assert answer.code == 0
    assert answer.out == "4 figures in drawn\n"
    assert not answer.err
    names = {f"micebone-{kind}.png" for kind in FIGURES}
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == names
    for name in names:
        assert (tmp_path / "drawn" / name).read_bytes().startswith(b"\x89PNG")
    bench("figures", "micebone", "--records", results, "-o", "vectors", "--format", "svg")
    assert len(list((tmp_path / "vectors").glob("*.svg"))) == 4


FIGURES = ("rejection", "balance", "significance", "published")


def test_a_figure_that_cannot_be_drawn_says_why(
    bench: Bench, results: Path, tmp_path: Path
) -> None:
    wrong = bench("figures", "micebone", "--records", results, "--format", "bmp")
    assert wrong.code == 2
    assert "bmp" in wrong.err
    assert not Path("figures").exists()
    for record in fake_records("micebone", methods=["pocc"]):
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    alone = bench("figures", "--records", ".", "--output", "alone")
    assert alone.code == 0
    for kind in ("balance", "significance"):  # there is nothing to compare POCC with
        assert re.search(rf"^no micebone-{kind}\.png: \S", alone.err, re.MULTILINE)
    assert alone.out == "2 figures in alone\n"
    assert (tmp_path / "alone/micebone-rejection.png").exists()
    for record in fake_records("cifar10h-warm", methods=["pocc"]):
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    one = bench("figures", "cifar10h-warm", "--records", ".", "--output", "one")
    assert one.out == "1 figure in one\n"


@pytest.mark.parametrize(
    "command", [("compare", "-o", "taken.csv"), ("votes", "--metric", "ece", "-o", "taken.png")]
)
def test_a_folder_where_the_output_should_be_is_named(
    bench: Bench, voted: Path, command: tuple[str, ...]
) -> None:
    Path(command[-1]).mkdir()
    said = f"^credalearn: {command[-1]} cannot be written: it is a folder. To fix: name another "
    refused(bench(*command, "--records", voted), said)


@pytest.mark.parametrize("command", [("records", "--store"), ("figures", "--records")])
def test_a_folder_that_cannot_be_written_ends_with_one_message(
    bench: Bench, results: Path, command: tuple[str, str]
) -> None:
    said = r"^credalearn: /proc/x\S* cannot be written: .*\. To fix: name another f"
    refused(bench(*command, results, "-o", "/proc/x"), said)


def processor_seconds() -> float:
    """What ended child processes have used: unlike a clock, not slowed by other work."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


HELP = [["--help"], ["bench", "--help"], ["bench", "run", "--help"], ["bench", "table", "--help"]]


@pytest.mark.parametrize("arguments", HELP, ids=" ".join)
def test_help_answers_at_once_and_imports_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "credalearn", *arguments]
    seconds = []
    for _ in range(5):
        before = processor_seconds()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds.append(processor_seconds() - before)
        assert done.returncode == 0
        assert "Usage: " in done.stdout
        if seconds[-1] < 0.5:
            break
    assert min(seconds) < 0.5
    listing = subprocess.run(
        [sys.executable, "-X", "importtime", *command[1:]],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in listing.splitlines()}
    assert "typer" in imported
    assert not imported & {"torch", "numpy", "scipy", "sklearn", "matplotlib", "PIL", "ray"}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("run", "one or more."),
        ("measure", "all that the store holds if none."),
        ("status", "all that the store holds if none."),
        ("list", "all if none."),
    ],
)
def test_help_says_what_no_name_means(command: str, told: str, bench: Bench) -> None:
    words = re.sub(r"[\s│]+", " ", bench(command, "--help").out)
    assert f"such as 'cifar10h-votes-3-*'; {told}" in words


def test_the_readme_counts_the_settings_of_the_paper() -> None:
    count = sum(setting.published is not None for setting in SETTINGS.values())
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"the paper's {count} settings and ours" in text


def test_help_of_bench_names_every_command() -> None:
    command = [sys.executable, "-m", "credalearn", "bench", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    works = ("list", "run", "measure", "status", "records")
    for name in (*works, "table", "compare", "figures", "votes", "sets"):
        assert re.search(rf"^│ {name} ", shown, re.MULTILINE), name


def test_an_error_of_the_real_command_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "credalearn", "bench", "list", "nonsense"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    refused(Answer(done.returncode, done.stdout, done.stderr), "setting 'nonsense' is unknown")


def test_a_reader_that_stops_early_is_no_error(results: Path) -> None:
    """``credalearn-experiments table | head -1``."""
    command = [sys.executable, "-m", "credalearn", "bench", "table", "--records", str(results)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
