"""The command that calibrates a trained model again, on items that were annotated later."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from credalearn.app.cli.inputs import (
    check_inputs,
    decimal_commas,
    left_out,
    read_inputs,
    row_numbers,
)
from credalearn.app.cli.options import (
    Export,
    Features,
    Gold,
    Group,
    Images,
    Output,
    Run,
    Seed,
    SkipMissing,
    Table,
)
from credalearn.app.cli.reading import Reading, reads_export

if TYPE_CHECKING:
    from credalearn.app.run import Run as LoadedRun
    from credalearn.guarantees import Guarantee


@partial(reads_export, without=("classes",))  # those of the run hold
def recalibrate(
    run: Run,
    export: Export,
    output: Output,
    features: Features = None,
    images: Images = None,
    group: Group = None,
    gold: Gold = None,
    split: Annotated[
        str | None, typer.Option(help="Column beside the features: calibration or test.")
    ] = None,
    table: Table = None,
    random_state: Seed = 0,
    skip_missing: SkipMissing = False,
    *,
    reading: Reading,
) -> None:
    """Take a trained model to new items: does it still hold? Nothing is trained."""
    from credalearn.app.joined.options import RecalibrateOptions
    from credalearn.app.run import Run as LoadedRun
    from credalearn.app.steps.inspecting import inspection
    from credalearn.app.steps.recalibrating import (
        arrays_beside,
        check_kind,
        check_new_place,
        doubts,
        known_item,
        read_new,
        recalibrate_run,
    )
    from credalearn.app.steps.still_holding import still_holding

    check_inputs(features, images, table)
    options = RecalibrateOptions(
        group=group, gold=gold, split=split, random_state=random_state, skip_missing=skip_missing
    )
    old = LoadedRun.load(run)
    check_new_place(old, output)  # before a large export is read
    if images is not None:
        check_kind(old, images, "images")
    elif features:
        check_kind(old, features[0], "features")
    item = reading["item"] or known_item(old, export)  # of the votes; features have their own
    found = read_new(old, export, {**reading, "item": item})
    inputs, columns = read_inputs(
        features,
        images,
        table,
        options.columns,
        source=found.source,
        asked=reading,
        optional=[gold] if gold and gold not in (group, split) else (),
        drop=arrays_beside(old, features or (), options.columns),
        names=old.facts.inputs.features,
        item=old.facts.inputs.item,
    )
    for line in (*inspection(found), *row_numbers(features), *decimal_commas(inputs)):
        print(line)
    new = recalibrate_run(old, output, found, inputs, options, columns=columns)
    told = (*left_out(new), *doubts(old, new, options), *still_holding(old, new), *_next(old, new))
    for line in told:
        print(line)


def _next(old: "LoadedRun", new: "LoadedRun") -> Iterator[str]:
    splits, rule, sets = new.facts.splits, old.guarantee, old.sets
    sizes = f"{splits.calibration:,} calibration, {splits.test:,} test"
    yield f"{new.path}: the model of {old.path}, not trained again; {sizes}"
    yield (
        "what is certified on these items holds for items that come as they did: a random sample, "
        "not those that were deferred"
    )
    more = "" if sets is None else f" --set-coverage {sets.coverage:g}"
    yield f"next: credalearn certify {new.path} {_as_before(rule)}{more}"


def _as_before(rule: "Guarantee | None") -> str:
    """The options of `certify` that ask for such a rule."""
    if rule is None:
        return "--max-error 0.10"
    if rule.max_error is None:
        return f"--capacity {1 - rule.coverage:.2g}"
    told = f"--max-error {rule.max_error:g}"
    if rule.method != "sgr":
        told += f" --method {rule.method}"
    if rule.confidence not in (None, 0.95):
        told += f" --confidence {rule.confidence:g}"
    if rule.against == "a random annotator":
        told += " --against annotator"
    return f"{told} --one-per-group" if rule.one_per_group else told
