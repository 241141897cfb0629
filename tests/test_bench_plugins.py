"""Methods, tasks and settings of a user's own: checked when registered, told apart when edited."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

from credalearn import CredalError
from credalearn.bench.catalogue import ALL_SETTINGS
from credalearn.bench.data import TASKS, WITHOUT_FOLDER
from credalearn.bench.plugins import (
    PLUGIN_METHODS,
    PLUGIN_TASKS,
    load_plugin,
    register_method,
    register_setting,
)
from credalearn.bench.records import read_record, read_records
from credalearn.bench.runs import Run
from credalearn.bench.stored import read_predictions
from credalearn.methods import BASES, METHODS
from team_files import Done, in_process

ROOT = Path(__file__).parents[1]
MINE, OWN, READING = re.findall(
    r"```py\n(.*?)```", (ROOT / "docs/extending.md").read_text(encoding="utf-8"), re.DOTALL
)
Bench = Callable[..., Done]


@pytest.fixture(autouse=True)
def forget() -> Iterator[Callable[[], None]]:
    """What takes all that plugins made known from the tables again, as a new process would."""
    tables: list[dict[str, object]]
    tables = [METHODS, BASES, TASKS, ALL_SETTINGS, PLUGIN_METHODS, PLUGIN_TASKS]  # type: ignore[list-item]
    before, without = [dict(table) for table in tables], set(WITHOUT_FOLDER)

    def restore() -> None:
        for table, held in zip(tables, before, strict=True):
            table.clear()
            table.update(held)
        WITHOUT_FOLDER.intersection_update(without)
        load_plugin.cache_clear()

    yield restore
    restore()


@pytest.fixture
def bench(
    forget: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Bench:
    """``credalearn bench --plugin mine.py …`` with this text in the file."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *arguments: object) -> Done:
        forget()
        Path("mine.py").write_text(text, encoding="utf-8")
        return in_process(capsys, "bench", "--plugin", "mine.py", *arguments)

    return run


@pytest.mark.parametrize(
    ("old", "new", "method", "what"),
    [
        ("dropout=0.2", "dropout=0.9", "pocc-dropout", "method_plugin"),
        ("manual_seed(0)", "manual_seed(1)", "softmax", "task_plugin"),
        ("register_task(", "# A remark.\nregister_task(", "softmax", "task_plugin"),
    ],
)
def test_an_edited_plugin_is_not_taken_for_the_old_one(
    old: str, new: str, method: str, what: str, bench: Bench
) -> None:
    run = ("run", "my-setting", "--method", method, "--epochs", 1, "--device", "cpu", "--seeds")
    done = "1 of 1 runs are done in store\n"
    edited = MINE.replace(old, new)
    assert edited != MINE
    assert bench(MINE, *run, "1").out == done
    assert bench(MINE, *run, "1").out == done
    for command in ((*run, "1"), ("measure",), ("status",)):
        refused = bench(edited, *command)
        assert refused.code == 2
        assert re.search(
            rf"another configuration: .*{what} \(sha256 \w+ there, sha256 \w+ here\).*\. The file "
            "of --plugin is another one now. To fix: .* name another --store, or delete that",
            refused.err,
        )
    assert bench(edited, *run, "1", "--store", "other").code == 0
    assert bench(edited, *run, "2,").out == done
    mixed = bench(edited, "table", "--store", "store").err
    assert "the runs of setting 'my-setting' must all have the same task_plugin" in mixed
    assert bench(edited, "table", "--store", "other").code == 0


def test_a_file_of_the_same_size_and_second_is_read_anew(bench: Bench) -> None:
    for dropout in (0.2, 0.9):
        assert bench(MINE.replace("dropout=0.2", f"dropout={dropout}"), "list").code == 0
        assert METHODS["pocc-dropout"].dropout == dropout


def test_runs_of_one_method_by_two_files_are_not_averaged(bench: Bench) -> None:
    run = ("run", "lidc-votes-3-relax", "--method", "brier", "--epochs", 1, "--limit", 20)
    assert bench(OWN, *run, "--seeds", "1").code == 0
    assert bench(f"{OWN}\n", *run, "--seeds", "2,").code == 0
    assert (
        "by 'brier' must all have the same method_plugin"
        in bench(OWN, "votes", "--store", "store").err
    )
    # Methods of the package have nothing to do with the file.
    softmax = ("run", "lidc-votes-3-relax", "--method", "softmax", "--epochs", 1, "--limit", 20)
    assert bench(OWN, *softmax, "--seeds", "1").code == 0
    assert bench(f"{OWN}\n", *softmax, "--seeds", "1").code == 0


