"""Is a rule worse than plain soft labels? Differences paired by seed, and a verdict in words."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credalearn.bench.vote_settings import BASELINE, FAMILIES, in_words
from credalearn.bench.vote_tables import Cells, listed, numbers_held, row_name
from credalearn.report import Column, ResultTable
from credalearn.report.tables import Value

LEAST_DIFFERENCE = 0.001  # a tenth of a point of accuracy: below it nobody would change a rule
TITLE = "accuracy less that of softmax on soft labels, paired by seed, ± its standard error"
NOISE = (
    "Worse is a mean difference of 0.1 points or more below 0 that is also more than two of its "
    "standard errors below 0; better likewise above."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric less the baseline's, paired by seed: the same people were asked for both.

    Args:
        mean: Over the seeds that both have.
        standard_error: Of that mean; None of one seed.
        seeds: How many.

    Example:
        >>> Difference(-0.005, 0.001, 3).verdict, Difference(-0.005, 0.004, 3).verdict
        ('worse', 'no different')
    """

    mean: float
    standard_error: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """``worse`` or ``better`` beyond the seeds' noise, ``no different``, or ``one seed``."""
        if self.standard_error is None:
            return "one seed"
        if abs(self.mean) < LEAST_DIFFERENCE or abs(self.mean) <= 2 * self.standard_error:
            return "no different"
        return "worse" if self.mean < 0 else "better"


def differences(cells: Cells, metric: str = "accuracy") -> dict[str, dict[int | None, Difference]]:
    """Each row's metric less that of softmax on soft labels, by number of votes, paired by seed.

    Rows and numbers that the baseline has no common seed with are left out.

    Example:
        >>> from credalearn.bench.records import Record
        >>> from credalearn.bench.vote_tables import family_cells
        >>> records = [
        ...     Record(setting=f"cifar10h-votes-3-{rule}", method=method, seed=seed,
        ...            metrics={"accuracy": value + seed / 100})
        ...     for rule, method, value in (("precise", "softmax", 0.8), ("idm", "pocc", 0.75))
        ...     for seed in (1, 2)
        ... ]
        >>> found = differences(family_cells(records, "cifar10h-votes"))["pocc, idm"][3]
        >>> round(found.mean, 6), round(found.standard_error, 6), found.verdict
        (-0.05, 0.0, 'worse')
    """
    baseline = cells.get(row_name(*BASELINE), {})
    found: dict[str, dict[int | None, Difference]] = {}
    for row, by_number in cells.items():
        for number, runs in by_number.items() if row != row_name(*BASELINE) else ():
            beside = baseline.get(number, {})
            pairs = [
                runs[seed].metrics[metric] - beside[seed].metrics[metric]
                for seed in sorted(runs.keys() & beside.keys())
                if metric in runs[seed].metrics and metric in beside[seed].metrics
            ]
            if pairs:
                error = float(np.std(pairs, ddof=1) / len(pairs) ** 0.5) if len(pairs) > 1 else None
                mean = round(float(np.mean(pairs)), 12)
                each = Difference(mean, None if error is None else round(error, 12), len(pairs))
                found.setdefault(row, {})[number] = each
    return found


def difference_table(
    found: Mapping[str, Mapping[int | None, Difference]], family: str
) -> ResultTable:
    """Differences in points, with their standard errors.

    Example:
        >>> table = difference_table({"pocc, idm": {3: Difference(-0.01, 0.001, 3)}},
        ...                          "cifar10h-votes")
        >>> table.rows
        {'pocc, idm': {'3': (-0.01, 0.001)}}
    """
    numbers = numbers_held(found, FAMILIES[family])
    rows: dict[str, dict[str, Value]] = {
        row: {
            in_words(number): (by_number[number].mean, by_number[number].standard_error)
            if number in by_number
            else None
            for number in numbers
        }
        for row, by_number in found.items()
    }
    columns = [Column(in_words(number), digits=2) for number in numbers]
    return ResultTable(columns, rows, corner="votes an item")


def verdicts(found: Mapping[str, Mapping[int | None, Difference]]) -> list[str]:
    """A line a row: at how many votes it is worse than the baseline, better, or no different.

    Example:
        >>> verdicts({"pocc, relax": {1: Difference(-0.02, 0.002, 3), None: Difference(0, 0, 3)}})
        ['pocc, relax: worse at 1 vote; no different at all votes.']
    """
    lines = []
    for row, by_number in found.items():
        groups: dict[str, list[str]] = {}
        for number, difference in by_number.items():
            groups.setdefault(difference.verdict, []).append(in_words(number))
        order = ("worse", "no different", "better", "one seed")
        told = [
            f"{verdict if verdict != 'one seed' else 'one seed, which tells nothing,'} at "
            f"{listed(groups[verdict])}"
            for verdict in order
            if verdict in groups
        ]
        lines.append(f"{row}: {'; '.join(told)}.")
    return lines
