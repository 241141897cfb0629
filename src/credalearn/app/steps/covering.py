"""``credalearn certify --set-coverage``: sets widened to hold what annotators say of new items."""

from dataclasses import dataclass, replace

from credalearn._formats import check_share, percent
from credalearn.app.report import WidenedSets, widen_sets
from credalearn.app.run import Run
from credalearn.app.steps.voted_items import VotedItems, read_voted, said_of
from credalearn.conformal import Distance, Inflation, Scale
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee


@dataclass(frozen=True, slots=True)
class SetCertificate:
    r"""By how much sets are widened, and how that does on test items, which had no part in it.

    Args:
        widened: The test items' sets, the radius and its promise.
        left_out: Calibration items with fewer than two votes.

    Example:
        >>> import numpy as np
        >>> found = Inflation(coverage=0.9, radius=0.4, distance="box", scale="binomial", items=300)
        >>> lower, upper = np.full((100, 2), 0.4), np.full((100, 2), 0.6)
        >>> wide = WidenedSets(found, lower, upper, 100, 91, 0.02, 0.15)
        >>> print("\n".join(SetCertificate(wide, 12).lines))
        left out: 12 calibration items with fewer than two votes
        On average over calibration sets, the vote shares of at least 90 % of new items lie in their
        widened sets, for items drawn and voted on like the 300 calibration items.
        radius 0.4, scale binomial: on the test items a class's interval is 0.15
        wide on average, and was 0.02
        On 100 test items with two votes or more, the shares of 91 % lie in the widened set; between
        83 % and 96 % is usual.
    """

    widened: WidenedSets
    left_out: int

    @property
    def inflation(self) -> Inflation:
        """The radius and its promise."""
        return self.widened.inflation

    @property
    def lines(self) -> tuple[str, ...]:
        """What to tell the user."""
        told, wide = [], self.widened
        if self.left_out:
            what = "fewer than two votes" if wide.counted else "no shares"
            told.append(f"left out: {self.left_out:,} calibration items with {what}")
        if not wide.counted:
            told.append("the items have probabilities: of how many votes is not known")
        told.append(self.inflation.sentence())
        if self.inflation.vacuous:  # which covers all test items and says nothing by it
            return tuple(told)
        if wide.seen:
            told.append(
                f"radius {self.inflation.radius:.4g}, scale {self.inflation.scale}: on the test items a "
                f"class's interval is {wide.width_after:.3g} wide on average, and was "
                f"{wide.width_before:.3g}"
            )
            if wide.saying_nothing > 0.5:
                told.append(
                    f"{percent(wide.saying_nothing)} of the test items' sets leave some class "
                    "anything from 0 to 1: with so few votes an item, or so hard items, they "
                    "say next to nothing"
                )
        return (*told, self.test_line)

    @property
    def test_line(self) -> str:
        """What share of the test items the sets cover, in a sentence."""
        wide = self.widened
        having = "with two votes or more" if wide.counted else "with shares"
        if not wide.seen:
            return f"No test item is there {having} to see it on."
        low, high = map(percent, wide.usual)
        usual, less = "is usual", "So few are not chance: are they drawn like the others?"
        if self.inflation.num_groups is not None:
            usual, less = "is usual of independent items", "So few may be chance of groups."
        return (
            f"On {wide.seen:,} test items {having}, the shares of "
            f"{percent(wide.covered / wide.seen)} lie in the widened set; between {low} and {high} "
            f"{usual}.{f' {less}' if wide.short else ''}"
        )


def certify_sets(
    run: Run,
    *,
    coverage: float,
    distance: Distance = "box",
    scale: Scale = "relative-variance",
) -> SetCertificate:
    """Calibrate by how much to widen predicted sets, on a run's calibration items.

    Those with two votes or more take part. Nothing is written: see :func:`keep_sets`.

    Args:
        run: A finished run.
        coverage: Share of new items whose observed shares are to lie in their set.
        distance: How far shares are from a set, which is here known by its bounds.
        scale: How much an item is widened beside the others.

    Raises:
        CredalError: If coverage is no share, there is no such distance or scale, nobody voted, or
            no calibration item has two votes.
    """
    check_share(coverage, name="coverage")
    if said_of(run).kind == "bounds":
        raise CredalError(
            f"{run.path} was trained on stated bounds: nobody voted, so there are no shares for a "
            "set to hold. To fix: train on votes, counts or probabilities."
        )
    calibration = read_voted(run, "calibration")
    usable = calibration.usable
    if not usable.any():
        raise CredalError(
            f"no calibration item of {run.path} has two votes or more, and one says nothing about "
            "their shares. To fix: have some items voted on again, and train with them."
        )
    known = calibration.predicted[usable]
    observed = calibration.observed[usable]
    inflation = known.inflation(observed, coverage=coverage, distance=distance, scale=scale)
    if run.group is not None:
        num_groups = run.items.filter(split="calibration")["group"].n_unique()
        inflation = replace(inflation, group=run.group, num_groups=num_groups)
    return SetCertificate(widened(inflation, read_voted(run, "test")), int((~usable).sum()))


def widened(inflation: Inflation, items: VotedItems, rule: Guarantee | None = None) -> WidenedSets:
    """The items' sets, widened, and what they hold; with a rule, of those it keeps, too."""
    kept = None if rule is None else rule.keeps(items.score)
    return widen_sets(
        inflation, items.predicted, items.observed, items.usable, counted=items.counted, kept=kept
    )


def kept_and_deferred(run: Run) -> list[str]:
    """A line that says what the widened sets of a run hold of what its rule keeps and defers.

    Raises:
        CredalError: If a file of the run cannot be read.
    """
    if run.sets is None or run.guarantee is None:
        return []
    line = widened(run.sets, read_voted(run, "test"), run.guarantee).by_decision
    return [line] if line else []


def keep_sets(run: Run, inflation: Inflation) -> None:
    """Write ``sets.json``, but nothing that promises nothing over something that does.

    Raises:
        CredalError: If it cannot be written.
    """
    if not (inflation.vacuous and run.sets is not None and not run.sets.vacuous):
        run.with_sets(inflation)
