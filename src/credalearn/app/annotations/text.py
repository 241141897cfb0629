"""Whether a file holds text, and in which encoding."""

import codecs
import re
from dataclasses import dataclass, replace
from pathlib import Path

from credalearn.app.annotations.places import refuse, shown

_CHUNK = 1 << 24
_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\v")
_SIGNATURES = {  # how files begin that are often given by mistake: what they are, what to do
    b"PK\x03\x04": ("a zip archive or a spreadsheet (.xlsx)", "unpack it, or save it as CSV"),
    b"\x1f\x8b": ("compressed with gzip", "unpack it with gunzip"),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet (.xls)", "save it as CSV"),
    b"%PDF": ("a PDF", "give the export of the annotation tool"),
    b"\x89PNG": ("an image", "give the export of the annotation tool"),
    b"\xff\xd8\xff": ("an image", "give the export of the annotation tool"),
    b"SQLite format 3": ("a database", "export its table as CSV"),
    b"\x93NUMPY": ("a numpy array", "give the votes as CSV or Parquet"),
}
_MARKS = {  # byte order marks; those of UTF-32 begin like those of UTF-16 and come first
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NAMES = {  # an encoding in words
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with a byte order mark",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}


@dataclass(frozen=True, slots=True)
class Looked:
    """What one pass over a file's bytes tells.

    Args:
        encoding: As Python names it.
        quotes: Whether it has quotation marks.
        lone_returns: Whether it has carriage returns without a line feed.
        guessed: Whether other encodings of one byte a character would fit as well.

    Example:
        >>> Looked("utf-8", quotes=False, lone_returns=False).words
        'UTF-8'
    """

    encoding: str
    quotes: bool
    lone_returns: bool
    guessed: bool = False

    @property
    def words(self) -> str:
        """The encoding as people call it, and whether it is a guess."""
        name = _NAMES.get(self.encoding, self.encoding)
        return f"{name} by guess: if names look wrong, say --encoding" if self.guessed else name


def look(path: Path, encoding: str | None = None) -> Looked:
    """The encoding of a text file, found in one pass that keeps nothing.

    A mark at the start decides; without one it is UTF-8 if all of it is, else Windows-1252, or
    Latin-1 where that has no such character.

    Raises:
        CredalError: If the file is binary, or mixes UTF-8 with something else.
    """
    with path.open("rb") as file:
        start = file.read(4096)
    for signature, (what, fix) in _SIGNATURES.items():
        if start.startswith(signature):
            refuse(path, "", f"this file is {what}, not a table of annotations", fix=fix)
    if encoding is None:
        encoding = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
        encoding = encoding or _without_mark(start)
    else:
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError:
            refuse(path, "", f"there is no encoding {shown(encoding)}", fix="say utf-8 or cp1252")
    return _whole(path, encoding)


def decoded(path: Path, encoding: str) -> str:
    """The whole text; ``look`` has shown that it can be decoded."""
    text = path.read_bytes().decode(encoding)
    return text.removeprefix("\ufeff")


def _without_mark(start: bytes) -> str:
    """UTF-16 has a zero in every second byte of Western text."""
    even, odd = start[::2].count(0), start[1::2].count(0)
    if odd > 0.3 * len(start[1::2]) and odd > 4 * even:
        return "utf-16-le"
    if even > 0.3 * len(start[::2]) and even > 4 * odd:
        return "utf-16-be"
    return "utf-8"


def _whole(path: Path, encoding: str) -> Looked:
    """Decode all of it in pieces, to be sure of the encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    quotes, lone_returns, line = False, False, 1
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            if chunk.endswith(b"\r"):  # its line feed may come next
                chunk += file.read(1)
            plain = chunk.isascii() and encoding == "utf-8" and not decoder.getstate()[0]
            if not plain or not chunk:  # plain bytes need no decoding, and most exports are plain
                try:
                    chunk_text = decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError:
                    if encoding == "utf-8":
                        return _not_utf8(path)
                    name = _NAMES.get(encoding, encoding)
                    fix = "export the file again, or name its encoding"
                    refuse(path, f"line {line} or after", f"this is no {name} text", fix=fix)
                if not chunk:
                    return Looked(encoding, quotes, lone_returns)
                chunk = chunk_text.encode(errors="surrogatepass")
            if b"\0" in chunk:
                where = line + chunk[: chunk.index(b"\0")].count(b"\n")
                fix = "give the export of the annotation tool as text, or as Parquet"
                refuse(path, f"line {where}", "a zero byte: this file is binary", fix=fix)
            quotes = quotes or b'"' in chunk
            if b"\r" in chunk:
                lone_returns = lone_returns or chunk.count(b"\r") != chunk.count(b"\r\n")
            line += chunk.count(b"\n")


def _not_utf8(path: Path) -> Looked:
    """One byte a character, unless part of it is UTF-8: then some names would be read wrongly."""
    content = path.read_bytes()
    lenient = content.decode("utf-8", errors="surrogateescape")
    wrong = re.search("[\udc80-\udcff]", lenient)
    assert wrong is not None, "only what is not UTF-8 comes here"
    where = f"line {1 + lenient.count(chr(10), 0, wrong.start())}"
    right = re.search("[^\x00-\x7f\udc80-\udcff]", lenient)
    # Of random bytes a tenth are control characters, and some look like UTF-8.
    control = len(content) - len(content.translate(None, _CONTROL))
    if control > len(content) / 100 or (control and right is None):
        fix = "give the export of the annotation tool as text, or as Parquet"
        refuse(path, where, "control characters: this file is binary", fix=fix)
    if right is not None:
        byte = f"byte 0x{ord(wrong[0]) - 0xDC00:02x}"
        rule = f"{byte} is not UTF-8, but {shown(right[0])} elsewhere is: encodings are mixed"
        refuse(path, where, rule, fix="save the whole file as UTF-8, or name its encoding")
    try:
        content.decode("cp1252")
        return replace(_whole(path, "cp1252"), guessed=True)
    except UnicodeDecodeError:
        return replace(_whole(path, "latin-1"), guessed=True)
