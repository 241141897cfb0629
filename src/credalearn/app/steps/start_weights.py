"""Weights that a training starts from, and the items that they have seen."""

from pathlib import Path

import polars as pl

from credalearn.app.annotations.places import shown
from credalearn.app.items.inputs import FeatureTable
from credalearn.app.items.known import known_items
from credalearn.app.joined.joining import Prepared
from credalearn.app.run.folder import RunFolder
from credalearn.app.run.staging import MODEL
from credalearn.errors import CredalError


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
    weights: Path, inputs: FeatureTable | Path, prepared: Prepared, *, group: str | None
) -> pl.DataFrame | None:
    """The items that weights were trained on in their run and that are no items of this one.

    Args:
        weights: The file.
        inputs: Features, or the folder of images.
        prepared: The items, split.
        group: Column of what they belong to.

    Returns:
        Rows of ``items.parquet``; None for weights that lie in no run, of which nothing is known.

    Raises:
        CredalError: If that run has other features or the same in another order, or an item of
            calibration or test, or one of its group, is among those that were trained on.
    """
    run = run_of(weights)
    if run is None:
        return None
    if not isinstance(inputs, Path):
        _check_features(weights, list(run.facts["inputs"]["features"]), list(inputs.names))
    trained = run.items.filter(split="train")
    if run.trained_group != group:
        trained = trained.with_columns(group=pl.lit(None, dtype=pl.String))
    seen = known_items(run, ["train"]).among(prepared.items, prepared.digests)
    groups = set(trained["group"].drop_nulls())
    related = [str(each) in groups for each in prepared.groups or [None] * len(seen)]
    _refuse_leak(weights, prepared, seen, "were trained on")
    _refuse_leak(weights, prepared, related, f"are of a {group!r} that was trained on")
    new = trained.filter(~pl.col("digest").is_in(prepared.digests))
    return new.select("item", "split", "group", "digest")


def doubts_of(weights: Path, group: str | None) -> list[str]:
    """What nothing can tell of items that weights have seen.

    Args:
        weights: The file.
        group: Column of what the items belong to that are trained on now.

    Raises:
        CredalError: If the run is damaged.

    Example:
        >>> doubts_of(Path("resnet50.pt"), None)
        ['nothing tells what resnet50.pt was trained on: if items of calibration or test were among
        it, what is certified promises too much']
    """
    run = run_of(weights)
    if run is None:
        return [
            f"nothing tells what {weights} was trained on: if items of calibration or test were "
            "among it, what is certified promises too much"
        ]
    lines = []
    before = run.trained_group
    if before != group:
        how = "without groups" if before is None else f"with --group {before}"
        lines.append(
            f"{weights} was trained {how}: nothing tells which items of calibration or test are of "
            "groups that it has seen"
        )
    if known_items(run, ["train"]).alike:
        lines.append(
            f"many items of {run.path} have the features of another: only items with the name and "
            "the features of one that its weights have seen are told"
        )
    return lines


def _check_features(weights: Path, theirs: list[str], ours: list[str]) -> None:
    if theirs == ours:
        return
    one, other = next(pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1])
    what, fix = "other features", "start without them, or give the features that they are for"
    if sorted(theirs) == sorted(ours):
        what, fix = "these features in another order", "put the columns into the same order"
    raise CredalError(
        f"{weights} holds weights for {what}: {shown(one)} where here is {shown(other)}. To fix: "
        f"{fix}."
    )


def _refuse_leak(weights: Path, prepared: Prepared, seen: list[bool], what: str) -> None:
    both = zip(prepared.items, prepared.split, seen, strict=True)
    leaking = [item for item, split, trained in both if trained and split != "train"]
    if leaking:
        raise CredalError(
            f"{len(leaking):,} items of calibration or test {what} for the weights in {weights}, "
            f"such as {shown(leaking[0])}: they would promise too much. To fix: name splits with "
            "--split that put such items into train, or start from weights that were trained on "
            "other items."
        )
