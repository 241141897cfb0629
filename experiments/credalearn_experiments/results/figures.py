"""Figures of a setting from its records; the suffix of the path says PNG, SVG or PDF."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from credalearn.errors import CredalError
from credalearn.metrics import pairwise_p_values
from credalearn_experiments.drawing import (
    draw_balanced_quality,
    draw_rejection,
    draw_significance,
)
from credalearn_experiments.drawing.style import COLORS, save_figure
from credalearn_experiments.records import CURVE_POINTS, Record
from credalearn_experiments.results.compare import Comparison, compare
from credalearn_experiments.results.rehearsal import subtitle
from credalearn_experiments.results.seeds import (
    FEWEST_SEEDS,
    MAIN,
    Runs,
    balance,
    common_seeds,
    compared_methods,
    count_of_seeds,
    first_record,
    runs_of,
    seed_table,
)
from credalearn_experiments.settings.catalog import epochs_of

_SHOWN = 96  # points of a curve: up to 95 % deferred
_SPREAD = ", ± one standard deviation"
_TITLES = {"accuracy": "accuracy", "ece": "calibration (1 − ECE)", "auarc": "deferral (AUARC)"}
_PANELS = {"ACC": "accuracy (%) →", "ECE": "← ECE (%)", "AUARC": "AUARC (%) →"}


def rejection_figure(records: Iterable[Record], setting: str, path: str | Path) -> None:
    """Accuracy of what is kept against the share deferred by each method's own uncertainty.

    The line is the mean over the method's seeds, the band one standard deviation to each side. It
    stops at 95 % deferred: beyond, few items are left and the curves are noise.

    Raises:
        CredalError: If no record has the curve, or the suffix is no picture's.

    Example:
        >>> import tempfile
        >>> record = Record(
        ...     setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.9},
        ...     curves={"accuracy_rejection": [0.9 + share / 1000 for share in range(101)]},
        ... )
        >>> path = Path(tempfile.mkdtemp()) / "curves.svg"
        >>> rejection_figure([record], "cifar10h", path)
        >>> path.exists()
        True
    """
    runs = runs_of(records, setting)
    curves = {
        method: [
            record.curves["accuracy_rejection"]
            for record in found.values()
            if "accuracy_rejection" in record.curves
        ]
        for method, found in runs.items()
    }
    curves = {method: each for method, each in curves.items() if each}
    if not curves:
        raise CredalError(f"no record of setting {setting!r} has a curve accuracy_rejection.")
    names = _with_counts({method: len(each) for method, each in curves.items()})
    deferred = np.linspace(0, 1, CURVE_POINTS)[:_SHOWN]
    drawn = {names[method]: np.array(each)[:, :_SHOWN] for method, each in curves.items()}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        draw_rejection(axes, deferred, drawn)
        counts = {len(each) for each in curves.values()}
        if max(counts) > 1:
            axes.set_ylabel(f"{axes.get_ylabel()}{_SPREAD}")
        axes.set_title(_title(setting, counts) + _rehearsal(runs, setting))

    save_figure(draw, path, width=7.2, height=4.2)


def balance_figure(records: Iterable[Record], setting: str, path: str | Path) -> None:
    """Balanced quality score of every method compared, a bar each; of one seed without deviation.

    Compared are the paper's methods that have runs, all in a setting of ours.

    Raises:
        CredalError: If fewer than two methods have runs on a common seed.

    Example:
        >>> import tempfile
        >>> records = [
        ...     Record(setting="cifar10h", method=name, seed=1, metrics=dict(zip(MAIN, row)))
        ...     for name, row in {"pocc": (0.9, 0.1, 0.97), "edl": (0.8, 0.2, 0.95)}.items()
        ... ]
        >>> balance_figure(records, "cifar10h", Path(tempfile.mkdtemp()) / "balance.svg")
    """
    runs = runs_of(records, setting)
    methods = compared_methods(runs, setting)
    found = balance(runs, methods)
    if found is None:
        raise _nothing_common(setting, methods)
    several = len(found.seeds) > 1
    scores = {m: (each.mean, each.std if several else None) for m, each in found.quality.items()}

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        draw_balanced_quality(axes, scores)
        if several:
            axes.set_xlabel(f"{axes.get_xlabel()}{_SPREAD}")
        axes.set_title(_title(setting, {len(found.seeds)}) + _rehearsal(runs, setting))

    save_figure(draw, path, width=6.4, height=0.8 + 0.38 * len(methods))


def significance_figure(records: Iterable[Record], setting: str, path: str | Path) -> None:
    """P-values that one method is better than another, a matrix for each of three metrics.

    Compared are the paper's methods that have runs, all in a setting of ours.

    Raises:
        CredalError: If fewer than two methods have runs on a common seed, or they have fewer than
            five.

    Example:
        >>> import tempfile
        >>> records = [
        ...     Record(setting="cifar10h", method=name, seed=seed, metrics=dict(zip(MAIN, row)))
        ...     for name, row in {"pocc": (0.9, 0.1, 0.97), "edl": (0.8, 0.2, 0.95)}.items()
        ...     for seed in range(1, 6)
        ... ]
        >>> significance_figure(records, "cifar10h", Path(tempfile.mkdtemp()) / "tests.svg")
    """
    runs = runs_of(records, setting)
    methods = compared_methods(runs, setting)
    seeds = common_seeds(runs, methods, MAIN)
    if len(methods) < 2 or not seeds:
        raise _nothing_common(setting, methods)
    if len(seeds) < FEWEST_SEEDS:
        raise CredalError(
            f"the methods of setting {setting!r} have {count_of_seeds(len(seeds))} in common: of "
            f"fewer than {FEWEST_SEEDS} no one-sided test at 5 % can be significant. To fix: run "
            "more seeds."
        )
    table = seed_table(runs, methods, MAIN, seeds)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, metric in zip(panels, MAIN, strict=True):
            draw_significance(axes, pairwise_p_values(table, metric), methods)
            axes.set(title=_TITLES[metric], xlabel="than this one")
        for axes in panels[1:]:
            axes.set(ylabel="", yticklabels=[])
        # Below the middle, where it has the width of three matrices: names of settings are long.
        about = "p-values of one-sided signed-rank tests, dark where p < 0.05"
        about = f"{_title(setting, {len(seeds)})}: {about}{_rehearsal(runs, setting)}"
        panels[1].set_xlabel(f"than this one\n\n{about}")

    save_figure(draw, path, width=3.0 + 1.35 * len(methods), height=1.9 + 0.42 * len(methods))


def published_figure(records: Iterable[Record], setting: str, path: str | Path) -> None:
    """Ours beside the paper's: accuracy, calibration and deferral of every method that both have.

    Ours is a filled dot, theirs an open square; bars are one standard deviation to each side,
    which one seed has not.

    Raises:
        CredalError: If the paper has no figure that the records answer.

    Example:
        >>> import tempfile
        >>> record = Record(setting="cifar10h", method="pocc", seed=1, metrics={"accuracy": 0.878})
        >>> published_figure([record], "cifar10h", Path(tempfile.mkdtemp()) / "published.svg")
    """
    records = list(records)
    rows = [
        row
        for row in compare(records)
        if row.setting == setting and row.published.metric in _PANELS
    ]
    if not rows:
        raise CredalError(
            f"the paper has no accuracy, ECE or AUARC that records of setting {setting!r} answer."
        )
    runs = runs_of(records, setting)
    methods = list(dict.fromkeys(row.method for row in rows))
    names = _with_counts({row.method: row.seeds for row in rows})

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(_PANELS), sharey=True)
        for axes, metric in zip(panels, _PANELS, strict=True):
            by_method = {row.method: row for row in rows if row.published.metric == metric}
            _draw_dots(axes, [by_method.get(method) for method in methods])
            axes.set_xlabel(_PANELS[metric])
        panels[0].set_yticks(range(len(methods)), [names[method] for method in methods])
        panels[0].set_ylim(len(methods) - 0.5, -0.5)
        counts = {row.seeds for row in rows}
        spread = _SPREAD if max(counts) > 1 else "\npaper: ± one standard deviation"
        panels[0].set_title(_title(setting, counts) + spread + _rehearsal(runs, setting))
        shown = next(axes for axes in panels if axes.containers).get_legend_handles_labels()
        panels[-1].legend(*shown, loc="center left", bbox_to_anchor=(1.02, 0.5))

    save_figure(draw, path, width=9.0, height=1.2 + 0.42 * len(methods))


def _draw_dots(axes: Axes, rows: Sequence[Comparison | None]) -> None:
    """Ours a little above the line of the method, theirs a little below."""
    for place, row in enumerate(rows):
        if row is None:
            continue
        theirs = row.published
        for label, shift, mean, std, marker, fill in (
            ("ours", -0.15, row.mean, row.std, "o", COLORS[0]),
            ("paper", 0.15, theirs.mean, theirs.std, "s", "white"),
        ):
            taken = axes.get_legend_handles_labels()[1]
            axes.errorbar(
                *(mean, place + shift),
                xerr=std,
                label="_" if label in taken else label,
                fmt=marker,
                color=COLORS[label == "paper"],
                markerfacecolor=fill,
                capsize=3,
                elinewidth=1.5,
            )
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    for between in range(1, len(rows)):
        axes.axhline(between - 0.5, color="#dddddd", linewidth=0.8)


def _with_counts(counts: dict[str, int]) -> dict[str, str]:
    """Names of methods, with the number of seeds where they differ; else the title has it."""
    if len(set(counts.values())) == 1:
        return {method: method for method in counts}
    return {method: f"{method} ({count_of_seeds(count)})" for method, count in counts.items()}


def _title(setting: str, counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{setting}, {count_of_seeds(low) if low == high else f'{low} to {high} seeds'}"


def _rehearsal(runs: Runs, setting: str) -> str:
    """What follows a title where the runs are shorter or smaller than the setting."""
    return subtitle(first_record(runs), epochs_of(setting))


def _nothing_common(setting: str, methods: Sequence[str]) -> CredalError:
    return CredalError(
        "two of the methods compared, or more, must have runs on a common seed; of these setting "
        f"{setting!r} has runs of {list(methods)}."
    )
