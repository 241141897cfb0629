"""CIFAR-10, CIFAR-100, CIFAR-10H and CIFAR-10N: layouts, splits, damage, and the real files."""

import hashlib
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from credalearn import CredalError
from credalearn.nets.cifar_teachers import ResNet20
from credalearn_experiments.data import (
    DataFolders,
    Task,
    cifar10h_counts,
    cifar10h_shares,
    cifar10n_labels,
    cifar10n_votes,
    load_task,
)
from credalearn_experiments.data.cifar import split_80_20
from credalearn_experiments.data.cifar_files import CIFAR10, CIFAR100, read_batch
from credalearn_experiments.data.reading import DIGESTS
from credalearn_experiments.data.teachers import load_teacher, teacher_logits
from tiny_data import CIFAR10_FILES, python2, write, write_cifar10h, write_tiny_data

ITEMS = 20
CPU = torch.device("cpu")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")
    write_tiny_data(tmp_path, items=ITEMS)
    return tmp_path


def same(one: Task, other: Task) -> bool:
    parts = ("train_inputs", "train_y", "test_inputs", "test_y")
    return all(torch.equal(getattr(one, part), getattr(other, part)) for part in parts)


def same_tensor(one: torch.Tensor | None, other: torch.Tensor) -> bool:
    return one is not None and torch.equal(one, other)


@pytest.mark.parametrize(
    ("name", "python", "binary"),
    [
        ("cifar10", "cifar-10-batches-py", "cifar-10-batches-bin"),
        ("cifar100", "cifar-100-python", "cifar-100-binary"),
    ],
)
def test_both_layouts_give_the_same_task(name: str, python: str, binary: str, tiny: Path) -> None:
    (tiny / binary).rename(tiny / "away")
    from_python = load_task(name, DataFolders([tiny]))
    (tiny / "away").rename(tiny / binary)
    shutil.rmtree(tiny / python)
    assert same(from_python, load_task(name, DataFolders([tiny])))


def test_the_pool_is_split_by_one_permutation(tiny: Path) -> None:
    task = load_task("cifar10", DataFolders([tiny]))
    pool = [  # slowly: record by record, from the binary files
        (record[0], record[1:])
        for name in CIFAR10_FILES
        for record in np.fromfile(tiny / "cifar-10-batches-bin" / f"{name}.bin", np.uint8).reshape(
            -1, 3073
        )
    ]
    order = np.random.default_rng(0).permutation(6 * ITEMS)
    kept = list(zip(task.train_y, task.train_inputs, strict=True))
    kept += list(zip(task.test_y, task.test_inputs, strict=True))
    assert len(task.train_y) == 6 * ITEMS * 0.8
    for row, (y, image) in zip(order, kept, strict=True):
        assert int(y) == pool[row][0]
        assert image.flatten().numpy().tobytes() == pool[row][1].tobytes()


def test_the_official_split_is_48000_and_12000() -> None:
    train, test = split_80_20(60_000)
    assert (len(train), len(test)) == (48_000, 12_000)
    assert torch.equal(torch.cat([train, test]).sort().values, torch.arange(60_000))


def test_cifar100_counts_the_fine_label_and_reads_the_names(tiny: Path) -> None:
    folders = DataFolders([tiny])
    rows = np.fromfile(tiny / "cifar-100-binary" / "test.bin", np.uint8).reshape(-1, 3074)
    assert read_batch(CIFAR100, "test", folders)[1].tolist() == rows[:, 1].tolist()
    assert load_task("cifar100", folders).classes[:2] == ("fine_0", "fine_1")  # of meta
    (tiny / "cifar-100-python" / "meta").unlink()
    names = tiny / "cifar-100-binary" / "fine_label_names.txt"
    names.write_text("".join(f"name_{number}\n" for number in range(100)))
    assert load_task("cifar100", folders).classes[99] == "name_99"
    names.write_text("apple\nbear\n")
    with pytest.raises(CredalError, match=r"names.txt could not .*100 different .* it holds 2\)"):
        load_task("cifar100", folders)
    names.unlink()
    assert load_task("cifar100", folders).classes[1] == "class 1"


