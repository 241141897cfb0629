"""``certify --set-coverage``: widen a run's sets to contain what people say about new items."""

from dataclasses import dataclass, replace

from credalearn._formats import many, percent
from credalearn.app.run import Run
from credalearn.app.steps.set_check import WidenedSets, widen_sets
from credalearn.app.steps.voted_items import VotedItems, voted_items
from credalearn.conformal import Distance, Inflation, Scale
from credalearn.errors import CredalError
from credalearn.guarantees import Guarantee


@dataclass(frozen=True, slots=True)
class SetCertificate:
    r"""By how much sets are widened, and what they cover of the test items."""

    widened: WidenedSets  # the test items' sets, the radius and what it promises
    left_out: int  # number of calibration items with fewer than two votes

    @property
    def inflation(self) -> Inflation:
        """The radius and what it promises."""
        return self.widened.inflation

    @property
    def lines(self) -> list[str]:
        """What to tell the user, in at most three lines."""
        wide, told = self.widened, [self.inflation.sentence()]
        if self.left_out:
            what = "fewer than two votes" if wide.counted else "no shares"
            told = [f"{told[0]} {self.left_out:,} with {what} were left out."]
        if not wide.seen:
            return [*told, "No test item has enough votes to check the widened sets on."]
        low, high = map(percent, wide.usual)
        told.append(
            f"The widened sets contain the vote shares of {percent(wide.covered / wide.seen)} of "
            f"{many(wide.seen, 'test item')} (usual: {low} to {high}). A class's interval is "
            f"{wide.width_after:.3g} wide on average; it was {wide.width_before:.3g}."
        )
        if wide.short:
            told[-1] += " Fewer than usual: are the test items drawn like the calibration items?"
        if wide.saying_nothing > 0.5:
            told.append(
                f"{percent(wide.saying_nothing)} of the test items' sets leave some class anything "
                "from 0 to 1: with few votes per item, or hard items, they say very little."
            )
        return told


def certify_sets(run: Run, coverage: float, *, distance: Distance, scale: Scale) -> SetCertificate:
    """Calibrate by how much to widen predicted sets; nothing is written."""
    if run.answers == "bounds":
        raise CredalError(
            f"{run.path} was trained on stated bounds: there are no vote shares to cover. To fix: "
            "train on votes, counts or probabilities."
        )
    items = voted_items(run, "calibration")
    usable = items.usable
    if not usable.any():
        raise CredalError(
            f"no calibration item of {run.path} has two or more votes, and one vote says nothing "
            "about shares. To fix: collect more votes per item and train again."
        )
    found = items.predicted[usable].inflation(
        items.observed[usable], coverage=coverage, distance=distance, scale=scale
    )
    if found.vacuous:
        raise CredalError(
            f"these sets cannot be certified; nothing was changed. {found.sentence()} To fix: "
            "annotate more items and recalibrate, or lower set_coverage."
        )
    if run.group is not None:
        num_groups = run.items.filter(split="calibration")["group"].n_unique()
        found = replace(found, group=run.group, num_groups=num_groups)
    return SetCertificate(widened(found, voted_items(run, "test")), int((~usable).sum()))


def widened(
    inflation: Inflation, items: VotedItems, guarantee: Guarantee | None = None
) -> WidenedSets:
    """The items' sets, widened, and what they cover: of all items, and of those that are kept."""
    kept = None if guarantee is None else guarantee.keeps(items.score)
    return widen_sets(
        inflation, items.predicted, items.observed, items.usable, counted=items.counted, kept=kept
    )
