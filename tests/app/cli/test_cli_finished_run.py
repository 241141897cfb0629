"""The commands on a finished run: what they do, what they refuse, and what a full disk leaves."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from credalearn.app.cli import app
from team_files import Team, full_disk, in_process, make_team, snapshot, train_arguments

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Team:
    """A team with a finished run of five hundred items; do not change it."""
    team = make_team(tmp_path_factory.mktemp("trained"), num_items=500)
    app(train_arguments(team, "--epochs", "20"), standalone_mode=False)
    return team


def test_what_defer_can_be_told(trained: Team, tmp_path: Path, capsys: Capture) -> None:
    given = ["defer", trained.run, trained.features, "-o", tmp_path / "t.json"]
    more = ["--threshold", "0.2", "--limit", "3", "--no-predictions"]
    done = in_process(capsys, *given, *more)
    assert done.code == 0, done.err
    tasks = json.loads((tmp_path / "t.json").read_text())
    assert [set(task) for task in tasks] == [{"data"}] * 3
    features = {row["item"]: row for row in pl.read_csv(trained.features).iter_rows(named=True)}
    for task in tasks:
        assert task["data"]["row"]["size"] == features[task["data"]["item"]]["size"]


def test_a_target_out_of_reach_is_one_message_and_exit_code_2(
    trained: Team, capsys: Capture
) -> None:
    (trained.run / "guarantee.json").unlink(missing_ok=True)
    before = snapshot(trained.folder)
    both = ("--max-error", "0.001", "--set-coverage", "0.9")  # the sets alone could be
    for asked in (both[:2], both):
        done = in_process(capsys, "certify", trained.run, *asked)
        assert done.code == 2
        assert not done.out
        assert len(done.err.strip().splitlines()) == 1
        assert "0.1 % with 95 % confidence cannot be certified, and nothing was wr" in done.err
        assert "calibration items like these would do by SGR" in done.err
        assert snapshot(trained.folder) == before


def test_one_item_a_group_is_of_no_use_to_sets(trained: Team, capsys: Capture) -> None:
    before = snapshot(trained.folder)
    given = ("certify", trained.run, "--one-a-group", "--set-coverage", "0.5")
    done = in_process(capsys, *given)
    assert (done.code, snapshot(trained.folder)) == (2, before)
    said = "--one-a-group is about --max-error; --set-coverage takes all calibration items. To fix:"
    assert f"{said} leave it out, or add --max-error 0.10." in done.err
    done = in_process(capsys, *given, "--max-error", "0.5")
    assert "--one-a-group: the items of" in done.err


def test_as_many_are_deferred_as_a_team_can_review(
    trained: Team, tmp_path: Path, capsys: Capture
) -> None:
    (trained.run / "guarantee.json").unlink(missing_ok=True)  # it takes none
    output = tmp_path / "d.csv"
    given = ("predict", trained.run, trained.features, "-o", output)
    done = in_process(capsys, *given, "--defer", "37")
    assert done.code == 0, done.err
    assert "predict 463 and defer 37 of 500 items" in done.out
    table = pl.read_csv(output)
    score, deferred = table["score"], table["decision"] == "defer"
    assert deferred.sum() == 37
    assert score.filter(deferred).min() >= score.filter(~deferred).max()  # type: ignore[operator]
    assert table["item"].to_list() == pl.read_csv(trained.features)["item"].to_list()
    for count, wanted in ((0, "defer 0 of 500"), (1000, "predict 0 and defer 500")):
        done = in_process(capsys, *given, "--defer", str(count))
        assert wanted in done.out
        fewer = f"--defer {count}: all are deferred, as there are no more items"
        assert (fewer in done.out) == (count == 1000)
    for other in (("--threshold", "0.5"), ("--no-decision",)):
        done = in_process(capsys, *given, "--defer", "3", *other)
        assert done.code == 2
        assert f"so does {other[0]}. To fix: leave one of them out" in done.err


def test_certify_prints_what_it_promises(trained: Team, capsys: Capture) -> None:
    done = in_process(capsys, "certify", trained.run, "--max-error", "0.3", "--confidence", "0.9")
    assert done.code == 0, done.out
    assert "With 90 % confidence, at most 30 %" in done.out
    assert " %" in done.out
    assert "%" not in done.out.replace(" %", "")
    done = in_process(
        capsys, "certify", trained.run, "--max-error", "0.5", "--against", "annotator"
    )
    assert "wrong against a random annotator" in done.out
    method = ("--method", "conformal-risk-control")
    done = in_process(capsys, "certify", trained.run, "--max-error", "0.3", *method)
    assert "both predicted and wrong" in done.out
    done = in_process(capsys, "certify", trained.run, "--capacity", "0.25")
    assert done.code == 0
    assert "keep 7" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["predict", "{run}", "{folder}/fewer.csv", "-o", "{new}/d.csv"],
         "lacks 1 of the model's 2 features: 'weight'"),
        (["predict", "{run}", "{folder}/fewer.npy", "-o", "{new}/d.csv"],
         "holds 1 features an item; this model takes 2"),
        (["predict", "{run}", "{folder}/none.csv", "-o", "{new}/d.csv"], "none.csv"),
        (["predict", "{run}", "{features}", "-o", "{new}/d.txt"], "must end in one of .csv"),
        (["predict", "{run}", "{features}", "-o", "{votes}/d.csv"], "votes.csv/d.csv"),
        (["predict", "{folder}", "{features}", "-o", "{new}/d.csv"], "run.json is missing"),
        (["predict", "{new}", "{features}", "-o", "{new}/d.csv"], "there is no finished run at"),
        (["predict", "{run}", "{folder}/fewer.csv", "-o", "{votes}", "--no-decision"],
         "votes.csv is what {run} was trained on. To fix: name another output"),
        (["predict", "{run}", "{folder}/fewer.csv", "-o", "{features}"],
         "features.csv is what {run} was trained on"),
        (["predict", "{run}", "{features}", "-o", "{run}/items.parquet"],
         "items.parquet is a file of the run. To fix: name another output"),
        (["certify", "{run}"], "--max-error and --capacity"),
        (["certify", "{run}", "--max-error", "20"], "write 20 % as 0.2"),
        (["certify", "{run}", "--capacity", "20"], "write 20 % as 0.2"),
        (["certify", "{votes}", "--max-error", "0.1"], "there is no finished run at"),
        (["defer", "{run}", "{folder}/none.csv", "-o", "{new}/t.json"], "none.csv"),
        (["defer", "{run}", "{features}", "-o", "{votes}", "--to", "csv"],
         "votes.csv is what {run} was trained on"),
        (["defer", "{run}", "{folder}/fewer.csv", "-o", "{folder}/fewer.csv", "--to", "csv"],
         "fewer.csv is the data itself"),
        (["defer", "{run}", "{features}", "-o", "{run}/run.json"],
         "run.json is a file of the run"),
        (["export", "{run}", "--onnx", "{new}/model.bin"], "must end in .onnx"),
        (["export", "{run}", "--onnx", "."], "must end in .onnx; got ."),
        (["report", "{run}", "-o", "."], "must end in one of .html, .htm; got ."),
        (["report", "{run}", "-o", "{votes}"], "must end in one of .html, .htm; got {votes}"),
        (["report", "{new}"], "there is no finished run at"),
        (["report", "{run}", "-o", "{votes}/page.html"], "page.html cannot be written"),
        (["inspect", "{folder}"], "this is a folder"),
    ],
)  # fmt: skip
def test_bad_input_of_later_steps(
    arguments: list[str], says: str, trained: Team, tmp_path: Path, capsys: Capture
) -> None:
    assert in_process(capsys, "certify", trained.run, "--capacity", "0.2").code == 0
    pl.read_csv(trained.features).drop("weight").write_csv(trained.folder / "fewer.csv")
    np.save(trained.folder / "fewer.npy", np.zeros((3, 1)))
    before = snapshot(trained.folder), snapshot(tmp_path)
    places = {
        "run": trained.run,
        "folder": trained.folder,
        "features": trained.features,
        "votes": trained.votes,
        "new": tmp_path / "new",
    }
    done = in_process(capsys, *(each.format(**places) for each in arguments))
    assert done.code == 2, (done.out, done.err)
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert says.format(**places) in done.err
    assert not done.out
    assert (snapshot(trained.folder), snapshot(tmp_path)) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "{votes}", "--features", "{features}", "-o", "{run}", "--epochs", "2",
         "--drop", "patient", "--drop", "truth", "--drop", "part", "--overwrite"],
        ["certify", "{run}", "--capacity", "0.3"],
        ["predict", "{run}", "{features}", "-o", "{folder}/d.csv"],
        ["predict", "{run}", "{features}", "-o", "{folder}/d.parquet"],
        ["predict", "{run}", "{features}", "-o", "{folder}/d.jsonl"],
        ["defer", "{run}", "{features}", "-o", "{folder}/t.json"],
        ["defer", "{run}", "{features}", "-o", "{folder}/t.csv", "--to", "csv"],
        ["export", "{run}", "--onnx", "{folder}/m.onnx"],
        ["report", "{run}"],
    ],
    ids=lambda arguments: " ".join([arguments[0], arguments[-1].rpartition("/")[2]]),
)  # fmt: skip
def test_a_full_disk_is_one_message_and_changes_nothing(
    arguments: list[str], trained: Team, capsys: Capture
) -> None:
    assert in_process(capsys, "certify", trained.run, "--capacity", "0.2").code == 0
    places = {
        "run": trained.run,
        "folder": trained.folder,
        "features": trained.features,
        "votes": trained.votes,
    }
    before = snapshot(trained.folder)
    # Enough for predict's list of names, which stands in another folder, and not for its output.
    with full_disk(10_000 if arguments[0] == "predict" else 200):
        done = in_process(capsys, *(each.format(**places) for each in arguments))
    assert done.code == 2, (done.out, done.err)
    assert "too large" in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert snapshot(trained.folder) == before
