"""CIFAR-10, CIFAR-100, CIFAR-10H and CIFAR-10N: splits, damage, and the real files."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from credalearn import CredalError
from credalearn_experiments.data import DataFolders, load_task
from credalearn_experiments.data.cifar import CIFAR10_BATCHES, cifar10n_votes, read_cifar10
from credalearn_experiments.data.folders import DIGESTS
from present import present
from tiny_data import real_data, write_cifar100, write_tiny_data

ITEMS = 20


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")
    write_tiny_data(tmp_path, items=ITEMS)
    return tmp_path


def test_the_pool_is_split_by_one_permutation(tiny: Path) -> None:
    folders = DataFolders((tiny,))
    task = load_task("cifar10", folders)
    parts = [read_cifar10(name, folders) for name in CIFAR10_BATCHES]
    images, y = (torch.cat(each) for each in zip(*parts, strict=True))
    order = np.random.default_rng(0).permutation(6 * ITEMS)
    assert torch.equal(task.train_inputs, images[order[: 6 * ITEMS * 4 // 5]])
    assert torch.equal(task.test_y, y[order[6 * ITEMS * 4 // 5 :]])


def test_cifar100_has_fine_labels(tiny: Path) -> None:
    pixels = np.arange(3072, dtype=np.uint8)[None].repeat(5, 0)
    for name, y in (("train", [7, 99, 1, 2, 3]), ("test", [0, 0, 0, 0, 0])):
        write_cifar100(tiny, name, pixels, np.array(y))
    task = load_task("cifar100", DataFolders((tiny,)))
    assert sorted([*task.train_y.tolist(), *task.test_y.tolist()]) == [0] * 5 + [1, 2, 3, 7, 99]
    assert task.num_classes == 100
    assert torch.equal(task.train_inputs[0].flatten(), torch.from_numpy(pixels[0]))


def test_cifar10h_trains_on_shares_of_votes(tiny: Path) -> None:
    counts = np.ones((ITEMS, 10), int)
    counts[0] = [0, 5, 0, 5, 0, 0, 0, 0, 0, 0]  # a tie goes to the lowest class
    np.save(tiny / "cifar10h/cifar10h-counts.npy", counts)
    folders = DataFolders((tiny,))
    task = load_task("cifar10h", folders)
    assert present(task.train_soft)[0].tolist() == [0, 0.5, 0, 0.5, 0, 0, 0, 0, 0, 0]
    assert task.train_y[0] == 1
    assert torch.equal(task.train_inputs, read_cifar10("test_batch", folders)[0])
    assert torch.equal(task.test_y, read_cifar10("data_batch_5", folders)[1])
    np.save(tiny / "cifar10h/cifar10h-counts.npy", counts / 2)
    with pytest.raises(CredalError, match="train_counts must be whole numbers"):
        load_task("cifar10h-voted", folders)


@pytest.mark.parametrize(
    ("name", "train", "held_out"),
    [
        ("cifar10h-voted", ITEMS * 4 // 5, ITEMS // 5),
        ("cifar10h-features", ITEMS * 3 // 5, ITEMS * 2 // 5),
        ("cifar10n", ITEMS, ITEMS),
        ("cifar10n-voted", ITEMS, ITEMS),
    ],
)
def test_tasks_with_votes_keep_a_held_out_part(
    name: str, train: int, held_out: int, tiny: Path
) -> None:
    task = load_task(name, DataFolders((tiny,)))
    assert task.train_counts is not None
    assert task.voted_counts is not None
    assert (len(task.train_counts), len(task.voted_counts)) == (train, held_out)
    assert torch.equal(task.train_y, task.train_counts.argmax(1))
    assert set(task.train_counts.sum(1).tolist()) == {3 if "cifar10n" in name else 51}
    assert set(task.voted_counts.sum(1).tolist()) == {3 if name == "cifar10n-voted" else 51}
    if name == "cifar10n-voted":
        assert torch.equal(task.voted_counts, cifar10n_votes(DataFolders((tiny,)))[-ITEMS:])
        torch.testing.assert_close(task.voted_inputs, task.test_inputs)
    elif name != "cifar10n":  # together they are CIFAR-10H, in the order of the permutation
        order = np.random.default_rng(0).permutation(ITEMS)
        both = torch.cat([task.train_counts, task.voted_counts])
        counts = np.load(tiny / "cifar10h/cifar10h-counts.npy")
        assert torch.equal(both, torch.from_numpy(counts[order]))
    if name == "cifar10h-features":
        assert task.train_inputs.shape == (train, 64)
        torch.testing.assert_close(task.voted_inputs, task.test_inputs)


def test_files_must_have_their_digests(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED")
    folders = DataFolders((tiny,))
    message = r"test_batch.bin is damaged or not the official file; its sha1 is .* CREDALEARN_UNV"
    with pytest.raises(CredalError, match=message):
        read_cifar10("test_batch", folders)
    content = (tiny / "cifar-10-batches-bin/test_batch.bin").read_bytes()
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    monkeypatch.setitem(DIGESTS, "cifar-10-batches-bin/test_batch.bin", f"sha1:{digest}")
    assert len(read_cifar10("test_batch", folders)[1]) == ITEMS
    with pytest.raises(CredalError, match=r"its size in bytes is \d+, not 153700000"):
        load_task("cifar100", folders)
    with pytest.raises(CredalError, match=r"npz is damaged .* sha256 of its labels is .* not e14c"):
        cifar10n_votes(folders)


def test_the_real_cifar10h_is_as_published() -> None:
    folders = real_data("cifar10h/cifar10h-counts.npy", "cifar-10-batches-bin/test_batch.bin")
    task = load_task("cifar10h", folders)
    votes = present(task.train_counts).sum(1).double()
    assert (int(votes.min()), int(votes.max())) == (47, 63)
    assert votes.mean().item() == pytest.approx(51.1, abs=0.05)
    truth = read_cifar10("test_batch", folders)[1]
    assert (task.train_y == truth).double().mean().item() == pytest.approx(0.9921)
    assert present(task.train_soft).max(1).values.mean().item() == pytest.approx(0.9544, abs=5e-5)


def test_the_real_cifar10n_agrees_with_the_real_cifar10() -> None:
    files = [f"cifar-10-batches-bin/{name}.bin" for name in CIFAR10_BATCHES]
    folders = real_data("cifar10n/cifar10n.npz", *files)
    y = torch.cat([read_cifar10(name, folders)[1] for name in CIFAR10_BATCHES[:5]])
    assert y.bincount().tolist() == [5000] * 10
    votes = cifar10n_votes(folders)
    assert (votes.sum(1) == 3).all()
    assert (votes.argmax(1) == y).double().mean() > 0.85  # three people, mostly right