def test_runs_of_the_package_are_asked_for_as_ever(bench: Bench) -> None:
    assert bench(MINE, "list").code == 0
    records = [
        record
        for name in ("lidc-votes-3-relax", "cifar10h")
        for record in read_records(ROOT / "results" / name).records
    ]
    assert len(records) > 50
    for record in records:
        run = Run(
            ALL_SETTINGS[record.setting],
            record.method,
            record.seed,
            independent=record.config.get("members") == "independent",
        )
        assert run.asked.keys() <= record.config.keys()
        assert run.asked == {name: record.config[name] for name in run.asked}
    assert Run(ALL_SETTINGS["my-setting"], "pocc", 1).asked.keys() - record.config.keys() == {
        "task_plugin"
    }


def test_the_methods_of_the_document_run_and_are_read(bench: Bench) -> None:
    options = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")
    methods = ("--method", "brier", "--method", "brier-credal")
    done = bench(OWN, "run", "lidc-votes-3-relax", *methods, *options)
    assert done.out == "2 of 2 runs are done in store\n", done.err
    exec(compile(READING, "reading.py", "exec"), {})
    folder = Path("store/lidc-votes-3-relax/brier-credal/seed-1")
    tensors = load_file(folder / "predictions.safetensors")
    for part in ("test", "voted"):
        found = read_predictions(Path("store"), "lidc-votes-3-relax", "brier-credal", 1, part=part)
        assert found.vertices is not None
        assert found.vertices.shape == (20, 2, 3)
        assert_close(found.lower, tensors[f"{part}.lower"])
    with pytest.raises(CredalError, match=r"the part of .* one of 'test', 'voted'; got 'svhn'"):
        read_predictions(Path("store"), "lidc-votes-3-relax", "brier-credal", 1, part="svhn")
    (folder / "predictions.safetensors").write_bytes(b"{")
    with pytest.raises(CredalError, match=r"seed-1.* is not a whole safetensors file"):
        read_predictions(Path("store"), "lidc-votes-3-relax", "brier-credal", 1)


def test_an_ensemble_of_ones_own_is_built_on_runs_of_its_base(bench: Bench) -> None:
    options = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")
    done = bench(OWN, "run", "lidc-votes-all-relax", "--method", "brier-ensemble", *options)
    assert done.out == "4 of 4 runs are done in store\n", done.err
    folder = Path("store/lidc-votes-all-relax")
    assert {path.name for path in (folder / "brier").iterdir()} == {"seed-1", "seed-2", "seed-3"}
    config = read_record(folder / "brier-ensemble/seed-1/metrics.json").config
    assert config["member_seeds"] == [1, 2, 3]
    assert bench(OWN, "table", "--store", "store").code == 0


def test_methods_that_could_not_run_are_refused_before_anything_is_trained() -> None:
    three = replace(METHODS["deep-ensemble"], num_members=3)
    with pytest.raises(CredalError, match=r"the 3 members of method 'de3' .* built_on='softmax'"):
        register_method("de3", three)
    for base in ("nix", "deep-ensemble"):
        with pytest.raises(
            CredalError, match=rf"'de3' is built on must be one of .*; got '{base}'"
        ):
            register_method("de3", three, built_on=base)
    for base, there in (("pocc", r"\(2, 0\.0\)"), ("mc-dropout", r"\(1, 0\.\d+\)")):
        with pytest.raises(CredalError, match=rf"of '{base}', .* {there}; got \(1, 0\.0\)"):
            register_method("de3", three, built_on=base)
    with pytest.raises(
        CredalError, match=r"the score of method 'mine' must be one of .*; got 'foo'"
    ):
        register_method("mine", replace(METHODS["pocc"], score="foo"))
    assert not {"de3", "mine"} & {*METHODS, *BASES}
    register_method("de3", three, built_on="softmax")
    assert [run.seed for run in Run(ALL_SETTINGS["cifar10h"], "de3", 9).bases] == [9, 10, 11]


def test_a_setting_of_no_known_task_is_refused() -> None:
    own = replace(ALL_SETTINGS["cifar10h"], name="mine", task="nonexist")
    with pytest.raises(CredalError, match=r"the task of setting 'mine' must be .*; got 'nonexist'"):
        register_setting(own)
    assert "mine" not in ALL_SETTINGS
