"""Balanced scores over the seeds that all methods have, and what must be stated with a table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from credalearn._formats import enumerated
from credalearn.methods import METHODS
from credalearn.metrics import BalancedQuality, Significance, balanced_quality, significance_ranking
from credalearn_experiments.plugins import PLUGIN_METHODS
from credalearn_experiments.results.seeds import POCC_COLLAPSED, Nested, Runs, records_in, seeds
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.settings.paper import PAPER, SEVEN

MAIN = ("accuracy", "ece", "auarc")
# What items are deferred by. The paper's figures of robustness replace MMI, the score of POCC, and
# leave the other methods theirs.
DEFERRAL_SCORES = OWN, ENTROPY, COMMON = "own score", "H_diff for MMI", "top probability"
FEWEST_SEEDS = 5  # for a test: with S seeds the smallest p is 2^-S, and 1/16 is above 5 %


@dataclass(frozen=True, slots=True)
class Balance:
    """Balanced scores of methods over the seeds that all of them have."""

    quality: Mapping[str, BalancedQuality]  # BQS, by method
    significance: Mapping[str, Significance]  # net wins and BQS-ST, by method
    seeds: tuple[int, ...]

    @property
    def tested(self) -> bool:
        """Whether there are enough seeds for a test to be significant."""
        return len(self.seeds) >= FEWEST_SEEDS

    def mean_and_std(self, method: str) -> tuple[float, float | None]:
        """The balanced quality score; for one seed without a deviation."""
        quality = self.quality[method]
        return quality.mean, quality.std if len(self.seeds) > 1 else None


def deferral_metric(score: str, method: str) -> str:
    """The AUARC of a method by this score, one of ``DEFERRAL_SCORES``."""
    if score == COMMON:
        return "auarc_top_probability"
    by_mmi = method in METHODS and METHODS[method].score == "mmi"
    return "auarc_entropy_difference" if score == ENTROPY and by_mmi else "auarc"


def balance(
    runs: Runs, methods: Sequence[str], metrics: Sequence[str] = MAIN, score: str = OWN
) -> Balance | None:
    """Compare the methods over the seeds on which all have all metrics; None if there is none."""
    if len(methods) < 2 or any(method not in runs for method in methods):
        return None
    names = {
        method: {m: deferral_metric(score, method) if m == "auarc" else m for m in metrics}
        for method in methods
    }
    complete = [
        {seed for seed, each in runs[method].items() if {*own.values()} <= each.metrics.keys()}
        for method, own in names.items()
    ]
    common = tuple(sorted(set.intersection(*complete)))
    if not common:
        return None
    values = {
        method: {m: [runs[method][seed].metrics[x] for seed in common] for m, x in own.items()}
        for method, own in names.items()
    }
    quality = balanced_quality(values, metrics=metrics)
    return Balance(quality, significance_ranking(values, metrics=metrics), common)


def paper_methods(setting: str) -> tuple[str, ...]:
    """The methods that the paper's tables compare in this setting: seven, or five at 224 px."""
    known = ALL_SETTINGS.get(setting)
    return tuple(m for m in SEVEN if known is None or m in known.methods)


def compared(
    runs: Runs,
    setting: str,
    metrics: Sequence[str] = MAIN,
    asked: Sequence[str] | None = None,
    score: str = OWN,
) -> Balance | None:
    """Balanced scores of the methods asked for that have runs."""
    if asked is None:  # the paper's in its settings, and elsewhere if all of them and no others run
        all_seven = set(SEVEN) <= runs.keys() and not PLUGIN_METHODS.keys() & runs.keys()
        asked = paper_methods(setting) if setting in PAPER or all_seven else tuple(runs)
    return balance(runs, [method for method in asked if method in runs], metrics, score)


def notes(runs: Runs, setting: str, compared: Balance | None = None) -> list[str]:
    """The notes on the tables of a setting."""
    counts = {method: len(found) for method, found in runs.items()}
    lines = [f"{seeds(max(counts.values()))} of every method."]
    if len(set(counts.values())) > 1:
        lines = [f"Seeds: {', '.join(f'{method} {count}' for method, count in counts.items())}."]
    if compared is not None:
        methods, count = ", ".join(compared.quality), seeds(len(compared.seeds))
        lines.append(f"BQS and BQS-ST compare {methods} over the {count} that all of them have.")
        if not compared.tested:
            lines.append(
                f"BQS-ST is left out: with fewer than {FEWEST_SEEDS} seeds no one-sided test at "
                "5 % can be significant."
            )
    lines += run_notes(runs)
    if (known := ALL_SETTINGS.get(setting)) is None:
        return lines
    expected = paper_methods(setting) if setting in PAPER else known.methods
    if missing := [method for method in expected if method not in runs]:
        lines.append(f"Not in these tables: {', '.join(missing)}.")
    if known.collapsed:
        lines.append(
            "As in the paper, pocc is trained on the labels as they are (setting "
            f"{known.task}), all others on collapsed labels; {POCC_COLLAPSED!r} is ours."
        )
    return lines


def run_notes(held: Nested) -> list[str]:
    """Which networks ensembles share, and whether the runs are rehearsals."""
    members: dict[str, list[int]] = {}
    for record in records_in(held):
        if len(own := record.config.get("member_seeds", ())) > 1:
            members[record.method] = [*members.get(record.method, ()), *own]
    methods = [method for method, all_ in members.items() if len(set(all_)) < len(all_)]
    lines = [f"{line}." for line in rehearsal(held)]
    if not methods:
        return lines
    shared = (
        f"Members of {enumerated(methods)} are shared: ensembles of neighboring seeds have "
        "networks in common, so they differ less over the seeds than independent ones would."
    )
    return [shared, *lines]


def rehearsal(held: Nested) -> list[str]:
    """A line if the runs, all of one kind, are shorter or smaller than the setting asks for."""
    record = next(records_in(held))
    done, limit = record.config.get("epochs"), record.config.get("limit")
    known = ALL_SETTINGS.get(record.setting)
    short = known and done not in (None, known.recipe.epochs)
    found = [f"epochs {done}, not {known.recipe.epochs}"] if known and short else []
    found += [f"at most {limit} training and test items"] if limit is not None else []
    return [f"A rehearsal: {'; '.join(found)}"] if found else []


def figure_title(runs: Runs, setting: str, counts: Collection[int]) -> list[str]:
    """Setting and number of seeds, and a line about a rehearsal."""
    low, high = min(counts), max(counts)
    count = seeds(low) if low == high else f"{low} to {high} seeds"
    return [f"{setting}, {count}", *rehearsal(runs)]
