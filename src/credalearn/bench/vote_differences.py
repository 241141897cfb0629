"""Is a rule worse than plain soft labels? Differences paired by seed, and a verdict in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from credalearn.bench.vote_settings import BASELINE, FAMILIES, in_words
from credalearn.bench.vote_tables import Cells, listed, numbers_held, row_name
from credalearn.errors import CredalError
from credalearn.report import Column, ResultTable
from credalearn.report.tables import Value

LEAST_DIFFERENCE = 0.001  # a tenth of a point of accuracy: below it nobody would change a rule
TITLE = "accuracy less that of softmax on soft labels, paired by seed, ± its standard error"
CONFIDENCE = 0.95  # of a difference's interval
FEWEST_PAIRED = 3  # seeds: of two, t is 12.7, and the interval may pass 100 points
NOISE = (
    "Worse is a mean difference of 0.1 points or more below 0 whose 95 % interval (Student's t for "
    "the paired seeds, three or more) lies below 0; better likewise above; not told apart is "
    "everything else, which is not to say equal. A loss that is not excluded lies in the interval: "
    "the largest is its lower end, here that of the group's worst cell. No correction is made for "
    "the number of cells: of those without any difference, up to one in 20 is called worse or "
    "better."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A metric less the baseline's, paired by seed: the same people were asked for both.

    Args:
        mean: Over the seeds that both have.
        standard_error: Of that mean; None of one seed, and only then.
        seeds: How many.

    Raises:
        CredalError: If there is no seed, or a standard error of one, or none of several.

    Example:
        >>> Difference(-0.005, 0.001, 3).verdict, Difference(-0.005, 0.002, 3).verdict
        ('worse', 'not told apart')
    """

    mean: float
    standard_error: float | None
    seeds: int

    def __post_init__(self) -> None:
        if self.seeds < 1 or (self.standard_error is None) != (self.seeds == 1):
            raise CredalError(
                "a difference needs one seed or more, and a standard error just where there are "
                f"several; got seeds={self.seeds!r}, standard_error={self.standard_error!r}."
            )

    @property
    def interval(self) -> tuple[float, float] | None:
        r"""Both ends of the 95 % interval :math:`\bar d \pm t_{.975, S-1}\,\text{se}`; S seeds.

        Exact where differences are normal (Student, 1908); None of fewer than three seeds. Two
        standard errors instead would call 18 % of equal cells worse or better with 3 seeds, where t
        is 4.30.

        Example:
            >>> [round(end, 4) for end in Difference(-0.005, 0.001, 3).interval]
            [-0.0093, -0.0007]
        """
        if self.standard_error is None or self.seeds < FEWEST_PAIRED:
            return None
        room = float(student.ppf((1 + CONFIDENCE) / 2, self.seeds - 1)) * self.standard_error
        return self.mean - room, self.mean + room

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``not told apart`` beyond noise, or ``too few seeds to tell``."""
        if self.interval is None:
            return "too few seeds to tell"
        low, high = self.interval
        if abs(self.mean) < LEAST_DIFFERENCE or low <= 0 <= high:
            return "not told apart"
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
        ...     for seed in (1, 2, 3)
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
    """A line a row: at how many votes it is worse than the baseline, better, or not told apart.

    With the largest loss that the 95 % intervals of a group leave possible.

    Example:
        >>> found = {1: Difference(-0.002, 0.001, 3), None: Difference(0.02, 0.001, 3)}
        >>> print(*verdicts({"pocc, idm": found}))
        pocc, idm: not told apart at 1 vote (a loss of up to 0.63 points is not excluded); better at
        all votes.
    """
    lines = []
    for row, by_number in found.items():
        groups: dict[str, dict[str, Difference]] = {}
        for number, difference in by_number.items():
            groups.setdefault(difference.verdict, {})[in_words(number)] = difference
        order = ("worse", "not told apart", "better", "too few seeds to tell")
        told = [
            f"{verdict} at {listed(list(groups[verdict]))}{_loss(groups[verdict].values())}"
            for verdict in order
            if verdict in groups
        ]
        lines.append(f"{row}: {'; '.join(told)}.")
    return lines


def _loss(group: Iterable[Difference]) -> str:
    """The largest loss that is not excluded, in brackets; nothing where every loss is."""
    points = max(-100 * each.interval[0] if each.interval else 0.0 for each in group)
    return f" (a loss of up to {points:.2f} points is not excluded)" if points >= 0.005 else ""
