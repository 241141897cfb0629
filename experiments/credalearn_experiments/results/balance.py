"""Balanced scores: several metrics of several methods, compared over the seeds that all have."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from credalearn.methods import METHODS
from credalearn.metrics import BalancedQuality, Significance, balanced_quality, significance_ranking
from credalearn_experiments.plugins import PLUGIN_METHODS
from credalearn_experiments.records import Record
from credalearn_experiments.results.seeds import Runs
from credalearn_experiments.settings.catalog import ALL_SETTINGS
from credalearn_experiments.settings.paper import SEVEN

MAIN = ("accuracy", "ece", "auarc")
OWN, ENTROPY, COMMON = "own score", "H_diff for MMI", "top probability"
FEWEST_SEEDS = 5  # for a test: with S seeds the smallest p is 2^-S, and 1/16 is above 5 %


@dataclass(frozen=True, slots=True)
class Balance:
    """Balanced scores of methods over the seeds that all of them have."""

    quality: Mapping[str, BalancedQuality]  # BQS, by method
    significance: Mapping[str, Significance]  # net wins and BQS-ST, by method
    seeds: tuple[int, ...]
    values: Mapping[str, Mapping[str, Sequence[float]]]  # by method and metric, one per seed

    @property
    def tested(self) -> bool:
        """Whether there are enough seeds for a test to be significant."""
        return len(self.seeds) >= FEWEST_SEEDS

    def mean_and_std(self, method: str) -> tuple[float, float | None]:
        """The balanced quality score; for one seed without a deviation."""
        quality = self.quality[method]
        return quality.mean, quality.std if len(self.seeds) > 1 else None


def balance(runs: Runs, methods: Sequence[str], metrics: Sequence[str] = MAIN) -> Balance | None:
    """Compare the methods over the seeds on which all have all metrics; None if there is none."""
    if len(methods) < 2 or any(method not in runs for method in methods):
        return None
    complete = [
        {seed for seed, record in runs[method].items() if set(metrics) <= set(record.metrics)}
        for method in methods
    ]
    common = tuple(sorted(set.intersection(*complete)))
    if not common:
        return None
    values = {
        method: {name: [runs[method][seed].metrics[name] for seed in common] for name in metrics}
        for method in methods
    }
    quality = balanced_quality(values, metrics=metrics)
    return Balance(quality, significance_ranking(values, metrics=metrics), common, values)


def _by_entropy_difference(method: str) -> str:
    known = METHODS.get(method)
    return "auarc_entropy_difference" if known and known.score == "mmi" else "auarc"


# By the score that items are deferred by: the metric of a method that is balanced as its AUARC. The
# paper's figures of robustness replace MMI, the score of POCC, and leave the other methods theirs.
DEFERRED_BY: dict[str, Callable[[str], str]] = {
    OWN: lambda _: "auarc",
    ENTROPY: _by_entropy_difference,
    COMMON: lambda _: "auarc_top_probability",
}


def deferred_by(runs: Runs, score: str) -> Runs:
    """The runs with the AUARC by this score, a key of ``DEFERRED_BY``; without one if unknown."""

    def rescored(record: Record) -> Record:
        metrics = dict(record.metrics)
        value = metrics.get(DEFERRED_BY[score](record.method))
        del metrics["auarc"]
        return replace(record, metrics=metrics if value is None else {**metrics, "auarc": value})

    return {
        method: {seed: rescored(record) for seed, record in by_seed.items()}
        for method, by_seed in runs.items()
    }


def paper_methods(setting: str) -> tuple[str, ...]:
    """The methods that the paper's tables compare in this setting: seven, or five at 224 px."""
    known = ALL_SETTINGS.get(setting)
    return tuple(m for m in SEVEN if known is None or m in known.methods)


def compared(
    runs: Runs, setting: str, metrics: Sequence[str] = MAIN, asked: Sequence[str] | None = None
) -> Balance | None:
    """Balanced scores of the methods asked for that have runs.

    By default the paper's methods in its own settings, and elsewhere if all have runs and no plugin
    adds a method; otherwise all methods.
    """
    if asked is None:
        known = ALL_SETTINGS.get(setting)
        published = known is not None and known.published is not None
        all_seven = set(SEVEN) <= runs.keys() and not PLUGIN_METHODS.keys() & runs.keys()
        asked = paper_methods(setting) if published or all_seven else tuple(runs)
    return balance(runs, [method for method in asked if method in runs], metrics)
