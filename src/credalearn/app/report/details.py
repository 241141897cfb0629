"""Calibration, confusion and the methods compared, as HTML."""

import numpy as np

from credalearn.app.report.data import Page
from credalearn.app.report.holding import WidenedSets
from credalearn.app.report.html import Html, element, framed_table, percent, short_percent, table
from credalearn.app.report.sections import chart, section
from credalearn.conformal import Distance
from credalearn.guarantees.truths import LACKING

_MATRIX_CLASSES = 12  # more would not fit: the most frequent confusions are listed instead
_MOST_LISTED = 15


def calibration_section(page: Page) -> Html:
    """How far stated probabilities hold."""
    bins = page.held_out.reliability
    total = sum(bins.count)
    rows: list[list[object]] = [
        [
            f"{100 * low:.0f}–{percent(high, 0)}",
            f"{count:,}",
            percent(stated),
            percent(right),
            f"{100 * (right - stated):+.1f}".replace("-", "−"),
        ]
        for low, high, count, stated, right in zip(
            bins.edges[:-1], bins.edges[1:], bins.count, bins.confidence, bins.accuracy, strict=True
        )
        if count
    ]
    gap = sum(n * (r - c) for n, r, c in zip(bins.count, bins.accuracy, bins.confidence))  # noqa: B905
    lean = "more often right than it says" if gap > 0 else "less often right than it says"
    words = (
        f"When the model says 80 %, is it right 80 % of the time? On average its stated "
        f"probability is off by {percent(bins.ece)} (expected calibration error, ten bins); "
        f"it is {lean}, by {percent(abs(gap) / total)} overall."
    )
    headings = ["stated probability", "items", "mean stated", "right", "difference (points)"]
    return section(
        "calibration",
        "Do the stated probabilities hold?",
        element("p", words),
        element(
            "div",
            chart(
                "calibration-chart",
                f"Reliability diagram of {len(rows)} bins: share of right labels against the "
                f"stated probability. Expected calibration error {percent(bins.ece)}. The numbers "
                "are in the table beside it.",
                class_="square",
            ),
            table("Test items by stated probability", headings, rows, class_="bins"),
            class_="columns",
        ),
    )


def confusion_section(page: Page) -> Html:
    """What is mistaken for what, among the kept and among the deferred."""
    kept = page.kept
    held_out = page.held_out
    if page.rule is None or page.rule.threshold is None:
        parts = [_confusion(page, "All test items", held_out.confusion(kept))]
    else:
        parts = [
            _confusion(page, "Kept by the rule", held_out.confusion(kept)),
            _confusion(page, "Deferred by the rule", held_out.confusion(~kept)),
        ]
    left_out = int((~held_out.judged).sum())
    words = "Rows are the truth, columns what the model says; the diagonal is right."
    if left_out:
        words += f" {left_out:,} test items are not counted: {LACKING[held_out.against]}."
    return section(
        "confusion",
        "What is mistaken for what",
        element("p", words),
        element("div", *parts, class_="columns"),
    )


def _confusion(page: Page, name: str, counts: np.ndarray) -> Html:
    classes = page.held_out.classes
    total = int(counts.sum())
    wrong = total - int(np.trace(counts))
    share = f", {percent(wrong / total)}" if total else ""
    caption = f"{name}: {total:,} items, {wrong:,} wrong{share}"
    if len(classes) > _MATRIX_CLASSES:
        mistakes = counts - np.diag(np.diag(counts))
        order = np.argsort(-mistakes, axis=None, kind="stable")[:_MOST_LISTED]
        pairs = [divmod(int(flat), len(classes)) for flat in order]
        rows: list[list[object]] = [
            [classes[truth], classes[said], f"{mistakes[truth, said]:,}"]
            for truth, said in pairs
            if mistakes[truth, said]
        ]
        return table(f"{caption}; the most frequent", ["truth", "predicted", "items"], rows)
    largest = max(int(counts.max()), 1)
    body = [
        element(
            "tr",
            element("th", classes[truth], scope="row"),
            *(
                element(
                    "td",
                    f"{counts[truth, said]:,}",
                    class_="right" if truth == said else "wrong",
                    style=f"--heat:{counts[truth, said] / largest:.3f}",
                )
                for said in range(len(classes))
            ),
        )
        for truth in range(len(classes))
    ]
    head = [element("th", each, scope="col") for each in classes]
    corner = element("td", "truth ↓ predicted →", class_="note")
    return framed_table(caption, [corner, *head], body, class_="matrix")


def compared_section(page: Page) -> Html:
    """Runs side by side; of one run, its numbers."""
    several = len(page.compared) > 1
    target = page.rule.max_error if page.rule is not None else None
    headings = ["run", "method", "accuracy", "ECE", "AUARC"]
    if target is not None:
        headings += [f"kept at an error of {short_percent(target)}, observed", "kept by its rule"]
    held = _comparable(page)
    if held is not None:
        headings.append(f"width of sets that hold {short_percent(held[0])}")
    rows: list[list[object]] = []
    for each in page.compared:
        cells: list[object] = [each.name, each.method, percent(each.accuracy)]
        cells += [percent(each.ece), percent(each.auarc)]
        if target is not None:
            cells += [percent(each.reached), percent(each.certified)]
        if held is not None:
            wide = each.widened if _promise(each.widened) == held else None
            cells.append(f"{wide.width_after:.3f}" if wide else "–")
        rows.append(cells)
    words = (
        "Accuracy of all labels; expected calibration error (ECE, smaller is better); the area "
        "under the accuracy–rejection curve (AUARC): the mean accuracy over all shares deferred, "
        "by the score the run defers by."
    )
    if held is not None:
        words += " Of sets widened to hold as many votes, narrower ones say more."
    parts: list[object] = [element("p", words)]
    if several and not page.same_items:
        warning = "Not tested on the same items: these numbers cannot be compared closely."
        parts.append(element("p", warning, class_="warning"))
    if several:
        label = (
            "Line chart of the accuracy of the kept items against coverage, a line a run: "
            f"{', '.join(each.name for each in page.compared)}. The table below has the numbers."
        )
        parts.append(chart("compared-chart", label))
    title = "Runs on their test items" if several else "This run on its test items"
    parts.append(table(title, headings, rows))
    heading = "Methods compared" if several else "Quality in numbers"
    return section("compared", heading, *parts)


def _comparable(page: Page) -> tuple[float, Distance] | None:
    """What this run's widened sets promise, if another run's promise the same."""
    own = _promise(page.widened)
    same = [each for each in page.compared if _promise(each.widened) == own]
    return own if len(same) > 1 else None


def _promise(found: WidenedSets | None) -> tuple[float, Distance] | None:
    """Coverage and distance of widened sets, if test items were there to see their width on.

    By another distance the box, whose width it is, is not the set that the promise is about.
    """
    if found is None or not found.promised or not found.seen:
        return None
    return found.inflation.coverage, found.inflation.distance
