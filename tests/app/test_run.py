"""The noun Run: loaded once, checked by digests, replaced whole or not at all."""

import json
import shutil
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import credalearn as cl
from credalearn._files import FolderLock
from credalearn.app import staging
from credalearn.app.facts import RunFacts
from credalearn.app.run_files import MADE_FROM, parse_json, to_json
from credalearn.app.staging import check_place, sibling, staged
from fake_run import add_rule, add_sets, fake_run, with_facts
from small_run import make_run
from team_files import snapshot


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> cl.Run:
    return fake_run(tmp_path_factory.mktemp("made") / "run", num_items=200)


@pytest.fixture
def run(made: cl.Run, tmp_path: Path) -> cl.Run:
    return cl.Run.load(shutil.copytree(made.path, tmp_path / "run"))


def test_facts_survive_writing_and_reading(run: cl.Run) -> None:
    again = parse_json(to_json(asdict(run.facts)).encode(), RunFacts, Path("run.json"))
    assert again == run.facts
    sizes = ", ".join(f"{number:,} {name}" for name, number in run.facts.splits.items())
    assert repr(run) == f"Run({str(run.path)!r}, {sizes})"
    assert cl.Run.load(run.path).facts == run.facts


def test_a_guarantee_and_sets_belong_to_their_predictions(run: cl.Run) -> None:
    certified = add_sets(add_rule(run, max_error=0.2))
    loaded = cl.Run.load(run.path)
    assert loaded.guarantee == certified.guarantee
    assert isinstance(loaded.guarantee, cl.Guarantee)
    assert loaded.sets == certified.sets
    kept = {name: (run.path / name).read_bytes() for name in ("guarantee.json", "sets.json")}
    other = with_facts(run, predictions=run.predictions.reverse())
    for name, content in kept.items():
        (run.path / name).write_bytes(content)
        with pytest.raises(cl.CredalError, match=rf"{name} does not belong to this run.*certify"):
            cl.Run.load(other.path)
        (run.path / name).unlink()


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("guarantee", "threshold", 0.9), ("sets", "radius", 0.001), ("run", "truth", "gold")],
)
def test_rejects_files_edited_by_hand(run: cl.Run, name: str, field: str, value: Any) -> None:
    add_sets(add_rule(run, max_error=0.2))
    path = run.path / f"{name}.json"
    content = json.loads(path.read_text())
    assert content[field] != value
    path.write_text(json.dumps(content | {field: value}))
    with pytest.raises(cl.CredalError, match=rf"{name}.json was changed after it was written.* To"):
        cl.Run.load(run.path)


@pytest.mark.parametrize("name", ["annotations", "items", "predictions"])
def test_a_changed_table_is_refused_by_name(run: cl.Run, name: str) -> None:
    path = run.path / f"{name}.parquet"
    pl.read_parquet(path).head(5).write_parquet(path)
    with pytest.raises(cl.CredalError, match=rf"{name}.parquet does not belong .* train again"):
        cl.Run.load(run.path)
    path.unlink()
    with pytest.raises(cl.CredalError, match=rf"{name}.parquet cannot be read: No such file"):
        cl.Run.load(run.path)


def test_the_model_of_another_run_is_refused(tmp_path: Path) -> None:
    run, other = make_run(tmp_path / "a"), make_run(tmp_path / "b", num_items=80)
    assert run.load_model().classes_.tolist() == list(run.classes)
    shutil.copytree(other.path / "model", run.path / "model", dirs_exist_ok=True)
    with pytest.raises(cl.CredalError, match=r"a/model does not belong to this run"):
        cl.Run.load(run.path).load_model()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("splits", "train"), "many", r"field splits\[...\]: expected `int`, got `str`"),
        (("annotations", "kind"), "opinions", r"field annotations.kind: invalid enum value"),
        (("sha256",), [], r"field sha256: expected `object`, got `array`"),
    ],
)
def test_rejects_wrong_facts_by_name(
    run: cl.Run, place: tuple[str, ...], value: Any, message: str
) -> None:
    path = run.path / "run.json"
    content = inner = json.loads(path.read_text())
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(cl.CredalError, match=rf"run.json, {message}.* To fix: train again"):
        cl.Run.load(run.path)


def test_a_missing_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cl.CredalError, match=r"no finished run at .*: credalearn train"):
        cl.Run.load(tmp_path / "none")
    with pytest.raises(cl.CredalError, match=r"is not a run: it contains no run\.json\. To fix"):
        cl.Run.load(tmp_path)
    sibling(tmp_path / "none", "partial").mkdir()
    with pytest.raises(cl.CredalError, match=r"run the train command again; it resumes"):
        cl.Run.load(tmp_path / "none")


def test_nothing_is_written_about_a_run_that_was_replaced(run: cl.Run) -> None:
    before = snapshot(run.path)
    old = cl.Run.load(run.path)
    with_facts(run, truth="gold")
    with pytest.raises(cl.CredalError, match=r"been replaced since it was read\. To fix: load the"):
        add_rule(old, max_error=0.2)
    with pytest.raises(cl.CredalError, match="been replaced since it was read"):
        old.load_model()
    assert snapshot(run.path).keys() == before.keys()


