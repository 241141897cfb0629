"""What the sets hold, as HTML: the risk the labels leave open, and predicted sets that promise."""

import math

from credalearn.app.report.data import Page
from credalearn.app.report.holding import LabelSets, WidenedSets
from credalearn.app.report.html import Html, element, join, percent, short_percent
from credalearn.app.report.risk_line import nats, risk_line
from credalearn.app.report.sections import section, tiles
from credalearn.conformal import Inflation
from credalearn.theory import RiskProfile


def sets_section(page: Page) -> Html:
    """Between which two numbers the risk lies, and how often a set holds what people say."""
    return section(
        "sets",
        "What the sets hold",
        element("h3", "The risk that the labels leave open"),
        *_risk(page.labels, len(page.held_out.classes)),
        element("h3", "Predicted sets that hold what people say"),
        *_widened(page),
    )


def _risk(labels: LabelSets, num_classes: int) -> list[Html]:
    profile = labels.profile
    if profile is None:
        why = join("There is no risk profile: ", _whole(labels.why_not))
        return [element("p", why, class_="note")]
    return [
        element("p", _made(labels), " ", _between(profile)),
        element("p", _beside_guessing(profile, num_classes)),
        risk_line(profile, num_classes),
        tiles(_risk_tiles(profile, num_classes), class_="readings"),
        *_infinite(profile),
    ]


def _made(labels: LabelSets) -> str:
    """Where the labels' sets come from, and on what condition they say anything."""
    if not labels.rule:
        start = "People stated bounds such as “at least 70 %”, which leave a set of splits of "
        return f"{start}opinion possible. If these sets hold the truth,"
    start = (
        "Dawid and Skene’s model weighs the votes on an item by the annotators’ skill."
        if labels.skilled
        else "A few votes do not settle how opinions on an item are split."
    )
    if labels.rule == "precise":
        return f"{start} The rule precise takes what they give for that split. If it is the truth,"
    return (
        f"{start} The rule {labels.rule} makes of them a set of splits that are possible. If these "
        "sets hold the truth,"
    )


def _between(profile: RiskProfile) -> str:
    best, worst = nats(profile.optimistic), nats(profile.pessimistic)
    first, last = percent(math.exp(-profile.optimistic)), percent(math.exp(-profile.pessimistic))
    one = best == worst
    risk = f"is {best}" if one else f"lies between {best} and {worst}"
    chance = f"of {first}" if one else f"between {last} and {first}"
    return (
        f"the model’s true cross-entropy on the {profile.items:,} test items {risk} nats. That is "
        "how much people’s answers surprise it, less being better: as much as if it gave every "
        f"answer a probability {chance}."
    )


def _beside_guessing(profile: RiskProfile, num_classes: int) -> str:
    guess = math.log(num_classes)
    if profile.pessimistic < guess:
        said = "even at worst the model does better"
    elif profile.optimistic < guess:
        said = "at worst the model does no better"
    else:
        said = "even at best the model does no better"
    told = (
        f"Guessing all {num_classes:,} classes alike scores {nats(guess)} nats (the logarithm of "
        f"{num_classes:,}), or {percent(1 / num_classes)} for every answer: {said}."
    )
    if 0 < profile.width < math.inf:
        told += f" The width of {nats(profile.width)} nats is the price of imprecise labels."
    return f"{told} Brackets show the {short_percent(profile.confidence)} interval of each end."


def _risk_tiles(profile: RiskProfile, num_classes: int) -> list[tuple[str, str, str]]:
    sure = short_percent(profile.confidence)
    best, worst = (
        f"{sure} interval {nats(low)} to {nats(high)}"
        for low, high in (profile.optimistic_interval, profile.pessimistic_interval)
    )
    return [
        ("at best, R₊", nats(profile.optimistic), best),
        ("at worst, R₋", nats(profile.pessimistic), worst),
        ("left open, R₋ − R₊", nats(profile.width), "nats"),
        ("uniform guess", nats(math.log(num_classes)), f"log {num_classes:,}"),
    ]


