"""Figures of a setting from its records; the suffix of the path chooses PNG, SVG or PDF."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from credalearn.errors import CredalError
from credalearn.metrics import pairwise_p_values
from credalearn_experiments.records import CURVE_POINTS, Record
from credalearn_experiments.results.balance import (
    FEWEST_SEEDS,
    MAIN,
    Balance,
    balance,
    compared_methods,
)
from credalearn_experiments.results.charts import (
    draw_bars,
    draw_published,
    draw_rejection,
    draw_tests,
)
from credalearn_experiments.results.notes import subtitle
from credalearn_experiments.results.published import compare
from credalearn_experiments.results.seeds import Runs, runs_of, seeds
from credalearn_experiments.results.style import SPREAD, save_figure
from credalearn_experiments.settings.catalog import epochs_of

_SHOWN = 96  # points of a curve, up to 95 % deferred: beyond, few items are left
_TITLES = {"accuracy": "accuracy", "ece": "calibration (1 − ECE)", "auarc": "deferral (AUARC)"}
_PANELS = {"ACC": "accuracy (%) →", "ECE": "← ECE (%)", "AUARC": "AUARC (%) →"}


def rejection_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """Accuracy of the rest against the share deferred by each method's own uncertainty."""
    runs = runs_of(records, setting)
    held = {
        method: [
            record.curves["accuracy_rejection"]
            for record in found.values()
            if "accuracy_rejection" in record.curves
        ]
        for method, found in runs.items()
    }
    counts = {method: len(curves) for method, curves in held.items() if curves}
    if not counts:
        raise CredalError(f"no record of setting {setting!r} has a curve accuracy_rejection.")
    deferred = np.linspace(0, 1, CURVE_POINTS)[:_SHOWN]
    curves = {
        name: np.array(held[method])[:, :_SHOWN] for method, name in _with_counts(counts).items()
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        draw_rejection(axes, deferred, curves)
        if max(counts.values()) > 1:
            axes.set_ylabel(f"{axes.get_ylabel()}{SPREAD}")
        axes.set_title(_title(runs, setting, counts.values()))

    save_figure(draw, path, width=7.2, height=4.2)


def balance_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """Balanced quality score of every method compared."""
    runs, found = _compared(records, setting)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        draw_bars(axes, {method: found.mean_and_std(method) for method in found.quality})
        if len(found.seeds) > 1:
            axes.set_xlabel(f"{axes.get_xlabel()}{SPREAD}")
        axes.set_title(_title(runs, setting, [len(found.seeds)]))

    save_figure(draw, path, width=6.4, height=0.8 + 0.38 * len(found.quality))


def significance_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """P-values that one method is better than another, one matrix per metric."""
    runs, found = _compared(records, setting)
    if not found.tested:
        raise CredalError(
            f"the methods of setting {setting!r} have {seeds(len(found.seeds))} in common: with "
            f"fewer than {FEWEST_SEEDS} no one-sided test at 5 % can be significant. To fix: run "
            "more seeds."
        )
    methods = list(found.quality)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, metric in zip(panels, MAIN, strict=True):
            draw_tests(axes, pairwise_p_values(found.values, metric), methods)
            axes.set_title(_TITLES[metric])
        for axes in panels[1:]:
            axes.set(ylabel="", yticklabels=[])
        # Below the middle, where it has the width of three matrices: names of settings are long.
        title, *rehearsal = _title(runs, setting, [len(found.seeds)]).splitlines()
        about = f"{title}: p-values of one-sided signed-rank tests, dark where p < 0.05"
        panels[1].set_xlabel("\n".join(["than this one\n", about, *rehearsal]))

    save_figure(draw, path, width=3.0 + 1.35 * len(methods), height=1.9 + 0.42 * len(methods))


def published_figure(records: Sequence[Record], setting: str, path: Path) -> None:
    """Accuracy, calibration and deferral, ours and the paper's."""
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
    counts = {row.method: row.seeds for row in rows}

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(_PANELS), sharey=True)
        for axes, (metric, label) in zip(panels, _PANELS.items(), strict=True):
            by_method = {row.method: row for row in rows if row.published.metric == metric}
            draw_published(axes, [by_method.get(method) for method in counts])
            axes.set_xlabel(label)
        panels[0].set_yticks(range(len(counts)), list(_with_counts(counts).values()))
        panels[0].set_ylim(len(counts) - 0.5, -0.5)
        title, *rehearsal = _title(runs, setting, counts.values()).splitlines()
        spread = SPREAD if max(counts.values()) > 1 else f"\npaper: {SPREAD.removeprefix(', ')}"
        panels[0].set_title("\n".join([title + spread, *rehearsal]))
        shown = next(axes for axes in panels if axes.containers).get_legend_handles_labels()
        panels[-1].legend(*shown, loc="center left", bbox_to_anchor=(1.02, 0.5))

    save_figure(draw, path, width=9.0, height=1.2 + 0.42 * len(counts))


FIGURES: dict[str, Callable[[Sequence[Record], str, Path], None]] = {
    "rejection": rejection_figure,
    "balance": balance_figure,
    "significance": significance_figure,
    "published": published_figure,
}


def _compared(records: Sequence[Record], setting: str) -> tuple[Runs, Balance]:
    runs = runs_of(records, setting)
    methods = compared_methods(runs, setting)
    found = balance(runs, methods)
    if found is None:
        raise CredalError(
            "at least two of the methods compared must have runs on a common seed; setting "
            f"{setting!r} has runs of {', '.join(methods) or 'none'}."
        )
    return runs, found


def _with_counts(counts: dict[str, int]) -> dict[str, str]:
    """Names of methods, with the number of seeds where they differ."""
    if len(set(counts.values())) == 1:
        return {method: method for method in counts}
    return {method: f"{method} ({seeds(count)})" for method, count in counts.items()}


def _title(runs: Runs, setting: str, counts: Collection[int]) -> str:
    low, high = min(counts), max(counts)
    count = seeds(low) if low == high else f"{low} to {high} seeds"
    return f"{setting}, {count}{subtitle(runs, epochs_of(setting))}"
