"""The commands from an annotation export to a trained model, each a thin face of a step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.app.cli.inputs import (
    left_out,
)
from credalearn.app.cli.options import (
    Augment,
    Augmentation,
    BatchSize,
    Conflicts,
    Device,
    Export,
    Features,
    Gold,
    Group,
    Images,
    Labels,
    LearningRate,
    Merge,
    MergeConflicts,
    MergeItem,
    Method,
    Output,
    Seed,
    Skill,
    SkipMissing,
    Table,
    Weights,
)
from credalearn.app.cli.reading import Reading, reads_export

if TYPE_CHECKING:
    from credalearn.app.run import Run

# Mean diameter of labels. POCC on Clopper–Pearson labels of CIFAR-10H's features: at .84 (three
# votes) chance, at .68 (five) 20 points below softmax, at .46 (ten) level with it.
_MUCH_OPEN = 0.6


@reads_export
def inspect(
    export: Export,
    merge: Merge = None,
    merge_item: MergeItem = None,
    merge_conflicts: MergeConflicts = Conflicts.refuse,
    rules: Annotated[
        bool, typer.Option("--rules", help="Compare label rules on held-out annotators.")
    ] = False,
    *,
    reading: Reading,
) -> None:
    """Show what an export contains and where annotators disagree."""
    from credalearn.app.joined.rounds import read_rounds
    from credalearn.app.steps.inspect import inspect

    found = read_rounds(
        export, merge or (), reading, items=merge_item or (), conflicts=merge_conflicts.value
    )
    lines = inspect(found).lines()
    if rules:
        from credalearn.app.steps.rules import compare_rules

        lines += compare_rules(found).lines()
    for line in lines:
        print(line)


@reads_export
def train(
    export: Export,
    output: Output,
    features: Features = None,
    images: Images = None,
    labels: Annotated[Labels, typer.Option(help="What votes become.")] = Labels.relax_ties,
    s: Annotated[
        float, typer.Option("--s", help="Strength of the imprecise Dirichlet model (idm).")
    ] = 1.0,
    confidence: Annotated[float, typer.Option(help="Of the label rules that promise one.")] = 0.95,
    skill: Annotated[
        Skill, typer.Option(help="Whether votes count alike, or by the annotators' skill.")
    ] = Skill.equal,
    method: Method = "pocc",
    backbone: Annotated[
        str | None,
        typer.Option(
            help="mlp, resnet18, wrn-28-4, timm:NAME, torchvision:NAME.",
            show_default="mlp for features, resnet18 for images",
        ),
    ] = None,
    weights: Weights = None,
    group: Group = None,
    gold: Gold = None,
    split: Annotated[
        str | None, typer.Option(help="Column beside the features: train, calibration or test.")
    ] = None,
    table: Table = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column to leave out; may be repeated.")
    ] = None,
    image_size: Annotated[int, typer.Option(min=8, help="Pixels that images become.")] = 64,
    augment: Augmentation = Augment.none,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training items.")] = 50,
    learning_rate: LearningRate = 1e-3,
    batch_size: BatchSize = 128,
    device: Device = "auto",
    random_state: Seed = 0,
    skip_missing: SkipMissing = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a run there that has a rule or sets."),
    ] = False,
    merge: Merge = None,
    merge_item: MergeItem = None,
    merge_conflicts: MergeConflicts = Conflicts.refuse,
    *,
    reading: Reading,
) -> None:
    """Train a model on annotated items; killed and called again, it goes on where it stopped."""
    from credalearn.app.dataset import Dataset
    from credalearn.app.joined.rounds import read_rounds
    from credalearn.app.staging import CHECKPOINTS, check_place, partial_of
    from credalearn.app.steps.inspecting import inspection
    from credalearn.app.steps.train import TrainOptions
    from credalearn.app.steps.train import train as train_run

    options = TrainOptions(
        labels=labels.value,
        s=s,
        confidence=confidence,
        skill=skill.value,
        method=method,
        backbone=backbone,
        weights=weights,
        augment=augment.value,
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        device=device,
        random_state=random_state,
        overwrite=overwrite,
        verbose=True,
    )
    check_place(output, overwrite=overwrite)  # before a large export is read
    found = read_rounds(
        export,
        merge or (),
        reading,
        items=merge_item or (),
        images=images,
        conflicts=merge_conflicts.value,
    )
    data = Dataset(
        found,
        features=tuple(features or ()),
        images=images,
        group=group,
        gold=gold,
        split=split,
        table=table,
        drop=tuple(drop or ()),
        item=reading["item"],
        skip_missing=skip_missing,
        image_size=image_size,
        random_state=random_state,
    )
    for line in (*inspection(found), *data.inspect()):
        print(line)
    try:
        run = train_run(data, output, options)
    except KeyboardInterrupt:
        if any(partial_of(output).glob(CHECKPOINTS)):
            raise KeyboardInterrupt("the same command goes on where it stopped") from None
        raise
    for line in _trained(run):
        print(line)


def _trained(run: "Run") -> Iterator[str]:
    from credalearn.methods import METHODS

    facts = run.facts
    yield from left_out(run)
    open_sets = facts.label_diameter > _MUCH_OPEN
    if open_sets and METHODS[facts.method].learns_sets:
        under, fix = f" under {facts.label_rule!r}", "collect more votes an item"
        if run.said == "bounds":  # as they were stated, whatever the rule
            under, fix = "", "state larger bounds"
        elif facts.label_rule != "relax-ties":
            fix = f"give --labels relax-ties, or {fix}"
        yield (
            f"the labels leave much open (mean diameter {facts.label_diameter:.2f} "
            f"of 1{under}): little can be learned from them. To fix: {fix}"
        )
    if facts.later_items:
        yield (
            f"{facts.later_items:,} items of later exports are only trained on: who defers "
            "chooses hard ones, and what is certified must be about items as they come"
        )
    sizes = ", ".join(f"{number:,} {name}" for name, number in facts.splits.sizes.items())
    yield f"{run.path}: trained {facts.method} in {facts.seconds:.1f} s; {sizes}"
    yield f"next: credalearn certify {run.path} --max-error 0.10"
