"""The verdict and the data, as HTML, and what all sections share."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from credalearn.app.report.data import Disagreement
from credalearn.app.report.heldout import SCORE_NAMES
from credalearn.app.report.html import Html, bar, element, join, percent, table
from credalearn.app.report.verdict import Verdict

_STATES = {
    "certified": "✓ Certified",
    "refused": "✕ Not certified",
    "capacity": "● By capacity, not certified",
    "open": "○ No rule yet",
}
_MOST_LISTED = 12


def section(identity: str, heading: str, *content: object) -> Html:
    """A part of the page with its heading, which links can name."""
    return element(
        "section",
        element("h2", heading, id=f"{identity}-heading"),
        *content,
        id=identity,
        aria_labeledby=f"{identity}-heading",
    )


def chart(identity: str, label: str, *, class_: str = "") -> Html:
    """Where the script draws; the label says in words what the eye would see."""
    return element(
        "div", id=identity, class_=f"chart {class_}".strip(), role="img", aria_label=label
    )


def tiles(
    facts: list[tuple[str, str, str]], *, class_: str = "", identities: Sequence[str] = ()
) -> Html:
    """Numbers side by side: what each is, the number itself, and a note if there is one.

    Args:
        facts: Those three of each.
        class_: Of the whole.
        identities: By which the script finds the number and the note of each; unless given, it
            does not look for them.
    """
    shown = [
        element(
            "div",
            element("dt", name),
            element("dd", value, class_="value", id=own),
            element("dd", note, class_="note", id=own and f"{own}-note") if note else Html(),
            class_="tile",
        )
        for (name, value, note), own in zip_longest(facts, identities)
    ]
    return element("dl", *shown, class_=f"tiles {class_}".strip())


def verdict_section(said: Verdict) -> Html:
    """The first thing that is read."""
    notes = [element("p", note.replace(" %", "\N{NO-BREAK SPACE}%")) for note in said.notes]
    if said.command:
        notes.append(element("p", "Make one: ", element("code", said.command)))
    return element(
        "section",
        element("h2", _STATES[said.state], id="verdict-heading", class_="state"),
        element("p", said.sentence, class_="sentence"),
        *notes,
        id="verdict",
        class_=f"verdict {said.state}",
        aria_labeledby="verdict-heading",
    )


def data_section(found: Disagreement) -> Html:
    """Who voted, and how far they agree."""
    facts: list[tuple[str, str, str]] = [("items", f"{found.items:,}", _splits(found))]
    if found.annotators is not None:
        facts.append(("annotators", f"{found.annotators:,}", ""))
    if found.votes is not None:
        facts.append(("votes", f"{found.votes:,.10g}", _votes_an_item(found)))
    if found.alpha is not None:
        meaning = "1 is full agreement, 0 what chance gives"
        facts.append(("Krippendorff’s alpha", f"{found.alpha:.2f}", meaning))
    if found.unanimous is not None:
        facts.append(("unanimous", percent(found.unanimous), "of the items"))
    if found.tied is not None:
        facts.append(("tied", percent(found.tied), "of the items: no single most-voted class"))
    parts: list[object] = [tiles(facts)]
    parts.append(element("div", _class_votes(found), _confused(found), class_="columns"))
    if found.left_out:
        words = f"Read, but not votes: {_reasons(found.left_out)}."
        parts.append(element("p", words, class_="note"))
    if found.no_part:
        words = f"Items that took no part: {_reasons(found.no_part)}. What is counted by class is "
        parts.append(element("p", f"{words}without them.", class_="note"))
    return section("data", "The data, and where people disagree", *parts)


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())


def _splits(found: Disagreement) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in found.splits.items())


def _votes_an_item(found: Disagreement) -> str:
    if found.votes_an_item is None:
        return ""
    low, median, high = found.votes_an_item
    return f"{low:g}" + (f" to {high:g} an item, median {median:g}" if high > low else " an item")


def _class_votes(found: Disagreement) -> Html:
    total = sum(found.class_votes.values())
    if not total:
        return Html()
    ranked = sorted(found.class_votes.items(), key=lambda each: -each[1])
    rows: list[list[object]] = [
        [name, f"{votes:,.6g}", bar(votes / total)] for name, votes in ranked[:_MOST_LISTED]
    ]
    more = len(ranked) - len(rows)
    counted = found.said == "votes"
    caption = "Votes by class" if counted else f"Stated {found.said} by class, summed over items"
    caption += f", the largest {_MOST_LISTED} of {len(ranked)}" if more else ""
    what = "votes" if counted else f"sum of {found.said}"
    return table(caption, ["class", what, "share"], rows, class_="bars")


def _confused(found: Disagreement) -> Html:
    pairs = found.confused[:_MOST_LISTED]
    if not pairs:
        return Html()
    rows: list[list[object]] = [
        [join(one, element("span", " or ", class_="note"), other), bar(share)]
        for one, other, share in pairs
    ]
    headings = ["pair of classes", "share of disagreements"]
    return table("Classes that people confuse", headings, rows, class_="bars")


def score_name(score: str) -> str:
    """A score in words."""
    return SCORE_NAMES.get(score, score)
