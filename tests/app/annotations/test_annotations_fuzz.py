"""Damaged files of every format: one line that says what is wrong, or the right counts."""

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_exports import EXPORTS, as_counts
from credalearn.app.annotations import read_annotations
from credalearn.errors import CredalError

SLOWEST = 20.0  # seconds, on a machine that does other work


def truncate(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content))]


def flip(content: bytes, dice: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(dice.choice([1, 1, 1, 3, 10])):
        found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
    return bytes(found)


def duplicate_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = dice.randrange(len(lines))
    return b"".join([*lines[:at], *[lines[at]] * dice.choice([2, 3]), *lines[at + 1 :]])


def delete_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = dice.randrange(len(lines))
    return b"".join([*lines[:at], *lines[at + 1 :]])


def delete_a_column(content: bytes, dice: random.Random) -> bytes:
    """The column of a table; of JSON, the name of one field everywhere."""
    if content[:1] in b"[{":
        names = sorted(set(re.findall(rb'"([\w .-]+)":', content)))
        return content.replace(b'"%s":' % dice.choice(names), b'"gone":')
    delimiter = b"\t" if b"\t" in content else b","
    rows = [line.split(delimiter) for line in content.splitlines()]
    at = dice.randrange(len(rows[0]))
    if rows[0][at] == b"at_least":
        return content  # without it they are votes, and nobody could tell
    return b"\n".join(delimiter.join([*row[:at], *row[at + 1 :]]) for row in rows) + b"\n"


def swap_letters(content: bytes, dice: random.Random) -> bytes:
    """What a person or a spreadsheet puts in: quotes, delimiters, spaces, letters of elsewhere."""
    odd = ['"', ",", ";", "\n", "\r", " ", "\t", "é", "é", "{", "]", "\\", "'", "1.0", "=1+1", ""]
    at = dice.randrange(len(content))
    return content[:at] + dice.choice(odd).encode() + content[at + dice.choice([0, 1]) :]


def mix_encodings(content: bytes, dice: random.Random) -> bytes:
    parts = [b"\xe9", "é".encode(), "é".encode("utf-16"), b"\xff\xfe", b"\x81", "中".encode()]
    for _ in range(dice.choice([1, 2])):
        at = dice.randrange(len(content))
        content = content[:at] + dice.choice(parts) + content[at:]
    return content


def insert_zeros(content: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(content))
    return content[:at] + b"\0" * dice.choice([1, 8]) + content[at:]


def other_encoding(content: bytes, dice: random.Random) -> bytes:
    """No damage: the same text as other programs save it."""
    if content.startswith(b"PAR1"):
        return content
    return content.decode().encode(dice.choice(["utf-16", "utf-8-sig", "utf-16-le", "cp1252"]))


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "truncate": truncate,
    "flip": flip,
    "duplicate lines": duplicate_lines,
    "delete lines": delete_lines,
    "delete a column": delete_a_column,
    "swap letters": swap_letters,
    "mix encodings": mix_encodings,
    "insert zeros": insert_zeros,
    "other encoding": other_encoding,
}


def check(path: Path, content: bytes, name: str) -> str:
    """Refused in one line, or counted as the slow counter does. Returns which."""
    export = EXPORTS[name]
    path.write_bytes(content)
    started = time.monotonic()
    try:
        found = read_annotations(path)
    except CredalError as error:
        message = str(error)
        found = None
    finally:
        assert time.monotonic() - started < SLOWEST
    if found is None:
        assert message.startswith(str(path))
        assert "To fix: " in message
        assert "\n" not in message
        assert len(message) < 2000
        return "refused"
    assert found.source.format == export.format, found.source.words
    slow = export.count(content)
    assert as_counts(found).keys() == slow.keys()
    assert as_counts(found) == pytest.approx(slow)
    return "counted"


@pytest.mark.parametrize("name", EXPORTS)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=st.sampled_from(sorted(DAMAGE)), random_state=st.integers(0, 2**32))
def test_damage_is_refused_or_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, damage: str, random_state: int
) -> None:
    export = EXPORTS[name]
    content = DAMAGE[damage](export.write(), random.Random(random_state))
    check(tmp_path / f"export{export.suffix}", content, name)
    assert capfd.readouterr() == ("", "")  # a library may fail, but not aloud


def test_polars_does_not_panic_aloud(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of 100 Parquet files with flipped bits one makes polars panic."""
    content = EXPORTS["long-parquet"].write()
    path = tmp_path / "export.parquet"
    messages = []
    for random_state in range(300):
        path.write_bytes(flip(content, random.Random(random_state)))
        try:
            read_annotations(path)
        except CredalError as error:
            messages.append(str(error))
        assert capfd.readouterr() == ("", ""), random_state
    assert not [each for each in messages if "unwrap()" in each or "assertion" in each]


@pytest.mark.parametrize("name", EXPORTS)
def test_the_same_text_in_another_encoding_is_counted(tmp_path: Path, name: str) -> None:
    export = EXPORTS[name]
    if export.suffix == ".parquet":
        pytest.skip("Parquet is no text")
    for encoding in ("utf-16", "utf-16-le", "utf-8-sig", "cp1252"):
        content = export.write().decode().encode(encoding)
        (tmp_path / "export").write_bytes(content)
        found = as_counts(read_annotations(tmp_path / "export"))
        assert found == pytest.approx(export.count(export.write()))
