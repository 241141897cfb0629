"""Every input file is opened once per command, and every file of a run is read once."""

import shutil
import sys
from pathlib import Path

import polars as pl
import pytest

import credalearn as cl
from opens import count_opens
from team_files import Capture, make_images, make_team, succeed, train_arguments

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
RUN = (
    "run.json annotations.parquet items.parquet predictions.parquet "
    "guarantee.json sets.json requests.json drift.json"
)
MODEL = f"{RUN} model.safetensors"
INPUTS = "votes.csv features.csv new.csv later.csv"
TRAIN = "train votes.csv --features features.csv --drop patient --drop truth --drop part"
TEXTS = "train votes.csv --text words --table texts.csv --gold gold.csv"
IMPORT = "import probs.csv --votes votes.csv --gold gold.csv"
CERTIFY = "certify run --max-error 0.5 --again --set-coverage 0.5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of every kind; and a run that has all the files that a run may have."""
    folder = make_team(tmp_path_factory.mktemp("team"), num_items=300).folder
    later = make_team(tmp_path_factory.mktemp("later"), random_state=1)
    for source, name in ((later.votes, "later.csv"), (later.features, "new.csv")):
        table = pl.read_csv(source)
        table.with_columns(item="y" + pl.col("item")).write_csv(folder / name)
    table = pl.read_csv(folder / "features.csv")
    words = pl.col("truth") + " " + pl.col("item")
    table.select("item", "truth").write_csv(folder / "gold.csv")
    table.select("item", words=words).write_csv(folder / "texts.csv")
    table.select("item", cat=0.5, dog=0.3, owl=0.2).write_csv(folder / "probs.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        votes = cl.read_annotations("votes.csv")
        data = cl.Dataset(votes, features="features.csv", drop=("patient", "truth", "part"))
        run = cl.Run.train(data, "run")
        run.certify(max_error=0.4, set_coverage=0.9)
        run.keeping(outdated="the items have changed")
    return folder


def test_the_counter_sees_every_open(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    with count_opens(tmp_path) as opened:
        for _ in range(50):
            path.read_bytes()
        (tmp_path / "b.txt").write_text("new")
    assert opened == {"a.txt": 50, "b.txt": 1}


def test_train_opens_each_image_once(tmp_path: Path, capsys: Capture) -> None:
    team = make_team(tmp_path)
    folder = make_images(tmp_path / "images", [f"x{number:03d}" for number in range(60)])
    more = ("--table", team.features, "--group", "patient", "--image-size", "8", "--epochs", "1")
    arguments = train_arguments(team, "--images", folder, *more)
    with count_opens(folder, team.folder) as opened:
        succeed(capsys, *arguments)
    names = [*(path.name for path in folder.iterdir()), "votes.csv", "features.csv"]
    assert opened == dict.fromkeys(names, 1)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("inspect votes.csv --merge later.csv -o consensus.csv", "votes.csv later.csv"),
        ("inspect votes.csv --rules", "votes.csv"),
        (f"{TRAIN} -o new", "votes.csv features.csv"),
        (f"{TRAIN} --features new.csv --test later.csv -o new", INPUTS),
        (f"{TEXTS} -o new", "votes.csv texts.csv gold.csv"),
        (f"{IMPORT} -o new", "probs.csv votes.csv gold.csv"),
        (CERTIFY, RUN),
        (f"{CERTIFY} --stratum part", f"features.csv {RUN}"),
        ("predict run features.csv -o decisions.csv", f"features.csv {MODEL}"),
        ("defer run features.csv -o tasks.json --threshold 0", f"features.csv {MODEL}"),
        ("report run", RUN),
        ("export run", MODEL),
        ("recalibrate run later.csv --features new.csv -o new", f"later.csv new.csv {MODEL}"),
    ],
)
def test_commands_open_each_file_once(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    command: str,
    files: str,
) -> None:
    if command == "export run":
        pytest.importorskip("onnxruntime")
    work = shutil.copytree(folder, tmp_path / "work")
    monkeypatch.chdir(work)
    known = {path.name for path in work.rglob("*") if path.is_file()}
    with count_opens(work, work / "run", work / "run" / "model") as opened:
        succeed(capsys, *command.split())
    found = {name: number for name, number in opened.items() if name in known}
    assert found == dict.fromkeys(files.split(), 1)


def test_python_reads_a_run_once(folder: Path, tmp_path: Path) -> None:
    path = shutil.copytree(folder / "run", tmp_path / "run")
    with count_opens(path, path / "model") as opened:
        run = cl.Run.load(path)
        run.certify(max_error=0.5, again=True)
        for name in (each for each in dir(run) if not each.startswith("_")):
            getattr(run, name)
    del opened[".lock"]
    assert opened == dict.fromkeys(RUN.split(), 1)
