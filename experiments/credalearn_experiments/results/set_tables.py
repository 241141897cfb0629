"""Methods compared at equal coverage: how wide are their sets once these hold what people say?"""

from collections.abc import Iterable

from credalearn.errors import CredalError
from credalearn_experiments.drawing import Column, ResultTable
from credalearn_experiments.records import Record
from credalearn_experiments.results.seeds import runs_of
from credalearn_experiments.results.tables import table_of
from credalearn_experiments.settings.catalog import ALL_SETTINGS

_NAMES = {
    "set_width_90": "width at 90 %",
    "set_coverage_90": "covered at 90 %",
    "set_width_95": "width at 95 %",
    "set_coverage_95": "covered at 95 %",
    "set_width_90_plain": "width at 90 %, all items alike",
}
# Coverage is near what was asked for whatever the method, so nothing is marked there.
_COLUMNS = {
    metric: Column(name, better="lower", marked="width" in metric, percent=False, digits=3)
    for metric, name in _NAMES.items()
}
_ABOUT = (
    "Width is the mean over items and classes of upper − lower, after half of the voted items "
    "decided how far all sets are widened; covered is the share of the other half whose vote "
    "shares lie in their widened set; means over 20 halvings a seed, ± over seeds."
)
# The 4,000 are among the voted items of each CIFAR task.
_SCALE_CHOSEN_ON = ("cifar10h-voted", "cifar10h-features", "cifar10n", "lidc")
_SAME_ITEMS = (
    " The default scale was chosen by widths on items of the same data sets (the 4,000 held-out "
    "CIFAR-10H images and half of the nodule patients), and items measured here are among these; "
    "docs/sets.md measures on other items."
)


def about_sets(settings: Iterable[str]) -> str:
    """What must be said with tables of these settings.

    Example:
        >>> about_sets(["my-setting"]).endswith("20 halvings a seed, ± over seeds.")
        True
        >>> about_sets(["my-setting", "cifar10h-features"]).partition("are among these")[1]
        'are among these'
    """
    tasks = {ALL_SETTINGS[name].task for name in settings if name in ALL_SETTINGS}
    return _ABOUT + (_SAME_ITEMS if tasks & set(_SCALE_CHOSEN_ON) else "")


def set_table(records: Iterable[Record], setting: str) -> ResultTable:
    """The set sizes of every method of a setting that has them on all its seeds.

    Raises:
        CredalError: If the setting has no record, or none with set sizes.

    Example:
        >>> metrics = dict.fromkeys(_COLUMNS, 0.1)
        >>> record = Record(setting="cifar10h-voted", method="pocc", seed=1, metrics=metrics)
        >>> set_table([record], "cifar10h-voted").rows["pocc"]["width at 90 %"]
        (0.1, None)
    """
    runs = {
        method: by_seed
        for method, by_seed in runs_of(records, setting).items()
        if all(_COLUMNS.keys() <= record.metrics.keys() for record in by_seed.values())
    }
    if not runs:
        raise CredalError(
            f"no method of setting {setting!r} has sizes of sets at equal coverage. To fix: take a "
            "setting whose items have held-out votes, such as cifar10h-voted."
        )
    return table_of(runs, _COLUMNS)
