"""Frozen encoders: features of texts and images, computed once."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import load_file

import credalearn as cl
from credalearn.app import encoders
from team_files import Capture, in_process, make_images, make_team, succeed
from text_items import message_votes, messages

SIZE = 32


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CREDALEARN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write_messages(folder: Path, num_items: int = 60) -> tuple[Path, Path]:
    """Votes with the texts next to them, and texts of new items."""
    message_votes(num_items).write_csv(folder / "votes.csv")
    new = messages(20, random_state=1)[0]
    pl.DataFrame({"item": range(20), "text": new}).write_csv(folder / "new.csv")
    return folder / "votes.csv", folder / "new.csv"


class Watched:
    """An encoder that counts the items it sees."""

    def __init__(self) -> None:
        self.items = 0

    def __call__(self, *_: Any) -> tuple[encoders.Encode, str]:
        def encode(texts: np.ndarray) -> np.ndarray:
            self.items += len(texts)
            found = [[text.count(letter) for letter in "aeioulst"] for text in texts]
            return np.array(found, dtype=np.float32)

        return encode, "digest"


def test_features_are_computed_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched()
    monkeypatch.setattr(encoders, "_wordllama", watched)
    votes, new = write_messages(tmp_path)
    annotations = cl.read_annotations(votes)
    data = cl.Dataset(annotations, text="text", encoder="wordllama")
    again = cl.Dataset(annotations, text="text", encoder="wordllama")
    assert watched.items == 60
    assert data.X.shape == (60, 8)
    np.testing.assert_array_equal(np.asarray(data.X), np.asarray(again.X))
    assert len(list(cache.iterdir())) == 1

    run = cl.Run.train(data, tmp_path / "run")
    assert run.facts.inputs.encoder == "wordllama"
    assert run.texts
    assert len(run.predict(new, threshold=0.5).to_polars()) == 20
    assert watched.items == 80
    later = run.recalibrate(_others(votes, tmp_path), tmp_path / "later")
    assert later.run.facts.inputs.encoder_sha256 == "digest"
    monkeypatch.setattr(encoders, "_wordllama", lambda *_: (lambda x: x, "other"))
    with pytest.raises(cl.CredalError, match="are not those of training"):
        run.predict(new, threshold=0.5)


def _others(votes: Path, folder: Path) -> Path:
    """The same votes on other texts."""
    table = pl.read_csv(votes).with_columns(text=pl.col("text") + " again")
    table.write_csv(folder / "later.csv")
    return folder / "later.csv"


def test_refuses_encoders_of_other_items(tmp_path: Path) -> None:
    annotations = cl.read_annotations(write_messages(tmp_path)[0])
    with pytest.raises(cl.CredalError, match="encoder of texts must be one of tfidf, wordllama"):
        cl.Dataset(annotations, text="text", encoder="timm:resnet18")
    table = pl.DataFrame({"item": annotations.items, "size": range(60)})
    with pytest.raises(cl.CredalError, match="features need no encoder; got 'wordllama'"):
        cl.Dataset(annotations, features=table, encoder="wordllama")
    with pytest.raises(cl.CredalError, match=r"contains no \.safetensors file"):
        cl.Dataset(annotations, text="text", encoder=f"sentence-transformers:{tmp_path}")


def test_wordllama_reads_the_files_of_its_package(tmp_path: Path, capsys: Capture) -> None:
    tokenizers: Any = pytest.importorskip("tokenizers")
    wordllama: Any = pytest.importorskip("wordllama.inference")
    votes, new = write_messages(tmp_path, 120)
    done = succeed(
        capsys, "train", votes, "--text", "text", "--encoder", "wordllama", "-o", tmp_path / "run"
    )
    assert "120 items with texts" in done.out
    succeed(capsys, "predict", tmp_path / "run", new, "--no-decision", "-o", tmp_path / "p.csv")
    right = np.array(["fine", "rude"])[messages(20, random_state=1)[1].argmax(1)]
    assert (pl.read_csv(tmp_path / "p.csv")["label"].to_numpy() == right).mean() > 0.8
    folder = Path(wordllama.__file__).parent
    (tokenizer,) = folder.glob("tokenizers/*.json")
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    own = wordllama.WordLlamaInference(table, tokenizers.Tokenizer.from_file(str(tokenizer)))
    texts = ["hello world", "a text of several words"]
    found = encoders.open_encoder(cl.Run.load(tmp_path / "run").facts.inputs)
    np.testing.assert_allclose(found(np.array(texts, dtype=object)), own.embed(texts), atol=1e-6)
    assert np.isfinite(found(np.array([""], dtype=object))).all()


def make_sentences(folder: Path) -> Path:
    """A tiny model of sentence-transformers with random weights."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    transformers: Any = pytest.importorskip("transformers")
    modules: Any = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    package: Any = pytest.importorskip("sentence_transformers")
    words = sorted({word for text in messages(60)[0] for word in text.split()})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), special, strict=True))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": token for name, token in names.items()}
    ).save_pretrained(folder / "bert")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=len(vocabulary), intermediate_size=16, **small)
    transformers.BertModel(config).save_pretrained(folder / "bert")
    layers = [modules.Transformer(str(folder / "bert")), modules.Pooling(16)]
    package.SentenceTransformer(modules=layers, device="cpu").save(str(folder / "sentences"))
    return folder / "sentences"


