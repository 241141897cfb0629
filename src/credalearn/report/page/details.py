"""The page from calibration to provenance, as HTML."""

import numpy as np

from credalearn.report.page.data import Page
from credalearn.report.page.html import Html, element, percent, short_percent, table
from credalearn.report.page.sections import chart, section

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
    tied = int((~held_out.judged).sum())
    words = "Rows are the truth, columns what the model says; the diagonal is right."
    if tied:
        words += f" {tied:,} tied test items have no truth and are not counted."
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
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", corner, *head)),
            element("tbody", *body),
            class_="matrix",
        ),
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label=caption,
    )


def compared_section(page: Page) -> Html:
    """Runs side by side; of one run, its numbers."""
    several = len(page.compared) > 1
    target = page.rule.max_error if page.rule is not None else None
    headings = ["run", "method", "accuracy", "ECE", "AUARC"]
    if target is not None:
        headings += [f"kept at an error of {short_percent(target)}, observed", "kept by its rule"]
    rows: list[list[object]] = []
    for each in page.compared:
        cells: list[object] = [each.name, each.method, percent(each.accuracy)]
        cells += [percent(each.ece), percent(each.auarc)]
        if target is not None:
            cells += [percent(each.reached), percent(each.certified)]
        rows.append(cells)
    words = (
        "Accuracy of all labels; expected calibration error (ECE, smaller is better); the area "
        "under the accuracy–rejection curve (AUARC): the mean accuracy over all shares deferred, "
        "by the score the run defers by."
    )
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


def assumptions_section(page: Page) -> Html:
    """What the promise is about, and what it is not."""
    listed = [element("li", text) for text in assumptions(page)]
    rows: list[list[object]] = [[name, value] for name, value in page.provenance]
    return section(
        "assumptions",
        "What this rests on",
        element("ul", *listed),
        table("How this page came about", ["what", "value"], rows, class_="words"),
    )


def assumptions(page: Page) -> list[str]:
    """In sentences: the promise, its truth, and when it fails."""
    rule = page.rule
    found = []
    if rule is not None and rule.certified:
        limit = short_percent(rule.max_error or 0.0)
        about = {
            "error": f"the share of wrong labels among the items kept is at most {limit}",
            "kept-and-wrong": (
                f"the share of all items that are kept and wrong is at most {limit} on average"
            ),
        }[rule.quantity]
        items = f"{rule.num_items:,} calibration items" if rule.num_items else "calibration items"
        sure = (
            f"with a probability of at least {short_percent(rule.confidence)} over their draw, "
            if rule.confidence
            else "over their draw, "
        )
        found.append(
            f"The guarantee, from {items} by {rule.method}: {sure}{about}, against {rule.truth}, "
            "for new items. It holds "
            "for the rule’s own threshold, on average over the kept: not for each class, and not "
            "for each item."
        )
    else:
        found.append("Nothing on this page is guaranteed: the numbers are what was observed.")
    found += [
        f"Right and wrong are counted against {page.truth}. People can be wrong together, and "
        "then so is this count. Tied items have no truth: they count as kept or deferred, not as "
        "right or wrong.",
        "New items must come as the calibration items did (exchangeable: the same source, "
        "selection and kind of annotators). After a new device, place or season, certify again.",
        "An interval on this page is for a threshold fixed beforehand. A threshold picked because "
        "its number looks good here is not certified; nor is the best of many targets tried.",
    ]
    if page.group is not None:
        found.append(
            f"Items that share their {page.group} were kept in one split, but are alike: the "
            "guarantee takes items as independent, so with few large groups it is less sure than "
            "stated."
        )
    return found
