"""Decimal commas: one judgment for the whole file, however many blocks it is read in."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import CredalError
from credalearn.app.items import streaming
from credalearn.app.items.inputs import read_features
from credalearn.app.run import Run
from credalearn.app.tables.blocks import blocks
from credalearn.app.tables.csv_blocks import TextTable
from small_run import FEATURES, make_run

Read = tuple[list[list[float]], tuple[str, ...]]
VALUES = ("15", "-2", "1,5", "0,25", "1,234", "-2,345", "1.5", "1e3", "true", " 3,5 ", "many", "")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run") / "RUN")


def a_table(path: Path, rows: Sequence[tuple[str, str]], *, separator: str = ";") -> Path:
    """The first two features as given, the third always 7."""
    named = (("item", *FEATURES), *((f"i{place}", *row, "7") for place, row in enumerate(rows)))
    path.write_text("".join(f"{separator.join(row)}\n" for row in named))
    return path


def in_blocks(run: Run, path: Path, *, characters: int = 40) -> Read:
    """What ``predict`` reads, a few rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "blocks", partial(blocks, characters=characters))
        stream = streaming.open_stream(run, path)
        values = [row for batch in stream.batches() for row in batch.X.tolist()]
    return values, tuple(sorted(stream.commas))


def at_once(path: Path) -> Read:
    """What ``train`` reads."""
    found = read_features(path)
    return found.values.tolist(), found.commas


def test_a_block_of_commas_that_may_be_thousands_is_read_as_the_others_are(
    run: Run, tmp_path: Path
) -> None:
    path = a_table(tmp_path / "f.csv", [("1,234", "2")] * 9 + [("15", "2")] * 9 + [("1,5", "2")])
    values, commas = in_blocks(run, path)
    assert values == [[1.234, 2, 7]] * 9 + [[15, 2, 7]] * 9 + [[1.5, 2, 7]]
    assert commas == ("size",)


def test_points_in_one_block_and_commas_in_another_are_refused(run: Run, tmp_path: Path) -> None:
    path = a_table(tmp_path / "f.csv", [("1.234", "2")] * 9 + [("1,5", "2")] * 9)
    said = r"line 11: .*'size' holds '1,5' .* write a decimal point, and no comma for thousands"
    with pytest.raises(CredalError, match=said):
        in_blocks(run, path)
    with pytest.raises(CredalError, match=said):
        at_once(path)


@given(
    rows=st.lists(st.tuples(*[st.sampled_from(VALUES)] * 2), min_size=1, max_size=12),
    kinds=st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True),
    characters=st.integers(1, 60),
)
def test_blocks_are_read_as_the_whole_file_is(
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    kinds: list[str],
    characters: int,
) -> None:
    # Few kinds of values, so that not all files are refused.
    few = {value: kinds[place % len(kinds)] for place, value in enumerate(VALUES)}
    rows = [(few[one], few[other]) for one, other in rows]
    path = a_table(tmp_path_factory.mktemp("table") / "f.csv", rows)
    try:
        wanted = at_once(path)
    except CredalError:
        with pytest.raises(CredalError):
            in_blocks(run, path, characters=characters)
        return
    assert in_blocks(run, path, characters=characters) == wanted


def test_a_file_without_commas_is_read_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_table(tmp_path / "f.tsv", [("1.5", "2")] * 9, separator="\t")
    read = 0
    frames = TextTable._frames

    def counted(table: TextTable, characters: int) -> object:
        nonlocal read
        read += 1
        return frames(table, characters)

    monkeypatch.setattr(TextTable, "_frames", counted)
    assert in_blocks(run, path) == ([[1.5, 2, 7]] * 9, ())
    assert read == 1


def test_a_word_among_decimal_commas_is_what_is_refused(tmp_path: Path) -> None:
    path = a_table(tmp_path / "f.csv", [("1,5", "2"), ("NA", "2"), ("2,5", "2")])
    said = r"line 3: .*'size' holds 'NA' for item 'i1'\. To fix: .*turn it into numbers"
    with pytest.raises(CredalError, match=said):
        read_features(path)
