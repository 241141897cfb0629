"""The command ``train``."""

from collections.abc import Iterator
from dataclasses import fields, replace

from credalearn.app.cli._arguments import Export, NewRun
from credalearn.app.dataset import Dataset, DatasetOptions
from credalearn.app.readers import read_rounds
from credalearn.app.readers.options import RoundOptions
from credalearn.app.staging import CHECKPOINTS, check_place, partial_of
from credalearn.app.steps.train import TrainOptions
from credalearn.app.steps.train import train as train_run


def train(
    export: Export,
    output: NewRun,
    reading: RoundOptions,
    inputs: DatasetOptions,
    options: TrainOptions,
) -> Iterator[str]:
    """See ``steps.train``."""
    check_place(output, overwrite=options.overwrite)  # before a large export is read
    given = {each.name: getattr(inputs, each.name) for each in fields(inputs)}
    data = Dataset(read_rounds(export, reading), **given)
    yield from data.inspect()
    try:
        run = train_run(data, output, replace(options, verbose=True))
    except KeyboardInterrupt:
        left = any(partial_of(output).glob(CHECKPOINTS))
        what = "the same command resumes where it stopped" if left else "nothing was written"
        raise KeyboardInterrupt(what) from None
    facts = run.facts
    sizes = ", ".join(f"{number:,} {name}" for name, number in facts.splits.sizes.items())
    yield f"Trained {facts.method} in {facts.seconds:.1f} s on {output}: {sizes} items."
    if facts.later_items:
        yield (
            f"{facts.later_items:,} items of later exports are trained on only: guarantees are "
            "about items as they come, and later items were chosen."
        )
    if facts.label_diameter > 0.6:
        # POCC on Clopper-Pearson labels of CIFAR-10H: at .84 (three votes) chance, at .68 (five)
        # 20 points below softmax, at .46 (ten) level with it.
        yield (
            f"The labels leave much open (mean diameter {facts.label_diameter:.2f} of 1): little "
            "can be learned from them. To fix: collect more votes, or --labels relax-ties."
        )
    yield f"Next: credalearn certify {output} --max-error 0.10"
