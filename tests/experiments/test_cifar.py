"""CIFAR-10, CIFAR-100, CIFAR-10H and CIFAR-10N: layouts, splits, damage, and the real files."""

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from credalearn import CredalError
from credalearn_experiments.data import DataFolders, load_task
from credalearn_experiments.data.cifar_files import CIFAR10, CIFAR100, read_batch
from credalearn_experiments.data.cifar_people import (
    cifar10h_counts,
    cifar10h_shares,
    cifar10n_votes,
)
from credalearn_experiments.data.files import DIGESTS
from tiny_data import CIFAR10_FILES, python2, write, write_cifar10h, write_tiny_data

ITEMS = 20


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")
    write_tiny_data(tmp_path, items=ITEMS)
    return tmp_path


@pytest.mark.parametrize("layout", [CIFAR10, CIFAR100], ids=lambda layout: layout.name)
def test_both_layouts_give_the_same_task(layout: object, tiny: Path) -> None:
    assert layout in (CIFAR10, CIFAR100)
    known = CIFAR10 if layout == CIFAR10 else CIFAR100
    name = known.name.lower().replace("-", "")
    (tiny / known.binary).rename(tiny / "away")
    one = load_task(name, DataFolders((tiny,)))
    (tiny / known.python).rename(tiny / "elsewhere")
    (tiny / "away").rename(tiny / known.binary)
    two = load_task(name, DataFolders((tiny,)))
    for part in ("train_inputs", "train_y", "test_inputs", "test_y"):
        assert torch.equal(getattr(one, part), getattr(two, part))
    assert one.classes == two.classes
    (tiny / known.binary / "fine_label_names.txt").unlink(missing_ok=True)
    unnamed = load_task(name, DataFolders((tiny,))).classes[7]
    assert unnamed == ("class 7" if name == "cifar100" else "horse")


