"""What the items are, from columns such as ``text``: equal names of different items are refused."""

import polars as pl

from credalearn._checks import folded
from credalearn._formats import shown
from credalearn.app.readers._content import Raw
from credalearn.app.sources import Source, texts

_CONTENT = (
    *("text", "message", "sentence", "tweet", "utterance", "document", "content", "context"),
    *("premise", "hypothesis"),  # no addresses of images: signed ones differ in every export
)
_INSIDE = ("data", "fields", "example", "meta", "input")  # where tools keep what people see


def item_contents(raw: Raw) -> dict[str, int]:
    """A digest of each item's content, where the source has it; one name for two is refused."""
    columns = [name for name in raw.source.columns if name != raw.item and _is_content(name)]
    if not columns or not len(raw.frame):
        return {}
    found = item_rows(raw.frame)
    pairs = found.with_columns(content=_digests(raw.source, columns).gather(found["row"]))
    pairs = pairs.drop_nulls().unique(["item", "content"], keep="first", maintain_order=True)
    twice = pairs.filter(pl.col("item").is_duplicated())
    if len(twice):
        item = twice["item"][0]
        one, two = (raw.source.place(each) for each in twice.filter(item=item)["row"][:2])
        raw.source.refuse(
            f"item {shown(item)} has another {shown(columns[0])} in {two} than in {one}, so these "
            "are different items of one name",
            fix="name them by another column with --item, or give each its own name",
        )
    return dict(pairs.select("item", "content").iter_rows())


def item_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The item of each vote and the number of its row in the source."""
    row = pl.col("row").cast(pl.Int64) if "row" in frame.columns else pl.int_range(pl.len())
    items = frame["item"].str.strip_chars()
    if (items.str.len_bytes() != items.str.len_chars()).any():  # ASCII is in form NFC
        items = items.str.normalize("NFC")
    return frame.select(items, row.alias("row")).drop_nulls()


def _is_content(name: str) -> bool:
    first, _, rest = name.partition(".")
    return folded(first) in _CONTENT or (folded(first) in _INSIDE and folded(rest) in _CONTENT)


def _digests(source: Source, columns: list[str]) -> pl.Series:
    """A hash of each row, null where all columns are empty."""
    parts = []
    for block in source.blocks(columns):
        table = texts(block).select(pl.all().str.strip_chars().fill_null(""))
        empty = table.select(pl.all_horizontal(pl.all() == "")).to_series()
        found = pl.DataFrame({"content": table.hash_rows(), "empty": empty})
        parts.append(found.select(pl.when(~pl.col("empty")).then("content")).to_series())
    return pl.concat(parts)
