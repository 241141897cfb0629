"""Frozen encoders: texts and images as features, by weights that training does not change."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from credalearn._files import sha256_of, whole_file
from credalearn.app.facts import InputFacts
from credalearn.errors import CredalError

Encode = Callable[[np.ndarray], np.ndarray]  # from items to features, float32 (N, D)
_BATCH = 256


def encode_once(
    X: Any, digests: Sequence[str], inputs: InputFacts, encoder: str, weights: str | Path | None
) -> tuple[np.ndarray, InputFacts]:
    """Features in place of texts or images, which have these digests."""
    name, _, rest = encoder.partition(":")
    if name in ("run", "sentence-transformers"):  # so that later commands may run elsewhere
        encoder = f"{name}:{Path(rest).resolve()}"
    file = None if weights is None else str(Path(weights).resolve())
    inputs = replace(inputs, encoder=encoder, encoder_weights=file)
    encode, sha256 = _opened(inputs)
    key = hashlib.sha256("".join((inputs.encoder, sha256, *digests)).encode()).hexdigest()
    cache = Path(os.environ.get("CREDALEARN_CACHE") or Path.home() / ".cache" / "credalearn")
    path = cache / f"{key}.npy"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial, partial.open("wb") as output:
            np.save(output, _in_batches(encode, np.asarray(X)))
    return np.load(path, allow_pickle=False), replace(inputs, encoder_sha256=sha256)


def open_encoder(inputs: InputFacts) -> Encode:
    """The encoder that a model was trained with."""
    encode, sha256 = _opened(inputs)
    if sha256 != inputs.encoder_sha256:
        raise CredalError(
            f"the weights of the encoder {inputs.encoder!r} are not those of training. To fix: "
            "restore them, or train again."
        )
    return lambda items: _in_batches(encode, items)


def _in_batches(encode: Encode, items: np.ndarray) -> np.ndarray:
    starts = range(0, len(items), _BATCH)
    return np.concatenate([encode(items[start : start + _BATCH]) for start in starts])


def _opened(inputs: InputFacts) -> tuple[Encode, str]:
    """What encodes such items, and the SHA-256 of its weights."""
    every: dict[str, dict[str, Callable[[InputFacts, Path], tuple[Encode, str]]]] = {
        "texts": {"wordllama": _wordllama, "sentence-transformers": _sentences},
        "images": {"timm": _network, "torchvision": _network, "run": _backbone},
    }
    known = every.get(inputs.kind, {})
    name, _, rest = inputs.encoder.partition(":")
    if name not in known:
        names = ["tfidf", *known] if inputs.kind == "texts" else known
        rule = f"the encoder of {inputs.kind} must be one of {', '.join(names)}"
        rule = rule if known else "features need no encoder"
        raise CredalError(f"{rule}; got {inputs.encoder!r}. To fix: correct or leave out encoder=.")
    return known[name](inputs, Path(rest))


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        extra = "sentence-transformers" if name.startswith("sentence") else "wordllama"
        raise CredalError(
            f"the encoder {extra} cannot be imported: {error}. To fix: pip install "
            f"'credalearn[{extra}]'."
        ) from error


def _wordllama(inputs: InputFacts, _: Path) -> tuple[Encode, str]:
    """The mean embedding of a text's tokens, from the files of the package."""
    from safetensors.numpy import load_file

    # Its loader looks for the tokenizer in another folder than the one that it is in.
    spec, tokenizers = find_spec("wordllama"), _package("tokenizers")
    folder = Path((spec and spec.origin) or "wordllama").parent
    files = [*folder.glob("weights/*_256.safetensors"), *folder.glob("tokenizer*/*config.json")]
    if len(files) != 2:
        raise CredalError(
            f"{inputs.encoder}'s weights and tokenizer are not in {folder}. To fix: pip install "
            "'credalearn[wordllama]'."
        )
    (table,) = load_file(files[0]).values()
    tokenizer = tokenizers.Tokenizer.from_file(str(files[1]))

    def encode(texts: np.ndarray) -> np.ndarray:
        found = tokenizer.encode_batch(texts.tolist(), add_special_tokens=False)
        tokens = [np.minimum(each.ids, len(table) - 1) if each.ids else [0] for each in found]
        return np.stack([table[each].astype(np.float32).mean(0) for each in tokens])

    return encode, sha256_of(files[0])


def _sentences(_: InputFacts, folder: Path) -> tuple[Encode, str]:
    """A saved model of sentence-transformers."""
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        raise CredalError(
            f"{folder} contains no .safetensors file. To fix: save a model of "
            "sentence-transformers there, and pass encoder='sentence-transformers:FOLDER'."
        )
    package = _package("sentence_transformers")
    model = package.SentenceTransformer(str(folder), device="cpu", local_files_only=True)

    def encode(texts: np.ndarray) -> np.ndarray:
        return np.asarray(model.encode(texts.tolist(), show_progress_bar=False), dtype=np.float32)

    return encode, hashlib.sha256("".join(map(sha256_of, weights)).encode()).hexdigest()


def _network(inputs: InputFacts, _: Path) -> tuple[Encode, str]:
    """A published network without its classifier, on images standardized as it was trained."""
    import torch

    from credalearn.nets import build_backbone

    if inputs.encoder_weights is None:
        raise CredalError(f"{inputs.encoder!r} needs weights. To fix: pass weights='FILE'.")
    path, size = Path(inputs.encoder_weights), inputs.image_size or 0
    network: Any = build_backbone(inputs.encoder, (3, size, size), weights=path).eval()
    published = getattr(network.network, "pretrained_cfg", {})  # else as on ImageNet
    mean, scale = network.standardize.mean, network.standardize.scale
    mean.copy_(255 * torch.tensor(published.get("mean", (0.485, 0.456, 0.406))))
    scale.copy_(255 * torch.tensor(published.get("std", (0.229, 0.224, 0.225))))

    def encode(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(network(torch.from_numpy(images)).flatten(1))

    return encode, sha256_of(path)


def _backbone(inputs: InputFacts, folder: Path) -> tuple[Encode, str]:
    """The network that a run trained on images of this size."""
    import torch

    from credalearn._load import load

    clf = load(folder / "model")
    if len(clf._input_shape) != 3:
        raise CredalError(f"the model of {folder} takes no images. To fix: pass a run of images.")
    if clf._input_shape != (3, inputs.image_size, inputs.image_size):
        raise CredalError(
            f"the model of {folder} takes items of shape {clf._input_shape}. To fix: pass "
            f"image_size={clf._input_shape[-1]}."
        )
    return lambda x: clf.model_.outputs(torch.from_numpy(x)).features.numpy(), clf.weights_sha256_
