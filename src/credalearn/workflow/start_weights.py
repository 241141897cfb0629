"""Weights that a training starts from, and the items that they have seen."""

from pathlib import Path

import polars as pl

from credalearn.annotations.places import shown
from credalearn.errors import CredalError
from credalearn.workflow.digests import row_digests
from credalearn.workflow.folder import RunFolder
from credalearn.workflow.inputs import FeatureTable
from credalearn.workflow.joining import Prepared
from credalearn.workflow.known_items import known_items, with_digests
from credalearn.workflow.staging import MODEL


def run_of(weights: Path) -> RunFolder | None:
    """The run whose model a file of weights is; None where it lies in no run.

    Raises:
        CredalError: If the run is damaged.

    Example:
        >>> run_of(Path("resnet50.pt"))
    """
    folder = weights.resolve().parent
    if folder.name != MODEL or not (folder.parent / "items.parquet").exists():
        return None
    return RunFolder(folder.parent)


def seen_before(
    weights: Path, inputs: FeatureTable | Path, prepared: Prepared
) -> pl.DataFrame | None:
    """The items that weights were trained on in their run and that are no items of this one.

    Args:
        weights: The file.
        inputs: Features, or the folder of images.
        prepared: The items, split.

    Returns:
        Rows of ``items.parquet``; None for weights that lie in no run, of which nothing is known.

    Raises:
        CredalError: If an item of calibration or test is among those that were trained on.
    """
    run = run_of(weights)
    if run is None:
        return None
    digests = prepared.digests
    if not isinstance(inputs, Path):  # in the order of that run, if it has these features
        features = list(run.facts["inputs"]["features"])
        if sorted(features) == sorted(inputs.names):
            digests = row_digests(prepared.X[:, [inputs.names.index(name) for name in features]])
    seen = known_items(run, ["train"]).among(prepared.items, digests)
    both = zip(prepared.items, prepared.split, seen, strict=True)
    leaking = [item for item, split, trained in both if trained and split != "train"]
    if leaking:
        raise CredalError(
            f"{len(leaking):,} items of calibration or test were trained on in the run of "
            f"{weights}, such as {shown(leaking[0])}: they would promise too much. To fix: take "
            f"over the splits of {run.path / 'items.parquet'} with --split, or start from weights "
            "that were trained on other items."
        )
    here = pl.col("digest").is_in(digests).fill_null(pl.col("item").is_in(prepared.items))
    earlier = with_digests(run.items).filter(pl.col("split") == "train", ~here)
    return earlier.select("item", "split", "digest")


def doubt_of(weights: Path) -> str:
    """What to say of weights that lie in no run; empty for others.

    Raises:
        CredalError: If the run is damaged.

    Example:
        >>> doubt_of(Path("resnet50.pt"))
        'nothing tells what resnet50.pt was trained on: if items of calibration or test were among
        it, what is certified promises too much'
    """
    if run_of(weights) is not None:
        return ""
    return (
        f"nothing tells what {weights} was trained on: if items of calibration or test were among "
        "it, what is certified promises too much"
    )
