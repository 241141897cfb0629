"""A hostile folder through every command: nothing runs, nothing leaves it, one message each."""

import io
import os
import pickle
import shutil
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from annotation_exports import EXPORTS
from credalearn.app.run import Run
from fuzzing import RUN_FILES, ChangedRun, read_changed_export
from kills import Server, errors
from small_run import features, make_image_run, make_pictures, make_run, votes
from team_files import Capture, in_process, make_team, snapshot, train_arguments

EVIL = "\x1b]0;x\x07<script>alert(1)</script>=HYPERLINK(1)\u202e../../outside"


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.marker), "w")


@cache
def archive() -> bytes:
    """Half a megabyte that unpacks to 600."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        head = io.BytesIO()
        form = {"descr": "<f8", "fortran_order": False, "shape": (75_000_000, 1)}
        np.lib.format.write_array_header_1_0(head, form)
        file.writestr("features.npy", head.getvalue() + bytes(600_000_000))
    return content.getvalue()


def bombs(folder: Path, marker: Path) -> Iterator[Path]:
    """Files that run code, unpack to gigabytes, never end, or are not what they are called."""
    payload = pickle.dumps(Payload(marker))
    objects = io.BytesIO()
    np.save(objects, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    script = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), script)
    weights = io.BytesIO()
    torch.save(Payload(marker), weights)
    header = b'{"a":{"dtype":"F64","shape":[1099511627776],"data_offsets":[0,8796093022208]}}'
    shape = io.BytesIO()
    form = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 8)}
    np.lib.format.write_array_header_1_0(shape, form)
    contents = {
        "pickle.csv": payload,
        "pickle.parquet": payload,
        "objects.npy": objects.getvalue(),
        "script.pt": script.getvalue(),
        "weights.pt": weights.getvalue(),
        "forged.safetensors": struct.pack("<Q", len(header)) + header,
        "endless.safetensors": struct.pack("<Q", 1 << 62) + b"{}",
        "archive.npz": archive(),
        "shape.npy": shape.getvalue(),
        "deep.json": b"[" * 100_000,
        "postscript.csv": b"%!PS-Adobe-3.0\n(/etc/passwd) run\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        yield folder / name
    os.mkfifo(folder / "pipe.csv")
    yield folder / "pipe.csv"


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.csv").write_text("secret")
    (tmp_path / "inside").mkdir()
    return tmp_path / "inside"


def check(capsys: Capture, inside: Path, *arguments: object, refused: bool = True) -> None:
    """The command says one thing, and what is outside stays as it is."""
    before = snapshot(inside.parent / "outside")
    done = in_process(capsys, *arguments)
    assert done.code == 2 if refused else done.code == 0, f"{arguments}: {done.err}"
    if refused:
        assert done.err.count("\n") == 1, done.err
        assert done.err.startswith("credalearn: "), done.err
    assert (done.out + done.err).replace("\n", "").isprintable()
    assert snapshot(inside.parent / "outside") == before
    assert not (inside / "ran").exists()


def test_every_command_rejects_hostile_files(inside: Path, capsys: Capture) -> None:
    team, run = make_team(inside / "team"), make_run(inside / "run").path
    for path in bombs(inside, inside / "ran"):
        check(capsys, inside, "inspect", path)
        check(capsys, inside, *train_arguments(team, "--features", path))
        check(capsys, inside, *train_arguments(team, "--weights", path))
        check(capsys, inside, "predict", run, path, "-o", inside / "d.csv")
        check(capsys, inside, "defer", run, path, "-o", inside / "t.json")
        check(capsys, inside, "recalibrate", run, path, "--features", path, "-o", inside / "new")
    assert not (inside / "new").exists()


@pytest.mark.parametrize("name", ["model/model.safetensors", "predictions.parquet", "run.json"])
def test_hostile_files_in_a_run_are_refused(name: str, inside: Path, capsys: Capture) -> None:
    run = make_run(inside / "run").path
    whole = (run / name).read_bytes()
    data = inside / "items.csv"
    data.write_text("item,size,weight,seen\na,1,2,3\n")
    for path in bombs(inside, inside / "ran"):
        (run / name).unlink()
        if path.is_file():
            shutil.copy(path, run / name)
        else:
            os.mkfifo(run / name)
        check(capsys, inside, "predict", run, data, "-o", inside / "d.csv")
        if "/" not in name:
            check(capsys, inside, "certify", run)
            check(capsys, inside, "report", run)
        check(capsys, inside, "export", run, "--onnx", inside / "model.onnx")
    (run / name).unlink()
    (run / name).write_bytes(whole)
    check(capsys, inside, "predict", run, data, "-o", inside / "d.csv", refused=False)


def test_links_out_of_a_run_are_not_followed(inside: Path, capsys: Capture) -> None:
    run = make_run(inside / "run", rule=False).path
    secret = inside.parent / "outside" / "secret.csv"
    for name in ("guarantee.json", "report.html", "model/MODEL_CARD.md"):
        (run / name).symlink_to(secret)
    check(capsys, inside, "report", run)
    check(capsys, inside, "export", run, "--onnx", inside / "model.onnx")
    (run / "guarantee.json").unlink()
    (run / "guarantee.json").symlink_to(secret.with_name("new.json"))
    check(capsys, inside, "certify", run, "--max-error", "0.9")


def test_hostile_images_are_refused(inside: Path, capsys: Capture) -> None:
    pictures = inside / "pictures"
    make_pictures(pictures, 40, 8)
    run = make_image_run(inside / "run", pictures, votes(features(40))).path
    bad = inside / "bad"
    bad.mkdir()
    (bad / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    Image.new("1", (12_000, 12_000)).save(bad / "b.png")
    (bad / "c.png").write_bytes(pickle.dumps(Payload(inside / "ran")))
    os.mkfifo(bad / "d.png")
    check(capsys, inside, "predict", run, bad, "-o", inside / "d.csv", "--no-decision")


def test_hostile_names_are_never_interpreted(inside: Path, capsys: Capture) -> None:
    team = make_team(inside / "team")
    said = pl.read_csv(team.votes).with_columns(
        label=pl.col("label").str.replace("owl", EVIL), item=pl.col("item") + EVIL
    )
    said.write_csv(team.votes)
    items = pl.read_csv(team.features).with_columns(item=pl.col("item") + EVIL)
    items.rename({"size": EVIL}).write_csv(team.features)
    arguments = [each for each in train_arguments(team) if each != "size"]
    check(capsys, inside, *arguments, refused=False)
    run = team.run
    check(capsys, inside, "certify", run, "--max-error", "0.9", refused=False)
    check(capsys, inside, "predict", run, team.features, "-o", inside / "d.csv", refused=False)
    defer = ("defer", run, team.features, "-o", inside / "t.json", "--threshold", 0)
    check(capsys, inside, *defer, refused=False)
    check(capsys, inside, "report", run, refused=False)
    assert "<script>alert(1)" not in (run / "report.html").read_text()
    assert Run.load(run).classes[-1] == EVIL or EVIL in Run.load(run).classes


# Damaged files: one line that says what is wrong, or the right result


@pytest.mark.parametrize("name", EXPORTS)
def test_damage_is_refused_in_one_line_and_harmless_changes_count_equally(
    tmp_path: Path, name: str
) -> None:
    for seed in range(60):  # scripts/attack.py takes more
        read_changed_export(name, seed, tmp_path / "export")


@pytest.fixture(scope="module")
def changed_run(tmp_path_factory: pytest.TempPathFactory) -> ChangedRun:
    return ChangedRun(tmp_path_factory.mktemp("changed"))


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_changed_file_is_refused_in_one_line_or_used(changed_run: ChangedRun, name: str) -> None:
    for seed in range(50):  # scripts/attack.py takes more
        changed_run.use_changed(name, seed, command=seed % 2 == 0)


# Full disks and missing permissions


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_can_read_but_not_write_a_run() -> None:
    # A folder that others may enter, unlike tmp_path.
    with tempfile.TemporaryDirectory() as made, Server() as server:
        folder = Path(made) / "work"
        folder.mkdir()
        folder.parent.chmod(0o755)
        run = make_run(folder / "run", rule=False).path
        data = folder / "items.csv"
        data.write_text("item,size,weight,seen\na,1,2,3\n")
        folder.chmod(0o755)
        for path in (*folder.rglob("*"),):
            path.chmod(0o755 if path.is_dir() else 0o644)
        own = folder / "own"
        own.mkdir()
        os.chown(own, 65534, 65534)

        def as_nobody(*arguments: object) -> tuple[int, str]:
            code, _ = server.run(folder, [str(each) for each in arguments], user=65534)
            return code, errors(folder)

        before = snapshot(run)
        code, said = as_nobody("predict", run, data, "-o", own / "d.csv", "--no-decision")
        assert code == 0, said
        for arguments in (
            ("certify", run, "--max-error", "0.9"),
            ("report", run),
            ("predict", run, data, "-o", folder / "d.csv", "--no-decision"),
        ):
            code, said = as_nobody(*arguments)
            assert (code, said.count("\n")) == (2, 1), said
            assert "Permission denied. To fix: get permission to write there" in said
        (run / "predictions.parquet").chmod(0o600)
        code, said = as_nobody("certify", run, "--max-error", "0.9")
        assert "predictions.parquet cannot be read: Permission denied" in said
        (run / "predictions.parquet").chmod(0o644)
        assert snapshot(run) == before


def test_a_clock_that_jumps_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", rule=False)
    for when in (0, 4e9, 1e9):  # 1970, 2096, 2001
        monkeypatch.setattr("time.time", lambda when=when: when)
        for path in run.path.rglob("*"):
            os.utime(path, (when, when))
        loaded = Run.load(run.path)
        loaded.certify(max_error=0.9)
        assert Run.load(run.path).guarantee == loaded.guarantee
