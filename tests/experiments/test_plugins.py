"""Methods, tasks and settings of a user's own: checked when registered, told apart when edited."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

from credalearn import CredalError
from credalearn.methods import BASES, METHODS
from credalearn_experiments.data import TASKS, WITHOUT_FOLDER
from credalearn_experiments.plugins import (
    PLUGIN_METHODS,
    PLUGIN_TASKS,
    load_plugin,
    register_method,
    register_setting,
    register_task,
)
from credalearn_experiments.records import read_record, read_records
from credalearn_experiments.running.runs import Run
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.stored import read_predictions
from team_files import Done, command, in_process

ROOT = Path(__file__).parents[1]
MINE, OWN, TEMPERED, READING, PANDAS = re.findall(
    r"```py\n(.*?)```", (ROOT / "docs/extending.md").read_text(encoding="utf-8"), re.DOTALL
)
Bench = Callable[..., Done]
OTHER_VERSION = (
    r"Made with another version of the plugin file \(sha256 \w+ there, sha256 \w+ here\): "
)


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
    """``credalearn-experiments --plugin mine.py …`` with this text in the file."""
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
    for words in ((*run, "1"), ("measure",), ("status",)):
        refused = bench(edited, *words)
        assert refused.code == 2
        assert re.search(
            rf"another configuration: .*{what} \(sha256 \w+ there, sha256 \w+ here\).*\. The file "
            "of --plugin is another one now. To fix: .* name another --store, or delete that",
            refused.err,
        )
    assert bench(edited, *run, "1", "--store", "other").code == 0
    assert bench(edited, *run, "2,").out == done
    mixed = bench(edited, "table", "--records", "store").err
    assert "the runs of setting 'my-setting' must all have the same task_plugin" in mixed
    shown = bench(edited, "table", "--records", "other")
    assert shown.code == 0
    assert "another version" not in shown.out
    again = bench(MINE, "table", "--records", "other").out
    [told] = re.findall(rf"\n{OTHER_VERSION}(.*)\n", again)
    assert told == (f"{method}, points." if what == "method_plugin" else "points.")


def test_several_files_are_all_read_by_workers_too(
    bench: Bench,
    forget: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("own.py").write_text(OWN, encoding="utf-8")
    methods = ("--method", "brier", "--method", "pocc-dropout")
    options = ("--seeds", 1, "--epochs", 1, "--device", "cpu", "--workers", 2)
    assert bench(MINE, "--plugin", "own.py", "list").code == 0
    modules = [METHODS["brier"].loss.__module__, TASKS["points"].__module__]
    assert len(set(modules)) == 2
    assert PLUGIN_METHODS["brier"] != PLUGIN_METHODS["pocc-dropout"] == PLUGIN_TASKS["points"]
    both = ("--plugin", "mine.py", "--plugin", "own.py")
    done = command("bench", *both, "run", "my-setting", *methods, *options, cwd=Path.cwd())
    assert done.out == "2 of 2 runs are done in store\n", done.err
    forget()
    monkeypatch.setenv("CREDALEARN_PLUGIN", os.pathsep.join(both[1::2]))
    told = in_process(capsys, "bench", "status", "my-setting", *methods, "--seeds", 1)
    assert told.out == "my-setting: 2 of 2 runs done\n", told.err


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
        in bench(OWN, "votes", "--records", "store").err
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


def test_the_methods_of_the_document_run_and_are_read(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")
    methods = ("--method", "brier", "--method", "brier-credal")
    done = bench(OWN, "run", "lidc-votes-3-relax", *methods, *options)
    assert done.out == "2 of 2 runs are done in store\n", done.err
    exec(compile(READING, "reading.py", "exec"), {})
    capsys.readouterr()
    assert bench(OWN, "records", "-o", "runs.csv").out == "2 records in runs.csv\n"
    exec(compile(PANDAS, "reading.py", "exec"), {})
    assert re.search(r"lidc-votes-3-relax brier +0\.\d+ +NaN\n", capsys.readouterr().out)
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
    with pytest.raises(
        CredalError,
        match=r"seed-1.* is damaged .* To fix: delete it; `credalearn-experiments run` ",
    ):
        read_predictions(Path("store"), "lidc-votes-3-relax", "brier-credal", 1)


def test_a_temperature_is_learned_from_the_trained_network(bench: Bench) -> None:
    options = ("--epochs", 5, "--limit", 60, "--seeds", 1, "--device", "cpu")
    done = bench(TEMPERED, "run", "lidc-votes-3-relax", "--method", "softmax-tempered", *options)
    assert done.out == "2 of 2 runs are done in store\n", done.err
    plain, tempered = (
        read_predictions("store", "lidc-votes-3-relax", method, 1).probs.double().log()
        for method in ("softmax", "softmax-tempered")
    )
    # Logits, but for a number an item, over one temperature.
    ratios = (plain - plain[:, :1])[:, 1:] / (tempered - tempered[:, :1])[:, 1:]
    assert_close(ratios, ratios.median().expand_as(ratios), rtol=1e-3, atol=0.0)
    assert abs(ratios.median() - 1) > 0.04


def test_an_ensemble_of_ones_own_is_built_on_runs_of_its_base(bench: Bench) -> None:
    options = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")
    done = bench(OWN, "run", "lidc-votes-all-relax", "--method", "brier-ensemble", *options)
    assert done.out == "4 of 4 runs are done in store\n", done.err
    folder = Path("store/lidc-votes-all-relax")
    assert {path.name for path in (folder / "brier").iterdir()} == {"seed-1", "seed-2", "seed-3"}
    config = read_record(folder / "brier-ensemble/seed-1/metrics.json").config
    assert config["member_seeds"] == [1, 2, 3]
    assert bench(OWN, "table", "--records", "store").code == 0


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


@pytest.mark.parametrize(
    ("field", "wrong"), [("task", "nonexist"), ("backbone", "resnet20"), ("backbone", "timm:")]
)
def test_a_setting_of_no_known_task_or_backbone_is_refused(field: str, wrong: str) -> None:
    own = replace(ALL_SETTINGS["cifar10h"], name="mine", **{field: wrong})  # type: ignore[arg-type]
    said = rf"the {field} of setting 'mine' must be one of .*; got '{wrong}'"
    with pytest.raises(CredalError, match=said):
        register_setting(own)
    assert "mine" not in ALL_SETTINGS


@pytest.mark.parametrize("name", ["../out", "a/b", "a\\b", ".hidden", ".", ""])
def test_names_that_no_folder_can_have_are_refused(name: str, bench: Bench) -> None:
    said = rf"the name of a {{}} must be .*; got {re.escape(repr(name))}"
    with pytest.raises(CredalError, match=said.format("method")):
        register_method(name, METHODS["softmax"])
    with pytest.raises(CredalError, match=said.format("task")):
        register_task(name, TASKS["lidc"])
    with pytest.raises(CredalError, match=said.format("setting")):
        register_setting(replace(ALL_SETTINGS["cifar10h"], name=name))
    assert name not in {*METHODS, *TASKS, *ALL_SETTINGS}


def test_images_of_another_size_than_the_settings_are_refused(bench: Bench) -> None:
    """The record would keep a false number."""
    images = MINE.replace("x = torch.randn(600, 2, ", "x = torch.randn(600, 3, 16, {}, ")
    images = images.replace("4 * x[:, :1]", "4 * x[:, :1, 0, 0]").replace("x[:400]", "u[:400]")
    images = images.replace("x[400:]", "u[400:]").replace("mlp", "resnet18")
    images = images.replace(
        "    votes =", "    u = (40 * x + 128).clamp(0, 255).byte()\n    votes ="
    )
    run = ("run", "my-setting", "--method", "softmax", "--epochs", 1, "--limit", 4, "--seeds", 1)
    refused = bench(images.format(16), *run)
    said = "task 'points' has images of 16 px, setting 'my-setting' says image_size=32. To fix: "
    assert refused.code == 2
    assert f"{said}give image_size=16, or resize in the task." in refused.err
    assert not list(Path().rglob("config.json"))
    wide = bench(images.format(20), *run).err
    assert "has images of 16 × 20 px, " in wide
    assert "To fix: make them square in the task." in wide
    right = images.format(16).replace("epochs=30),", "epochs=30), image_size=16,")
    assert bench(right, *run).out == "1 of 1 runs are done in store\n"


def test_an_exception_of_a_plugin_stops_the_workers_at_once(tmp_path: Path) -> None:
    broken = OWN.replace(
        "    probs = logits", '    raise ValueError("my own bug")\n    probs = logits'
    )
    (tmp_path / "mine.py").write_text(broken, encoding="utf-8")
    options = ("--epochs", 1, "--limit", 20, "--seeds", 2, "--device", "cpu", "--workers", 2)
    run = ("run", "lidc-votes-3-relax", "--method", "brier", *options)
    done = command("bench", "--plugin", "mine.py", *run, cwd=tmp_path)
    assert done.code == 2
    assert done.err.endswith("a worker process stopped; its message stands above.\n")
    assert 1 <= done.err.count("ValueError: my own bug") <= 2
    assert "replaced" not in done.err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "sum(1).mean()",
            "sum(1)",
            r"the loss of method 'brier' must be a scalar tensor, .* of 2 items it gave shape "
            r"\(2,\)\. To fix: end it with \.mean\(\)\.",
        ),
        ("sum(1).mean()", "sum(1).mean().item()", r"of 2 items it gave float\. To fix: "),
        (
            "Method(loss=one_head, predictions=hull_of_outputs))",
            "Method(loss=one_head, predictions=lambda outputs, _: outputs.logits))",
            "the predictions of method 'brier' must be CredalPredictions; it gave Tensor. To fix: ",
        ),
        (
            "Method(loss=one_head, predictions=hull_of_outputs))",
            "Method(loss=one_head, predictions=lambda *_: 0, post_hoc=lambda *_: {}))",
            "the predictions of method 'brier' must be CredalPredictions; it gave int. To fix: ",
        ),
    ],
)
def test_a_method_that_gives_something_else_fails_and_the_others_go_on(
    old: str, new: str, said: str, bench: Bench
) -> None:
    broken = OWN.replace(old, new)
    assert broken != OWN
    options = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")
    methods = ("--method", "brier", "--method", "brier-credal")
    run = ("run", "lidc-votes-3-relax", *methods, *options)
    done = bench(broken, *run)
    assert (done.code, done.out) == (1, "1 of 2 runs are done in store\n"), done.err
    assert re.search(f"failed: lidc-votes-3-relax/brier/seed-1: .*{said}", done.err)
    trained = Path("store/lidc-votes-3-relax/brier/seed-1/log.jsonl").exists()
    assert trained == ("post_hoc" in new)  # what is learned afterwards cannot be tried before


def test_a_loader_that_gives_no_task_or_takes_no_limit_is_refused(bench: Bench) -> None:
    run = ("run", "my-setting", "--method", "softmax", "--epochs", 1, "--device", "cpu")
    nothing = bench(MINE.replace("    return Task(", "    Task("), *run)
    said = "the loader of task 'points' must give a Task; it gave NoneType. To fix: end it with ret"
    assert nothing.code == 2
    assert said in nothing.err
    alone = bench(MINE.replace(", limit: int | None)", ")").replace("[:limit]", ""), *run)
    said = "the loader of task 'points' must take two arguments, the folders and the limit; too ma"
    assert alone.code == 2
    assert said in alone.err


def test_tables_without_the_plugin_or_with_an_edited_one_say_so(
    bench: Bench, forget: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--epochs", 1, "--limit", 20, "--seeds", 1, "--device", "cpu")
    setting = "lidc-votes-all-relax"
    assert bench(OWN, "run", setting, "--method", "brier-ensemble", *options).code == 0
    said = "Made with a plugin that is not given: with --plugin FILE, networks that are only "
    shared = "Members of brier-ensemble are shared: "
    shows = (
        ("table", setting),
        ("votes", "--family", "lidc-votes"),
        ("sets", setting),
        ("differences", setting, "--than", "brier"),
    )
    for show in shows:
        edited = bench(f"{OWN}\n", *show, "--records", "store")
        given = bench(OWN, *show, "--records", "store")
        forget()
        alone = in_process(capsys, "bench", *show, "--records", "store")
        assert (given.code, alone.code) == (0, 0), given.err + alone.err
        assert len(re.findall(OTHER_VERSION, edited.out)) == 1, show
        assert not re.search(OTHER_VERSION, given.out + alone.out)
        assert said not in given.out + edited.out
        assert alone.out.count(said) == 1, show
        assert (shared in given.out) == (shared in alone.out) == (show[0] != "votes")