def _infinite(profile: RiskProfile) -> list[Html]:
    if not profile.infinite_items:
        return []
    text = (
        f"The worst case is infinite: on {profile.infinite_items:,} test items the model gives a "
        "probability of exactly 0 to a class that their sets leave possible."
    )
    return [element("p", text, class_="warning")]


def _widened(page: Page) -> list[Html]:
    found = page.widened
    if found is None and not page.widen_command:
        text = "Nobody voted, people stated bounds: there are no shares of votes for a set to hold."
        return [element("p", text, class_="note")]
    if found is None:
        text = (
            "The sets as the model predicts them promise nothing about people. Widened on the "
            "calibration items they hold the votes of nine new items in ten: "
        )
        return [element("p", text, element("code", page.widen_command), class_="note")]
    if not found.promised:
        return [element("p", _whole(found.inflation.sentence()), class_="warning")]
    inflation = found.inflation
    text = (
        "A set as the model predicts it promises nothing about people. Widened by what was missed "
        f"on {inflation.items:,} calibration items, it holds the shares of a new item’s votes in "
        f"{short_percent(inflation.coverage)} of cases or more, for items drawn and voted on like "
        "these."
    )
    drawn = tiles(_set_tiles(found), class_="readings")
    return [element("p", text), drawn, *_set_notes(found, grouped=page.group is not None)]


def _set_tiles(found: WidenedSets) -> list[tuple[str, str, str]]:
    inflation = found.inflation
    promise = [
        (
            "promised",
            short_percent(inflation.coverage),
            f"of new items, from {inflation.items:,} calibration items",
        )
    ]
    having = "with two votes or more" if found.counted else "with shares"
    if not found.seen:
        return [*promise, ("held on test items", "–", f"none is {having}")]
    low, high = found.interval
    return [
        *promise,
        (
            "held on test items",
            percent(found.covered / found.seen),
            f"95 % interval {percent(low)} to {percent(high)}; {found.covered:,} of "
            f"{found.seen:,} {having}",
        ),
        ("width, as predicted", f"{found.width_before:.3f}", "mean of a class’s interval, 0 to 1"),
        ("width, widened", f"{found.width_after:.3f}", "mean over the same test items"),
    ]


def _set_notes(found: WidenedSets, *, grouped: bool) -> list[Html]:
    notes = [element("p", _way(found.inflation), class_="note")]
    if found.seen:
        low, high = (percent(end) for end in found.usual)
        text = (
            "The promise is an average over draws of the calibration items: as many, with as many "
            f"test items, would hold between {low} and {high} in 19 draws of 20"
        )
        text += ", were they independent." if grouped else "."
        notes.append(element("p", text, class_="note"))
    if found.by_decision:
        notes.append(element("p", _whole(found.by_decision), class_="note"))
    if found.short and grouped:
        text = "Fewer are held than that; of groups it may be chance."
        notes.append(element("p", text, class_="note"))
    elif found.short:
        text = "Fewer are held than that: test and calibration items may not have come alike."
        notes.append(element("p", text, class_="warning"))
    if not found.counted:
        text = "The items have probabilities; of how many votes is not known."
        notes.append(element("p", text, class_="note"))
    return notes


def _way(inflation: Inflation) -> str:
    """What was chosen of how sets are widened, and what that does."""
    told = f"Distance {inflation.distance}, scale {inflation.scale}, radius {inflation.radius:.4g}:"
    if inflation.scale == "none":
        told += " all items are widened alike."
    else:
        told += " unclear items are widened more than clear ones."
    if inflation.distance == "total-variation":
        told += (
            " A widened set is all distributions within that distance; the widths are those of "
            "the box around it, which holds more."
        )
    return told


def _whole(sentence: str) -> str:
    """A sentence whose numbers do not part from their sign."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")
