"""The comparison on lung nodules: a table and a figure."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from credalearn.app.nodules import CLASSES, load_nodules
from credalearn.metrics import balanced_quality
from credalearn_experiments.nodules.splits import CONTENDERS, TEST_SHARE, splits
from credalearn_experiments.nodules.triangle import draw_triangle
from credalearn_experiments.results.charts import draw_rejection
from credalearn_experiments.results.style import save_figure
from credalearn_experiments.results.table import Column, Table, Value, text

_DEFERRED = np.array([0.1, 0.2, 0.3, 0.5])
_METRICS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "auarc": "AUARC",
    "auarc-common": "AUARC, 1 − top p",
}
_SEGMENTS = 60  # in the figure: more would hide each other


def compare_nodules(
    methods: str, output: Path, *, num_splits: int = 10, epochs: int = 40
) -> Iterator[str]:
    """Train and test; yield the lines of the report, and draw the figure."""
    nodules, contenders = load_nodules(), CONTENDERS[methods]
    unanimous = (nodules.votes.max(1) == nodules.votes.sum(1)).mean()
    yield (
        f"Lung nodules of LIDC-IDRI: {len(nodules.votes):,} nodules of "
        f"{len(set(nodules.patients)):,} patients, each rated by three or four radiologists as "
        f"{', '.join(CLASSES[:-1])} or {CLASSES[-1]}."
    )
    yield (
        f"They are unanimous on {100 * unanimous:.0f} % and tie on "
        f"{100 * (~nodules.has_majority).mean():.0f} %; ties are left out of the tests. Training "
        f"on {100 * (1 - TEST_SHARE):.0f} % of the patients, testing on the others:"
    )
    found = []
    for split in splits(nodules, contenders, num_splits=num_splits, epochs=epochs):
        found.append(split)
        right = 100 * split.metrics(contenders[0])["accuracy"]
        yield f"  {len(found):2d}/{num_splits}  accuracy of POCC {right:.1f} %"
    metrics = {
        each.name: {name: [s.metrics(each)[name] for s in found] for name in _METRICS}
        for each in contenders
    }
    quality = balanced_quality(metrics)
    rows: dict[str, dict[str, Value]] = {}
    for each in contenders:
        kept = np.array([split.kept_accuracy(each, _DEFERRED) for split in found]).T
        rows[each.name] = {
            **{title: _value(metrics[each.name][name]) for name, title in _METRICS.items()},
            **{f"{100 * x:.0f} %": _value(y) for x, y in zip(_DEFERRED, kept, strict=True)},
            "BQS": _value(quality[each.name].per_seed),
        }
    columns = [Column(name, marked=False, percent=False) for name in rows[contenders[0].name]]
    yield f"\n{text(Table('', columns, rows, corner='deferred by'))}"
    yield (
        "In %, mean ± one standard deviation over the splits. AUARC by each one's own score and by "
        "a common one; 10 to 50 %: accuracy of the rest when the least certain are deferred. BQS: "
        "balanced quality of accuracy, 1 − ECE and AUARC."
    )

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        shares = np.linspace(0, 0.8, 81)
        curves = {
            each.name: np.array([split.kept_accuracy(each, shares) for split in found])
            for each in contenders
        }
        draw_rejection(right, shares, curves)
        right.set_title("Deferring the least certain nodules", pad=20)
        pred, y = found[0].predictions[contenders[0]], found[0].y
        draw_triangle(left, pred[:_SEGMENTS], y[:_SEGMENTS], CLASSES)
        left.set_anchor("N")  # titles at one height
        left.set_title(f"One segment per nodule ({_SEGMENTS} of the test nodules)", pad=20)

    save_figure(draw, output, width=10, height=4.4)
    yield f"figure in {output}"


def _value(shares: np.ndarray | list[float] | tuple[float, ...]) -> Value:
    values = 100 * np.asarray(shares)
    return float(values.mean()), float(values.std()) if len(values) > 1 else None