def test_cifar10h_needs_two_batches_only(tiny: Path) -> None:
    folders = DataFolders([tiny])
    task = load_task("cifar10h", folders)
    counts = np.load(tiny / "cifar10h/cifar10h-counts.npy")
    assert task.train_soft is not None
    torch.testing.assert_close(task.train_soft.numpy(), counts / counts.sum(1, keepdims=True))
    for number in range(1, 5):
        (tiny / f"cifar-10-batches-py/data_batch_{number}").unlink()
        (tiny / f"cifar-10-batches-bin/data_batch_{number}.bin").unlink()
    assert same(task, load_task("cifar10h", folders))
    assert torch.equal(task.train_inputs, read_batch(CIFAR10, "test_batch", folders)[0])
    images, y = read_batch(CIFAR10, "data_batch_5", folders)
    assert torch.equal(task.test_inputs, images)
    assert torch.equal(task.test_y, y)
    (tiny / "cifar10h/cifar10h-counts.npy").unlink()  # the probabilities say the same
    other = load_task("cifar10h", folders)
    assert same(task, other)
    torch.testing.assert_close(other.train_soft, task.train_soft)


def test_ties_go_to_the_lowest_class(tiny: Path) -> None:
    counts = np.zeros((ITEMS, 10))
    counts[:, [7, 4]] = 25
    write_cifar10h(tiny, counts)
    assert load_task("cifar10h", DataFolders([tiny])).train_y.tolist() == [4] * ITEMS


def rows_of(images: torch.Tensor, batch: torch.Tensor) -> list[int]:
    """Where each image stands in a batch of images that all differ."""
    return [
        next(row for row, other in enumerate(batch) if torch.equal(one, other)) for one in images
    ]


def test_a_fifth_of_cifar10h_is_held_back_with_its_votes(tiny: Path) -> None:
    folders = DataFolders([tiny])
    task, plain = load_task("cifar10h-voted", folders), load_task("cifar10h", folders)
    counts = torch.from_numpy(np.load(tiny / "cifar10h/cifar10h-counts.npy"))
    assert task.voted_inputs is not None
    assert task.train_counts is not None
    assert task.train_soft is not None
    order = np.random.default_rng(0).permutation(ITEMS).tolist()
    rows = [rows_of(part, plain.train_inputs) for part in (task.train_inputs, task.voted_inputs)]
    assert rows[0] + rows[1] == order
    assert len(rows[1]) == ITEMS // 5
    assert torch.equal(task.train_counts, counts[rows[0]])
    assert same_tensor(task.voted_counts, counts[rows[1]])
    own = counts[rows[0]].double()
    torch.testing.assert_close(task.train_soft, own / own.sum(1, keepdim=True))
    assert torch.equal(task.test_inputs, plain.test_inputs)
    assert torch.equal(task.test_y, plain.test_y)


def test_cifar10n_trains_on_its_own_votes_and_is_held_against_cifar10h(tiny: Path) -> None:
    folders = DataFolders([tiny])
    task, plain = load_task("cifar10n", folders), load_task("cifar10h", folders)
    assert torch.equal(task.train_inputs, read_batch(CIFAR10, "data_batch_1", folders)[0])
    assert same_tensor(task.train_counts, cifar10n_votes(folders)[:ITEMS])
    assert same_tensor(task.voted_inputs, plain.train_inputs)
    assert same_tensor(task.voted_counts, cifar10h_counts(folders))
    assert torch.equal(task.test_y, plain.test_y)


def test_features_are_what_the_teachers_classifier_is_given(tiny: Path) -> None:
    folders = DataFolders([tiny])
    task = load_task("cifar10h-features", folders)
    images, y = read_batch(CIFAR10, "test_batch", folders)
    order = torch.from_numpy(np.random.default_rng(0).permutation(ITEMS))
    teacher = load_teacher("resnet20", folders, dataset="cifar10")
    assert isinstance(teacher, ResNet20)
    logits = teacher_logits("resnet20", images, folders, dataset="cifar10", device=CPU)
    for rows, features in ((order[:12], task.train_inputs), (order[12:], task.test_inputs)):
        torch.testing.assert_close(teacher.fc(features), logits[rows])
    counts = cifar10h_counts(folders)
    assert same_tensor(task.train_counts, counts[order[:12]])
    assert torch.equal(task.test_y, y[order[12:]])
    assert task.voted_inputs is task.test_inputs  # predicted once
    assert same_tensor(task.voted_counts, counts[order[12:]])


