"""Every setting from files to records, on tiny generated files of the official layouts."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from credalearn import CredalError
from credalearn.methods import METHODS
from credalearn_experiments.data import DataFolders, load_task
from credalearn_experiments.data.teachers import teacher_logits
from credalearn_experiments.records import Record, read_records
from credalearn_experiments.results.notes import notes
from credalearn_experiments.results.tables import setting_tables
from credalearn_experiments.running.labels import training_labels
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.runs import Run, plan
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.voted import evaluate_voted
from credalearn_experiments.running.work import work
from credalearn_experiments.settings import Setting, Smoothing, Teacher
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.settings.votes import FAMILIES
from fake_records import VOTED, VOTED_METRICS
from tiny_bench import unpack
from tiny_data import write_tiny_data

CPU = torch.device("cpu")
# Every method at 32 px, with 100 classes, and at 224 px; a trained one and one that is built on it
# wherever data, foreign images or labels are of another kind; everywhere else one.
WHOLE = ("cifar10h", "cifar100-smooth-0.1", "micebone")
KINDS = {
    (each.task, each.foreign, type(each.labels), each.collapsed): name
    for name, each in SETTINGS.items()
    if name not in WHOLE
}
BUILT = ("softmax", "decalibration")
OURS = {"cifar10h-warm": ("pocc-mean", "pocc-center", "softmax")}
# These predict points; the sets of all others have a width.
POINTS = {"softmax", "edl", "edl-soft", "dappr", "laplace-bridge"}
LIMIT = 4
PHOTOS = 2  # at 224 px an image costs as much as a hundred at 32


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFolders:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=20)
    return DataFolders([folder])


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


def rehearsal(setting: Setting, *methods: str) -> list[Run]:
    """What ``bench run SETTING --epochs 1 --limit 4 --seeds 1`` does."""
    narrow = setting.narrowed(epochs=1, seeds=(1,), methods=methods or None)
    return plan([narrow], limit=limit_of(setting))


def limit_of(setting: Setting) -> int:
    return PHOTOS if setting.image_size == 224 else LIMIT


def do(runs: list[Run], data: DataFolders, folder: Path, *, weights: str = "none") -> Store:
    store = Store(folder)
    work(Bench(store, data, CPU, weights=Path(weights), verbose=False), runs)
    assert {store.state(run) for run in runs} == {"done"}
    return store


def metrics_of(setting: Setting, method: str) -> set[str]:
    """Every metric that the record of a run must have."""
    voted = VOTED_METRICS if setting.task in VOTED else ()
    names = ["accuracy", "ece", "auarc", "normalized_auarc", "spearman_error"]
    names.append("auarc_top_probability")
    if method not in POINTS:
        names += ["auarc_lower_probability", "auarc_mmi", "auarc_entropy_difference"]
    for foreign in setting.foreign:
        names += [f"{kind}_{foreign.replace('-', '_')}" for kind in ("auroc", "auroc_training")]
    return {*names, *voted}


def check(record: Record, setting: Setting) -> None:
    assert set(record.metrics) == metrics_of(setting, record.method), record.name
    signed = ("normalized_auarc", "spearman_error")
    for name, value in record.metrics.items():
        most = 28 if name == "human_cross_entropy" else 1  # nats
        assert (-1 if name in signed else 0) <= value <= most, (record.name, name)
    curve = record.curves["accuracy_rejection"]
    assert len(curve) == 101
    assert curve[0] == record.metrics["accuracy"]
    assert record.config["epochs"] == 1
    assert record.config["limit"] == limit_of(setting)
    asked = setting.as_plain()
    same = ("labels", "collapsed", "backbone", "pretrained", "image_size", "foreign")
    assert {name: record.config[name] for name in same} == {name: asked[name] for name in same}
    assert {"credalearn", "torch", "python", "device"} <= set(record.versions)
    assert record.seconds > 0


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in WHOLE])
def test_a_setting_runs_from_files_to_records(name: str, data: DataFolders, tmp_path: Path) -> None:
    setting = SETTINGS[name]
    built = BUILT if name in KINDS.values() else ()
    methods = dict.fromkeys(["pocc", *OURS.get(name, ()), *built])
    do(rehearsal(setting, *methods), data, tmp_path)
    found = read_records(tmp_path)
    assert not found.damaged
    assert {record.method for record in found.records} == set(methods)
    for record in found.records:
        assert record.setting == name
        assert record.seed == 1
        check(record, setting)


# One image setting of each family, every rule on features, where a network takes a moment.
@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("cifar10h-votes-3-clopper-pearson", ("pocc", "pocc-center")),
        ("cifar10n-votes-3-idm", ("pocc",)),
        *((each.name, ()) for each in FAMILIES["cifar10h-features-votes"].settings),
    ],
)
def test_a_setting_of_votes_runs_from_files_to_records(
    name: str, methods: tuple[str, ...], data: DataFolders, tmp_path: Path
) -> None:
    setting = ALL_SETTINGS[name]
    (first, *_) = runs = rehearsal(setting, *methods)
    store = do(runs, data, tmp_path)
    found = read_records(tmp_path)
    assert not found.damaged
    assert {record.method for record in found.records} == set(methods or setting.methods)
    for record in found.records:
        check(record, setting)
    # What was measured is what was kept.
    tensors = store.tensors(first, "predictions.safetensors")
    test, y, others = unpack(tensors)
    (record,) = (record for record in found.records if record.method == first.method)
    for metric, value in evaluate_voted(test, y, others["voted"], tensors["voted_counts"]).items():
        assert record.metrics[metric] == pytest.approx(value, rel=1e-5), metric


@pytest.mark.parametrize("name", ["cifar10h-features"])
def test_every_method_on_features(name: str, data: DataFolders, tmp_path: Path) -> None:
    setting = ALL_SETTINGS[name]
    do(rehearsal(setting), data, tmp_path)
    found = read_records(tmp_path)
    assert {record.method for record in found.records} == set(setting.methods)
    for record in found.records:
        check(record, setting)


@pytest.mark.parametrize("name", WHOLE)
def test_every_method_of_a_setting(name: str, data: DataFolders, tmp_path: Path) -> None:
    setting = SETTINGS[name]
    runs = rehearsal(setting)
    store = do(runs, data, tmp_path)
    found = read_records(tmp_path)
    assert not found.damaged
    names = [f"{record.setting}/{record.method}/seed-{record.seed}" for record in found.records]
    assert sorted(names) == sorted(run.name for run in runs)
    assert {record.method for record in found.records} == {*setting.methods, "softmax"}
    for record in found.records:
        check(record, setting)
    for run in runs:
        # An ensemble is the mean of what its members say, whatever it was built from.
        if METHODS[run.method].num_members > 1:
            assert [base.seed for base in run.bases] == [1, 2, 3, 4, 5]
            members = [probs(store, base) for base in run.bases]
            np.testing.assert_allclose(probs(store, run), np.mean(members, axis=0), atol=1e-6)
    first = setting_tables(found.records, name)["Accuracy, calibration and deferral"]
    assert {row.split()[0] for row in first.rows} == {*setting.methods, "softmax"}
    told = f"A rehearsal: {limit_of(setting)} training and test items at most."
    assert told in notes(found.records, name)


def probs(store: Store, run: Run) -> NDArray[np.float64]:
    return store.tensors(run, "predictions.safetensors")["test.probs"].double().numpy()


def test_a_record_says_what_the_kept_predictions_say(data: DataFolders, tmp_path: Path) -> None:
    setting = SETTINGS["cifar10-smooth-0.05"]
    (run,) = rehearsal(setting, "pocc")
    store = do([run], data, tmp_path)
    (record,) = read_records(tmp_path).records
    test, y, foreign = unpack(store.tensors(run, "predictions.safetensors"))
    assert torch.equal(y, load_task("cifar10", data, limit=LIMIT).test_y)
    right = [int(row.argmax()) == label for row, label in zip(test.probs, y.tolist(), strict=True)]
    assert record.metrics["accuracy"] == pytest.approx(sum(right) / LIMIT, abs=1e-6)
    order = test.score(METHODS["pocc"].score).argsort().tolist()
    kept = [np.mean([right[row] for row in order[:count]]) for count in range(1, LIMIT + 1)]
    assert record.metrics["auarc"] == pytest.approx(np.mean(kept), abs=1e-6)
    assert set(foreign) == set(setting.foreign)
    for name, predictions in foreign.items():
        assert len(predictions.probs) == run.foreign_limit == 2
        pairs = [
            (outside > inside) + (outside == inside) / 2
            for inside in test.score(METHODS["pocc"].score).tolist()
            for outside in predictions.score(METHODS["pocc"].score).tolist()
        ]
        metric = record.metrics[f"auroc_{name.replace('-', '_')}"]
        assert metric == pytest.approx(np.mean(pairs), abs=1e-6)


def test_a_foreign_set_that_is_not_at_hand_is_named_and_left_out(
    data: DataFolders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    less = shutil.copytree(data.folders[0], tmp_path / "data")
    shutil.rmtree(less / "svhn")
    shutil.rmtree(less / "fashion-mnist")
    setting = SETTINGS["cifar10h"]
    do(rehearsal(setting, "pocc", "softmax"), DataFolders([less]), tmp_path / "store")
    told = capsys.readouterr().err
    assert (
        told.count("no AUROC on svhn: SVHN is missing: no svhn/test_32x32.mat") == 1
    )  # in two runs
    assert "test_32x32.mat into svhn/ of the data folder" in told
    assert told.count("no AUROC on fashion-mnist: ") == 1
    there = replace(setting, foreign=("places365", "imagenet", "tiny-imagenet"))
    for record in read_records(tmp_path / "store").records:
        assert set(record.metrics) == metrics_of(there, record.method)


def test_a_damaged_foreign_set_stops_before_anything_is_done(
    data: DataFolders, tmp_path: Path
) -> None:
    setting = replace(SETTINGS["cifar10h"], foreign=("fashion-mnist",))
    trained, built = rehearsal(setting, "decalibration")
    store = do([trained], data, tmp_path / "store")
    less = shutil.copytree(data.folders[0], tmp_path / "data")
    (less / "fashion-mnist/t10k-images-idx3-ubyte.gz").write_bytes(b"no idx file")
    for runs in ([trained, built], rehearsal(setting, "pocc")):
        with pytest.raises(CredalError, match=r"idx3-ubyte.gz could not be read as an idx file"):
            work(Bench(store, DataFolders([less]), CPU, verbose=False), runs)
        assert store.state(runs[-1]) == "new"


class TimmsNetwork(torch.nn.Module):
    """What ``timm.create_model`` gives, with one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.pretrained_cfg = {"classifier": "classifier"}
        self.features = torch.nn.Conv2d(3, 1024, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.features(images[:, :, ::56, ::56])
        return maps.mean((2, 3))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_labels_are_those_of_the_setting(name: str, data: DataFolders) -> None:
    setting = SETTINGS[name]
    task = load_task(setting.task, data, limit=LIMIT)
    labels = training_labels(setting, task, data, CPU, seed=1)
    source = setting.labels
    if isinstance(source, Smoothing):
        soft = torch.eye(task.num_classes).double()[task.train_y] * (1 - source.epsilon)
        soft += source.epsilon / task.num_classes
    elif isinstance(source, Teacher):
        dataset: Literal["cifar10", "cifar100"]
        dataset = "cifar100" if setting.task == "cifar100" else "cifar10"
        logits = teacher_logits(
            source.name, task.train_inputs, data, dataset=dataset, device=CPU
        ).double()
        soft = (logits / source.temperature).softmax(1)
        assert (soft - soft[0]).abs().max() > 1e-3  # the random teachers tell images apart
    else:
        assert task.train_soft is not None
        soft = task.train_soft
    # By hand: the top class keeps its share as lower bound and nothing else has one.
    top = soft.argmax(1)
    lower = torch.zeros_like(soft)
    for row, column in enumerate(top.tolist()):
        lower[row, column] = 1 if setting.collapsed else soft[row, column]
    torch.testing.assert_close(labels.lower.double(), lower, atol=1e-6, rtol=0)
    if not isinstance(source, Teacher):
        assert torch.equal(top, task.train_y)


def test_pretrained_weights_are_where_training_starts(data: DataFolders, tmp_path: Path) -> None:
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    published = torchvision.models.densenet121(weights=None).state_dict()
    torch.save(published, tmp_path / "densenet121.pth")
    (run,) = rehearsal(SETTINGS["treeversity"], "pocc")
    store = do([run], data, tmp_path / "store", weights=str(tmp_path / "densenet121.pth"))
    (record,) = read_records(tmp_path / "store").records
    check(record, SETTINGS["treeversity"])
    trained = store.tensors(run, "model.safetensors")
    convolutions = [name for name in published if "conv" in name and name.endswith("weight")]
    assert len(convolutions) == 120
    moved = False
    for name in convolutions:
        after = trained[f"backbone.network.{name}"]
        # Adam moves a weight by about its learning rate of 1e-5 in the one step there was.
        assert (after - published[name]).abs().max() < 1e-4
        moved |= not torch.equal(after, published[name])
    assert moved


def test_a_setting_of_photos_does_not_start_from_random_weights_unasked(
    data: DataFolders, tmp_path: Path
) -> None:
    runs = rehearsal(SETTINGS["micebone"], "pocc")
    bench = Bench(Store(tmp_path), data, CPU, verbose=False)
    with pytest.raises(CredalError, match=r"micebone starts from weights .* --weights none"):
        work(bench, runs)
    assert not list(tmp_path.rglob("metrics.json"))
