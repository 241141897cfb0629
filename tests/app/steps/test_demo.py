"""The command and its demonstration, as a user runs them."""

import csv
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from credalearn.demo import run, way

import credalearn as cl
from credalearn.app.nodules import load_nodules
from credalearn.methods import METHODS
from credalearn_experiments.drawing import draw_triangle
from credalearn_experiments.nodules.compare import BASIC, compare
from team_files import command, in_process

Capture = pytest.CaptureFixture[str]


def test_the_demo_from_start_to_end(tmp_path: Path) -> None:
    started = time.monotonic()
    done = command("demo", cwd=tmp_path)
    assert done.code == 0, done.err
    assert time.monotonic() - started < 60
    assert not done.err
    steps = re.findall(r"^\$ credalearn (\w+)", done.out, re.MULTILINE)
    assert steps == ["inspect", "train", "certify", "predict", "report"]
    for shown in (
        "1,395 nodules of 695 patients",
        "20.1 % are unanimous and 16.1 % tie",
        "no patient in two of them",
        "With 95 % confidence, at most 20 % of the items it predicts are wrong",
        "test items it predicts",
        "the shares of a new item's votes lie in its widened set in 90 % of cases or more",
        "is usual of independent items.\nThe widened sets hold ",
        "report.html: open it in a browser",
    ):
        assert shown in done.out
    assert not re.search(r"\d%", done.out)
    output = tmp_path / "demo-output"
    assert {path.name for path in output.iterdir()} == {
        *("votes.csv", "features.csv", "run", "decisions.csv")
    }
    rows = list(csv.DictReader((output / "decisions.csv").read_text().splitlines()))
    assert len(rows) == 1395
    deferred = sum(row["decision"] == "defer" for row in rows)
    assert 0 < deferred < 1395
    assert f"{deferred:,} of them deferred" in done.out
    assert (output / "run" / "report.html").stat().st_size < 3_000_000


