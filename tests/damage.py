"""Damaged, forged and harmlessly changed files, for fuzzing with fixed seeds."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

Damage = Callable[[bytes, random.Random], bytes]
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 3, 1e308, 5e-324, 2**63, 10**40, 0.5, "", "x", "x" * 1000, [], {}),
    *(" ", "\x1b[31m", "=1+1", "../../x", "nan", [[]], {"a": {}}, [None], "\ud800", "1e999"),
)


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
    names = sorted(set(re.findall(rb"[a-zA-Z_.]{4,}", content))) or [content[:1]]
    return content.replace(dice.choice(names), b"gone")


def insert_letters(content: bytes, dice: random.Random) -> bytes:
    odd = ['"', ",", ";", "\n", "\r", " ", "\t", "é", "{", "]", "\\", "'", "1.0", "\0", ""]
    at = dice.randrange(len(content))
    letters = dice.choice(odd).encode(dice.choice(["utf-8", "cp1252", "utf-16"]))
    return content[:at] + letters + content[at + dice.choice([0, 1]) :]


def change_a_value(content: bytes, dice: random.Random) -> bytes:
    """JSON, JSON Lines or CSV with one value replaced, removed or repeated."""
    lines = content.decode(errors="replace").split("\n")
    try:
        return json.dumps(changed(json.loads(content), dice)).encode()
    except ValueError:
        at = dice.randrange(len(lines))
    try:
        lines[at] = json.dumps(changed(json.loads(lines[at]), dice))
    except ValueError:
        cells = re.split(r"([,;\t])", lines[at])
        cells[dice.randrange(len(cells))] = str(dice.choice(ODD_VALUES))
        lines[at] = "".join(cells)
    return "\n".join(lines).encode(errors="replace")


def changed(value: Any, dice: random.Random) -> Any:
    """A JSON value with one of the values in it replaced, removed or repeated."""
    if not isinstance(value, dict | list) or not value or dice.random() < 0.15:
        return dice.choice(ODD_VALUES)
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, what = dice.choice(keys), dice.random()
    copy = value.copy()
    if what < 0.1:
        del copy[key]
    elif what < 0.15 and isinstance(copy, list):
        copy.append(copy[key])
    else:
        copy[key] = changed(copy[key], dice)
    return copy


DAMAGE: tuple[Damage, ...] = (
    truncate,
    flip_bits,
    repeat_a_line,
    rename_a_field,
    insert_letters,
    change_a_value,
)


def harmless(content: bytes, dice: random.Random) -> bytes:
    """The same votes, otherwise written: rows in another order, spaces, line ends, a mark."""
    try:
        value = json.loads(content)
    except ValueError:
        return _harmless_lines(content, dice)
    if isinstance(value, list):
        dice.shuffle(value)
    else:
        value = dict(dice.sample(list(value.items()), len(value)))
    return json.dumps(
        value, indent=dice.choice([None, 2]), ensure_ascii=dice.random() < 0.5
    ).encode()


def _harmless_lines(content: bytes, dice: random.Random) -> bytes:
    lines = content.decode().splitlines()
    head = [] if lines[0].startswith("{") else [lines.pop(0)]
    dice.shuffle(lines)
    for _ in range(dice.choice([0, 0, 1, 3])):
        lines.insert(dice.randrange(len(lines) + 1), "")
    end, mark = dice.choice(["\n", "\r\n"]), dice.choice(["", "\ufeff"])
    return (mark + end.join([*head, *lines]) + dice.choice(["", end])).encode()
