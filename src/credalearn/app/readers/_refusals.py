"""What tidying refuses: labels that are no classes, and one name for two items."""

import re
from collections import Counter

import polars as pl

from credalearn._checks import folded
from credalearn._formats import listed, shown
from credalearn.app.readers._content import Raw
from credalearn.app.sources import numbers, texts

_NO_ANSWER = ("-1", "-9", "-99", "-999", "99", "999", "9999", "na", "n/a", "null", "?", "-", ".")
_MANY = {100: 2, 1000: 5}  # labels, each with fewer votes than this
_MEASURED = 20  # different numbers, half or more with decimals, or few votes each
_RATED = 10  # votes per number, from which on whole numbers may be classes
_SEVERAL = re.compile(r"[,;|]")
_CONTENT = (
    *("text", "message", "sentence", "tweet", "utterance", "document", "content", "context"),
    *("premise", "hypothesis"),  # no addresses of images: signed ones differ in every export
)
_INSIDE = ("data", "fields", "example", "meta", "input")  # where tools keep what people see


def check_labels(raw: Raw, labels: list[str], votes: int) -> None:
    """Refuse labels, found in so many votes, that are no names of classes."""
    codes = [each for each in labels if each.casefold() in _NO_ANSWER]
    if raw.empty == "empty cells" and codes and len(labels) - len(codes) >= 2:
        raw.source.refuse(
            f"{listed(codes)} may mean 'no answer' in a table with one column per annotator",
            fix=f"pass --missing={codes[0]}, or name all classes with --classes if it is one",
        )
    found = numbers(pl.Series(labels, dtype=pl.String)).drop_nulls()
    decimals = int((found != found.round()).sum())
    rare = len(found) == len(labels) > votes / _RATED
    if len(labels) > _MEASURED and (decimals > len(labels) / 2 or rare):
        raw.source.refuse(
            f"{len(labels):,} different numbers in {votes:,} votes, such as {listed(labels, 3)}, "
            "are measurements, not classes",
            fix="round them to a few classes, or name the column of the class with --label",
        )
    if any(len(labels) > max(least, votes / share) for least, share in _MANY.items()):
        raw.source.refuse(
            f"{len(labels):,} different labels in {votes:,} votes are free text or names, not "
            "classes",
            fix="name the column of the class with --label",
        )
    parts = {each: [part.strip("[]{} '\"") for part in _SEVERAL.split(each)] for each in labels}
    known = Counter(part for each in parts.values() for part in set(each))
    several = [
        each for each, of in parts.items() if len(of) > 1 and min(known[part] for part in of) > 1
    ]
    if several:
        raw.source.refuse(
            f"{shown(several[0])} names several classes, and a vote is for one",
            fix="ask one question per class, or name all classes with --classes if it is one",
        )


def item_contents(raw: Raw) -> dict[str, int]:
    """A digest of each item's content, where the source has it; one name for two is refused."""
    columns = [name for name in raw.source.columns if name != raw.item and _is_content(name)]
    if not columns or not len(raw.frame):
        return {}
    digests = []  # null where all columns are empty
    for block in raw.source.blocks(columns):
        table = texts(block).select(pl.all().str.strip_chars().fill_null(""))
        filled = ~table.select(pl.all_horizontal(pl.all() == "")).to_series()
        digests.append(pl.select(pl.when(filled).then(table.hash_rows())).to_series())
    found = item_rows(raw.frame)
    pairs = found.with_columns(content=pl.concat(digests).gather(found["row"]))
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
