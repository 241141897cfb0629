"""Features from tables and arrays."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import credalearn as cl
from annotation_exports import Write
from credalearn.app.features import FeatureTable, read_features, row_digests

VALUES = np.random.default_rng(0).normal(size=(30, 3))
ITEMS = [f"{number:03d}" for number in range(30)]  # 007 is a name, not a number
TABLE = pl.DataFrame({"item": ITEMS, **{f"f{k}": VALUES[:, k] for k in range(3)}})


def every_form(folder: Path) -> dict[str, Any]:
    TABLE.write_csv(folder / "f.csv")
    TABLE.write_csv(folder / "f.tsv", separator="\t")
    TABLE.write_parquet(folder / "f.parquet")
    np.savez(folder / "f.npz", items=np.array(ITEMS), X=VALUES)
    files = {name: folder / f"f.{name}" for name in ("csv", "tsv", "parquet", "npz")}
    return files | {
        "polars": TABLE,
        "pandas": pd.DataFrame(TABLE.to_dict(as_series=False)),
        "arrays": {"item": ITEMS, "features": VALUES},
        "two files": [TABLE[:10], TABLE[10:].select("f2", "item", "f0", "f1")],
    }


def test_every_file_format_gives_the_same_features(tmp_path: Path) -> None:
    for name, data in every_form(tmp_path).items():
        found = read_features(*(data if isinstance(data, list) else [data]))
        assert found.items == ITEMS, name
        assert found.names == ["f0", "f1", "f2"], name
        np.testing.assert_allclose(found.values, VALUES, rtol=1e-15, err_msg=name)
        assert row_digests(found.values) == row_digests(VALUES)


def test_other_columns_are_kept_as_text_or_left_out(write: Write) -> None:
    path = write("id,size,site,note\na,1, x ,so\nb,2,,so\n", "f.csv")
    found = read_features(path, extra=["site"], drop=["note"])
    assert found.names == ["size"]
    assert found.extra["site"].to_list() == ["x", None]
    assert found.place(1) == f"{path}, line 3"
    more = write("size,id\n3,c\n", "g.csv")
    both = read_features(path, more, extra=["site"], drop=["note"])
    assert both.extra["site"].to_list() == ["x", None, None]
    assert both.place(2) == f"{more}, line 2"
    with pytest.raises(cl.CredalError, match=r"no column 'w'.*with group=, gold= or split="):
        read_features(path, extra=["w"])
    with pytest.raises(cl.CredalError, match=r"no column 'w'.*one of 'id', 'size', .* with drop="):
        read_features(path, drop=["w"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,size\na,1\nb,big\n", r"f.csv, line 3: .* finite numbers, or empty; 'size' is 'big'"),
        ("id;size\na;1,234\n", r"'size' is '1,234'.* or without the comma if it marks thousands"),
        ("id,size\na,5 %\nb,7 %\n", r"'size' is '5 %'.*To fix: write .* without percent signs"),
        ("id;a;b\nx;3,14;987\ny;2,5;3.034\n", r"line 3: .*point.*; 'b' is '3.034'.*write 3034 or"),
        ("id,size\na,1\nb,#N/A\n", r"'size' is '#N/A' .* leave the cell empty"),
        ("id,a b\nx,1\ny,2\nz,two\n", r"leave the column out with drop='a b'\."),
        ("id,day\na,2024-01-31\nb,\n", r"'day' contains dates, such as '2024-01-31'.*drop='day'\."),
        ("id,size\na,1\n ,2\n", r"line 3: the item has no name"),
        ("id,size\na,1\na,2\n", r"line 3: item 'a' occurs twice, first in .*line 2"),
        ("size,weight\n1,2\n", r"no column names the items; .*: size, weight\. .*rename it in one"),
    ],
)  # fmt: skip
def test_rejects_bad_features_by_name(write: Write, text: str, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        read_features(write(text, "f.csv"))


def test_other_values_show_that_commas_are_decimal(write: Write) -> None:
    path = write("id;a;b\nx;1,076;6,03\ny;2,5;2,000\n", "f.csv")
    assert np.asarray(read_features(path).values).tolist() == [[1.076, 6.03], [2.5, 2.0]]
    with pytest.raises(cl.CredalError, match=r"'a' is '1,076'.* marks thousands"):
        read_features(write("id;a;b;c\nx;1,076;6,03;1.5\n", "f.csv"))


def test_gaps_and_categories_are_features(tmp_path: Path, write: Write) -> None:
    text = "id,size,site,old\na,1,north,true\nb,,south,false\nc,NA,,true\n"
    found = read_features(write(text, "f.csv"))
    assert found.categories == ("site",)
    values = found.values
    assert isinstance(values, pl.DataFrame)
    assert values["size"].is_nan().to_list() == [False, True, True]
    assert values["site"].to_list() == ["north", "south", None]
    assert values["old"].to_list() == [1.0, 0.0, 1.0]
    assert len(set(row_digests(values))) == 3
    numbers = read_features(write("id,size,site,old\nd,1,7,1\n", "g.csv"))
    assert not numbers.categories
    with pytest.raises(cl.CredalError, match=r"'site' contains texts in one of .* and numbers"):
        read_features(tmp_path / "f.csv", tmp_path / "g.csv")
    known = read_features(numbers.paths[0], names=found.names, categories=found.categories)
    assert isinstance(known.values, pl.DataFrame)
    assert known.values["site"].to_list() == ["7"]


def test_files_that_do_not_fit_together_are_refused(write: Write) -> None:
    path = write("id,size\na,1\n", "f.csv")
    other = write("id,weight\nb,1\n", "g.csv")
    with pytest.raises(cl.CredalError, match=r"same features; only one has 'size', 'weight'"):
        read_features(path, other)
    same = write("id,size\nb,1\na,2\n", "h.csv")
    with pytest.raises(cl.CredalError, match=r"h.csv, line 3: item 'a' occurs twice, first in .*f"):
        read_features(path, same)


def test_features_of_a_model_are_found_by_name(tmp_path: Path) -> None:
    def read(data: Any) -> FeatureTable:
        return read_features(data, names=["f1", "f0"])

    np.testing.assert_array_equal(np.asarray(read(TABLE).values), VALUES[:, [1, 0]])
    own = np.asarray(read(VALUES[:, :2]).values)
    np.testing.assert_array_equal(own, VALUES[:, :2])  # an array has its own order
    np.savez(tmp_path / "f.npz", ids=np.array(ITEMS), X=VALUES)
    with pytest.raises(cl.CredalError, match=r"3 features per item, and the model takes 2"):
        read(tmp_path / "f.npz")
    with pytest.raises(cl.CredalError, match=r"missing 1 of 2 features: 'f1'"):
        read(TABLE.rename({"f1": "F1"}))


def test_equal_rows_have_equal_digests() -> None:
    one, other, third = row_digests(np.array([[0.1, 0.0], [np.float32(0.1), -0.0], [0.1, 1e-9]]))
    assert one == other
    assert one != third
