"""People of two rounds under other names: asked about where they answer alike."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn.app.annotations import Annotations
from credalearn.app.annotations.table import Source
from credalearn.app.joined import same_people as module
from credalearn.app.joined.merging import merge
from credalearn.app.joined.same_people import same_people
from credalearn.app.steps.inspecting import inspection

Rows = list[tuple[str, str, str]]


def votes(**people: str) -> Rows:
    """A letter an item; a blank is no vote."""
    return [
        (f"x{i:03d}", who, label)
        for who, labels in people.items()
        for i, label in enumerate(labels)
        if label != " "
    ]


def as_table(rows: Rows) -> pl.DataFrame:
    schema = dict.fromkeys(("item", "annotator", "label"), pl.String)
    return pl.DataFrame(rows, schema=schema, orient="row")


def as_annotations(rows: Rows, path: str = "votes.csv", *, named: bool = True) -> Annotations:
    items = tuple(dict.fromkeys(row[0] for row in rows))
    table = as_table(rows).with_columns(weight=1.0)
    if not named:
        table = table.with_columns(annotator=pl.lit(None, pl.String))
    source = Source(Path(path), "long", "one row a vote", len(rows))
    return Annotations("votes", items, ("a", "b", "c"), table, source)


def slowly(first: Rows, second: Rows) -> set[str]:
    """Everyone with everyone, by dictionaries."""
    one, two = ({(who, item): label for item, who, label in rows} for rows in (first, second))
    shares: dict[tuple[str, str], tuple[int, int]] = {}
    for a in {who for who, _ in one}:
        for b in {who for who, _ in two}:
            both = [item for who, item in one if who == a and (b, item) in two]
            if len(both) >= 20:
                shares[a, b] = sum(one[a, item] == two[b, item] for item in both), len(both)
    told = set()
    for (a, b), (equal, common) in shares.items():
        rivals = [n / m for (c, d), (n, m) in shares.items() if (c == a) != (d == b)]
        clear = max(rivals) <= equal / common - 0.1 if rivals else equal == common
        if equal / common >= 0.95 and clear:
            told.add(f"{a!r} answers as {b!r} does on {equal} of {common} items: the same person?")
    return told


answers = st.text("ab", min_size=30, max_size=30)


@given(answers, answers, st.integers(0, 3), st.integers(0, 12), st.booleans())
def test_as_by_dictionaries(ann: str, bo: str, changed: int, lost: int, twice: bool) -> None:
    """Ute is Ann but for some answers; Jo is Bo, or says what Ann says as well."""
    ute = "b" * changed + ann[changed:]
    jo = " " * lost + (ann if twice else bo)[lost:]
    first, second = votes(ann=ann, bo=bo), votes(ute=ute, jo=jo)
    assert set(same_people(as_table(first), as_table(second))) == slowly(first, second)


def test_the_same_person_is_asked_about() -> None:
    ann, bo = "abcabcabab" * 3, "bbcaacacab" * 3
    first = as_annotations(votes(ann=ann, bo=bo))
    second = as_annotations(votes(**{"1": ann, "2": "a" * 30}), path="new.csv")
    lines = inspection(merge(first, second))
    assert lines[1] == "new.csv adds 0 items and 60 votes; no annotator is in both"
    assert lines[2] == "'ann' answers as '1' does on 30 of 30 items: the same person?"
    assert "same person" not in lines[3]
    # Somebody who is in both has kept the name, and others will have, too.
    known = as_annotations(votes(**{"1": ann, "bo": bo}), path="new.csv")
    assert inspection(merge(first, known))[1].endswith(
        "adds 0 items and 30 votes; 30 votes were there before"
    )
    # Nobody can be known again.
    unnamed = as_annotations(votes(ann=ann), named=False)
    assert "no annotator" not in inspection(merge(first, unnamed))[1]


def test_agreeing_people_are_not_asked_about() -> None:
    easy = "ab" * 20
    alike, other = easy[:-1] + "a", easy[:-2] + "ba"
    assert not same_people(as_table(votes(ann=easy)), as_table(votes(jo=alike)))  # 39 of 40, alone
    assert not same_people(as_table(votes(ann=easy)), as_table(votes(jo=easy, cy=alike, di=other)))
    assert not same_people(as_table(votes(ann=easy[:19])), as_table(votes(jo=easy[:19])))  # too few


def test_many_pairs_are_counted_and_a_crowd_is_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = "abcdefgh"
    people = {
        who: "".join(names[(i * (k + 2) + k) % 8] for i in range(64)) for k, who in enumerate(names)
    }
    first = as_table(votes(**people))
    second = first.with_columns(pl.col("annotator") + "2")
    found = same_people(first, second)
    assert found[0] == "'a' answers as 'a2' does on 64 of 64 items: the same person?"
    assert found[5:] == ["and so on: 3 more pairs of names"]
    monkeypatch.setattr(module, "_MOST_PAIRS", 64 * 64 - 1)
    assert same_people(first, second) == []