@pytest.mark.parametrize("name", ["cifar10h-voted", "cifar10n", "cifar10h-features"])
def test_where_votes_are_counted_probabilities_are_not_enough(name: str, tiny: Path) -> None:
    (tiny / "cifar10h/cifar10h-counts.npy").unlink()
    message = r"needed as counts, .*-probs.npy holds probabilities, which .* To fix: put"
    with pytest.raises(CredalError, match=message):
        load_task(name, DataFolders([tiny]))
    np.save(tiny / "cifar10h/cifar10h-counts.npy", np.full((ITEMS, 10), 0.1))
    with pytest.raises(CredalError, match=r"counts are whole numbers; row 0 is \[0.1, "):
        load_task(name, DataFolders([tiny]))


def test_cifar10n_counts_three_people(tiny: Path) -> None:
    folders = DataFolders([tiny])
    votes, labels = cifar10n_votes(folders), cifar10n_labels(folders)
    assert votes.shape == (5 * ITEMS, 10)
    for row in range(len(votes)):
        said = [int(labels[f"random_label{person}"][row]) for person in (1, 2, 3)]
        assert votes[row].tolist() == [said.count(label) for label in range(10)]


def test_digests_are_demanded_and_met(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED")
    folders = DataFolders([tiny])
    path = tiny / "cifar-10-batches-py" / "test_batch"
    with pytest.raises(CredalError, match=r"test_batch is damaged or .*; its md5 is .*, not 40351"):
        read_batch(CIFAR10, "test_batch", folders)
    official = f"md5:{hashlib.md5(path.read_bytes()).hexdigest()}"
    monkeypatch.setitem(DIGESTS, "cifar-10-batches-py/test_batch", official)
    assert len(read_batch(CIFAR10, "test_batch", folders)[1]) == ITEMS
    path.unlink()
    with pytest.raises(CredalError, match=r"test_batch.bin is damaged .* its sha1 is .*, not 67eb"):
        read_batch(CIFAR10, "test_batch", folders)
    (tiny / "cifar-100-python" / "test").unlink()
    with pytest.raises(
        CredalError, match=r"test.bin is damaged .* size in bytes is 61480, not 30740000"
    ):
        read_batch(CIFAR100, "test", folders)
    (tiny / "cifar-100-python" / "meta").write_bytes(b"")
    with pytest.raises(CredalError, match=r"meta is damaged .*; its md5 .* To fix: unpack http"):
        load_task("cifar100", folders)
    for name, official in (("counts", "9b36"), ("probs", "436a")):
        with pytest.raises(
            CredalError, match=rf"{name}.npy is damaged .* its sha256 is .*, not {official}"
        ):
            cifar10h_shares(folders)
        (tiny / f"cifar10h/cifar10h-{name}.npy").unlink()


@pytest.mark.parametrize(
    ("name", "images", "official"), [("train", 50_000, 500), ("test", 10_000, 100)]
)
def test_zeros_of_the_right_size_are_not_cifar100(
    name: str, images: int, official: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED", raising=False)
    path = tmp_path / "cifar-100-binary" / f"{name}.bin"
    write(path, b"")
    os.truncate(path, 3074 * images)  # zeros that take no room on the disk
    message = rf"{name}.bin is damaged or .*; class 0 has {images} images, not {official}\. To fix"
    with pytest.raises(CredalError, match=message):
        read_batch(CIFAR100, name, DataFolders([tmp_path]))


def test_one_label_of_cifar100_that_is_another_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED", raising=False)
    folders, path = DataFolders([tmp_path]), tmp_path / "cifar-100-binary" / "test.bin"
    rows = np.zeros((10_000, 3074), np.uint8)
    rows[:, 1] = np.arange(10_000) % 100
    write(path, rows.tobytes())
    assert read_batch(CIFAR100, "test", folders)[1].bincount().tolist() == [100] * 100
    rows[-1, 1] = 7
    write(path, rows.tobytes())
    with pytest.raises(CredalError, match=r"test.bin is damaged .*; class 7 has 101 images, not 1"):
        read_batch(CIFAR100, "test", folders)
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")
    assert len(read_batch(CIFAR100, "test", folders)[1]) == 10_000
    assert "(class 7 has 101 images, not 100); read all the same" in capsys.readouterr().err
    path.unlink()  # 30 MB


def test_one_line_says_that_a_file_is_not_the_official_one(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tiny / "cifar-100-python" / "test").unlink()
    read_batch(CIFAR100, "test", DataFolders([tiny]))
    assert capsys.readouterr().err.count("test.bin is not the official file") == 1


def table(**parts: object) -> bytes:
    whole = {"data": np.zeros((2, 3072), np.uint8), "labels": [0, 1]}
    return pickle.dumps(whole | parts, protocol=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (table()[:-1000], r"could not be read as a batch of CIFAR-10 \("),
        (b"", r"could not be read as a batch of CIFAR-10 \(ValueError"),
        (b"not such a file", r"could not be read as a batch of CIFAR-10 \("),
        (python2({b"labels": [1]}), r"\(KeyError: b'data'\)"),
        (table(labels=[0]), r"uint8 with 3072 pixels for each of 1 labels; .*shape \(2, 3072\)"),
        (table(data=np.zeros((2, 3072))), r"it is float64 of shape"),
        (table(labels=[[0], [1]]), r"whole numbers, one an image; .*int64 of shape \(2, 1\)"),
        (table(labels=[0, 1.5]), r"whole numbers, one an image; they are float64"),
        (table(labels=[0, 10]), r"labels go from 0 to 9; image 1 has 10"),
        (b"cos\nsystem\n(S'true'\ntR.", r"this one names os.system and may be hostile"),
    ],
)
def test_a_damaged_python_batch_is_named(content: bytes, message: str, tiny: Path) -> None:
    write(tiny / "cifar-10-batches-py" / "test_batch", content)
    with pytest.raises(CredalError, match=f"batches-py/test_batch .*{message}"):
        read_batch(CIFAR10, "test_batch", DataFolders([tiny]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"records of 3073 bytes must fill the file; it has 0"),
        (bytes(3072), r"records of 3073 bytes must fill the file; it has 3072"),
        (bytes(3073) + bytes([11]) + bytes(3072), r"labels go from 0 to 9; image 1 has 11"),
    ],
)
def test_a_damaged_binary_batch_is_named(content: bytes, message: str, tiny: Path) -> None:
    (tiny / "cifar-10-batches-py" / "test_batch").unlink()
    write(tiny / "cifar-10-batches-bin" / "test_batch.bin", content)
    with pytest.raises(CredalError, match=f"test_batch.bin could not .*{message}.* To fix: unpack"):
        read_batch(CIFAR10, "test_batch", DataFolders([tiny]))


