"""How often each vote rule's set contains the distribution that the votes were drawn from.

Prints a table for the documents: by rule and number of votes, the share of 4,000 simulated items
whose set contains the known distribution, and the sets' mean diameter.
"""

from typing import get_args

import numpy as np

from credalearn import from_votes
from credalearn.labels import VoteRule

VOTES = (1, 3, 5, 10, 50, 100)
CONFIDENCE = 0.95
DRAWN = 4000  # a standard error of 0.3 points at 95 %

TRUTHS = {  # what people would say of an item, if all were asked: ten classes
    "clear: 90 % one class": np.array([0.9, *[0.1 / 9] * 9]),
    "disputed: 60 %, 30 %": np.array([0.6, 0.3, *[0.1 / 8] * 8]),
    "open: all alike": np.full(10, 0.1),
}


def measured(truth: np.ndarray, rule: VoteRule, num_votes: int) -> tuple[float, float]:
    """Share of items whose set contains the truth, and the mean diameter."""
    random = np.random.default_rng([num_votes, round(1000 * truth[0])])  # the same for every rule
    counts = random.multinomial(num_votes, truth, size=DRAWN).astype(np.float64)
    sets = from_votes(counts, rule=rule, confidence=CONFIDENCE)
    return sets.contains(truth).double().mean().item(), sets.diameter().mean().item()


def table() -> tuple[list[str], dict[tuple[str, VoteRule, int], float]]:
    """Lines of Markdown, and the coverages in it."""
    lines = [
        f"| {' | '.join(['people would say', 'rule', *(f'{n} votes' for n in VOTES)])} |",
        f"| --- | --- |{' ---: |' * len(VOTES)}",
    ]
    covered = {}
    for name, truth in TRUTHS.items():
        for rule in get_args(VoteRule):
            cells = []
            for num_votes in VOTES:
                share, diameter = measured(truth, rule, num_votes)
                covered[name, rule, num_votes] = share
                cells.append(f"{100 * share:.0f} % · {diameter:.2f}")
            lines.append(f"| {name} | `{rule}` | {' | '.join(cells)} |")
            name = ""  # once for all its rules
    return lines, covered


def main() -> None:
    """Print the table and what it says of the paper's relaxation."""
    lines, covered = table()
    print("\n".join(lines).replace("1 votes", "1 vote", 1))
    few, many = (
        [f"{100 * covered[name, 'relax', number]:.0f} %" for name in TRUTHS] for number in (3, 100)
    )
    print(
        f"\nCoverage · mean diameter (0: a point, 1: everything); {DRAWN:,} items per cell, ten "
        f"classes, confidence {CONFIDENCE}. The paper's relaxation of three votes contains the "
        f"distribution behind them for {', '.join(few[:-1])} and {few[-1]} of these items; of a "
        f"hundred votes, for {', '.join(many[:-1])} and {many[-1]}."
    )


if __name__ == "__main__":
    main()
