"""Whether people of one round are those of another under other names."""

import polars as pl

from credalearn.app.annotations.places import many, shown

_FEWEST = 20  # items that both have answered before two names are compared
_SHARE = 0.95  # of them with equal answers
_MARGIN = 0.10  # how much less any other name of the other round may agree with either
_MOST_PAIRS = 10_000_000  # of votes on one item, 1 to 6 s: of more nobody is compared
_MOST_SHOWN = 5


def same_people(first: pl.DataFrame, second: pl.DataFrame) -> list[str]:
    """Lines that ask of two names, one of each round, whether they are one person.

    Tools number people or write their addresses, so that one person's votes may count twice. Two
    names are asked about where they answer alike on nearly all items, and each by far less like
    anybody else of the other round; where nobody else is there, on all items.

    Args:
        first: Votes of one round: ``item``, ``annotator``, ``label``, all text.
        second: Those of another, in which no annotator of the first is.

    Example:
        >>> items = [f"x{i}" for i in range(40)]
        >>> def votes(who: str, labels: list[str]) -> pl.DataFrame:
        ...     return pl.DataFrame({"item": items, "annotator": who, "label": labels})
        >>> same_people(votes("1", ["cat", "dog"] * 20), votes("ute", ["cat", "dog"] * 20))
        ["'1' answers as 'ute' does on 40 of 40 items: the same person?"]
    """
    one, two = (
        each.lazy().select("item", "annotator", "label").drop_nulls() for each in (first, second)
    )
    sizes = one.group_by("item").len().join(two.group_by("item").len(), on="item").collect()
    if (sizes["len"].cast(pl.Int64) * sizes["len_right"]).sum() > _MOST_PAIRS:
        return []
    alike = pl.col("label") == pl.col("label_right")
    found = (
        one.join(two, on="item")
        .group_by("annotator", "annotator_right")
        .agg(common=pl.len(), equal=alike.sum())
        .filter(pl.col("common") >= _FEWEST)
        .with_columns(share=pl.col("equal") / pl.col("common"))
        .collect(engine="streaming")
    )
    likely = (
        found.with_columns(rival=pl.max_horizontal(map(_second, ("annotator", "annotator_right"))))
        .filter(pl.col("share") >= _SHARE)
        .filter(pl.col("share") - _MARGIN >= pl.col("rival").fill_null(1 - _MARGIN))
        .sort("equal", "annotator", descending=[True, False])
        .select("annotator", "annotator_right", "equal", "common")
    )
    told = [
        f"{shown(who)} answers as {shown(other)} does on {equal:,} of {common:,} items: the same "
        "person?"
        for who, other, equal, common in likely.head(_MOST_SHOWN).iter_rows()
    ]
    more = len(likely) - _MOST_SHOWN
    return [*told, f"and so on: {many(more, 'more pair')} of names"] if more > 0 else told


def _second(name: str) -> pl.Expr:
    """The second largest share of each name; null if it is compared with one alone."""
    return pl.col("share").sort(descending=True).get(1, null_on_oob=True).over(name)
