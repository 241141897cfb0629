"""Runs side by side on their test items."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from credalearn.app.report.held_out import HeldOut
from credalearn.app.report.threshold_curve import Curve, threshold_curve
from credalearn.app.run import Run

if TYPE_CHECKING:
    from credalearn.app.steps.set_coverage import WidenedSets


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRun:
    """One run, its test items, and its widened sets if it has them."""

    run: Run
    held_out: HeldOut
    widened: "WidenedSets | None"

    @property
    def curve(self) -> Curve:
        """Its accuracy-rejection curve, by the score that items are deferred by."""
        return threshold_curve(self.held_out, next(iter(self.held_out.scores)))

    @property
    def certified(self) -> float | None:
        """Share of its test items that its guarantee keeps; None without one."""
        rule = self.run.guarantee
        if rule is None or not rule.certified:
            return None
        return float(self.held_out.kept_by(rule).mean())

    @property
    def set_promise(self) -> tuple[float, str] | None:
        """Coverage and distance of its widened sets, if their width was observed."""
        wide = self.widened
        if wide is None or not wide.seen:
            return None
        return wide.inflation.coverage, wide.inflation.distance


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two or more runs side by side, this one first."""

    runs: tuple[ComparedRun, ...]
    target: float | None  # the error at which coverage is compared, if there is one

    @property
    def names(self) -> list[str]:
        """Names of the folders; the whole path where two have the same name."""
        paths = [each.run.path.resolve() for each in self.runs]
        names = [path.name for path in paths]
        return [path.name if names.count(path.name) == 1 else str(path) for path in paths]

    @property
    def same_items(self) -> bool:
        """Whether all runs were tested on the same items."""
        return len({frozenset(each.held_out.items) for each in self.runs}) == 1

    @property
    def set_coverage(self) -> float | None:
        """The coverage of this run's widened sets, if another run's make the same promise."""
        own = self.runs[0].set_promise
        same = [each for each in self.runs if each.set_promise == own]
        return own[0] if own is not None and len(same) > 1 else None

    def set_width(self, run: ComparedRun) -> float | None:
        """Mean width of the widened sets of a run that makes the same promise."""
        same = run.set_promise == self.runs[0].set_promise
        return run.widened.width_after if same and run.widened is not None else None
