"""Runs side by side on their test items."""

from dataclasses import dataclass

from credalearn.app.report.held_out import HeldOut
from credalearn.app.report.threshold_curve import Curve, threshold_curve
from credalearn.app.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRun:
    """One run and its test items."""

    run: Run
    held_out: HeldOut

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
