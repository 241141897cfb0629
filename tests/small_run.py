"""A small finished run, made in a second, for the tests of what comes after training."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image
from scipy.special import softmax

import credalearn as cl
from credalearn.app.run import Run
from credalearn.guarantees import by_capacity

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


def trained(
    folder: Path, table: pl.DataFrame, counts: np.ndarray, inputs: dict[str, Any], **options: Any
) -> Run:
    """The first half of the items is trained on; the second is calibration and test."""
    said = table.select("item").with_columns(**dict(zip(CLASSES, counts.T, strict=True)))
    annotations = cl.read_annotations(said, format="counts", classes=CLASSES)
    return cl.Run.train(cl.Dataset(annotations, split="part", **inputs), folder, **options)


def halves(names: list[str]) -> pl.DataFrame:
    """The items with their splits."""
    part = [("calibration", "test")[n % 2] for n in range(len(names))]
    part[: len(names) // 2] = ["train"] * (len(names) // 2)
    return pl.DataFrame({"item": names, "part": part})


def make_run(folder: Path, *, method: str = "pocc", rule: bool = True, num_items: int = 120) -> Run:
    """A run on features, by ``credalearn train``."""
    values = features(num_items)
    table = halves([f"item-{row}" for row in range(num_items)]).with_columns(
        **dict(zip(FEATURES, values.T, strict=True))
    )
    more: dict[str, Any] = {} if method == "auto" else {"epochs": 5, "device": "cpu"}
    run = trained(folder, table, votes(values), {"features": table}, method=method, **more)
    return with_rule(run) if rule else run


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
    table = halves([file.stem for file in sorted(pictures.rglob("*.png"))[: len(counts)]])
    inputs = {"images": pictures, "image_size": 8, "table": table}
    options = {"method": "pocc", "epochs": 1, "device": "cpu"}
    return with_rule(trained(folder, table, counts, inputs, **options))


def with_rule(run: Run) -> Run:
    """The run with a guarantee that keeps half of the calibration items."""
    found = run.held_out("calibration")
    half = by_capacity(found["score"], found["wrong"].fill_null(value=False), defer=0.5)
    return run.keeping(guarantee=half)
