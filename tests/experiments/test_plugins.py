"""Methods, tasks and settings of a user's own, with the files of docs/how-to/extending.md."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch.testing import assert_close

from credalearn import CredalError
from credalearn.methods import METHODS
from credalearn_experiments.data import TASKS
from credalearn_experiments.plugins import (
    BASES,
    PLUGIN_METHODS,
    PLUGIN_TASKS,
    load_plugin,
    register_method,
    register_setting,
)
from credalearn_experiments.runs import Run
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.store import read_predictions
from tiny_runs import command, start

ROOT = Path(__file__).parents[2]
MINE, OWN, TEMPERED, READING, PANDAS = re.findall(
    r"```py\n(.*?)```", (ROOT / "docs/how-to/extending.md").read_text(encoding="utf-8"), re.DOTALL
)
TINY = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")


@pytest.fixture(autouse=True)
def forget() -> Iterator[Callable[[], None]]:
    """Removes what plugins registered, as a new process would."""
    tables: list[dict[str, object]]
    tables = [METHODS, BASES, TASKS, ALL_SETTINGS, PLUGIN_METHODS, PLUGIN_TASKS]  # type: ignore[list-item]
    before = [dict(table) for table in tables]

    def restore() -> None:
        for table, content in zip(tables, before, strict=True):
            table.clear()
            table.update(content)
        load_plugin.cache_clear()

    yield restore
    restore()


@pytest.fixture
def plugin(forget: Callable[[], None], experiments: Callable[..., Any]) -> Callable[..., Any]:
    """``credalearn-experiments --plugin mine.py …`` with this text in the file."""

    def run(text: str, *words: object) -> Any:
        forget()
        Path("mine.py").write_text(text, encoding="utf-8")
        return experiments("--plugin", "mine.py", *words)

    return run


def test_an_edited_plugin_is_another_configuration(plugin: Callable[..., Any]) -> None:
    run = ("run", "my-setting", "--method", "pocc-dropout", *TINY)
    edited = MINE.replace("dropout=0.2", "dropout=0.9")  # of the same size
    for _ in range(2):
        assert plugin(MINE, *run).out == "1 of 1 runs are done in store\n"
    for words in (run, (*run, "--measure")):
        refused = plugin(edited, *words)
        assert refused.code == 2
        assert re.search(
            r"method_plugin \(sha256 \w+ there, .*The file of --plugin has changed", refused.err
        )
    assert plugin(edited, *run, "--store", "other").code == 0


def test_several_files_are_read_by_workers_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    files = os.pathsep.join([str(tmp_path / "mine.py"), str(tmp_path / "own.py")])
    methods = ("--method", "brier", "--method", "pocc-dropout")
    store = ("--store", tmp_path / "store")
    words = command("run", "my-setting", *methods, *TINY, *store, "--workers", 2)
    process = start(words, CREDALEARN_PLUGIN=files)
    out, text = process.communicate(timeout=120)
    assert out.startswith("2 of 2 runs are done in "), text


def test_documented_methods_run(
    plugin: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    methods = ("--method", "brier", "--method", "brier-credal")
    done = plugin(OWN, "run", "lidc-votes-3-relax", *methods, *TINY)
    assert done.out == "2 of 2 runs are done in store\n", done.err
    exec(compile(READING, "reading.py", "exec"), {})
    capsys.readouterr()
    assert plugin(OWN, "records", "-o", "runs.csv").out == "2 records in runs.csv\n"
    exec(compile(PANDAS, "reading.py", "exec"), {})
    assert re.search(r"lidc-votes-3-relax brier +0\.\d+ +NaN\n", capsys.readouterr().out)
    found = read_predictions("store", "lidc-votes-3-relax", "brier-credal", 1, part="voted")
    assert found.vertices is not None
    assert found.vertices.shape == (20, 2, 3)


def test_a_temperature_is_learned_from_the_trained_network(plugin: Callable[..., Any]) -> None:
    options = ("--epochs", 5, "--limit", 60, "--seeds", 1, "--device", "cpu")
    done = plugin(TEMPERED, "run", "lidc-votes-3-relax", "--method", "softmax-tempered", *options)
    assert done.out == "2 of 2 runs are done in store\n", done.err
    plain, tempered = (
        read_predictions("store", "lidc-votes-3-relax", method, 1).probs.double().log()
        for method in ("softmax", "softmax-tempered")
    )
    ratios = (plain - plain[:, :1])[:, 1:] / (tempered - tempered[:, :1])[:, 1:]
    assert_close(ratios, ratios.median().expand_as(ratios), rtol=1e-3, atol=0.0)
    assert abs(ratios.median() - 1) > 0.04


def test_an_own_ensemble_is_built_on_runs_of_its_base(plugin: Callable[..., Any]) -> None:
    done = plugin(OWN, "run", "lidc-votes-all-relax", "--method", "brier-ensemble", *TINY)
    assert done.out == "4 of 4 runs are done in store\n", done.err
    bases = Path("store/lidc-votes-all-relax/brier").iterdir()
    assert {path.name for path in bases} == {"seed-1", "seed-2", "seed-3"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sum(1).mean()", "sum(1)", r"must be a scalar tensor, .* 2 items it returned shape \(2,"),
        (
            "Method(loss=one_head, predictions=hull_of_outputs))",
            "Method(loss=one_head, predictions=lambda *_: 0, post_hoc=lambda *_: {}))",
            "must be CredalPredictions; it returned int",
        ),
    ],
)
def test_failing_method_does_not_stop_the_others(
    old: str, new: str, message: str, plugin: Callable[..., Any]
) -> None:
    methods = ("--method", "brier", "--method", "brier-credal")
    done = plugin(OWN.replace(old, new), "run", "lidc-votes-3-relax", *methods, *TINY)
    assert (done.code, done.out) == (1, "1 of 2 runs are done in store\n"), done.err
    assert re.search(f"failed: lidc-votes-3-relax/brier/seed-1: .*{message}", done.err)
    trained = Path("store/lidc-votes-3-relax/brier/seed-1/log.jsonl").exists()
    assert trained == ("post_hoc" in new)  # only its predictions cannot be tried before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("    return Task(", "    Task(")], "must return a Task; it returned NoneType"),
        (
            [
                ("randn(600, 2, ", "randn(600, 3, 16, 16, "),
                ("4 * x[:, :1]", "4 * x[:, :1, 0, 0]"),
                ("x[:400]", "x.byte()[:400]"),
                ("x[400:]", "x.byte()[400:]"),
                ("mlp", "resnet18"),
            ],
            r"must be 32 px square, as image_size .* says; they are \(16, 16\)",
        ),
    ],
)
def test_rejects_invalid_tasks(
    changes: list[tuple[str, str]], message: str, plugin: Callable[..., Any]
) -> None:
    text = MINE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    refused = plugin(text, "run", "my-setting", "--method", "softmax", *TINY)
    assert refused.code == 2
    assert re.search(message, refused.err), refused.err
    assert not list(Path().rglob("config.json"))


def test_rejects_methods_and_settings_that_could_not_run() -> None:
    three = replace(METHODS["deep-ensemble"], num_members=3)
    with pytest.raises(CredalError, match=r"the 3 members of method 'de3' .* built_on='softmax'"):
        register_method("de3", three)
    for base in ("nothing", "deep-ensemble"):
        with pytest.raises(CredalError, match=rf"base of method 'de3' .*; got '{base}'"):
            register_method("de3", three, built_on=base)
    with pytest.raises(CredalError, match=r"its base 'pocc', \(2, 0\.0\); got \(1, 0\.0\)"):
        register_method("de3", three, built_on="pocc")
    with pytest.raises(CredalError, match=r"the score of method 'mine' .*; got 'foo'"):
        register_method("mine", replace(METHODS["pocc"], score="foo"))
    with pytest.raises(CredalError, match="the name of a method must be a possible folder name"):
        register_method("../out", METHODS["pocc"])
    unknown = replace(ALL_SETTINGS["cifar10h"], name="mine", task="points")
    with pytest.raises(CredalError, match=r"the task of setting 'mine' .*; got 'points'"):
        register_setting(unknown)
    assert not {"de3", "mine"} & {*METHODS, *BASES}
    register_method("de3", three, built_on="softmax")
    assert [run.seed for run in Run(ALL_SETTINGS["cifar10h"], "de3", 9).bases] == [9, 10, 11]
