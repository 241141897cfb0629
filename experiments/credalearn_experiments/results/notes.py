"""What must be stated with a table or figure: seeds, ensembles, rehearsals, what is missing."""

from collections.abc import Collection

from credalearn._formats import enumerated
from credalearn_experiments.results.balance import FEWEST_SEEDS, Balance, paper_methods
from credalearn_experiments.results.seeds import POCC_COLLAPSED, Nested, Runs, records_in, seeds
from credalearn_experiments.settings.catalog import ALL_SETTINGS

_SHARED = (
    ": ensembles of neighboring seeds have networks in common, so they differ less over the seeds "
    "than independent ones would"
)


def notes(runs: Runs, setting: str, compared: Balance | None = None) -> list[str]:
    """The notes on the tables of a setting."""
    counts = {method: len(found) for method, found in runs.items()}
    each = ", ".join(f"{method} {count}" for method, count in counts.items())
    same = len(set(counts.values())) == 1
    lines = [f"{seeds(max(counts.values()))} of every method." if same else f"Seeds: {each}."]
    if compared is not None:
        methods, count = ", ".join(compared.quality), seeds(len(compared.seeds))
        lines.append(f"BQS and BQS-ST compare {methods} over the {count} that all of them have.")
        if not compared.tested:
            lines.append(
                f"BQS-ST is left out: with fewer than {FEWEST_SEEDS} seeds no one-sided test at "
                "5 % can be significant."
            )
    return [*lines, *run_notes(runs), *_paper_notes(runs, setting)]


def run_notes(held: Nested) -> list[str]:
    """Which networks ensembles share, and whether the runs are rehearsals."""
    kinds: dict[str, dict[str, None]] = {}
    for record in records_in(held):
        if len(record.config.get("member_seeds", ())) > 1:
            kind = str(record.config.get("members", "not recorded"))
            kinds.setdefault(kind, {})[record.method] = None
    lines = [
        f"Members of {enumerated(list(methods))} are {kind}{_SHARED if kind == 'shared' else ''}."
        for kind, methods in kinds.items()
    ]
    return [*lines, *(f"{line}." for line in rehearsal(held))]


def rehearsal(held: Nested) -> list[str]:
    """A line if the runs, all of one kind, are shorter or smaller than the setting asks for."""
    record = next(records_in(held))
    done, limit = record.config.get("epochs"), record.config.get("limit")
    known = ALL_SETTINGS.get(record.setting)
    short = known is not None and done not in (None, known.recipe.epochs)
    found = [f"epochs {done}, not {known.recipe.epochs}"] if known and short else []
    found += [f"at most {limit} training and test items"] if limit is not None else []
    return [f"A rehearsal: {'; '.join(found)}"] if found else []


def figure_title(runs: Runs, setting: str, counts: Collection[int]) -> list[str]:
    """Setting and number of seeds, and a line about a rehearsal."""
    low, high = min(counts), max(counts)
    count = seeds(low) if low == high else f"{low} to {high} seeds"
    return [f"{setting}, {count}", *rehearsal(runs)]


def _paper_notes(runs: Runs, setting: str) -> list[str]:
    """Where these runs differ from the paper's, and what they lack."""
    known = ALL_SETTINGS.get(setting)
    if known is None:
        return []
    lines = []
    if known.pretrained and next(records_in(runs)).config.get("weights") == "random":
        lines.append("The networks started from random weights, the paper's from pretrained ones.")
    expected = known.methods if known.published is None else paper_methods(setting)
    missing = [method for method in expected if method not in runs]
    lines += [f"Not in these tables: {', '.join(missing)}."] if missing else []
    if known.collapsed:
        lines.append(
            "As in the paper, pocc is trained on the labels as they are (setting "
            f"{known.task}), all others on collapsed labels; {POCC_COLLAPSED!r} is ours."
        )
    return lines
