"""Damaged files of every format: one line that says what is wrong, or annotations."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_exports import EXPORTS
from credalearn.app.annotations.table import Annotations
from credalearn.app.readers import read_annotations
from credalearn.errors import CredalError


def truncate(content: bytes, dice: random.Random) -> bytes:
    return content[: dice.randrange(len(content))]


def flip_bits(content: bytes, dice: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(dice.choice([1, 1, 1, 3, 10])):
        found[dice.randrange(len(found))] ^= 1 << dice.randrange(8)
    return bytes(found)


def repeat_a_line(content: bytes, dice: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = dice.randrange(len(lines))
    return b"".join([*lines[:at], *[lines[at]] * dice.choice([0, 2, 3]), *lines[at + 1 :]])


def rename_a_field(content: bytes, dice: random.Random) -> bytes:
    names = sorted(set(re.findall(rb"[a-zA-Z_.]{4,}", content)))
    return content.replace(dice.choice(names), b"gone")


def insert_letters(content: bytes, dice: random.Random) -> bytes:
    odd = ['"', ",", ";", "\n", "\r", " ", "\t", "é", "{", "]", "\\", "'", "1.0", "\0", ""]
    at = dice.randrange(len(content))
    letters = dice.choice(odd).encode(dice.choice(["utf-8", "cp1252", "utf-16"]))
    return content[:at] + letters + content[at + dice.choice([0, 1]) :]


DAMAGE: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate,
    flip_bits,
    repeat_a_line,
    rename_a_field,
    insert_letters,
)


@pytest.mark.parametrize("name", EXPORTS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=st.sampled_from(DAMAGE), seed=st.integers(0, 2**32))
def test_damage_is_refused_in_one_line_or_read(
    tmp_path: Path, name: str, damage: Callable[[bytes, random.Random], bytes], seed: int
) -> None:
    path = tmp_path / "export"
    path.write_bytes(damage(EXPORTS[name].write(), random.Random(seed)))
    try:
        found = read_annotations(path)
    except CredalError as error:
        message = str(error)
        assert str(path) in message
        assert "\n" not in message
        assert len(message) < 2000
    else:
        assert isinstance(found, Annotations)
        assert found.counts().sum() > 0
