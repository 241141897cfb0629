"""What the page's promises rest on, in sentences, and how the page came about, as HTML."""

from credalearn.app.annotations.places import enumerated
from credalearn.app.report.data import Page
from credalearn.app.report.html import Html, element, short_percent, table
from credalearn.app.report.sections import section
from credalearn.app.report.verdict import PageRule
from credalearn.guarantees.truths import HAVING
from credalearn.labels import PROMISING


def assumptions_section(page: Page) -> Html:
    """What the promises are about, and what they are not."""
    listed = [element("li", text) for text in assumptions(page)]
    rows: list[list[object]] = [[name, value] for name, value in page.provenance]
    return section(
        "assumptions",
        "What this rests on",
        element("ul", *listed),
        table("How this page came about", ["what", "value"], rows, class_="words"),
    )


def assumptions(page: Page) -> list[str]:
    """In sentences: the promises, the truth they are about, and when they fail."""
    rule, widened = page.rule, page.widened
    found = []
    if rule is not None and rule.certified:
        found.append(_guarantee(rule))
    elif widened is None or not widened.promised:
        found.append("Nothing on this page is guaranteed: the numbers are what was observed.")
    else:
        found.append("No error on this page is guaranteed: those numbers are what was observed.")
    found += [
        f"Right and wrong are counted against {page.truth}. People can be wrong together, and "
        f"then so is this count. Items without {HAVING[page.held_out.against]} count as kept or "
        "deferred, not as right or wrong.",
        *_about_labels(page),
        *_about_widened(page),
        "New items must come as the calibration items did (exchangeable: the same source, "
        "selection and kind of annotators). After a new device, place or season, calibrate again "
        "on new items (credalearn recalibrate).",
        "An interval of an error is for a threshold fixed beforehand. A threshold picked because "
        "its number looks good here is not certified; nor is the best of many targets tried.",
    ]
    if page.group is not None:
        found.append(_about_groups(page, page.group))
    return found + [f"{doubt[0].upper()}{doubt[1:]}." for doubt in page.doubts]


def _about_groups(page: Page, group: str) -> str:
    """What takes items as independent that are not."""
    what = "guarantees and intervals"
    if page.rule is not None and page.rule.one_of_each_group:
        sets = page.widened is not None and page.widened.promised
        what = f"intervals over all items{' and the promise of the sets' if sets else ''}"
    return (
        f"Items that share their {group} were kept in one split, but are alike: the {what} take "
        "items as independent, so with few large groups they are less sure than stated."
    )


def _guarantee(rule: PageRule) -> str:
    limit = short_percent(rule.max_error or 0.0)
    about = {
        "error": f"the share of wrong labels among the items kept is at most {limit}",
        "kept-and-wrong": (
            f"the share of all items that are kept and wrong is at most {limit} on average"
        ),
    }[rule.quantity]
    items = f"{rule.num_items:,} calibration items" if rule.num_items else "calibration items"
    having = f" with {rule.having}" if rule.left_out else ""
    new = f"new items{having}"
    if rule.one_of_each_group:
        new = "one item, drawn at random, of each new group"
        new += f", if it has {rule.having}" if rule.left_out else ""
        having += ", one of each group,"
    sure = (
        f"with a probability of at least {short_percent(rule.confidence)} over their draw, "
        if rule.confidence
        else "over their draw, "
    )
    return (
        f"The guarantee, from {items}{having} by {rule.method}: {sure}{about}, against "
        f"{rule.truth}, for {new}. It holds for the rule’s own threshold, on average "
        "over the kept: not for each class, and not for each item."
    )


def _about_labels(page: Page) -> list[str]:
    """Whether the sets behind the risk profile hold the truth."""
    labels = page.labels
    if labels.profile is None:
        return []
    start = "The risk lies between its two numbers if the labels’ sets hold the truth."
    if not labels.rule:
        return [f"{start} That is an assumption: what people stated is taken at their word."]
    if labels.skilled:
        return [
            f"{start} That is an assumption: that the model of the annotators is right, with one "
            "true class an item and annotators who err independently. On truly ambiguous items it "
            "is far surer than people are."
        ]
    if labels.promised:
        return [
            f"{start} By the rule {labels.rule} each does so with a probability of "
            f"{short_percent(labels.confidence)} or more, if the votes on an item are independent "
            "draws from one distribution; those of annotators who copy each other are not."
        ]
    return [
        f"{start} That is an assumption: the rule {labels.rule} does not promise it, as "
        f"{enumerated(PROMISING)} do. For the mean over many items less is "
        "enough: each set holds the shares of its votes, and these are right on average where the "
        "annotators are drawn at random."
    ]


def _about_widened(page: Page) -> list[str]:
    """What the widened sets promise to hold."""
    if page.widened is None or not page.widened.promised:
        return []
    return [
        "The widened sets promise to hold the observed shares of a new item’s votes, of as many as "
        "the calibration items have, not the distribution behind them. The promise is an average "
        "over items and over the draw of the calibration items: not for each class, and not for "
        "each item."
    ]
