"""The command: list, run and records, on a machine with few packages too."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from credalearn.errors import TrainingError
from credalearn_experiments.runs import Run
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.store import Store
from python_process import run_python
from team_files import Done
from tiny_runs import run_command, start, wait_until

# Packages that the machine for long runs does not have.
ABSENT = ("polars", "msgspec", "jinja2", "ray")
BLOCKED = f"""
import sys
for name in {ABSENT}:
    sys.modules[name] = None  # importing it raises ImportError
from credalearn.errors import TrainingError
from credalearn_experiments.cli import main
for words in sys.argv[1:]:
    sys.argv = ["credalearn-experiments", *words.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
"""
TINY = ("--epochs", "2", "--limit", "24", "--device", "cpu")


def test_works_without_the_packages_of_the_application(tmp_path: Path) -> None:
    run = " ".join(["run lidc-votes-all-relax --method decalibration --seeds 1", *TINY])
    commands = {
        "list": "lidc-votes-K-RULE",
        run: "2 of 2 runs are",
        f"{run} --measure": "2 runs in store are measured again",
        "records -o results": "2 records in results",
        "records -o runs.csv": "2 records in runs.csv",
    }
    printed = run_python(BLOCKED, *commands, folder=tmp_path)
    assert all(expected in printed for expected in commands.values())
    assert len(list((tmp_path / "results").rglob("*.json"))) == 2


def test_help_imports_nothing_heavy() -> None:
    printed = run_python("""
import sys
from credalearn_experiments.cli import app
for words in (["--help"], ["run", "--help"], ["list", "--help"]):
    try:
        app(words)
    except SystemExit:
        pass
heavy = {"torch", "polars", "matplotlib", "sklearn", "joblib", "ray"} & set(sys.modules)
assert not heavy, heavy
""")
    assert printed.count("Usage") == 3


def test_list_shows_every_setting_or_family(experiments: Callable[..., Done]) -> None:
    code, out, _ = experiments("list")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.split()}
    assert code == 0
    assert rows["cifar10h"] == ["resnet18", "8", "10", "150", "54", "94", "0"]
    assert rows["lidc-votes-K-RULE"] == ["mlp", "4", "10", "50", "400", "400", "0"]
    assert "cifar10h-votes-3-idm" not in rows
    _, out, _ = experiments("list", "*")
    assert set(ALL_SETTINGS) <= {line.split()[0] for line in out.splitlines() if line.split()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "cifar10x"), "no setting matches 'cifar10x'"),
        (("run", "cifar10h", "--method", "pok"), "a method of setting 'cifar10h' must be one of"),
        (("run", "cifar10h", "--seeds", "x"), "seeds must be a count such as 3"),
        (("run", "cifar10h"), "CIFAR-10H cannot be read: no data folder is named"),
        (("run", "lidc-votes-3-idm", "--device", "cuda:77"), "device 'cuda:77' is not "),
        (("list", "cifar10x*"), "no setting matches 'cifar10x*'"),
    ],
)
def test_an_error_is_one_message_and_exit_code_2(
    words: tuple[str, ...], message: str, experiments: Callable[..., Done]
) -> None:
    code, out, err = experiments(*words)
    assert (code, out) == (2, "")
    assert err.startswith("credalearn-experiments: ")
    assert message in err


def test_a_run_is_done_once_and_listed(experiments: Callable[..., Done]) -> None:
    run = ("run", "lidc-votes-3-idm", "--method", "pocc", "--seeds", 2, *TINY)
    for more in ((), ("--minutes", 0.01)):
        code, out, _ = experiments(*run, *more)
        assert (code, out) == (0, "2 of 2 runs are done in store\n")
    _, out, _ = experiments("list", "lidc-votes-?-idm")
    assert [line.split()[-1] for line in out.splitlines()[1:4]] == ["0", "0", "2"]


def test_a_failed_run_is_reported_and_tried_again_without_its_folder(
    experiments: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", "lidc-votes-3-idm", "--method", "pocc", "--seeds", 1, *TINY)
    with monkeypatch.context() as patch:
        patch.setattr("credalearn_experiments.runner.train", fail)
        code, out, err = experiments(*run)
    assert (code, out) == (1, "0 of 1 runs are done in store\n")
    assert "failed: lidc-votes-3-idm/pocc/seed-1: the loss became nan" in err
    assert experiments(*run)[0] == 1
    assert "To try them again, delete their folders in store." in err
    shutil.rmtree("store/lidc-votes-3-idm/pocc/seed-1")
    assert experiments(*run)[1] == "1 of 1 runs are done in store\n"


def fail(trainings: Sequence[object], **_: object) -> list[TrainingError]:
    return [TrainingError("the loss became nan") for _ in trainings]


def test_an_interrupted_run_says_how_to_resume(tmp_path: Path) -> None:
    words = run_command(tmp_path, "--method", "pocc", "--seeds", "1", epochs=100_000)
    setting = ALL_SETTINGS["lidc-votes-all-relax"]
    log = Store(tmp_path).log(Run(setting, "pocc", 1))
    process = start(words)
    try:
        wait_until(lambda: log.exists() or process.poll() is not None)
        process.send_signal(2)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert err.endswith("stopped; the same command resumes the rest\n")
    assert "Traceback" not in err
    assert log.exists()
