"""Where data lies, what a task is, which sets there are; every message about a missing set."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from credalearn import CredalError
from credalearn.app.nodules import load_nodules
from credalearn_experiments.data import FOREIGN, TASKS, DataFolders, Task, load_foreign, load_task
from credalearn_experiments.data.lidc import lidc
from credalearn_experiments.data.pickled import read_pickled
from credalearn_experiments.data.reading import naming, read_verified
from tiny_data import python2, write, write_tiny_data


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_data(folder, items=20)
    return folder


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_loads_from_tiny_files(name: str, tiny: Path, unverified: None) -> None:
    task = load_task(name, DataFolders([tiny]))
    assert task.name == name
    size = 224 if name in ("micebone", "treeversity") else 32
    shape = {"cifar10h-features": (64,), "lidc": (14,)}.get(name, (3, size, size))
    assert task.train_inputs.shape[1:] == task.test_inputs.shape[1:] == shape
    assert (task.train_soft is None) == (name in ("cifar10", "cifar100"))
    voted = name in ("cifar10h-voted", "cifar10h-features", "cifar10n", "lidc")
    parts = ["train_inputs", "train_y", "train_soft", "test_inputs", "test_y"]
    parts += ["train_counts", "voted_inputs", "voted_counts"]
    few = load_task(name, DataFolders([tiny]), limit=3)
    for part in parts:
        whole, first = getattr(task, part), getattr(few, part)
        assert (whole is None) == (first is None)
        assert (whole is None) <= (part not in parts[:5] or part == "train_soft")
        assert part not in parts[5:] or (whole is not None) == voted
        if whole is not None:
            assert len(first) == 3
            # Of features a smaller batch rounds otherwise.
            torch.testing.assert_close(first, whole[:3])


def test_no_patient_has_nodules_in_training_and_test(tmp_path: Path) -> None:
    nodules = load_nodules()
    task = load_task("lidc", DataFolders([tmp_path]))  # the table is in the package
    assert task.voted_inputs is not None
    rows = nodules.features.astype(np.float32).tolist()
    whose = {tuple(row): who for row, who in zip(rows, nodules.patients, strict=True)}
    learned, held_out = (
        {whose[tuple(row)] for row in part.tolist()}
        for part in (task.train_inputs, task.voted_inputs)
    )
    assert not learned & held_out
    assert learned | held_out == set(nodules.patients)
    assert len(task.train_inputs) + len(task.voted_inputs) == len(nodules.votes)
    clear = np.isin(nodules.patients, [*held_out]) & nodules.has_majority
    assert len(task.test_inputs) == clear.sum()
    assert task.test_y.tolist() == nodules.majority[clear].tolist()


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("size", [32, 40])
def test_every_foreign_set_loads_from_tiny_files(name: str, size: int, tiny: Path) -> None:
    images = load_foreign(name, DataFolders([tiny]), size=size)
    assert images.shape == (20, 3, size, size)
    assert images.dtype == torch.uint8
    assert images.is_contiguous()
    assert images.float().std() > 10
    assert torch.equal(load_foreign(name, DataFolders([tiny]), size=size, limit=4), images[:4])


@pytest.mark.parametrize(
    ("name", "file", "remedy"),
    [
        ("cifar10", "cifar-10-batches-py/data_batch_1 or cifar-10-batches-bin/.*", "cifar-10-pyth"),
        ("cifar100", "cifar-100-python/train or cifar-100-binary/train.bin", "cifar-100-binary.t"),
        ("cifar10h", "cifar10h/cifar10h-counts.npy or .*-probs.npy", "jcpeterson/cifar-10h"),
        ("cifar10h-voted", "cifar10h/cifar10h-counts.npy", "jcpeterson/cifar-10h"),
        ("cifar10h-features", "cifar10h/cifar10h-counts.npy", "jcpeterson/cifar-10h"),
        ("cifar10n", "cifar10h/cifar10h-counts.npy", "jcpeterson/cifar-10h"),
        ("micebone", "MiceBone/annotations.json", "MiceBone.zip of the DCIC"),
        ("treeversity", "Treeversity#1/annotations.json", "Treeversity#1.zip of the DCIC"),
        ("svhn", "svhn/test_32x32.mat or test_32x32.mat", "ufldl.stanford.edu"),
        ("places365", "places365/val_256 or places365", "data.csail.mit.edu"),
        ("fashion-mnist", "fashion-mnist/t10k-images-idx3-ubyte.gz or .*ubyte", "zalando"),
        ("imagenet", "imagenet/val", "image-net.org"),
        ("tiny-imagenet", "tiny-imagenet-200/val/images or ood/.*png", "cs231n.stanford.edu"),
    ],
)
def test_a_missing_set_says_which_file_and_how_to_get_it(
    name: str, file: str, remedy: str, tmp_path: Path
) -> None:
    message = rf"is missing: no {file} in {tmp_path}\. To fix: .*{remedy}"
    load = partial(load_task, name) if name in TASKS else partial(load_foreign, name, size=32)
    with pytest.raises(CredalError, match=message):
        load(DataFolders([tmp_path]))


def test_unknown_names_and_limits_are_refused(tmp_path: Path) -> None:
    folders = DataFolders([tmp_path])
    with pytest.raises(CredalError, match=r"a task must be one of 'cifar10', .*; got 'mnist'"):
        load_task("mnist", folders)
    with pytest.raises(CredalError, match=r"a foreign set must be one of 'svhn', .*'cifar10'"):
        load_foreign("cifar10", folders, size=32)
    for wrong in (0, "3"):
        number = f"must be a whole number of 1 or more; got {wrong!r}. To fix"
        with pytest.raises(CredalError, match=f"limit {number}"):
            load_task("cifar10", folders, limit=wrong)  # type: ignore[arg-type]
        with pytest.raises(CredalError, match=f"size {number}"):
            load_foreign("svhn", folders, size=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("part", "words"), [("train", "training"), ("test", "test")])
def test_a_task_that_ignores_the_limit_is_refused(
    part: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(folders: DataFolders, limit: int | None) -> Task:
        whole, few = lidc(folders), lidc(folders, limit)
        names = [name for name in Task.__annotations__ if name.startswith(part)]
        return replace(few, **{name: getattr(whole, name) for name in names})

    monkeypatch.setitem(TASKS, "mine", load)
    assert len(load_task("mine", DataFolders([])).test_y) > 50
    message = (
        rf"'mine' must have 50 {words} items at most, .* To fix: let its loader take \[:limit\]"
    )
    with pytest.raises(CredalError, match=message):
        load_task("mine", DataFolders([]), limit=50)


def test_folders_come_from_the_option_or_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write(first / "a.txt", b"")
    write(second / "a.txt", b"")
    write(second / "b.txt", b"")
    monkeypatch.setenv("CREDALEARN_DATA", f"{first}{os.pathsep}{second}")
    folders = DataFolders.named()
    assert folders.folders == (first, second)
    assert folders.find("a.txt", what="a", get="") == first / "a.txt"
    assert folders.find("c.txt", "b.txt", what="b", get="") == second / "b.txt"
    assert folders.look("c.txt") is None
    assert DataFolders.named(second).folders == (second,)
    with pytest.raises(CredalError, match=f"no c.txt or d in {first}, {second}. To fix: make it"):
        folders.find("c.txt", "d", what="a letter", get="make it")
    with pytest.raises(CredalError, match=r"a data folder must exist; .*third' does not. To fix"):
        DataFolders.named(tmp_path / "third")
    monkeypatch.delenv("CREDALEARN_DATA")
    nowhere = DataFolders.named()  # some data come with the package
    assert len(load_task("lidc", nowhere).train_inputs) > 500
    message = r"CIFAR-10H cannot be read: no data folder is named. To fix: give --data FOLDER"
    with pytest.raises(CredalError, match=message):
        load_task("cifar10h", nowhere)


def changed(**parts: Any) -> dict[str, Any]:
    images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    y = torch.tensor([0, 1])
    whole = {"name": "t", "classes": ("a", "b"), "train_inputs": images, "train_y": y}
    return whole | {"train_soft": None, "test_inputs": images, "test_y": y} | parts


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train_inputs": torch.zeros(2, 3, 8, 8)}, r"train_inputs must be uint8 .* torch.float32"),
        ({"test_inputs": torch.zeros(0, 3, 8, 8).byte()}, r"test_inputs must .* \(0, 3, 8, 8\)"),
        ({"train_y": torch.tensor([0])}, r"train_y must be int64 .* shape \(2,\); t has .*\(1,\)"),
        ({"test_y": torch.tensor([0, 2])}, r"test_y must hold classes 0 to 1; t has 2 at item 1"),
        ({"test_inputs": torch.zeros(2, 3, 8, 9).byte()}, r"one size; t has \(8, 8\) and \(8, 9\)"),
        ({"train_soft": torch.ones(2, 3).double()}, r"train_soft must be float64 of .*\(2, 2\)"),
        (
            {"train_y": torch.zeros(2)},
            r"t has torch.float32 of .* To fix: give \.long\(\) of one c",
        ),
        (
            {"train_soft": torch.ones(2, 2)},
            r"t has torch.float32 of .* To fix: give \.double\(\) of",
        ),
        ({"train_soft": torch.ones(2, 2).double()}, r"sum to 1; t has \[1.0, 1.0\] at item 0"),
        ({"test_inputs": torch.zeros(2, 5)}, r"one size; t has \(8, 8\) and \(5,\)"),
        ({"train_counts": torch.ones(2, 2)}, r"must be int64 of .* To fix: give \.long\(\) of one"),
        ({"train_counts": torch.tensor([[1, 0], [0, 0]])}, r"vote or more .* \[0, 0\] at item 1"),
        ({"train_counts": torch.tensor([[2, -1], [1, 0]])}, r"no negative .* \[2, -1\] at item 0"),
        ({"voted_counts": torch.ones(2, 2).long()}, r"together; t has voted_counts alone"),
        ({"voted_inputs": torch.zeros(2, 3, 8, 8).byte()}, r"t has voted_inputs alone"),
        (
            {"voted_inputs": torch.zeros(1, 3, 8, 8).byte(), "voted_counts": torch.ones(2, 2)},
            r"voted_counts must be int64 of shape \(1, 2\)",
        ),
        (
            {"voted_inputs": torch.zeros(1, 3, 8, 9).byte(), "voted_counts": torch.ones(1, 2)},
            r"training and voted inputs must have one size; t has \(8, 8\) and \(8, 9\)",
        ),
    ],
)
def test_a_task_that_does_not_fit_together_is_refused(parts: dict[str, Any], message: str) -> None:
    assert Task(**changed()).num_classes == 2
    with pytest.raises(CredalError, match=message):
        Task(**changed(**parts))


def test_rows_of_features_are_a_task_too() -> None:
    rows = torch.zeros(2, 5)
    counts = torch.tensor([[3, 0], [1, 1]])
    task = Task(
        **changed(
            train_inputs=rows,
            test_inputs=rows,
            voted_inputs=rows,
            train_counts=counts,
            voted_counts=counts,
        )
    )
    assert task.voted_inputs is rows
    for wrong in (rows.double(), torch.zeros(2, 0), torch.zeros(2, 5, 1)):
        with pytest.raises(CredalError, match=r"or float32 of shape \(items, features\), with an"):
            Task(**changed(train_inputs=wrong, test_inputs=wrong))


@pytest.mark.parametrize("part", ["train", "test", "voted"])
@pytest.mark.parametrize("gap", [float("nan"), float("inf")])
def test_a_gap_in_features_is_named(part: str, gap: float) -> None:
    rows, counts = torch.zeros(2, 5), torch.tensor([[3, 0], [1, 1]])
    gappy = rows.index_put((torch.tensor([1]), torch.tensor([3])), torch.tensor(gap))
    names = ("train", "test", "voted")
    parts = {f"{name}_inputs": gappy if name == part else rows for name in names}
    said = rf"{part}_inputs must hold finite numbers; t has {gap} at item 1, column 3\. To fix: l"
    with pytest.raises(CredalError, match=said):
        Task(**changed(**parts, voted_counts=counts))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "cifar-100-binary" / "test.bin").mkdir(parents=True)
    with pytest.raises(CredalError, match=r"test.bin could not be read as a file \(IsADirectory"):
        read_verified(tmp_path / "cifar-100-binary" / "test.bin", get="do")
    with (
        pytest.raises(CredalError, match=r"x could not be read as y \(why\). To fix: z."),
        naming(Path("x"), "y", get="z"),
    ):
        raise CredalError("why")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_serialized_files_are_read_as_python_reads_them(protocol: int) -> None:
    table: dict[Any, Any] = {
        b"data": np.arange(600, dtype=np.uint8).reshape(6, 100),
        "names": ["a", b"b", None, True],
        3: [(1,), (1, 2), (1, 2, 3), (), (1, 2, 3, 4), 70_000, -1, 2**40, 0.5],
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big-endian": np.arange(3, dtype=">i4"),
    }
    read = read_pickled(pickle.dumps(table, protocol=protocol))
    assert read.keys() == table.keys()
    for key, value in table.items():
        np.testing.assert_equal(read[key], value)
        assert not isinstance(value, np.ndarray) or read[key].dtype == value.dtype


def test_python_2s_files_are_read_as_python_reads_them() -> None:
    table = {b"data": np.arange(300, dtype=np.uint8).reshape(3, 100), b"labels": [1, 300, -1]}
    content = python2(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numpy.core.multiarray", import_module("numpy._core.multiarray"))
        expected = pickle.loads(content, encoding="bytes")
    assert expected.keys() == read_pickled(content).keys() == table.keys()
    for key in table:
        np.testing.assert_equal(read_pickled(content)[key], expected[key])


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("harmed"),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([Hostile()]), "names .*"),
        (pickle.dumps(np.array([{}], dtype=object), protocol=2), "array of 'O8', not of numbers"),
        (b"cnumpy\nndarray\n)R.", "calls .'numpy', 'ndarray'."),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00rottR.", "encodes bytes by 'rot'"),
        (b"](K\x01K\x02tb.", "sets the state of a list"),
        (b"K\x01K\x02a.", "adds items to a int"),
        (b"\x8f.", "has the instruction EMPTY_SET"),
        (b"(ios\nsystem\n.", "has the instruction INST"),
    ],
)
def test_a_hostile_file_is_refused_and_does_nothing(
    content: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CredalError, match=rf"numpy arrays only; this one .*{message} .*hostile"):
        read_pickled(content)
    assert not (tmp_path / "harmed").exists()


def test_files_of_ones_own_are_read_with_a_warning_in_another_process(tiny: Path) -> None:
    code = (
        "from credalearn_experiments.data import *; "
        "print(len(load_task('cifar10h', DataFolders.named()).train_y))"
    )
    environment = os.environ | {"CREDALEARN_DATA": str(tiny), "CREDALEARN_UNVERIFIED": "1"}
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "20\n", run.stderr
    lines = run.stderr.splitlines()
    assert len(lines) == 3  # the votes and two batches
    assert all("is not the official file" in line for line in lines)
    environment["CREDALEARN_UNVERIFIED"] = "0"
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "CredalError" in run.stderr
    assert "cifar10h-counts.npy is damaged or not the official file; its sha256 is " in run.stderr