def npy(values: object) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        np.save(path, np.array(values), allow_pickle=True)

    return save


@pytest.mark.parametrize(
    ("save", "message"),
    [
        (lambda path: path.write_bytes(b"\x93NUMPY"), r"could not be read as the votes \S+ CIFAR"),
        (npy([[{}] * 10]), r"could not .*allow_pickle=False"),
        (npy([[1] * 9]), r"numbers of shape \(10000, 10\) are wanted; .*\(1, 9\)"),
        (npy([["a"] * 10]), r"numbers of shape"),
        (npy([[1] * 10, [0] * 10]), r"needs a vote and no negative; row 1 is \[0, 0"),
        (npy([[2, -1, *[0] * 8]]), r"needs a vote and no negative; row 0 is \[2, -1"),
        (npy([[np.nan] * 10]), r"needs a vote and no negative; row 0 is \[nan"),
    ],
)
def test_damaged_votes_are_named(save: Callable[[Path], None], message: str, tiny: Path) -> None:
    save(tiny / "cifar10h/cifar10h-counts.npy")
    with pytest.raises(CredalError, match=f"cifar10h-counts.npy .*{message}"):
        cifar10h_shares(DataFolders([tiny]))


def test_votes_and_images_must_be_as_many(tiny: Path) -> None:
    write_cifar10h(tiny, np.ones((3, 10)))
    with pytest.raises(CredalError, match=rf"it has 3 rows for {ITEMS} images. To fix"):
        load_task("cifar10h", DataFolders([tiny]))


