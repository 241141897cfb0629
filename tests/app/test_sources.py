"""Sources: one open per file, one answer whatever the file type, and blocks that add up."""

import csv
import io
import json
import os
import string
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation_exports import Write
from credalearn.app import _array_file, _csv_file, sources
from credalearn.app.sources import numbers, open_source, texts
from credalearn.errors import CredalError
from opens import count_opens

ROWS = [("007", "café", "1.5"), ("b", 'say "hi",\nplease', "2"), ("c", "=x", "-3e5")]
TABLE = pl.DataFrame(ROWS, schema=["id", "text", "size"], orient="row")
CELLS = st.text(string.ascii_letters + string.digits + ' ,;"\n\r\té€', max_size=6)


def csv_text(rows: list[list[str]], delimiter: str = ",") -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter).writerows(rows)
    return buffer.getvalue()


def table_file(path: Path) -> Path:
    """The table above in the file type of the path's suffix."""
    rows = [list(TABLE.columns), *map(list, ROWS)]
    match path.suffix:
        case ".csv":
            path.write_text(csv_text(rows), newline="")
        case ".tsv":
            path.write_text(csv_text(rows, delimiter="\t"), newline="")
        case ".json":
            path.write_text(json.dumps(TABLE.to_dicts()))
        case ".jsonl":
            path.write_text("\n".join(json.dumps(row) for row in TABLE.to_dicts()))
        case ".parquet":
            TABLE.write_parquet(path)
        case ".npz":
            size = np.array([[float(row[2])] for row in ROWS])
            np.savez(path, id=[row[0] for row in ROWS], text=[row[1] for row in ROWS], size=size)
    return path


NO_FILES = ("rot13", "base64", "zip", "undefined", "", "a\0b")  # codecs of no file
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".npz")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_file_type_gives_the_same_table_and_is_opened_once(
    suffix: str, tmp_path: Path
) -> None:
    path = table_file(tmp_path / f"items{suffix}")
    with count_opens(tmp_path) as opens:
        source = open_source(path)
        found = source.read()
        source.read(source.columns[:1])
        source.place(2)
    assert opens == {path.name: 1}
    assert found[found.columns[0]].to_list() == [row[0] for row in ROWS]
    assert found[found.columns[1]].to_list() == [row[1] for row in ROWS]
    assert numbers(found[found.columns[2]]).to_list() == [1.5, 2.0, -3e5]


@pytest.mark.parametrize("frame", [TABLE, TABLE.lazy(), pd.DataFrame(TABLE.to_dicts())])
def test_tables_in_memory_are_sources(frame: object) -> None:
    source = open_source(frame)
    assert source.read().rows() == ROWS
    assert source.place(0) == "row 1"


def test_missing_values_of_every_pandas_type_are_null() -> None:
    columns = {
        "whole": pd.array([1, None], dtype="Int64"),
        "flag": pd.array([True, None], dtype="boolean"),
        "text": pd.array(["a", None], dtype="string"),
        "class": pd.Categorical(["a", None]),
        "time": pd.to_datetime(["2024-01-01", None]),
        "mixed": [1, None],
    }
    found = open_source(pd.DataFrame(columns)).read()
    assert texts(found).row(1) == (None,) * 6
    assert texts(found).row(0)[:4] == ("1", "true", "a", "a")


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=20), st.sampled_from(",;\t|"))
def test_blocks_of_any_size_are_the_rows_that_were_written(
    rows: list[list[str]], delimiter: str
) -> None:
    text = csv_text([["a", "b", "c"], *rows], delimiter=delimiter)
    kept = [[cell.strip() for cell in row] for row in rows if "".join(row).strip()]
    for block in (8, 64, 1 << 22):
        file = io.BytesIO(text.encode())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_csv_file, "BLOCK", block)
            encoding = ("utf-8", "UTF-8")
            table = _csv_file.CsvFile(Path("x.csv"), file, text.encode(), encoding, delimiter)
            frames = list(table.blocks(["a", "b", "c"]))
        found = [[(cell or "").strip() for cell in row] for each in frames for row in each.rows()]
        assert found == kept


def test_large_files_come_in_several_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_csv_file, "BLOCK", 1000)
    monkeypatch.setattr(sources, "_NUMBERS", 50)
    many = pl.DataFrame({"id": [f"x{i}" for i in range(500)], "v": range(500)})
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        many.write_csv(path) if path.suffix == ".csv" else many.write_parquet(path)
        blocks = list(open_source(path).blocks(["v"]))
        assert len(blocks) > 3
        assert pl.concat(blocks)["v"].cast(pl.Int64).to_list() == list(range(500))


@pytest.mark.parametrize(
    ("encoding", "end"),
    [("utf-8", "\n"), ("utf-8-sig", "\r\n"), ("utf-16", "\r"), ("cp1252", "\n")],
)
@pytest.mark.parametrize("first", [[], ["sep=,"]], ids=["plain", "Excel"])
def test_encodings_and_line_ends_are_found(
    encoding: str, end: str, first: list[str], write: Write
) -> None:
    lines = [*first, "id,name", "1,café", "", "2,x y", ""]
    source = open_source(write(end.join(lines).encode(encoding), "items.csv"))
    assert source.read().rows() == [("1", "café"), ("2", "x y")]
    assert source.place(1) == f"line {4 + len(first)}"
    assert ("guessed" in source.words) == (encoding == "cp1252")


