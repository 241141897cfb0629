"""The paper's theory in numbers, as tables in Markdown and a figure.

``python benchmarks/theory_study.py votes`` prints the risk profile where the truth is known, by
label rule and number of votes; ``… broken`` by the share of labels whose set excludes the truth;
``… radiologists`` the profile and the bound on real votes. ``… --figure FILE.png`` draws the first
two. Each prints the same every time and takes some seconds.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from theory_figure import draw_study
from theory_radiologists import Reading, radiologists
from theory_truth import Found, by_share, by_votes

TERMS = {  # of the bound: name, formula and basis
    "complexity": ("model class", "4 · Rademacher complexity", "estimated"),
    "sampling": ("finite sample", "2B · √(log(2/δ) / 2n)", "assumed"),
    "optimization": ("optimization gap", "η", "measured"),
    "imprecision": ("annotation imprecision", "L · mean diameter", "assumed"),
}


def main() -> None:
    """Print the tables that are asked for, or draw the figure."""
    parser = argparse.ArgumentParser(description="The paper's theory in numbers.")
    parser.add_argument("parts", nargs="*", help=f"any of: {', '.join(_TABLES)}")
    parser.add_argument("--figure", type=Path, metavar="FILE.png", help="draw votes and broken")
    given = parser.parse_args()
    if unknown := set(given.parts) - _TABLES.keys():
        parser.error(f"a part is one of {', '.join(_TABLES)}; got {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)  # tiny networks: threads would wait for each other
    if given.figure is not None:
        draw_study(list(by_votes()), list(by_share()), given.figure)
    for part in given.parts or ([] if given.figure else _TABLES):
        print(_TABLES[part](), end="\n\n")


def votes_table() -> str:
    """What the rules contain, on the items trained on and on fresh ones."""
    headings = ["votes", "rule", "sets that contain p₀", "diameter", "trained on: R₊ · R₀ · R₋"]
    headings += ["R₀ is", "fresh: R₊ · R₀ · R₋", "R₀ is", "fresh items inside"]
    rows = [
        [
            *(f"{case.amount}", case.rule, f"{100 * case.coverage:.0f} %", f"{case.diameter:.2f}"),
            *(*_shown(case.training), *_shown(case.fresh)),
            f"{100 * case.fresh.items_inside:.0f} %",
        ]
        for case in by_votes()
    ]
    return _markdown(headings, rows, words=2)


def share_table() -> str:
    """What broken labels do, on fresh items."""
    headings = ["labels broken", "sets that contain p₀", "R₊ · R₀ · R₋", "R₀ is", "outside by"]
    headings += ["at most", "items inside", "right class"]
    rows = []
    for case in by_share():
        ends = case.fresh
        outside = max(ends.true - ends.pessimistic, ends.optimistic - ends.true, 0)
        numbers = (f"{outside:.2f}", f"{case.allowance:.2f}")
        shares = (f"{100 * each:.0f} %" for each in (ends.items_inside, case.accuracy))
        broken, covered = f"{100 * case.amount:.0f} %", f"{100 * case.coverage:.0f} %"
        rows.append([broken, covered, *_shown(ends), *numbers, *shares])
    return _markdown(headings, rows, words=1)


def radiologists_tables() -> str:
    """Profiles, the bound's terms by rule, and the verdicts."""
    readings = list(radiologists())
    headings = ["rule", "diameter", "R₊ (95 % interval)", "R₋ (95 % interval)", "R₋ − R₊"]
    headings += ["against the vote shares"]
    profiles = _markdown(headings, [_profile_row(each) for each in readings], words=1)
    rows = [
        [*words, *(f"{getattr(reading.bound, term):.1f}" for reading in readings)]
        for term, words in TERMS.items()
    ]
    rows.append(["**total**", "", "", *(f"**{each.bound.total:.1f}**" for each in readings)])
    ranges = (f"{each.bound.loss_range:.1f}" for each in readings)
    rows.append(["in them: L", "largest range of an item's logits", "measured", *ranges])
    diameters = (f"{each.bound.mean_diameter:.2f}" for each in readings)
    rows.append(["in them: mean diameter", "of the labels trained on", "measured", *diameters])
    names = [each.rule for each in readings]
    terms = _markdown(["term (nats)", "formula", "basis", *names], rows, words=3)
    verdicts = [f"- {each.rule}: {each.bound.verdict}" for each in readings]
    return "\n\n".join([profiles, terms, "What they come to:", "\n".join(verdicts)])


def _profile_row(reading: Reading) -> list[str]:
    found, shares = reading.profile, reading.against_shares
    return [
        *(reading.rule, f"{reading.diameter:.2f}"),
        _interval(found.optimistic, found.optimistic_interval),
        _interval(found.pessimistic, found.pessimistic_interval),
        f"{found.width:.2f}",
        _interval(shares.optimistic, shares.optimistic_interval),
    ]


def _interval(value: float, ends: tuple[float, float]) -> str:
    return f"{value:.2f} ({ends[0]:.2f} to {ends[1]:.2f})"


def _shown(ends: Found) -> tuple[str, str]:
    place = ends.place if ends.place == "inside" else f"**{ends.place}**"
    return f"{ends.optimistic:.2f} · {ends.true:.2f} · {ends.pessimistic:.2f}", place


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    """A table whose first ``words`` columns are words, the others numbers."""
    rule = [":--"] * words + ["--:"] * (len(headings) - words)
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *rows))


_TABLES = {"votes": votes_table, "broken": share_table, "radiologists": radiologists_tables}

if __name__ == "__main__":
    main()
