"""What must be said with every table of a setting: seeds, members, what differs from the paper."""

from collections.abc import Iterable, Mapping, Sequence

from credalearn.bench.catalogue import ALL_SETTINGS
from credalearn.bench.records import Record
from credalearn.bench.rehearsal import shortfalls
from credalearn.bench.seeds import (
    FEWEST_SEEDS,
    POCC_COLLAPSED,
    Runs,
    balance,
    compared_methods,
    count_of_seeds,
    paper_methods,
    runs_of,
)


def notes(
    records: Iterable[Record], setting: str, *, compared: Sequence[str] | None = None
) -> tuple[str, ...]:
    """What must be said with every table of the setting: seeds, members, what is missing.

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
        *_difference_notes(runs, setting),
    )


def how_made(runs: Runs, setting: str) -> list[str]:
    """Whose members ensembles share, and whether these are rehearsals.

    Example:
        >>> record = Record(
        ...     setting="cifar10h", method="deep-ensemble", seed=1, metrics={"accuracy": 0.9},
        ...     config={"members": "independent"},
        ... )
        >>> print(*how_made({"deep-ensemble": {1: record}}, "cifar10h"))
        Members of deep-ensemble are independent: every ensemble has five networks of its own.
    """
    record = next(record for found in runs.values() for record in found.values())
    known = ALL_SETTINGS.get(setting)
    short = shortfalls(record, None if known is None else known.recipe.epochs)
    return [*_member_notes(runs), *(f"A rehearsal: {each}." for each in short)]


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
    ensembles = {m: runs[m] for m in ("deep-ensemble", "pocc-ensemble") if m in runs}
    kinds: dict[str, list[str]] = {}
    for method, found in ensembles.items():
        held = {str(record.config.get("members", "not recorded")) for record in found.values()}
        kinds.setdefault(" and ".join(sorted(held)), []).append(method)
    said = {
        "shared": ": ensembles of neighbouring seeds have networks in common, so they differ less "
        "over the seeds than independent ones would",
        "independent": ": every ensemble has five networks of its own",
    }
    return [
        f"Members of {' and '.join(methods)} are {kind}{said.get(kind, '')}."
        for kind, methods in kinds.items()
    ]


def _difference_notes(runs: Runs, setting: str) -> list[str]:
    """Where these runs are not what the paper ran."""
    record = next(record for found in runs.values() for record in found.values())
    known = ALL_SETTINGS.get(setting)
    lines = []
    if known is not None and known.pretrained and record.config.get("weights") == "random":
        lines.append("The networks started from random weights, the paper's from pretrained ones.")
    missing = [method for method in paper_methods(setting) if method not in runs]
    if known is not None and missing:
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
