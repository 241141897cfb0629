"""The command ``train``."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from credalearn._formats import listed, many
from credalearn._options import keywords
from credalearn.app.annotations.class_map import count_mapped, parse_map
from credalearn.app.cli._command import Export, NewRun
from credalearn.app.dataset import Dataset, DatasetOptions
from credalearn.app.readers import read_later, read_rounds
from credalearn.app.readers.options import RoundOptions
from credalearn.app.run import Run
from credalearn.app.staging import CHECKPOINTS, check_place, partial_of
from credalearn.app.steps.inspect import count_conflicts
from credalearn.app.steps.train import TrainOptions
from credalearn.app.steps.train import train as train_run
from credalearn.methods import METHODS

# Mean diameter of labels. POCC on Clopper–Pearson labels of CIFAR-10H's features: at .84 (three
# votes) chance, at .68 (five) 20 points below softmax, at .46 (ten) level with it.
_MUCH_OPEN = 0.6


def train(
    export: Export,
    output: NewRun,
    rounds: RoundOptions,
    inputs: DatasetOptions,
    options: TrainOptions,
) -> Iterator[str | dict[str, Any]]:
    """See ``steps.train``."""
    check_place(output, overwrite=options.overwrite)  # before a large export is read
    votes = read_rounds(export, rounds)
    official = {
        name: read_later(path, votes, rounds)
        for name in ("validation", "test")
        if (path := getattr(inputs, name)) is not None
    }
    data = Dataset(votes, **keywords(inputs) | official)
    classes = f"{many(len(votes.classes), 'class', 'classes')}: {listed(votes.classes)}"
    yield f"{export}: {votes.source.words}; {many(len(votes.items), 'item')}, {classes}"
    if rounds.map:
        yield f"Map: {count_mapped(data.annotations, parse_map(rounds.map))}"
    if conflicts := count_conflicts(data.annotations):
        yield f"Labels as stated; {conflicts}"
    yield from data.inspect()
    try:
        run = train_run(data, output, replace(options, verbose=True))
    except KeyboardInterrupt:
        if any(partial_of(output).glob(CHECKPOINTS)):
            raise KeyboardInterrupt("the same command continues where it stopped") from None
        raise KeyboardInterrupt("nothing was written") from None
    facts = run.facts
    for why, count in facts.inputs.left_out.items():
        if why not in data.inputs.left_out:  # which data.inspect() has named
            yield f"Left out: {many(count, 'item')} {why}"
    yield from _advice(run)
    yield from facts.comparison.lines if facts.comparison is not None else ()
    scores: dict[str, float] = {}
    if inputs.test is not None:
        from credalearn.app.steps.voted_items import soft_scores
        from credalearn.guarantees.truths import TRUTHS

        scores = soft_scores(run)
        if scores:
            yield (
                f"{scores['items']:,} test items: cross-entropy {scores['cross_entropy']:.3f} to "
                f"the votes; micro-F1 (accuracy) {scores['micro_f1']:.3f} against "
                f"{TRUTHS[run.truth]}, {scores['judged_items']:,} items"
            )
    sizes = ", ".join(f"{number:,} {name}" for name, number in facts.splits.sizes.items())
    yield f"Wrote {output}: {facts.learner}, trained in {facts.seconds:.1f} s; items: {sizes}."
    yield f"Next: credalearn certify {output} --max-error 0.10"
    yield {"run": output, **asdict(facts), "test_scores": scores}


def _advice(run: Run) -> Iterator[str]:
    facts = run.facts
    yield from filter(None, [facts.leak_warning])
    learns_sets = facts.method == "auto" or METHODS[facts.method].learns_sets
    if facts.label_diameter > _MUCH_OPEN and learns_sets:
        fix = "collect more votes per item"
        if run.answers == "bounds" or run.facts.annotations.stated:
            fix = "state larger bounds"
        elif facts.label_rule != "relax-ties":
            fix = f"pass --labels relax-ties, or {fix}"
        size = f"mean diameter {facts.label_diameter:.2f} of 1"
        yield f"The labels are wide ({size}), so there is little to learn. To fix: {fix}."
    if facts.later_items:
        yield (
            f"{facts.later_items:,} items of later rounds are used for training only: people chose "
            "them, and a guarantee is about items as they come."
        )