def test_the_pool_is_split_by_one_permutation(tiny: Path) -> None:
    folders = DataFolders((tiny,))
    task = load_task("cifar10", folders)
    parts = [read_batch(CIFAR10, name, folders) for name in CIFAR10_FILES]
    images, y = (torch.cat(each) for each in zip(*parts, strict=True))
    order = np.random.default_rng(0).permutation(6 * ITEMS)
    assert torch.equal(task.train_inputs, images[order[: 6 * ITEMS * 4 // 5]])
    assert torch.equal(task.test_y, y[order[6 * ITEMS * 4 // 5 :]])
    few = load_task("cifar10", folders, limit=3)
    assert torch.equal(few.train_inputs, task.train_inputs[:3])


def test_cifar10h_trains_on_shares_of_votes(tiny: Path) -> None:
    counts = np.ones((ITEMS, 10), int)
    counts[0] = [0, 5, 0, 5, 0, 0, 0, 0, 0, 0]  # a tie goes to the lowest class
    write_cifar10h(tiny, counts)
    folders = DataFolders((tiny,))
    task = load_task("cifar10h", folders)
    assert task.train_soft is not None
    assert task.train_soft[0].tolist() == [0, 0.5, 0, 0.5, 0, 0, 0, 0, 0, 0]
    assert task.train_y[0] == 1
    assert torch.equal(task.train_inputs, read_batch(CIFAR10, "test_batch", folders)[0])
    assert torch.equal(task.test_y, read_batch(CIFAR10, "data_batch_5", folders)[1])
    (tiny / "cifar10h/cifar10h-counts.npy").unlink()  # probabilities do as well here
    torch.testing.assert_close(cifar10h_shares(folders), task.train_soft)


@pytest.mark.parametrize(
    ("name", "train", "held_out"),
    [
        ("cifar10h-voted", ITEMS * 4 // 5, ITEMS // 5),
        ("cifar10h-features", ITEMS * 3 // 5, ITEMS * 2 // 5),
        ("cifar10n", ITEMS, ITEMS),
    ],
)
def test_tasks_with_votes_hold_some_items_back(
    name: str, train: int, held_out: int, tiny: Path
) -> None:
    folders = DataFolders((tiny,))
    task = load_task(name, folders)
    assert task.train_counts is not None
    assert task.voted_counts is not None
    assert task.voted_inputs is not None
    assert (len(task.train_counts), len(task.voted_counts)) == (train, held_out)
    assert torch.equal(task.train_y, task.train_counts.argmax(1))
    people = 3 if name == "cifar10n" else 51
    assert set(task.train_counts.sum(1).tolist()) == {people}
    assert set(task.voted_counts.sum(1).tolist()) == {51}
    if name != "cifar10n":  # together they are CIFAR-10H, in the order of the permutation
        order = np.random.default_rng(0).permutation(ITEMS)
        both = torch.cat([task.train_counts, task.voted_counts])
        assert torch.equal(both, cifar10h_counts(folders)[order])
    if name == "cifar10h-features":
        assert task.train_inputs.shape == (train, 64)
        assert torch.equal(task.voted_inputs, task.test_inputs)
    (tiny / "cifar10h/cifar10h-counts.npy").unlink()
    with pytest.raises(CredalError, match=r"CIFAR-10H is missing: no cifar10h/cifar10h-counts"):
        load_task(name, folders)


def test_files_must_have_their_digests(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED")
    folders = DataFolders((tiny,))
    path = tiny / "cifar-10-batches-py" / "test_batch"
    message = r"test_batch is damaged or not the official file; its md5 is .* CREDALEARN_UNVERIFI"
    with pytest.raises(CredalError, match=message):
        read_batch(CIFAR10, "test_batch", folders)
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    monkeypatch.setitem(DIGESTS, "cifar-10-batches-py/test_batch", f"md5:{digest}")
    assert len(read_batch(CIFAR10, "test_batch", folders)[1]) == ITEMS
    (tiny / "cifar-100-python").rename(tiny / "away")
    with pytest.raises(CredalError, match=r"its size in bytes is \d+, not 30740000"):
        read_batch(CIFAR100, "test", folders)
    with pytest.raises(CredalError, match=r"npz is damaged .* sha256 of its labels is .* not e14c"):
        cifar10n_votes(folders)


class Hostile:
    """Would make a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.mkdir, ("hostile",)


PIXELS = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "EOFError"),
        (pickle.dumps({"data": PIXELS}), "KeyError: 'labels'"),
        (pickle.dumps({"data": PIXELS, "labels": [1]}), "1 labels, uint8 pixels of"),
        (pickle.dumps({"data": PIXELS, "labels": [1, 10]}), "labels must be 0 to 9"),
        (pickle.dumps(Hostile()), "it names posix.mkdir, which may run code"),
    ],
)
def test_a_damaged_or_hostile_batch_is_refused(
    content: bytes, message: str, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny)
    write(tiny / "cifar-10-batches-py" / "test_batch", content)
    with pytest.raises(CredalError, match=rf"test_batch could not be read .*{message}.* unpack"):
        read_batch(CIFAR10, "test_batch", DataFolders((tiny,)))
    assert not Path("hostile").exists()


@pytest.mark.parametrize("protocol", range(6))
def test_every_version_of_python_files_is_read(protocol: int, tiny: Path) -> None:
    """Files of Python 2 are what the official ones are; ``tiny`` writes them."""
    folders = DataFolders((tiny,))
    images, y = read_batch(CIFAR10, "test_batch", folders)
    table = {b"data": images.flatten(1).numpy(), b"labels": y.tolist()}
    assert (tiny / "cifar-10-batches-py/test_batch").read_bytes().startswith(python2({})[:2])
    again = {key.decode(): value for key, value in table.items()}
    write(tiny / "cifar-10-batches-py/test_batch", pickle.dumps(again, protocol=protocol))
    found = read_batch(CIFAR10, "test_batch", folders)
    assert torch.equal(found[0], images)
    assert torch.equal(found[1], y)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.ones((ITEMS, 9)), r"it has float64 of shape \(20, 9\)"),
        (np.array([[1] * 9 + [-1]] * ITEMS), r"row 0 is \[1, "),
        (np.zeros((ITEMS, 10)), r"row 0 is \[0"),
        (np.full((ITEMS, 10), 0.5), "must be whole numbers"),
        (np.ones((ITEMS - 1, 10), int), "has 19 rows for 20 images"),
    ],
)
def test_rejects_wrong_votes(counts: np.ndarray, message: str, tiny: Path) -> None:
    np.save(tiny / "cifar10h/cifar10h-counts.npy", counts)
    with pytest.raises(CredalError, match=message):
        load_task("cifar10h-voted", DataFolders((tiny,)))


def real(*names: str) -> DataFolders:
    """The user's data folders, or a skipped test that says what is missing."""
    try:
        folders = DataFolders.named()
        for name in names:
            folders.find(name, what="a real file for this test", get="see the message")
    except CredalError as error:
        pytest.skip(str(error))
    return folders


def test_the_real_cifar10h_is_as_published() -> None:
    folders = real("cifar10h/cifar10h-counts.npy", "cifar-10-batches-bin/test_batch.bin")
    votes = cifar10h_counts(folders).sum(1).double()
    assert (int(votes.min()), int(votes.max())) == (47, 63)
    assert votes.mean().item() == pytest.approx(51.1, abs=0.05)
    task = load_task("cifar10h", folders)
    assert task.train_soft is not None
    truth = read_batch(CIFAR10, "test_batch", folders)[1]
    assert (task.train_y == truth).double().mean().item() == pytest.approx(0.9921)
    assert task.train_soft.max(1).values.mean().item() == pytest.approx(0.9544, abs=5e-5)


def test_the_real_cifar10n_agrees_with_the_real_cifar10() -> None:
    files = [f"cifar-10-batches-bin/{name}.bin" for name in CIFAR10_FILES]
    folders = real("cifar10n/cifar10n.npz", *files)
    y = torch.cat([read_batch(CIFAR10, name, folders)[1] for name in CIFAR10_FILES[:5]])
    assert y.bincount().tolist() == [5000] * 10
    votes = cifar10n_votes(folders)
    assert votes.shape == (50_000, 10)
    assert (votes.sum(1) == 3).all()
    assert (votes.argmax(1) == y).double().mean() > 0.85  # three people, mostly right