def test_a_stray_quotation_mark_is_part_of_the_value(write: Write) -> None:
    path = write('id,size\na,5" disk\nb,"3, or 4"\n', "items.csv")
    assert open_source(path).read().rows() == [("a", '5" disk'), ("b", "3, or 4")]


def test_fields_of_records_are_columns_and_places_name_lines(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text('{"id": 1, "label": "cat", "meta": {"x": 1}}\n\n{"id": 2.0, "label": null}\n')
    source = open_source(path)
    assert source.kind == "records"
    assert source.columns == ("id", "label", "meta.x")
    assert source.read().rows() == [("1", "cat", "1"), ("2", None, None)]
    assert source.column("x", option="item") == "meta.x"
    assert source.place(1) == "line 3"
    assert source.records[0].value["meta"] == {"x": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty. To fix"),
        (b"id,size\na,1,2\n", "line 2: 3 values for 2 columns. To fix: put quotation marks"),
        (b"id,id\na,1\n", "line 1: two columns are called 'id'"),
        (b"sep=;\n", "line 1 names no column"),
        (b"SEP=;\r\nid;size\r\na;1;2\r\n", "line 3: 3 values for 2 columns"),
        (b"GIF89a\0\0", "is a binary file"),
        (b"\x1f\x8b\x08\0", "is compressed with gzip. To fix: unpack it first"),
        (b'[{"id": 1}, {"id"', "line 1: this is not JSON"),
        (b'{"id": 1}\n{"id": }\n', "line 2: this is not JSON"),
        (b"{bad\n", r"line 1: this is not JSON \(Expecting property name"),
    ],
)
def test_damaged_files_are_refused_with_the_place(
    content: bytes, message: str, write: Write
) -> None:
    path = write(content, "items.csv")
    with pytest.raises(CredalError, match=message):
        open_source(path).read()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "ascii"}, "not ascii text throughout.*0xc3"),
        ({"encoding": "utf-9"}, "there is no encoding 'utf-9'"),
        *(({"encoding": name}, "there is no encoding .* To fix: pass utf-8") for name in NO_FILES),
        ({"delimiter": "::"}, "delimiter must be one character; got '::'"),
    ],
)
def test_rejects_wrong_options(options: dict[str, str], message: str, tmp_path: Path) -> None:
    path = table_file(tmp_path / "items.csv")
    with pytest.raises(CredalError, match=message):
        open_source(path, **options)


def test_numbers_take_decimal_commas_but_not_thousands() -> None:
    column = pl.Series(["1.5", " 0,5", "1,234", "x", None])
    assert numbers(column).to_list() == [1.5, 0.5, None, None, None]
    table = pl.DataFrame({"a": [1.0, 1.5, float("nan")], "b": [True, None, False]})
    assert texts(table).rows() == [("1", "true"), ("1.5", None), (None, "false")]


def test_a_late_byte_in_another_encoding_is_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_csv_file, "BLOCK", 64)
    monkeypatch.setattr(sources, "BLOCK", 64)
    path = write(b"id,name\n" + b"a,b\n" * 100 + "é,x\n".encode("cp1252"), "items.csv")
    with pytest.raises(CredalError, match=r"not utf-8 text throughout.*0xe9.*encoding="):
        open_source(path).read()
    assert open_source(path, encoding="cp1252").read()["id"][-1] == "é"


def test_rejects_named_pipes_and_reads_shell_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "votes.csv")
    for path in (tmp_path / "votes.csv", Path("/dev/zero")):
        with pytest.raises(CredalError, match=r"is not a regular file\. To fix: save the data"):
            open_source(path)
    read, write = os.pipe()
    os.write(write, b"id,size\na,1\n")
    os.close(write)
    assert open_source(f"/dev/fd/{read}").read().rows() == [("a", "1")]


def bomb(path: Path) -> Path:
    """A small file of 16 MB of zeros, as 131,072 items of 16 features."""
    if path.suffix == ".npz":
        np.savez_compressed(path, features=np.zeros((1 << 17, 16)))
    else:
        zeros = (pl.repeat(0.0, 1 << 17).alias(f"f{number}") for number in range(16))
        pl.select(zeros).write_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_rejects_small_files_that_unpack_to_much(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_array_file, "_LARGE", 1 << 22)
    path = bomb(tmp_path / f"items{suffix}")
    with pytest.raises(CredalError, match=r"unpacks to 16,.* 100 times .*\. To fix: check"):
        open_source(path)
    monkeypatch.setattr(_array_file, "_LARGE", 1 << 25)
    assert open_source(path).columns[-1] == "f15"


def test_many_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    names = [f"c{number}" for number in range(20_000)]
    path.write_text(f"{','.join(names)}\n{','.join('1' for _ in names)}\n")
    assert open_source(path).read().shape == (1, 20_000)
