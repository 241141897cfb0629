"""What must be said with every table of a setting: seeds, members, what differs from the paper."""

from collections.abc import Iterable, Mapping, Sequence

from credalearn.methods import METHODS
from credalearn_experiments.plugins import PLUGIN_METHODS, PLUGIN_TASKS
from credalearn_experiments.records import Record
from credalearn_experiments.results.rehearsal import shortfalls
from credalearn_experiments.results.seeds import (
    FEWEST_SEEDS,
    POCC_COLLAPSED,
    Runs,
    balance,
    compared_methods,
    count_of_seeds,
    first_record,
    paper_methods,
    runs_of,
)
from credalearn_experiments.settings.catalog import ALL_SETTINGS, epochs_of


def notes(
    records: Iterable[Record],
    setting: str,
    *,
    compared: Sequence[str] | None = None,
    asked: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """What must be said with every table of the setting: seeds, members, what is missing.

    Args:
        records: Of any settings.
        setting: Name of the one wanted.
        compared: Methods whose balanced scores are compared; the paper's unless given.
        asked: Methods that the records were narrowed to, so that no other is missing; None for all.

    Example:
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.9})
        >>> print(notes([record], "cifar10h")[0])
        1 seed of every method.
    """
    runs = runs_of(records, setting)
    counts = {method: len(found) for method, found in runs.items()}
    lines = []
    if len(set(counts.values())) == 1:
        lines.append(f"{count_of_seeds(next(iter(counts.values())))} of every method.")
    else:
        shown = ", ".join(f"{method} {count}" for method, count in counts.items())
        lines.append(f"Seeds: {shown}.")
    return (
        *lines,
        *_balance_notes(runs, setting, compared),
        *how_made(runs, setting),
        *_difference_notes(runs, setting, asked),
    )


def how_made(runs: Runs, setting: str) -> list[str]:
    """Whose members ensembles share, whether a plugin is missing, whether these are rehearsals.

    Example:
        >>> record = Record(
        ...     setting="cifar10h", method="deep-ensemble", seed=1, metrics={"accuracy": 0.9},
        ...     config={"members": "independent", "member_seeds": [100, 101, 102, 103, 104]},
        ... )
        >>> print(*how_made({"deep-ensemble": {1: record}}, "cifar10h"))
        Members of deep-ensemble are independent: every ensemble has networks of its own.
    """
    short = shortfalls(first_record(runs), epochs_of(setting))
    held = [record for found in runs.values() for record in found.values()]
    return [*_member_notes(runs), *plugin_notes(held), *(f"A rehearsal: {each}." for each in short)]


def plugin_notes(records: Iterable[Record]) -> list[str]:
    """That the plugin of some records is not given, or was another file than the one given now.

    Where it is not given, nobody knows which runs are mere members.

    Example:
        >>> config = {"method_plugin": "sha256 0f"}
        >>> record = Record(setting="s", method="mine", seed=1, metrics={"a": 1.0}, config=config)
        >>> plugin_notes([record])[0].partition(":")[0]
        'Made with a plugin that is not given'
    """
    records = list(records)
    missing = any(
        ("method_plugin" in record.config and record.method not in METHODS)
        or ("task_plugin" in record.config and record.setting not in ALL_SETTINGS)
        for record in records
    )
    told = (
        "Made with a plugin that is not given: with --plugin FILE, networks that are only members "
        "of ensembles are left out."
    )
    return [*([told] if missing else []), *_edited(records)]


def _edited(records: Iterable[Record]) -> list[str]:
    """Which methods and tasks the plugin had another text for when the runs were made."""
    names: dict[tuple[str, str], dict[str, None]] = {}
    for record in records:
        for key, name, given in (
            ("method_plugin", record.method, PLUGIN_METHODS),
            ("task_plugin", str(record.config.get("task")), PLUGIN_TASKS),
        ):
            there = record.config.get(key)
            if there is not None and there != given.get(name, there):
                names.setdefault((there, given[name]), {})[name] = None
    return [
        f"Made with another version of the plugin file ({there} there, {here} here): "
        f"{', '.join(held)}."
        for (there, here), held in names.items()
    ]


def _balance_notes(runs: Runs, setting: str, compared: Sequence[str] | None) -> list[str]:
    methods = compared_methods(runs, setting, compared)
    found = balance(runs, methods)
    if found is None:
        return []
    over = count_of_seeds(len(found.seeds))
    lines = [f"BQS and BQS-ST compare {', '.join(methods)} over the {over} that all of them have."]
    if len(found.seeds) < FEWEST_SEEDS:
        lines.append(
            f"BQS-ST is left out: with fewer than {FEWEST_SEEDS} seeds no one-sided test at 5 % "
            "can be significant."
        )
    return lines


def _member_notes(runs: Runs) -> list[str]:
    kinds: dict[str, list[str]] = {}
    for method, found in runs.items():
        configs = [record.config for record in found.values()]
        if any(len(config.get("member_seeds", ())) > 1 for config in configs):
            held = {str(config.get("members", "not recorded")) for config in configs}
            kinds.setdefault(" and ".join(sorted(held)), []).append(method)
    said = {
        "shared": ": ensembles of neighboring seeds have networks in common, so they differ less "
        "over the seeds than independent ones would",
        "independent": ": every ensemble has networks of its own",
    }
    return [
        f"Members of {' and '.join(methods)} are {kind}{said.get(kind, '')}."
        for kind, methods in kinds.items()
    ]


def _difference_notes(runs: Runs, setting: str, asked: Sequence[str] | None) -> list[str]:
    """Where these runs are not what the paper ran."""
    record = first_record(runs)
    known = ALL_SETTINGS.get(setting)
    lines = []
    if known is not None and known.pretrained and record.config.get("weights") == "random":
        lines.append("The networks started from random weights, the paper's from pretrained ones.")
    expected: Sequence[str] = ()
    if known is not None:
        expected = known.methods if known.published is None else paper_methods(setting)
    missing = [m for m in expected if m not in runs and (asked is None or m in asked)]
    if missing:
        lines.append(f"Not in these tables: {', '.join(missing)}.")
    if known is not None and known.collapsed:
        lines.append(
            "As in the paper, pocc is trained on the labels as they are (setting "
            f"{known.task}), all others on collapsed labels; {POCC_COLLAPSED!r} is ours."
        )
    partial = sorted(
        {
            f"{metric} of {method}"
            for method, found in runs.items()
            for metric in {name for record in found.values() for name in record.metrics}
            if any(metric not in record.metrics for record in _of_its_table(metric, found))
        }
    )
    if partial:
        lines.append(f"Not on every seed, so left out: {', '.join(partial)}.")
    return lines


def _of_its_table(metric: str, found: Mapping[int, Record]) -> list[Record]:
    """The records that a metric's table counts: for an AUROC those that have one of its kind."""
    kind = next((each for each in ("auroc_training_", "auroc_") if metric.startswith(each)), "")
    return [r for r in found.values() if any(name.startswith(kind) for name in r.metrics)]
