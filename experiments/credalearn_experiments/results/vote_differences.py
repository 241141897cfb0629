"""Is a rule worse than plain soft labels? Differences paired by seed, and a verdict in words."""

from collections.abc import Iterable, Mapping

from credalearn_experiments.drawing import Column, ResultTable
from credalearn_experiments.drawing.tables import Value
from credalearn_experiments.results.differences import Difference, paired
from credalearn_experiments.results.vote_tables import Cells, listed, numbers_held, row_name
from credalearn_experiments.settings.votes import BASELINE, FAMILIES, in_words

TITLE = "accuracy less that of softmax on soft labels, paired by seed, ± its standard error"
NOISE = (
    "Worse is a mean difference of 0.1 points or more below 0 whose 95 % interval (Student's t for "
    "the paired seeds, three or more) lies below 0; better likewise above; not told apart is "
    "everything else, which is not to say equal. A loss that is not excluded lies in the interval: "
    "the largest is its lower end, here that of the group's worst cell. No correction is made for "
    "the number of cells: of those without any difference, up to one in 20 is called worse or "
    "better."
)


def differences(cells: Cells) -> dict[str, dict[int | None, Difference]]:
    """Each row's accuracy less that of softmax on soft labels, by number of votes, paired by seed.

    Rows and numbers that the baseline has no common seed with are left out.

    Example:
        >>> from credalearn_experiments.records import Record
        >>> from credalearn_experiments.results.vote_tables import family_cells
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
            each = paired(runs, baseline.get(number, {}), "accuracy")
            if each is not None:
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
    return ResultTable(columns, rows, corner="votes an item", spread="standard error")


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