def test_the_demos_commands_are_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Copied from the screen, a command gives what the demo gave."""
    monkeypatch.chdir(tmp_path)
    done = in_process(capsys, "demo", "--epochs", "2", "-o", "d")
    assert done.code == 0, done.err
    shown = re.findall(r"^\$ credalearn (.*)", done.out, re.MULTILINE)
    predict = next(line for line in shown if line.startswith("predict"))
    before = (tmp_path / "d" / "decisions.csv").read_bytes()
    (tmp_path / "d" / "decisions.csv").unlink()
    again = command(*predict.split())
    assert again.code == 0, again.err
    assert (tmp_path / "d" / "decisions.csv").read_bytes() == before
    inspect = next(line for line in shown if line.startswith("inspect"))
    assert in_process(capsys, *inspect.split()).out in done.out


def test_a_demo_that_certifies_nothing_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(way, "MAX_ERROR", 0.01)
    way.run_way(tmp_path, epochs=1)
    shown = capsys.readouterr().out
    assert "1 % with 95 % confidence cannot be certified" in shown
    assert f"{tmp_path / 'decisions.csv'} --no-decision\n1,395 nodules\n" in shown
    assert (tmp_path / "run" / "sets.json").exists()
    way.run_way(tmp_path, epochs=1)  # over its own run
    assert capsys.readouterr().out == shown
    assert (tmp_path / "run" / "report.html").exists()


def test_the_comparison_from_start_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    done = in_process(capsys, "demo", "--compare", "basic", "--splits", "3", "--epochs", "10")
    assert done.code == 0, done.err
    assert not done.err
    for shown in (
        "1,395 nodules of 695 patients",
        "3/3",
        *(each.name for each in BASIC),
        "ECE",
        "50 %",
    ):
        assert shown in done.out
    assert "…" not in done.out  # nothing of the table is cut at 80 columns
    output = tmp_path / "demo-output"
    assert {path.name for path in output.iterdir()} == {
        *("model", "predictions.safetensors", "demo.png")
    }
    pred = cl.CredalPredictions.load(output / "predictions.safetensors")
    nodules = load_nodules()
    clf = cl.load(output / "model")
    assert clf.classes_.tolist() == ["benign", "indeterminate", "malignant"]
    probs = clf.predict_credal(nodules.features).probs
    first = (probs - pred.probs[0]).abs().amax(1).min()
    assert first < 1e-6  # the file holds what this model predicts
    assert (output / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_demo_that_is_stopped_leaves_an_earlier_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "compare", stopped)
    figure = tmp_path / "demo.png"
    figure.write_bytes(b"an earlier figure")
    with pytest.raises(KeyboardInterrupt):
        run.run_demo(tmp_path)
    assert figure.read_bytes() == b"an earlier figure"
    assert list(tmp_path.iterdir()) == [figure]


def test_every_method_is_compared_in_one_table_and_one_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    done = in_process(capsys, "demo", "--compare", "all", "--splits", "2", "--epochs", "5")
    assert done.code == 0, done.err
    rows = {line.split()[0]: line.split() for line in done.out.splitlines() if "±" in line}
    assert set(METHODS) <= set(rows)
    assert all(len(rows[method]) == 6 for method in METHODS)  # the name and five figures
    assert "…" not in done.out
    assert (tmp_path / "demo-output" / "demo.png").stat().st_size > 10_000


def test_test_patients_are_never_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    nodules = load_nodules()
    trained: list[np.ndarray] = []
    fit = cl.CredalClassifier.fit

    def watch(self: cl.CredalClassifier, X: np.ndarray, *args: object, **options: object) -> object:
        trained.append(X)
        return fit(self, X, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cl.CredalClassifier, "fit", watch)
    (split,) = compare(nodules, BASIC[:1], num_splits=1, epochs=1, random_state=0)
    rows = {tuple(row) for row in trained[0]}
    in_training = np.array([tuple(row) in rows for row in nodules.features])
    patients = set(nodules.patients[in_training])
    left = ~np.isin(nodules.patients, list(patients)) & nodules.has_majority
    assert left.sum() == len(split.y)
    assert 0.2 < len(split.y) / nodules.has_majority.sum() < 0.4


def test_nodules_and_their_majority() -> None:
    nodules = load_nodules()
    ties = ~nodules.has_majority
    assert ties.sum() == 225
    for votes in nodules.votes[ties][:20]:
        assert (votes == votes.max()).sum() > 1
    assert (nodules.votes[np.arange(1395), nodules.majority] == nodules.votes.max(1)).all()
    assert len(nodules.feature_names) == nodules.features.shape[1]


def test_a_triangle_needs_three_classes() -> None:
    from matplotlib.figure import Figure

    pred = cl.CredalPredictions.from_vertices(torch.tensor([[[0.5, 0.5]]]))
    with pytest.raises(cl.CredalError, match="three classes; these are 2"):
        draw_triangle(Figure().subplots(), pred, classes=["a", "b"])


def test_help_and_version() -> None:
    shown = command("--help")
    assert shown.code == 0
    assert "demo" in shown.out
    assert command("--version").out.strip() == f"credalearn {cl.__version__}"
    unknown = command("predictt")
    assert unknown.code == 2
    assert "No such command" in unknown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--epochs", "0"], "--epochs"),
        (["demo", "--compare", "some"], "--compare"),
        (["demo", "-o", "taken"], "taken/votes.csv cannot be written: .* folder with --output"),
        (["demo", "-o", "/proc/x"], "/proc/x/votes.csv cannot be written: .* with --output"),
        (["demo", "-o", "taken", "--compare", "all"], "taken/demo.png cannot be .* --output"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file where the folder should be")
    done = in_process(capsys, *arguments)
    assert done.code == 2
    assert re.search(message, done.err)
    assert not done.out  # refused before any work
    assert "Traceback" not in done.err