@pytest.mark.filterwarnings("ignore")  # of packages that are not ours
def test_sentence_transformers_from_a_folder(tmp_path: Path, capsys: Capture) -> None:
    folder = make_sentences(tmp_path)
    votes, new = write_messages(tmp_path)
    encoder = f"sentence-transformers:{folder}"
    run = tmp_path / "run"
    succeed(capsys, "train", votes, "--text", "text", "--encoder", encoder, "-o", run)
    assert cl.Run.load(run).facts.inputs.encoder == encoder
    succeed(capsys, "predict", run, new, "--no-decision", "-o", tmp_path / "p.csv")
    assert len(pl.read_csv(tmp_path / "p.csv")) == 20


def image_arguments(folder: Path, size: int) -> tuple[list[object], Path]:
    """The train command on images of 60 items, and their folder."""
    team = make_team(folder)
    names = pl.read_csv(team.features)["item"].to_list()
    images = make_images(folder / "images", names, size=size)
    return ["train", team.votes, "--images", images, "--image-size", size], images


def test_the_backbone_of_a_run_encodes_images(tmp_path: Path, capsys: Capture) -> None:
    given, images = image_arguments(tmp_path, 8)
    quick = ("--epochs", "1", "--device", "cpu")
    succeed(capsys, *given, *quick, "-o", tmp_path / "network")
    encoder = ("--encoder", f"run:{tmp_path / 'network'}")
    run = tmp_path / "run"
    done = succeed(capsys, *given, *encoder, "-o", run)
    assert "a linear model with penalty" in done.out
    facts = cl.Run.load(run).facts
    assert facts.options["backbone"] == "auto"
    network = cl.load(tmp_path / "network" / "model")
    assert facts.inputs.encoder_sha256 == network.weights_sha256_
    succeed(capsys, "predict", run, images, "--no-decision", "-o", tmp_path / "p.csv")
    assert len(pl.read_csv(tmp_path / "p.csv")) == 60
    done = in_process(capsys, *given[:-1], 9, *encoder, "-o", tmp_path / "other")
    assert done.code == 2
    assert "--image-size 8" in done.err


def test_a_published_network_encodes_images(tmp_path: Path, capsys: Capture) -> None:
    timm: Any = pytest.importorskip("timm")
    given, _ = image_arguments(tmp_path, SIZE)
    torch.manual_seed(0)
    network = timm.create_model("resnet18", pretrained=False)
    torch.save(network.state_dict(), tmp_path / "weights.pt")
    encoder = ("--encoder", "timm:resnet18", "--weights", tmp_path / "weights.pt")
    done = succeed(capsys, *given, *encoder, "-o", tmp_path / "run")
    assert "a linear model with penalty" in done.out
    facts = json.loads((tmp_path / "run" / "run.json").read_text())["inputs"]
    assert facts["encoder"] == "timm:resnet18"
    pixels = np.zeros((2, 3, SIZE, SIZE), dtype=np.float32)
    found = encoders.open_encoder(cl.Run.load(tmp_path / "run").facts.inputs)(pixels)
    network.reset_classifier(0)
    mean = torch.tensor(network.pretrained_cfg["mean"]).view(3, 1, 1)
    spread = torch.tensor(network.pretrained_cfg["std"]).view(3, 1, 1)
    with torch.no_grad():
        wanted = network.eval()((torch.zeros(2, 3, SIZE, SIZE) - mean) / spread)
    np.testing.assert_allclose(found, wanted.numpy(), atol=1e-5)
    done = in_process(capsys, *given, *encoder[:2], "-o", tmp_path / "other")
    assert "needs weights. To fix: pass --weights FILE" in done.err
