"""Runs side by side on their test items."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from credalearn.app.report.held_out import HeldOut
from credalearn.app.report.threshold_curve import Curve, threshold_curve
from credalearn.app.run import Run

if TYPE_CHECKING:
    from credalearn.app.steps.set_check import WidenedSets


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRun:
    """One run."""

    path: Path  # its folder
    method: str  # its method
    held_out: HeldOut  # its test items
    curve: Curve  # its accuracy-rejection curve
    certified: float | None  # coverage of its guarantee on the test items; None without one
    widened: "WidenedSets | None"  # its widened sets, if it has them

    @classmethod
    def of(cls, run: Run, held_out: HeldOut, widened: "WidenedSets | None") -> Self:
        """What a run does on its test items."""
        rule, score = run.guarantee, next(iter(held_out.scores))
        certified = None
        if rule is not None and rule.certified:
            certified = float(rule.keeps(held_out.score).mean())
        return cls(
            path=run.path.resolve(),
            method=run.facts.method,
            held_out=held_out,
            curve=threshold_curve(held_out, score),
            certified=certified,
            widened=widened,
        )

    @property
    def set_promise(self) -> tuple[float, str] | None:
        """Coverage and distance of its widened sets, if their width was observed."""
        wide = self.widened
        if wide is None or not wide.seen:
            return None
        return wide.inflation.coverage, wide.inflation.distance


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Runs side by side, this one first."""

    runs: tuple[ComparedRun, ...]  # two or more runs
    target: float | None  # the error at which coverage is compared, if there is one

    @property
    def names(self) -> list[str]:
        """Names of the folders; the whole path where two have the same name."""
        names = [each.path.name for each in self.runs]
        return [
            name if names.count(name) == 1 else str(each.path)
            for name, each in zip(names, self.runs, strict=True)
        ]

    @property
    def same_items(self) -> bool:
        """Whether all runs were tested on the same items."""
        return len({frozenset(each.held_out.items) for each in self.runs}) == 1

    @property
    def set_coverage(self) -> float | None:
        """The coverage of this run's widened sets, if another run's make the same promise.

        Sets of other coverage, or by another distance, have widths that cannot be compared.
        """
        own = self.runs[0].set_promise
        same = [each for each in self.runs if each.set_promise == own]
        return own[0] if own is not None and len(same) > 1 else None

    def set_width(self, run: ComparedRun) -> float | None:
        """Mean width of the widened sets of a run that makes the same promise."""
        same = run.set_promise == self.runs[0].set_promise
        return run.widened.width_after if same and run.widened is not None else None
