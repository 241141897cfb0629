"""Print the options of every verb as Markdown tables, from the dataclasses that state them."""

from collections.abc import Iterator
from dataclasses import Field, fields
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from credalearn._formats import escape_markdown

STATED = {  # by verb: its command, and where its options are stated
    "cl.read_annotations": ("inspect, train, import, recalibrate", "readers.options.RoundOptions"),
    "annotations.inspect": ("inspect", "steps.inspect.InspectOptions"),
    "cl.Dataset": ("train", "dataset.DatasetOptions"),
    "cl.Run.train": ("train", "steps.train.TrainOptions"),
    "cl.Run.from_predictions": ("import", "steps.import_predictions.ImportOptions"),
    "run.certify": ("certify", "steps.certify_options.CertifyOptions"),
    "run.predict": ("predict", "steps.predict.PredictOptions"),
    "run.defer": ("defer", "steps.defer.DeferOptions"),
    "run.recalibrate": ("recalibrate", "steps.recalibrate.RecalibrateOptions"),
    "run.report": ("report", "steps.report.ReportOptions"),
    "run.export": ("export", "steps.export.ExportOptions"),
}


def kind_of(hint: Any) -> str:
    """A type in words: its choices, or its name."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(kind_of(part) for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is Literal:
        return ", ".join(map(repr, get_args(hint)))
    if get_origin(hint) is tuple:
        return f"list of {kind_of(get_args(hint)[0])}"
    names = {str: "text", "Path": "path", Any: "table"}
    return names.get(hint, names.get(getattr(hint, "__name__", ""), getattr(hint, "__name__", "")))


def row(option: Field[Any], hint: Any) -> str:
    """One option: keyword, type, default and help."""
    default = option.metadata.get("show_default") or repr(option.default)
    cells = (kind_of(hint), default, option.metadata["help"])
    return f"| `{option.name}` | {' | '.join(map(escape_markdown, cells))} |"


def tables() -> Iterator[str]:
    """A table for each verb."""
    for verb, (command, place) in STATED.items():
        module, _, name = place.rpartition(".")
        stated = getattr(import_module(f"credalearn.app.{module}"), name)
        hints = get_type_hints(stated)
        shown = [row(each, hints[each.name]) for each in fields(stated) if "help" in each.metadata]
        head = "| option | type | default | what it does |\n| :-- | :-- | :-- | :-- |"
        yield f"## `{verb}`\n\nOn the command line: `{command}`.\n\n{head}\n" + "\n".join(shown)


if __name__ == "__main__":
    print("\n\n".join(tables()))
