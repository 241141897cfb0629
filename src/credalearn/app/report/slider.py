"""The curve and its slider, as HTML: what they say without a script too."""

from credalearn.app.report.data import Page
from credalearn.app.report.html import Html, bar, element, join, percent, table
from credalearn.app.report.sections import chart, score_name, section, tiles
from credalearn.app.report.walks import Walk

_MINUTES = 1  # a reviewer's minutes an item, until the reader says otherwise
_EXAMPLE_ITEMS = 1000


def curve_section(page: Page) -> Html:
    """The curve, the slider and what it says."""
    first, start = page.walks[0], page.start
    choices = [
        element("option", score_name(each.score), value=place)
        for place, each in enumerate(page.walks)
    ]
    slider = element(
        "input",
        type="range",
        id="slider",
        min=0,
        max=len(first.kept) - 1,
        step=1,
        value=start,
        autocomplete="off",
        aria_describedby="slider-help",
    )
    controls = element(
        "div",
        element("label", "Items kept, from none to all", for_="slider", class_="slider-label"),
        slider,
        element(
            "div",
            element("label", "Defer by ", element("select", *choices, id="score")),
            _number("Reviewer minutes an item ", "minutes", _MINUTES, "any"),
            _number("Items to decide ", "plan", _EXAMPLE_ITEMS, 1),
            _button(page),
            class_="fields",
        ),
        element(
            "p",
            "Arrow keys move the slider by one step, Page Up and Page Down by ten.",
            id="slider-help",
            class_="note",
        ),
        class_="controls needs-script",
    )
    return section(
        "curve",
        "What deferring brings, and what it costs",
        element("p", _curve_words(page)),
        chart("curve-chart", _curve_label(page)),
        controls,
        _readings(first, start),
        _deferrals(page, first, start),
        element("details", element("summary", "The curve as a table"), _curve_table(page)),
    )


def _number(label: str, identity: str, value: int, step: object) -> Html:
    field = element(
        "input",
        type="number",
        id=identity,
        value=value,
        min=0,
        step=step,
        inputmode="decimal",
        autocomplete="off",
    )
    return element("label", label, field)


def _button(page: Page) -> Html:
    """Back to where the slider stood."""
    text = "Back to the rule" if page.rule and page.rule.threshold is not None else "Keep all"
    return element("button", text, type="button", id="reset")


def _readings(walk: Walk, place: int) -> Html:
    """What the slider says; the numbers of its first place, until a script moves it."""
    total, kept = int(walk.kept[-1]), int(walk.kept[place])
    share = (total - kept) / total
    error = walk.error(place)
    interval = f"{percent(float(walk.low[place]))} to {percent(float(walk.high[place]))}"
    facts = [
        ("kept", percent(walk.coverage(place)), f"{kept:,} of {total:,} test items"),
        (
            "error of the kept",
            percent(error),
            f"95 % interval {interval}; {walk.wrong[place]:,} wrong of {walk.judged[place]:,}",
        ),
        ("to a human", percent(share), f"{total - kept:,} of {total:,} test items"),
        (
            "reviewer hours",
            f"{share * _EXAMPLE_ITEMS * _MINUTES / 60:.1f}",
            f"for {_EXAMPLE_ITEMS:,} items at {_MINUTES} min each",
        ),
    ]
    identities = ("coverage", "error", "deferred", "hours")
    sentence = element("output", id="reading", for_="slider score minutes plan", aria_live="polite")
    return join(tiles(facts, class_="readings", identities=identities), element("p", sentence))


def _deferrals(page: Page, walk: Walk, place: int) -> Html:
    totals = walk.deferred[0]
    rows: list[list[object]] = []
    for name, total, count in zip(page.groups, totals, walk.deferred[place], strict=True):
        share = int(count) / int(total) if total else None
        rows.append([name, f"{total:,}", f"{count:,}", bar(share)])
    caption = join(
        "Deferred by class",
        element("span", f" (by {page.truth})", class_="note"),
    )
    headings = ["true class", "test items", "deferred", "share deferred"]
    return element("div", table(caption, headings, rows, class_="bars"), id="deferrals")


def _curve_words(page: Page) -> str:
    text = (
        "The least certain items go to a human, the others keep the model’s label. To the right "
        "more is kept; the height is the accuracy of what is kept, on the test items. The band is "
        "the 95 % interval at each place."
    )
    if page.shaded:
        text += " The shaded corner is the certified region, up to the rule’s coverage."
    return text


def _curve_label(page: Page) -> str:
    first = page.walks[0]
    places = [first.position(float("inf"))]
    places += [int((first.kept <= share * first.kept[-1]).sum()) - 1 for share in (0.75, 0.5)]
    readings = [
        f"{percent(1 - error)} at a coverage of {percent(first.coverage(place))}"
        for place in places
        if (error := first.error(place)) is not None
    ]
    return (
        f"Line chart of the accuracy of the kept items against coverage, deferring by "
        f"{', '.join(score_name(each.score) for each in page.walks)}. By "
        f"{score_name(first.score)}: {', '.join(readings)}. The numbers are in the table below."
    )


def _curve_table(page: Page) -> Html:
    first = page.walks[0]
    others = page.walks[1:]
    rows: list[list[object]] = []
    for target in range(5, 101, 5):
        place = _nearest(first, target / 100)
        error = first.error(place)
        low, high = percent(float(first.low[place])), percent(float(first.high[place]))
        cells: list[object] = [
            percent(first.coverage(place)),
            f"{first.thresholds[place]:.4g}",
            percent(None if error is None else 1 - error),
            f"{percent(error)} ({low} to {high})",
        ]
        for other in others:
            found = other.error(_nearest(other, target / 100))
            cells.append(percent(None if found is None else 1 - found))
        rows.append(cells)
    headings = [
        "kept",
        "threshold",
        f"accuracy by {score_name(first.score)}",
        "error (95 % interval)",
        *(f"accuracy by {score_name(each.score)}" for each in others),
    ]
    return table("Accuracy of the kept, at the place nearest to every 5 %", headings, rows)


def _nearest(walk: Walk, coverage: float) -> int:
    return int(abs(walk.kept - coverage * walk.kept[-1]).argmin())
