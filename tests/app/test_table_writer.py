"""Tables written frame by frame: what a reader gets back, and what is left after a failure."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credalearn import CredalError
from credalearn.app._csv_file import escape_csv
from credalearn.app.table_writer import TABLES, Schema, check_output, without_formulas, write_frames

SCHEMA: Schema = {"item": pl.String, "score": pl.Float64}


def frames(*numbers: int) -> Iterator[pl.DataFrame]:
    for number in numbers:
        yield pl.DataFrame({"item": [f"x{number}"], "score": [number / 7]})


@pytest.mark.parametrize("suffix", TABLES)
def test_a_failure_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    def failing() -> Iterator[pl.DataFrame]:
        yield from frames(1)
        raise CredalError("the second frame is bad")

    path = tmp_path / f"table{suffix}"
    path.write_text("old")
    with pytest.raises(CredalError, match="the second frame is bad"):
        write_frames(path, failing(), SCHEMA)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@given(st.lists(st.text(alphabet="=+-@\t\r1.ae', \n", max_size=5), min_size=1))
def test_without_formulas_escapes_every_text(texts: list[str]) -> None:
    found = without_formulas(pl.DataFrame({"item": texts}))["item"].to_list()
    assert found == [escape_csv(text) for text in texts]


def test_inputs_are_not_overwritten_through_links(tmp_path: Path) -> None:
    data, link = tmp_path / "data.csv", tmp_path / "link.csv"
    data.touch()
    link.symlink_to(data)
    check_output(tmp_path / "other.csv", data=data)
    with pytest.raises(CredalError, match="is an input of this command"):
        check_output(link, data=data)
