"""Text that other tools write and no reader reads, told by how a file begins."""

import re
from pathlib import Path

from credalearn.app.annotations.places import refuse

_AROUND = b"\xef\xbb\xbf\xff\xfe \t\r\n"  # byte order marks and spaces
_BRAT = re.compile(rb"T\d+\t\S+ \d+ \d+|E\d+\t\S+:T\d+|([RAMN#]\d+|\*)\t\S+ (Arg1:)?[TREAMN]\d+\b")
_MARKUP = re.compile(rb"<[?!a-zA-Z]")
_TABLE = "a CSV or Parquet table of one row a vote: item, annotator, label"
_READ = f"{_TABLE}; or the JSON of Label Studio, Prodigy, Argilla, doccano or Ground Truth"


def refuse_foreign(path: Path, start: bytes) -> None:
    """Refuse brat's annotations and XML, which would pass for tables.

    Raises:
        CredalError: With the formats that are read.

    Example:
        >>> refuse_foreign(Path("votes.csv"), b"item,label")
    """
    text = start.replace(b"\0", b"").lstrip(_AROUND)
    if _MARKUP.match(text):
        rule = "this is XML or a web page, which is not read"
        refuse(path, "line 1", rule, fix=f"have the tool export {_READ}")
    if _BRAT.match(text):
        rule = "these are brat's annotations: marks in a text, and no votes on items"
        refuse(path, "line 1", rule, fix=f"give {_READ}")
