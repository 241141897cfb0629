"""Print what the core costs, as a table; exit code 1 if a limit does not hold."""

import sys

from core import ALL


def main() -> None:
    """Run every measurement."""
    held = True
    print(f"{'measured':60} {'value':>8} {'limit':>8}")
    for measure in ALL:
        for line in measure():
            limit = "" if line.limit is None else f"{line.limit:8.4g}"
            mark = "" if line.holds else "  FAILS"
            print(f"{line.name:60} {line.value:8.3g} {limit:>8} {line.unit}{mark}", flush=True)
            held = held and line.holds
    sys.exit(not held)


if __name__ == "__main__":
    main()