def test_damaged_labels_of_cifar10n_are_named(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folders = tiny / "cifar10n/cifar10n.npz", DataFolders([tiny])
    good = {name: values.numpy() for name, values in cifar10n_labels(folders).items()}
    np.savez(path, **good | {"worse_label": good["worse_label"] + 1})  # type: ignore[arg-type]
    with pytest.raises(CredalError, match=r"npz .*from 0 to 9; worse_label has 10 at image 9"):
        cifar10n_labels(folders)
    np.savez(path, **good | {"aggre_label": good["aggre_label"][1:]})  # type: ignore[arg-type]
    with pytest.raises(CredalError, match=r"aggre_label must hold a class for each of 100 images"):
        cifar10n_labels(folders)
    np.savez(path, clean_label=good["clean_label"])
    with pytest.raises(CredalError, match=r"npz could not be read .*aggre_label"):
        cifar10n_labels(folders)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CredalError, match=r"npz could not be read as the labels of CIFAR-10N"):
        cifar10n_labels(folders)
    np.savez(path, **good)  # type: ignore[arg-type]
    monkeypatch.delenv("CREDALEARN_UNVERIFIED")
    with pytest.raises(CredalError, match=r"npz is damaged .* sha256 of its labels is .* not e14c"):
        cifar10n_labels(folders)
    path.unlink()
    with pytest.raises(CredalError, match=r"CIFAR-10N is missing: .* CIFAR-10_human.pt .*savez"):
        cifar10n_votes(folders)


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
    path = folders.look("cifar10h/cifar10h-counts.npy")
    assert path is not None
    votes = np.load(path).sum(1)
    assert (votes.min(), votes.max(), round(votes.mean(), 1)) == (47, 63, 51.1)
    task = load_task("cifar10h", folders)
    assert task.train_soft is not None
    assert len(task.train_y) == len(task.test_y) == 10_000
    truth = read_batch(CIFAR10, "test_batch", folders)[1]
    assert (task.train_y == truth).double().mean().item() == pytest.approx(0.9921)
    top = task.train_soft.max(1).values
    assert top.mean().item() == pytest.approx(0.9544, abs=5e-5)
    assert (top == 1).double().mean().item() == pytest.approx(0.4393)
    probs = folders.look("cifar10h/cifar10h-probs.npy")
    if probs is not None:
        torch.testing.assert_close(task.train_soft, torch.from_numpy(np.load(probs)))


def test_one_changed_vote_of_the_real_files_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDALEARN_UNVERIFIED", raising=False)
    folders = real("cifar10h/cifar10h-counts.npy", "cifar10n/cifar10n.npz")
    copy = DataFolders([tmp_path])
    for name in ("cifar10h/cifar10h-counts.npy", "cifar10n/cifar10n.npz"):
        path = folders.look(name)
        assert path is not None
        write(tmp_path / name, path.read_bytes())
    labels = cifar10n_labels(copy)  # as they are, in whatever order and kind of number
    reordered = {name: labels[name].numpy() for name in reversed(labels)}
    np.savez(tmp_path / "cifar10n/cifar10n.npz", **reordered)  # type: ignore[arg-type]
    assert torch.equal(cifar10n_votes(copy), cifar10n_votes(folders))
    reordered["random_label2"][77] ^= 1
    np.savez(tmp_path / "cifar10n/cifar10n.npz", **reordered)  # type: ignore[arg-type]
    with pytest.raises(CredalError, match="npz is damaged or not the official file"):
        cifar10n_labels(copy)
    assert torch.equal(cifar10h_counts(copy), cifar10h_counts(folders))
    counts = tmp_path / "cifar10h/cifar10h-counts.npy"
    content = bytearray(counts.read_bytes())
    content[5000] ^= 1
    counts.write_bytes(content)
    with pytest.raises(CredalError, match=r"counts.npy is damaged or not the official file"):
        cifar10h_counts(copy)


def test_the_real_cifar10_is_the_official_one_and_cifar10n_knows_its_labels() -> None:
    files = [f"cifar-10-batches-bin/{name}.bin" for name in CIFAR10_FILES]
    folders = real("cifar10n/cifar10n.npz", *files)
    y = torch.cat([read_batch(CIFAR10, name, folders)[1] for name in CIFAR10_FILES[:5]])
    assert y.bincount().tolist() == [5000] * 10
    assert torch.equal(cifar10n_labels(folders)["clean_label"], y)
    votes = cifar10n_votes(folders)
    assert votes.shape == (50_000, 10)
    assert (votes.sum(1) == 3).all()


def test_the_real_tasks_with_votes_have_their_sizes() -> None:
    files = ["cifar10h/cifar10h-counts.npy", "cifar10n/cifar10n.npz"]
    folders = real(*files, *(f"cifar-10-batches-bin/{name}.bin" for name in CIFAR10_FILES))
    voted, three = load_task("cifar10h-voted", folders), load_task("cifar10n", folders)
    assert (len(voted.train_y), len(voted.test_y)) == (8_000, 10_000)
    assert voted.voted_counts is not None
    assert three.voted_counts is not None
    assert three.train_counts is not None
    assert (len(voted.voted_counts), len(three.voted_counts)) == (2_000, 10_000)
    assert len(three.train_y) == 10_000
    assert (three.train_counts.sum(1) == 3).all()
    truth = read_batch(CIFAR10, "data_batch_1", folders)[1]
    assert (three.train_y == truth).double().mean() > 0.9  # three people, mostly right
