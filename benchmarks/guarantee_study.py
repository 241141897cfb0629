"""How often certified thresholds break their promise, and how much they keep.

Prints the table of docs/concepts/guarantees.md from ``experiments/results/guarantees.csv``. With
``--measure`` that file is made again, in a few minutes: 1,000 calibration sets from each of several
populations whose true error is known at every threshold. The tests run the same simulation.

Shapes: N items, G groups.
"""

import argparse
import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import credalearn as cl
from credalearn._files import whole_file
from credalearn.guarantees import CertifyMethod
from credalearn.guarantees._sequence import Sequence

RESULTS = Path(__file__).parents[1] / "experiments" / "results" / "guarantees.csv"
DRAWS, CONFIDENCE, SEED = 1_000, 0.95, 20261115
REFERENCE = 3  # times as many reference items as calibration items, as in a run
PER_REFERENCE = 10  # draws that share their reference items, to save time
_GRID = (np.arange(20_000) + 0.5) / 20_000

Rate = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Population:
    """Items with u uniform on [0, 1], wrong with probability rate(u); the score is u, or a step.

    In bad groups errors are ``worse`` times as likely. With ``together``, the items of a group
    share one random number, so that whole groups are wrong.
    """

    rate: Rate
    num_items: int
    max_error: float = 0.1
    levels: int | None = None
    size: int = 1  # of a group
    bad: float = 0.0  # share of bad groups
    worse: float = 1.0
    together: bool = False

    def draw(self, rng: np.random.Generator, times: int = 1) -> cl.ScoredItems:
        """So many items, or a multiple."""
        number = times * self.num_items
        groups = np.arange(number) // self.size
        bad = (rng.random(groups[-1] + 1) < self.bad)[groups]
        u = rng.random(number)
        luck = rng.random(groups[-1] + 1)[groups] if self.together else rng.random(number)
        wrong = luck < self.rate(u) * np.where(bad, self.worse, 1.0)
        score = u if self.levels is None else np.floor(self.levels * u) / self.levels
        return cl.ScoredItems(score, wrong, groups=None if self.size == 1 else groups)

    def error_below(self, threshold: float) -> float:
        """True error among the items that a threshold keeps."""
        edge = threshold if self.levels is None else threshold + 1 / self.levels
        kept = max(1, int((edge > _GRID).sum()))
        return float(self.rate(_GRID)[:kept].mean() * (1 + self.bad * (self.worse - 1)))


def _wavy(u: np.ndarray) -> np.ndarray:
    """The error among items up to u waves around 10 %: 0.1 + 0.04 sin(20u)."""
    rate: np.ndarray = 0.1 + 0.04 * (np.sin(20 * u) + 20 * u * np.cos(20 * u)).clip(-2.4, 10)
    return rate


def _useful(u: np.ndarray) -> np.ndarray:
    return 0.4 * u**2


def _grouped(size: int, num_groups: int) -> Population:
    """Three in twenty groups are bad: errors are five times as likely there."""
    return Population(lambda u: 0.2 * u**2, size * num_groups, size=size, bad=0.15, worse=5.0)


POPULATIONS = {
    "independent, 150 items": Population(_useful, 150),
    "independent, 600 items": Population(_useful, 600),
    "error of 10.1 % everywhere": Population(lambda u: np.full_like(u, 0.101), 300),
    "worst where most certain": Population(
        lambda u: np.where(u < 0.15, 0.25, np.where(u < 0.7, 0.02, 0.5)), 300
    ),
    "falling error, 16 %": Population(lambda u: 0.3 - 0.3 * u, 300, max_error=0.16),
    "wavy error": Population(_wavy, 300),
    "ties: ten scores": Population(lambda u: 0.3 * np.floor(10 * u) / 10 + 0.02, 300, levels=10),
    "ties: two scores": Population(lambda u: np.where(u < 0.5, 0.05, 0.17), 300, levels=2),
    "300 groups of 2": _grouped(2, 300),
    "120 groups of 5": _grouped(5, 120),
    "100 groups of 10": _grouped(10, 100),
    "15 groups of 20": _grouped(20, 15),
    "100 groups of 20": _grouped(20, 100),
    "100 groups of 50": _grouped(50, 100),
    "80 groups of 10, 10.1 % of groups wrong": Population(
        lambda u: np.full_like(u, 0.101), 800, size=10, together=True
    ),
}
METHODS: dict[str, tuple[CertifyMethod, bool]] = {  # method, with reference items
    "SGR": ("sgr", False),
    "learn then test": ("learn-then-test", False),
    "learn then test, reference": ("learn-then-test", True),
    "betting": ("betting", False),
    "betting, reference": ("betting", True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One method on one population."""

    population: str
    method: str
    draws: int
    violations: int  # draws whose threshold has a true error above max_error
    kept: float  # mean share of the items that is kept; nothing certified counts as 0


def simulate(name: str, method: str, draws: int = DRAWS) -> Outcome:
    """Certify so many calibration sets of a population."""
    population, (how, with_reference) = POPULATIONS[name], METHODS[method]
    rng = np.random.default_rng(SEED)
    violations, kept, reference = 0, 0.0, None
    for number in range(draws):
        if with_reference and number % PER_REFERENCE == 0:
            reference = population.draw(rng, REFERENCE)
        items = population.draw(rng)
        threshold = certified_threshold(items, how, population.max_error, reference)
        if threshold is not None:
            kept += float((items.score <= threshold).mean()) / draws
            violations += population.error_below(threshold) > population.max_error
    return Outcome(population=name, method=method, draws=draws, violations=violations, kept=kept)


def certified_threshold(
    items: cl.ScoredItems,
    how: CertifyMethod,
    max_error: float,
    reference: cl.ScoredItems | None = None,
) -> float | None:
    """What ``certify`` finds, without looking for what it would take where it finds nothing."""
    promises = (cl.Promise(limit=max_error),)
    sequence = Sequence.of(items, promises, method=how, reference=reference)
    place = sequence.search(1 - CONFIDENCE)
    return None if place is None else float(sequence.thresholds[place])


def wanted(name: str) -> list[str]:
    """The methods that are tried on a population: betting on groups only."""
    return [each for each in METHODS if POPULATIONS[name].size > 1 or "betting" not in each]


def main() -> None:
    """Measure if asked, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="make the results again")
    if parser.parse_args().measure:
        found = [simulate(name, method) for name in POPULATIONS for method in wanted(name)]
        with whole_file(RESULTS) as partial, partial.open("w", newline="") as file:
            writer = csv.DictWriter(file, Outcome.__slots__, lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(each) | {"kept": f"{each.kept:.4f}"} for each in found)
    with RESULTS.open(newline="") as file:
        rows = {(row["population"], row["method"]): row for row in csv.DictReader(file)}
    print(f"| calibration items | {' | '.join(METHODS)} |")
    print(f"| --- |{' ---: |' * len(METHODS)}")
    for name in POPULATIONS:
        cells = [_cell(rows.get((name, method))) for method in METHODS]
        print(f"| {name} | {' | '.join(cells)} |")


def _cell(row: dict[str, str] | None) -> str:
    if row is None:
        return "–"
    share = int(row["violations"]) / int(row["draws"])
    return f"{100 * share:.1f} · {100 * float(row['kept']):.1f}"


if __name__ == "__main__":
    main()
