"""A small finished run, made in a second, for the tests of what comes after training."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.special import softmax

import credalearn as cl
from credalearn._files import sha256_of
from credalearn.app.facts import InputFacts
from credalearn.app.features import row_digests
from credalearn.app.run import Run
from credalearn.guarantees import Guarantee
from fake_run import training_options, write_folder

CLASSES = ("cat", "dog", "=owl")
FEATURES = ("size", "weight", "seen")


def features(num_items: int, *, random_state: int = 0) -> np.ndarray:
    """Three columns; the last is seconds since 1970, which float32 cannot tell apart."""
    rng = np.random.default_rng(random_state)
    values = rng.normal(size=(num_items, 3))
    values[:, 2] = 1.7e9 + 5 * values[:, 2]
    return values


def votes(values: np.ndarray, *, random_state: int = 1) -> np.ndarray:
    """Five annotators, who disagree where the first two columns are near 0."""
    rng = np.random.default_rng(random_state)
    logits = 3 * np.stack([values[:, 0], values[:, 1], -values[:, 0] - values[:, 1]], axis=1)
    return np.array([rng.multinomial(5, share) for share in softmax(logits, axis=1)])


def make_run(folder: Path, *, method: str = "pocc", rule: bool = True, num_items: int = 120) -> Run:
    """Train on half of the items and write what ``credalearn train`` writes."""
    values = features(num_items)
    counts = votes(values)
    half = num_items // 2
    more: dict[str, Any] = {} if method == "auto" else {"epochs": 5}
    clf = cl.CredalClassifier(method, random_state=0, **more)
    clf.fit(values[:half], cl.from_votes(counts[:half]), classes=list(CLASSES))
    inputs = InputFacts(kind="features", path="items.csv", features=FEATURES)
    return finish_run(folder, clf, values, counts, row_digests(values), inputs, rule=rule)


def make_pictures(folder: Path, num_images: int, size: int) -> np.ndarray:
    """PNG files of noise, and their pixels."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (num_images, size, size, 3), dtype=np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{number:03d}.png")
    return pixels.transpose(0, 3, 1, 2)


def make_image_run(folder: Path, pictures: Path, counts: np.ndarray) -> Run:
    """A run on as many of the images in a folder as there are rows of votes, in their order."""
    files = sorted(pictures.rglob("*.png"))[: len(counts)]
    images = np.stack([np.asarray(Image.open(file)).transpose(2, 0, 1) for file in files])
    clf = cl.CredalClassifier(backbone="resnet18", epochs=1, random_state=0, device="cpu")
    X = images.astype(np.float32)
    clf.fit(X[: len(X) // 2], cl.from_votes(counts[: len(X) // 2]), classes=list(CLASSES))
    inputs = InputFacts(kind="images", path=str(pictures), image_size=images.shape[2])
    digests = [sha256_of(file) for file in files]
    return finish_run(folder, clf, X, counts, digests, inputs, rule=True)


def finish_run(
    folder: Path,
    clf: cl.CredalClassifier,
    X: np.ndarray,
    counts: np.ndarray,
    digests: list[str],
    inputs: InputFacts,
    *,
    rule: bool,
) -> Run:
    """The files of a run; the second half of the items is calibration and test."""
    clf.save(folder / "model")
    half = len(X) // 2
    split = ["train"] * half + [("calibration", "test")[row % 2] for row in range(len(X) - half)]
    run = write_folder(
        folder,
        [f"item-{row}" for row in range(len(X))],
        np.array(split),
        counts,
        counts.argmax(1),
        digests,
        clf.predict_credal(X[half:]),
        classes=CLASSES,
        inputs=inputs,
        options=training_options(method=clf.method, backbone=clf.backbone, epochs=clf.epochs),
        model_sha256=json.loads((folder / "model" / "config.json").read_text())["weights_sha256"],
    )
    return with_rule(run) if rule else run


def with_rule(run: Run) -> Run:
    """The run with a guarantee that keeps half of the calibration items."""
    num_items = len(run.predictions) // 2
    rule = Guarantee(
        method="sgr",
        against="majority",
        threshold=float(np.median(run.predictions["score"])),
        num_items=num_items,
        kept=num_items // 2,
        errors=0.0,
        max_error=0.1,
        confidence=0.95,
        bound=0.09,
    )
    return run.keeping(guarantee=rule)
