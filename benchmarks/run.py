"""Print what the package costs, as a table; exit code 1 if a limit does not hold."""

import sys

from annotations_cost import ANNOTATIONS_AT_FULL_SIZE, ANNOTATIONS_COST
from core import CORE_COST
from learner_cost import LEARNER_COST
from methods_cost import METHODS_COST
from metrics_cost import METRICS_COST
from predict_cost import PREDICT_COST

ALL = (*CORE_COST, *ANNOTATIONS_COST, *METRICS_COST, *METHODS_COST, *PREDICT_COST)


def main() -> None:
    """Run every measurement."""
    held = True
    print(f"{'measured':62} {'value':>9} {'limit':>8}")
    for measure in (*ALL, *LEARNER_COST, *ANNOTATIONS_AT_FULL_SIZE):  # too long for the tests
        for line in measure():
            limit = "" if line.limit is None else f"{line.limit:8.4g}"
            mark = "" if line.holds else "  FAILS"
            print(f"{line.name:62} {line.value:9.3g} {limit:>8} {line.unit}{mark}", flush=True)
            held = held and line.holds
    sys.exit(not held)


if __name__ == "__main__":
    main()
