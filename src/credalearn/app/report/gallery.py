"""The gallery of items for a human, as HTML."""

from credalearn.app.report.data import Page
from credalearn.app.report.html import Html, bar, element, range_bar, short_percent
from credalearn.app.report.sections import score_name, section
from credalearn.app.report.shown import Shown


def gallery_section(page: Page) -> Html:
    """The items a human would be asked about first."""
    ruled = page.rule is not None and page.rule.threshold is not None
    what = "deferred test items" if ruled else "test items"
    if not page.gallery:
        return section(
            "gallery", "Items for a human", element("p", "The rule defers no test item.")
        )
    heads = tuple(page.held_out.heads) or ("probability",)
    words = (
        f"The {len(page.gallery)} least certain {what}, by {score_name(page.walks[0].score)}. "
        f"The bars are the probabilities of {' and '.join(f'the {name}' for name in heads)}"
        + ("; where they differ, the model does not know." if len(heads) > 1 else ".")
    )
    widened = page.widened if page.gallery[0].widened else None
    if widened is not None:
        words += (
            " Below them is each class’s interval in the widened set; such sets hold the votes of "
            f"{short_percent(widened.inflation.coverage)} of new items on average, of items such "
            "as these perhaps more, perhaps fewer."
        )
    cards = [_card(each, heads, page.disagreement.said) for each in page.gallery]
    key = [
        element("span", element("i", class_=f"swatch head-{place}"), name)
        for place, name in enumerate(heads)
    ]
    if widened is not None:
        key.append(element("span", element("i", class_="swatch widened"), "widened set"))
    return section(
        "gallery",
        "Items for a human",
        element("p", words, element("span", " The first 12 are printed.", class_="print-only")),
        element("p", *key, class_="key"),
        element("ul", *cards, class_="gallery"),
    )


def _card(shown: Shown, heads: tuple[str, ...], said: str) -> Html:
    picture = (
        element("img", src=shown.image, alt=f"Image of {shown.item}") if shown.image else Html()
    )
    told = (
        f"{count:g}\N{NO-BREAK SPACE}× {name}" if said == "votes" else f"{name} {count:g}"
        for name, count in shown.votes
    )
    votes = ", ".join(told) or "not known"
    rows = []
    for number, (name, values) in enumerate(shown.bars):
        first = element("th", name, scope="row", rowspan=2 if shown.widened else None)
        cells = (
            element("td", bar(value, digits=0, class_=f"head-{place}"))
            for place, value in enumerate(values)
        )
        rows.append(element("tr", first, *cells))
        if shown.widened:
            drawn = range_bar(*shown.widened[number], class_="widened")
            hidden = element("span", "widened set ", class_="hidden")
            rows.append(element("tr", element("td", hidden, drawn, colspan=len(values))))
    head = [element("th", name, scope="col") for name in ("class", *heads)]
    bars = element(
        "table",
        element("caption", f"Probabilities of {shown.item}", class_="hidden"),
        element("thead", element("tr", *head), class_="hidden"),
        element("tbody", *rows),
        class_="heads",
    )
    facts = element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value))
            for name, value in (
                ("model says", shown.label),
                ("truth", shown.truth),
                (said, votes),
            )
        ),
    )
    name = element("h3", shown.item)
    return element("li", picture, name, facts, bars)