def test_a_run_that_is_replaced_while_it_is_read_is_read_again(
    run: cl.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamps = iter([(1,), (2,), (3,), (3,)])
    monkeypatch.setattr("credalearn.app.run_files.stamps_of", lambda _: next(stamps))
    assert cl.Run.load(run.path).facts == run.facts
    numbers = count()
    monkeypatch.setattr("credalearn.app.run_files.stamps_of", lambda _: (next(numbers),))
    with pytest.raises(cl.CredalError, match="is busy: it is being replaced"):
        cl.Run.load(run.path)


def test_a_file_of_a_run_waits_for_the_process_that_changes_it(
    run: cl.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_PATIENCE", 0.0)
    with FolderLock(run.path):
        with pytest.raises(cl.CredalError, match=r"run is busy: another process is writing it"):
            add_rule(run, max_error=0.2)
        assert cl.Run.load(run.path).facts == run.facts  # reading needs no lock
    assert add_rule(run, max_error=0.2).guarantee is not None
    assert not (run.path / ".lock").exists()


# Staging


def put(output: Path, text: str, **options: bool) -> None:
    """A run of two files, made where runs are made."""
    with staged(output, **options) as folder:
        (folder / "model").mkdir()
        (folder / "model" / "w").write_text(text)
        (folder / "run.json").write_text(text)


def fail(output: Path, name: str, error: type[BaseException]) -> None:
    """Write one file, then fail."""
    with staged(output) as folder:
        (folder / name).write_text("half")
        raise error


def test_a_new_run_replaces_an_old_one_and_keeps_other_files(tmp_path: Path) -> None:
    output = tmp_path / "runs" / "a"
    put(output, "one")
    (output / "notes.txt").write_text("mine")
    (output / "report.html").write_text("about one")
    (output / "model" / "old").touch()
    put(output, "two")
    assert snapshot(output.parent).keys() == {
        *("a", "a/run.json", "a/notes.txt", "a/model", "a/model/w")
    }
    assert (output / "model" / "w").read_text() == "two"


def test_runs_are_written_through_linked_folders(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    put(tmp_path / "link", "one")
    put(tmp_path / "link", "two")
    assert (tmp_path / "there" / "run.json").read_text() == "two"
    assert {path.name for path in tmp_path.iterdir()} == {"there", "link"}


def test_a_failure_leaves_the_old_run_and_a_checkpoint_stays(tmp_path: Path) -> None:
    output = tmp_path / "runs" / "a"
    with pytest.raises(ZeroDivisionError):
        fail(output, "items.parquet", ZeroDivisionError)
    assert not output.parent.exists()
    put(output, "one")
    before = snapshot(tmp_path)
    with pytest.raises(ZeroDivisionError):
        fail(output, "run.json", ZeroDivisionError)
    assert snapshot(tmp_path) == before
    with pytest.raises(KeyboardInterrupt):
        fail(output, "resume-1.safetensors", KeyboardInterrupt)
    assert (sibling(output, "partial") / "resume-1.safetensors").exists()
    put(output, "two")
    assert not sibling(output, "partial").exists()
    assert not list(output.glob("resume*"))


@pytest.mark.parametrize("name", ["guarantee", "sets", "requests", "drift"])
def test_a_file_of_another_version_is_named(tmp_path: Path, name: str) -> None:
    run = fake_run(tmp_path / "run")
    content = {MADE_FROM: run.facts.sha256["predictions"], "later": 1}
    (run.path / f"{name}.json").write_text(to_json(content))
    with pytest.raises(cl.CredalError, match=rf"{name}\.json: .* To fix: re(move|store) the file"):
        cl.Run.load(run.path)


def test_one_process_at_a_time_makes_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_PATIENCE", 0.0)
    with staged(tmp_path / "a") as folder:
        with pytest.raises(cl.CredalError, match=r"a is busy: another process .*\. To fix"):
            put(tmp_path / "a", "two")
        (folder / "run.json").touch()
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"run.json"}


def test_a_certified_run_is_replaced_only_on_request(tmp_path: Path) -> None:
    output = tmp_path / "a"
    for name, what in (("guarantee.json", "a guarantee"), ("sets.json", "certified sets")):
        put(output, "one", overwrite=True)
        (output / name).touch()
        with pytest.raises(cl.CredalError, match=rf"contains {what}.* pass overwrite=True"):
            put(output, "two")
        assert (output / "run.json").read_text() == "one"
    put(output, "two", overwrite=True)
    assert not (output / "sets.json").exists()


def test_rejects_unusable_output_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(cl.CredalError, match=r"file is a file, not a folder"):
        check_place(tmp_path / "file")
    with pytest.raises(cl.CredalError, match=r"contains other files, such as 'file'"):
        check_place(tmp_path)
