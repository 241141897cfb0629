"""What a model sees, what it learns from, and which items it may see when."""

import dataclasses
import re
import shutil
import unicodedata
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import credalearn as cl
from credalearn.app.annotations import Annotations, read_annotations
from credalearn.app.annotations.examples import three_items
from credalearn.app.items.columns import read_item_columns
from credalearn.app.items.inputs import (
    FeatureTable,
    find_images,
    match_images,
    read_features,
    read_images,
)
from credalearn.app.items.joined_features import join_features, read_feature_files
from credalearn.app.items.pixels import upright
from credalearn.app.joined.joining import prepare
from credalearn.app.joined.labeling import gold_classes, majority, make_labels, refuse_typos
from credalearn.app.joined.options import TrainOptions
from credalearn.app.joined.rounds import read_rounds
from credalearn.app.joined.splits import SHARES, SPLITS, check_splits, split_items
from credalearn.app.staging import check_place, partial_of, staged
from team_files import full_disk, make_images, make_team, snapshot


def table_of(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def annotations_of(folder: Path, text: str, **options: object) -> Annotations:
    return read_annotations(table_of(folder / "votes.csv", text), **options)  # type: ignore[arg-type]


# Features


@pytest.mark.parametrize("name", ["f.csv", "f.tsv", "f.parquet", "f.npz"])
def test_every_form_of_features_reads_alike(tmp_path: Path, name: str) -> None:
    values = np.random.default_rng(0).normal(size=(30, 3))
    items = [f"{number:03d}" for number in range(30)]  # 007 is a name, not a number
    table = pl.DataFrame({"item": items, **{f"f{k}": values[:, k] for k in range(3)}})
    path = tmp_path / name
    match path.suffix:
        case ".csv":
            table.write_csv(path)
        case ".tsv":
            table.write_csv(path, separator="\t")
        case ".parquet":
            table.write_parquet(path)
        case ".npz":
            np.savez(path, embeddings=values, items=items)
    found = read_features(path)
    assert found.items == items
    assert found.names == ["f0", "f1", "f2"]
    np.testing.assert_array_equal(found.values, values)


def test_rows_of_npy_are_items_by_number(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.eye(3, dtype=np.float32))
    assert read_features(tmp_path / "f.npy").items == ["0", "1", "2"]


def test_names_are_cleaned_as_those_of_annotations_are(tmp_path: Path) -> None:
    path = table_of(tmp_path / "f.csv", "name;size\n cafe\u0301 ;1\nb;TRUE\n")
    found = read_features(path)
    assert found.items == ["caf\u00e9", "b"]
    assert found.values.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("item,a\nx,1\n", {"extra": ("patiend",)}, "no column 'patiend' but 'item', 'a'"),
        ("item,patient,a\nx,p,1\n", {"extra": ("patiend",)}, "did you mean 'patient'?"),
        ("item,a\nx,1\n", {"drop": ("b",)}, "no column 'b'"),
        ("a,b\n1,2\n", {}, "no column that names the items; it has 'a', 'b'.*--item"),
        ("item,a\nx,1\ny,2\nx,3\n", {}, "line 4: the item 'x' .* a second time, first in line 2"),
        ("item,a\n,1\n", {}, "line 2: the item has no name"),
        ("item,a\nx,1\ny,red\n", {}, "line 3: features must be numbers; column 'a' holds 'red' for "
         "item 'y'. To fix: leave the column out with --drop a"),
        ("item,a\nx,1\n\ny,\n", {}, "line 4: features must be finite; column 'a' is empty"),
        ("item,a\nx,nan\ny,inf\n", {}, "line 2: .* holds 'nan' .*and 1 more such values"),
        ("item\nx\n", {}, "no column of features beside 'item'"),
        ("item,a\n", {}, "holds no row below its header"),
        ("", {}, "is empty"),
        ("item,a\nx,1,2\n", {}, "line 2: 3 values for 2 columns"),
    ],
)  # fmt: skip
def test_bad_features_are_named(
    tmp_path: Path, text: str, options: dict[str, tuple[str, ...]], message: str
) -> None:
    path = table_of(tmp_path / "f.csv", text)
    with pytest.raises(cl.CredalError, match=message) as raised:
        read_features(path, **options)  # type: ignore[arg-type]
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_are_points_where_something_else_separates(
    tmp_path: Path, separator: str
) -> None:
    rows = (("item", "a", "b", "c"), ("x", "0,0012", "1,234", "7"), ("y", "-3", "-1,5E-05", "1.5"))
    path = table_of(tmp_path / "f.csv", "\n".join(map(separator.join, rows)) + "\n")
    found = read_features(path)
    assert found.values.tolist() == [[0.0012, 1.234, 7.0], [-3.0, -1.5e-05, 1.5]]
    assert found.commas == ("a", "b")
    assert read_features(table_of(tmp_path / "g.csv", "item;a\nx;1.5\n")).commas == ()


@pytest.mark.parametrize(
    "text",
    [
        'item,a\nx,"0,5"\ny,1\n',  # commas separate: they may be anything
        "item;a\nx;1,5\ny;1.5\n",  # either is a slip
        "item;a\nx;1,234\ny;980\n",  # more than a thousand, or a little more than one?
    ],
)
def test_commas_that_may_be_something_else_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(cl.CredalError, match=r"line 2: .* write a decimal point, and no comma fo"):
        read_features(table_of(tmp_path / "f.csv", text))


def test_all_columns_that_are_no_numbers_are_named_at_once(tmp_path: Path) -> None:
    path = table_of(tmp_path / "f.csv", "item,a,b,my site\nx,red,1,\ny,2,2,here\n")
    said = r"'a' holds 'red' for item 'x'; to be mended too: 'my site'. To fix: leave columns out "
    with pytest.raises(cl.CredalError, match=f"{said}with --drop a --drop 'my site', or turn"):
        read_features(path)
    table = pl.DataFrame({"item": ["x"], "a": [[1]], "b": [[2]]})
    table.write_parquet(tmp_path / "f.parquet")
    with pytest.raises(cl.CredalError, match=r"of type List.*mended too: 'b'.*--drop a --drop b"):
        read_features(tmp_path / "f.parquet")


def test_only_values_of_one_kind_are_counted_together(tmp_path: Path) -> None:
    text = "item,gold,a\nx,,1\ny,,1\nz,cat,1\nu,dog,1\nv,nan,1\n"
    path = table_of(tmp_path / "f.csv", text)
    said = r"line 4: features must be numbers; column 'gold' holds 'cat' for item 'z', and 1 more "
    fix = r"such values. To fix: say --gold gold if it holds the true class, or leave .*--drop gold"
    with pytest.raises(cl.CredalError, match=said + fix):
        read_features(path)
    with pytest.raises(cl.CredalError, match=r"'gold' holds 'cat' .*To fix: turn it into numbers"):
        read_features(path, names=["gold", "a"])  # of a model: nothing can be left out
    table_of(path, "item,age\nx,\ny,nan\nz,inf\nu,\nv,1\n")
    with pytest.raises(cl.CredalError, match=r"line 2: .*is empty for item 'x', and 1 more such v"):
        read_features(path)


def test_a_date_is_no_feature(tmp_path: Path) -> None:
    table = pl.DataFrame({"item": ["x"], "seen": pl.Series(["2026-01-02"]).str.to_date()})
    table.write_parquet(tmp_path / "f.parquet")
    with pytest.raises(cl.CredalError, match=r"'seen' is of type Date. To fix: .*--drop seen"):
        read_features(tmp_path / "f.parquet")


@pytest.mark.parametrize("name", ["image_id", "Sample ID", "url"])
def test_items_go_by_the_names_that_annotations_know(tmp_path: Path, name: str) -> None:
    votes = table_of(tmp_path / "votes.csv", f"{name},annotator,label\na,ann,x\nb,bo,y\n")
    found = read_features(table_of(tmp_path / "f.csv", f"{name},size\na,1\nb,2\n"))
    assert tuple(found.items) == read_annotations(votes).items


def test_an_array_has_no_columns_to_ask_for(tmp_path: Path) -> None:
    # Passed over in silence, patients would be in training and test.
    np.save(tmp_path / "f.npy", np.eye(3))
    with pytest.raises(cl.CredalError, match=r"no columns with names, and so no 'patient'"):
        read_features(tmp_path / "f.npy", extra=("patient",))
    np.save(tmp_path / "f.npy", np.array([[1.0], [np.nan]]))
    with pytest.raises(cl.CredalError, match=r"row 2: .* feature 1 is nan for item '1'"):
        read_features(tmp_path / "f.npy")


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (np.array(["007", "x", "a "]), ["007", "x", "a"]),
        (np.array([b"007", "é".encode(), b"a"]), ["007", "é", "a"]),
        (np.array([7, 12, 5]), ["7", "12", "5"]),
    ],
)
def test_an_array_of_an_npz_names_the_items(
    tmp_path: Path, names: np.ndarray, wanted: list[str]
) -> None:
    path = tmp_path / "f.npz"
    np.savez(path, msg_id=names, embeddings=np.eye(3))
    found = read_features(path, item="msg_id")
    assert (found.items, found.item, found.unnamed) == (wanted, "msg_id", ())
    with pytest.raises(cl.CredalError, match=r"no array 'msgid' .* it has msg_id of \(3,\), emb"):
        read_features(path, item="msgid")
    # Passed over in silence, the rows would be taken for the items 0, 1, 2.
    with pytest.raises(cl.CredalError, match=r"To fix: say --item msg_id if that names them, or"):
        read_features(path)
    np.savez(path, image_id=names, embeddings=np.eye(3), name=["size", "age"])
    assert read_features(path).items == wanted
    np.savez(path, msg_id=names.astype(object), embeddings=np.eye(3))
    with pytest.raises(cl.CredalError, match=r"msg_id of \(3,\) objects.*To fix: .*astype\(str\)"):
        read_features(path, item="msg_id")


def test_arrays_of_an_npz_are_columns_beside_the_features(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    gold = np.array([1.0, np.nan, 0.0])
    np.savez(path, X=np.eye(3), patient=[7, 7, 8], gold=gold, year=[1, 2, 3], mean=np.zeros(2))
    wanted = ("patient", "gold")
    found = read_features(path, extra=wanted, drop=("year",))
    assert (found.items, found.item, found.unnamed) == (["0", "1", "2"], None, (path,))
    assert found.extra.to_dict(as_series=False) == {
        "patient": ["7", "7", "8"],
        "gold": ["1.0", None, "0.0"],
    }
    with pytest.raises(cl.CredalError, match=r"say --item year"):
        read_features(path, extra=wanted)
    with pytest.raises(cl.CredalError, match=r"no array 'mean' .* for each of its 3 rows.* one va"):
        read_features(path, extra=("mean",))
    with pytest.raises(cl.CredalError, match=r"no array 'patiend' .*did you mean 'patient'\?"):
        read_features(path, extra=("patiend",))


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(cl.CredalError, match="there is no file"):
        read_features(tmp_path / "none.csv")
    with pytest.raises(cl.CredalError, match=r"is a folder. To fix: .*--images"):
        read_features(tmp_path)
    (tmp_path / "f.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9)
    with pytest.raises(cl.CredalError, match=r"f\.csv"):
        read_features(tmp_path / "f.csv")


# Images


def test_images_are_found_by_path_name_and_stem(tmp_path: Path) -> None:
    make_images(tmp_path / "a", ["one", "two"])
    make_images(tmp_path / "b", ["two"], random_state=1)
    found = find_images(tmp_path, ["a/one.png", "one", "C:\\data\\one.png", "a/two", "none"])
    assert {item: path.relative_to(tmp_path).as_posix() for item, path in found.items()} == {
        "a/one.png": "a/one.png",
        "one": "a/one.png",
        "C:\\data\\one.png": "a/one.png",
        "a/two": "a/two.png",
    }
    with pytest.raises(cl.CredalError, match="item 'two' fits 2 images"):
        find_images(tmp_path, ["two"])
    with pytest.raises(cl.CredalError, match=r"there is no folder .* To fix: name the folder"):
        find_images(tmp_path / "c", ["one"])
    (tmp_path / "c").mkdir()
    with pytest.raises(cl.CredalError, match="holds no image"):
        find_images(tmp_path / "c", ["one"])


def test_images_are_found_by_the_names_of_exports(tmp_path: Path) -> None:
    make_images(tmp_path, ["i 00", "1a2b3c4d-x", "x"])
    make_images(tmp_path / "a", ["i01", "two"])
    make_images(tmp_path / "b", ["two"])
    wanted = {
        "i 00.png": ("i 00.png", "path"),
        "a/i01": ("a/i01.png", "path"),
        "/data/local-files/?d=i%2000.png": ("i 00.png", "path in the address"),
        "/data/local-files/?d=b/two.png": ("b/two.png", "path in the address"),
        "/data/local-files/?d=img/a/two.png": ("a/two.png", "file name"),
        "/data/local-files/?d=img%2Fb%2Ftwo.png": ("b/two.png", "file name"),
        "/data/upload/3/1a2b3c4d-i01.png": ("a/i01.png", "file name"),
        "/data/upload/3/1a2b3c4d-x.png": ("1a2b3c4d-x.png", "file name"),
        "/data/upload/3/ffffffff-x.png": ("x.png", "file name"),
        "https://example.org/i%2000.png?sig=1&d2=3": ("i 00.png", "file name"),
        "s3://bucket/img/i01.png": ("a/i01.png", "file name"),
    }
    found = match_images(tmp_path, [*wanted, "/data/upload/3/1a2b3c4d-none.png"])
    assert {
        item: (path.relative_to(tmp_path).as_posix(), how) for item, (path, how) in found.items()
    } == wanted
    with pytest.raises(cl.CredalError, match=r"item '/data/upload/3/1a2b3c4d-two.png' fits 2 im"):
        match_images(tmp_path, ["/data/upload/3/1a2b3c4d-two.png"])


def test_names_of_a_mac_and_ends_in_capitals_are_found(tmp_path: Path) -> None:
    mac = unicodedata.normalize("NFD", "Žába é")
    make_images(tmp_path / "a", [mac, "one", "two"])
    for name in ("one", "two"):
        (tmp_path / "a" / f"{name}.png").rename(tmp_path / "a" / f"{name}.PNG")
    make_images(tmp_path / "b", ["two", "three"])
    (tmp_path / "b" / "three.png").rename(tmp_path / "b" / "Three.png")
    wanted = {
        unicodedata.normalize("NFC", f"a/{mac}.png"): (f"a/{mac}.png", "path"),
        "/data/?d=" + quote(f"a/{mac}.png"): (f"a/{mac}.png", "path in the address"),
        unicodedata.normalize("NFC", mac): (f"a/{mac}.png", "file name"),
        "a/one.png": ("a/one.PNG", "path"),
        "https://example.org/one.Png": ("a/one.PNG", "file name"),
        "a/two.png": ("a/two.PNG", "path"),
        "b/two.png": ("b/two.png", "path"),
        "two.PNG": ("a/two.PNG", "file name"),
    }
    found = match_images(tmp_path, [*wanted, "three.png"])  # in whose name alone case counts
    assert {
        item: (path.relative_to(tmp_path).as_posix(), how) for item, (path, how) in found.items()
    } == wanted
    (tmp_path / "a" / "one.PNG").rename(tmp_path / "a" / "one.Png")
    shutil.copy(tmp_path / "a" / "one.Png", tmp_path / "a" / "one.PNG")
    with pytest.raises(cl.CredalError, match=r"item 'a/one.png' fits 2 images"):
        match_images(tmp_path, ["a/one.png"])


def test_images_of_every_mode_become_three_colors(tmp_path: Path) -> None:
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"):
        suffix = ".tif" if mode in ("CMYK", "I;16") else ".png"
        Image.new(mode, (7, 3)).save(tmp_path / f"{mode.replace(';', '')}{suffix}")
    paths = {path.stem: path for path in tmp_path.iterdir()}
    pixels, items, broken = read_images(paths, 4)
    assert pixels.shape == (8, 3, 4, 4)
    assert pixels.dtype == np.uint8
    assert len(items) == 8
    assert not broken


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("gray.png", np.array([[0, 257], [32_896, 65_535]], np.uint16), [0, 1, 128, 255]),
        ("gray.tif", np.array([[0, 257], [32_896, 65_535]], np.uint16), [0, 1, 128, 255]),
        ("dim.png", np.array([[0, 257], [514, 771]], np.uint16), [0, 1, 2, 3]),
        ("whole.tif", np.array([[-5, 257], [32_896, 65_535]], np.int32), [0, 1, 128, 255]),
        ("large.tif", np.array([[0, 2**30], [0, 2**31 - 1]], np.int32), [0, 128, 0, 255]),
        ("share.tif", np.array([[0, 0.2], [np.nan, 1]], np.float32), [0, 51, 0, 255]),
        ("eight.tif", np.array([[0, 20], [200, 255]], np.float32), [0, 20, 200, 255]),
        ("sixteen.tif", np.array([[0, 257], [771, 7e4]], np.float32), [0, 1, 3, 255]),
    ],
)  # fmt: skip
def test_more_than_eight_bits_are_scaled_by_their_type(
    tmp_path: Path, name: str, values: np.ndarray, wanted: list[int]
) -> None:
    Image.fromarray(values).save(tmp_path / name)
    pixels, *_ = read_images({"x": tmp_path / name}, 2)
    assert pixels[0].reshape(3, 4).tolist() == [wanted] * 3


def test_images_are_turned_as_their_exif_says(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise
    lying = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]], np.uint8)
    Image.fromarray(lying).save(tmp_path / "x.png", exif=exif)
    pixels, *_ = read_images({"x": tmp_path / "x.png"}, 2)
    assert (pixels[0].transpose(1, 2, 0) == np.rot90(lying, -1)).all()


def test_damaged_exif_leaves_an_image_as_it_lies(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (3, 2)).save(tmp_path / "x.webp", exif=exif)
    with Image.open(tmp_path / "x.webp") as image:
        assert upright(image).size == (2, 3)
    good = (tmp_path / "x.webp").read_bytes()
    (tmp_path / "x.webp").write_bytes(good.replace(b"MM\0*", b"????"))
    with Image.open(tmp_path / "x.webp") as image:
        assert upright(image).size == (3, 2)
    assert not read_images({"x": tmp_path / "x.webp"}, 2)[2]


def test_one_broken_image_in_a_hundred_is_left_out_and_two_are_refused(tmp_path: Path) -> None:
    names = [f"x{number:03d}" for number in range(100)]
    make_images(tmp_path, names)
    (tmp_path / "x007.png").write_bytes(b"\x89PNG no image")
    paths = find_images(tmp_path, names)
    pixels, items, broken = read_images(paths, 8)
    assert len(pixels) == len(items) == 99
    assert list(broken) == ["x007"]
    assert "x007.png" in broken["x007"]
    cut = tmp_path / "x008.png"
    cut.write_bytes(cut.read_bytes()[:60])
    with pytest.raises(cl.CredalError, match=r"2 of 100 images cannot be read, more than 1 %.*x00"):
        read_images(paths, 8)


# Splits


@given(
    sizes=st.lists(st.integers(1, 12), min_size=12, max_size=60),
    random_state=st.integers(0, 9),
)
def test_a_group_is_in_one_split_and_the_shares_are_kept(
    sizes: list[int], random_state: int
) -> None:
    groups = [f"g{number}" for number, size in enumerate(sizes) for _ in range(size)]
    split = split_items(len(groups), groups=groups, random_state=random_state)
    for group in set(groups):
        assert len({name for name, of in zip(split, groups, strict=True) if of == group}) == 1
    for name, share in zip(SPLITS, SHARES, strict=True):
        # Half a group off at each of its two edges.
        assert abs((split == name).sum() - share * len(groups)) <= max(sizes)
    assert (split == split_items(len(groups), groups=groups, random_state=random_state)).all()
    names = [str(number) for number in range(len(groups))]
    assert (check_splits(split.tolist(), names, groups=groups) == split).all()


@given(st.integers(10, 300), st.integers(0, 99))
def test_items_alone_are_split_to_half_an_item(num_items: int, random_state: int) -> None:
    split = split_items(num_items, random_state=random_state)
    for name, share in zip(SPLITS, SHARES, strict=True):
        assert abs((split == name).sum() - share * num_items) <= 1


@given(st.integers(0, 999))
def test_few_large_groups_leave_no_split_empty(random_state: int) -> None:
    groups = np.repeat(list("abcdefgh"), [8, 6, 9, 2, 1, 6, 5, 3]).tolist()
    assert set(split_items(40, groups=groups, random_state=random_state).tolist()) == set(SPLITS)


def test_seeds_split_differently() -> None:
    assert (split_items(100, random_state=0) != split_items(100, random_state=1)).any()


@pytest.mark.parametrize(
    ("split", "groups", "message"),
    [
        (["train", "calibration", "tests"], None, r"item 'z' has 'tests'. To fix: write 'test'"),
        (["train", "calibration", None], None, "item 'z' has ''"),
        (["train", "train", "test"], None, "no item is in the calibration split"),
        (["train", "calibration", "test"], ["p", "q", "p"],
         r"'p' is in two splits: 'train' \(item 'x'\) and 'test' \(item 'z'\)"),
    ],
)  # fmt: skip
def test_leaks_are_refused(split: list[str | None], groups: list[str] | None, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        check_splits(split, ["x", "y", "z"], groups=groups)


def test_too_few_groups() -> None:
    with pytest.raises(cl.CredalError, match=r"9 items in 1 groups are too few"):
        split_items(9, groups=["a"] * 9)


# Labels


@pytest.mark.parametrize("rule", ["relax", "precise", "idm", "clopper-pearson"])
def test_votes_become_what_from_votes_says(rule: str) -> None:
    counts = np.random.default_rng(0).integers(0, 5, size=(40, 2)).astype(float)
    counts[:, 0] += counts.sum(1) == 0
    found = make_labels(three_items(), counts, rule)  # type: ignore[arg-type]
    wanted = cl.from_votes(counts, rule=rule)  # type: ignore[arg-type]
    assert (found.lower == wanted.lower).all()
    assert (found.reference == wanted.reference).all()


@pytest.mark.parametrize("rule", ["relax", "precise", "idm", "clopper-pearson"])
def test_an_item_that_all_are_unsure_of_may_be_anything(tmp_path: Path, rule: str) -> None:
    found = annotations_of(
        tmp_path,
        "item,annotator,label\nx,ann,?\nx,bo,?\ny,ann,cat\ny,bo,dog\nz,ann,dog\nz,bo,?\n",
        unsure=("?",),
    )
    assert found.items == ("x", "y", "z")
    labels = make_labels(found, found.counts(), rule)  # type: ignore[arg-type]
    assert labels.lower[0].tolist() == [0.0, 0.0]
    assert labels.upper[0].tolist() == [1.0, 1.0]
    assert labels.reference[0].tolist() == [0.5, 0.5]
    assert labels.lower[2, 1] > 0  # the unsure vote says nothing, the other stands


def test_weights_count_as_shares(tmp_path: Path) -> None:
    found = annotations_of(
        tmp_path,
        "item,annotator,label,trust\nx,ann,cat,0.5\nx,bo,dog,1.5\ny,ann,dog,1\ny,bo,cat,0\n",
        weight="trust",
    )
    assert make_labels(found, found.counts(), "relax").lower.tolist() == [[0.0, 0.75], [0.0, 1.0]]
    assert make_labels(found, found.counts(), "precise").lower[0].tolist() == [0.25, 0.75]
    with pytest.raises(
        cl.CredalError, match=r"'idm' counts votes; .*item 'x'.* has the weight 0.5.*relax"
    ):
        make_labels(found, found.counts(), "idm")
    unsure = annotations_of(
        tmp_path,
        "item,annotator,label,weight\nx,ann,cat,1\nx,bo,?,2\ny,ann,dog,1\n",
        unsure=("?",),
    )
    assert make_labels(unsure, unsure.counts(), "idm").lower.tolist() == [[0.5, 0], [0, 0.5]]


def test_probabilities_and_bounds_have_their_own_labels(tmp_path: Path) -> None:
    shares = annotations_of(tmp_path, "item,cat,dog\nx,0.25,0.75\ny,1,0\n", format="probabilities")
    assert make_labels(shares, shares.counts(), "relax").lower.tolist() == [[0, 0.75], [1, 0]]
    assert make_labels(shares, shares.counts(), "precise").lower.tolist() == [[0.25, 0.75], [1, 0]]
    with pytest.raises(cl.CredalError, match=r"'clopper-pearson' counts votes; .*probabilities"):
        make_labels(shares, shares.counts(), "clopper-pearson")
    stated = annotations_of(tmp_path, "item,label,at_least\nx,cat,0.7\ny,dog,0.2\ny,cat,0.1\n")
    assert stated.kind == "bounds"
    assert make_labels(stated, stated.counts(), "relax").lower.tolist() == [[0.7, 0], [0.1, 0.2]]


@given(st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=20))
def test_the_majority_is_the_only_largest(rows: list[list[int]]) -> None:
    found = majority(np.array(rows, dtype=float) / 10)
    for row, index in zip(rows, found.tolist(), strict=True):
        leaders = [k for k, votes in enumerate(row) if votes == max(row) > 0]
        assert index == (leaders[0] if len(leaders) == 1 else -1)


def test_weights_that_tie_but_for_rounding_tie() -> None:
    assert majority(np.array([[0.1 + 0.2, 0.3]])).tolist() == [-1]


def test_gold_labels() -> None:
    found = gold_classes(["dog", None, " cat ", ""], ["cat", "dog"], ["a", "b", "c", "d"])
    assert found.tolist() == [1, -1, 0, -1]
    assert gold_classes([1.0, "0"], ["0", "1"], ["a", "b"]).tolist() == [1, 0]
    with pytest.raises(cl.CredalError, match=r"item 'b' is 'dgo', which nobody .*write 'dog'"):
        gold_classes(["dog", "dgo"], ["cat", "dog"], ["a", "b"])


def test_a_typo_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = "".join(f"x{n},ann,{'horse' if n % 2 else 'zebra'}\n" for n in range(8))
    found = annotations_of(tmp_path, f"item,annotator,label\n{rows}y,bo,hrose\n")
    with pytest.raises(
        cl.CredalError,
        match=r"votes.csv, item 'y': the class 'hrose' is seen once, here by 'bo', and looks like "
        r"'horse', seen 4 times .*write 'horse'.*--classes",
    ):
        refuse_typos(found)


# Several files


def test_features_of_several_files_are_one_table(tmp_path: Path) -> None:
    old = table_of(tmp_path / "old.csv", "item,a,b,site\nx,1,2,7\ny,3,4,8\n")
    new = tmp_path / "new.parquet"
    pl.DataFrame({"b": [6.0], "item": ["z"], "site": [7], "a": [5.0]}).write_parquet(new)
    tables = [read_features(path, extra=("site",)) for path in (old, new)]
    found = join_features(tables)
    assert found.items == ["x", "y", "z"]
    assert found.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found.extra["site"].to_list() == ["7", "8", "7"]
    assert join_features(tables[:1]) is tables[0]
    votes = "".join(f"{name},ann,{'cat' if name == 'x' else 'dog'}\n" for name in "zyx")
    annotations = annotations_of(tmp_path, f"item,annotator,label\n{votes}")
    empty = dataclasses.replace(found, extra=found.extra.with_columns(site=pl.lit("")))
    with pytest.raises(cl.CredalError, match=r"new.parquet, row 1: item 'z' has no 'site'"):
        prepare(annotations, empty, TrainOptions(group="site"))


def test_files_of_features_may_have_other_columns_beside_them(tmp_path: Path) -> None:
    old = table_of(tmp_path / "old.csv", "nr,a,gold,site\nx,1,cat,7\ny,2,,8\n")
    new = table_of(tmp_path / "new.csv", "item,text,a,site\nz,Hello,3,7\n")
    given = {"named_in": ("nr",), "drop": ("text",)}
    found = read_feature_files([old, new], extra=("gold", "site"), optional=("gold",), **given)
    assert (found.items, found.item) == (["x", "y", "z"], "nr")
    assert found.values.tolist() == [[1], [2], [3]]
    assert found.extra["gold"].to_list() == ["cat", None, None]
    assert found.extra["site"].to_list() == ["7", "8", "7"]
    swapped = read_feature_files(
        [new, old], extra=("gold",), optional=("gold",), named_in=("nr",), drop=("text", "site")
    )
    assert swapped.extra["gold"].to_list() == [None, "cat", None]
    with pytest.raises(cl.CredalError, match=r"old.csv has no column 'txet'"):
        read_feature_files([old, new], named_in=("nr",), drop=("txet",))
    with pytest.raises(cl.CredalError, match=r"new.csv has no column 'gold'"):  # a group, strict
        read_feature_files([old, new], extra=("gold",), **given)
    with pytest.raises(cl.CredalError, match=r"old.csv has no column 'truth'"):
        read_feature_files([old, new], extra=("truth",), optional=("truth",), **given)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("item,a,b\ny,1,2\n", r"the item 'y' is in .*old.csv and in .*new.csv. To fix: one row"),
        ("item,a\nz,1\n", r"new.csv lacks features of .*old.csv: 'b'. To fix"),
        ("item,a,b,c\nz,1,2,3\n", r"old.csv lacks features of .*new.csv: 'c'. To fix.*--drop"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(
    tmp_path: Path, second: str, message: str
) -> None:
    texts = {"old.csv": "item,a,b\nx,1,2\ny,3,4\n", "new.csv": second}
    tables = [read_features(table_of(tmp_path / name, text)) for name, text in texts.items()]
    with pytest.raises(cl.CredalError, match=message):
        join_features(tables)


# Joining


def test_items_are_joined_by_name_in_the_order_of_the_votes(tmp_path: Path) -> None:
    votes = "".join(f"{name},ann,{'dog' if name == 'a' else 'cat'}\n" for name in "edcba")
    found = annotations_of(tmp_path, f"item,annotator,label\n{votes}")
    table = FeatureTable(
        Path("f.csv"),
        list("abcde"),
        ["size"],
        np.arange(5.0)[:, None],
        pl.DataFrame({"site": list("stuvw")}),
    )
    prepared = prepare(found, table, TrainOptions(group="site"))
    assert prepared.items == list("edcba")
    assert prepared.X.tolist() == [[4.0], [3.0], [2.0], [1.0], [0.0]]
    assert prepared.groups == list("wvuts")
    assert prepared.truth.tolist() == [0, 0, 0, 0, 1]
    assert prepared.split == split_items(5).tolist()


def test_what_lacks_its_counterpart_is_refused_or_counted(tmp_path: Path) -> None:
    votes = "".join(f"{name},ann,{'cat' if name == 'a' else 'dog'}\n" for name in "abcxyz")
    found = annotations_of(tmp_path, f"item,annotator,label\n{votes}")
    text = "item,size\na,1\nb,2\nx,3\ny,4\nz,5\nd,3\ne,4\n"
    table = read_features(table_of(tmp_path / "f.csv", text))
    with pytest.raises(cl.CredalError, match=r"1 of 6 items have no features in .*f.csv: 'c'"):
        prepare(found, table, TrainOptions())
    prepared = prepare(found, table, TrainOptions(skip_missing=True))
    assert prepared.items == list("abxyz")
    assert prepared.left_out == {"without features": 1, "without annotations": 2}
    strangers = read_features(table_of(tmp_path / "g.csv", "item,size\nx1,1\nx2,2\n"))
    with pytest.raises(cl.CredalError, match=r"called 'a', 'b' and 4 more there and 'x1', 'x2'"):
        prepare(found, strangers, TrainOptions(skip_missing=True))


def test_leading_zeros_that_a_spreadsheet_lost_are_told(tmp_path: Path) -> None:
    def voted(*names: str) -> Annotations:
        rows = "".join(f"{name},ann,{'cat' if n % 2 else 'dog'}\n" for n, name in enumerate(names))
        return annotations_of(tmp_path, f"item,annotator,label\n{rows}")

    short, long = ["42", "7", "1234"], ["0042", "0007", "1234"]
    options = TrainOptions(skip_missing=True)
    kept = read_features(table_of(tmp_path / "f.csv", "item,a\n" + ",1\n".join([*long, ""])))
    said = r"lost in .*votes.csv: what is '42' there is '0042' in .*f.csv, and so for 2 items. To "
    with pytest.raises(cl.CredalError, match=f"{said}fix: export the column as text"):
        prepare(voted(*short), kept, options)
    lost = read_features(table_of(tmp_path / "f.csv", "item,a\n" + ",1\n".join([*short, ""])))
    with pytest.raises(cl.CredalError, match=r"lost in .*f.csv: what is '42' there is '0042' in"):
        prepare(voted(*long), lost, options)
    later = table_of(tmp_path / "later.csv", "item,annotator,label\n0042,bo,cat\n7,bo,cat\n")
    voted(*long)
    rounds = read_rounds(tmp_path / "votes.csv", [later], {})
    with pytest.raises(cl.CredalError, match=r"lost in .*later.csv: what is '7' there is '0007'"):
        prepare(rounds, kept, options)
    with pytest.raises(cl.CredalError, match=r"3 of 4 items have no features"):  # one zero of three
        prepare(voted("1234", "0042", "17", "18"), lost, TrainOptions())
    names = [str(number) for number in range(1, 11)]  # and 01, which is another item than 1
    table = read_features(table_of(tmp_path / "f.csv", "item,a\n" + ",1\n".join([*names, ""])))
    prepared = prepare(voted(*names, "01"), table, options)
    assert (prepared.items, prepared.left_out) == (names, {"without features": 1})


def test_an_item_without_its_group_is_refused(tmp_path: Path) -> None:
    found = annotations_of(tmp_path, "item,annotator,label\na,ann,cat\nb,ann,dog\n")
    table = table_of(tmp_path / "f.csv", "item,site,size\na,s,1\nb,,2\n")
    with pytest.raises(cl.CredalError, match=r"f\.csv, line 3: item 'b' has no 'site'"):
        prepare(found, read_features(table, extra=("site",)), TrainOptions(group="site"))


def test_a_table_says_what_images_belong_to(tmp_path: Path) -> None:
    votes = "item,annotator,label,site,part\na,ann,cat,s,train\na,bo,dog,s,train\nb,bo,dog,,test\n"
    path = table_of(tmp_path / "votes.csv", votes)
    found = read_item_columns(path, ("site", "part"))
    assert (found.items, found.rows) == (["a", "b"], [0, 2])
    assert found.column("site") == ["s", None]
    assert found.column(None) is None
    path.write_text(votes.replace("bo,dog,s", "bo,dog,t"))
    with pytest.raises(cl.CredalError, match=r"line 3: item 'a' has 'site' 't', and 's' in line 2"):
        read_item_columns(path, ("site",))
    with pytest.raises(cl.CredalError, match=r"no column 'sitee' .* did you mean 'site'"):
        read_item_columns(path, ("sitee",))
    path.write_text('[{"item": "a"}]')
    with pytest.raises(cl.CredalError, match=r"is JSON and has no column 'site'.*--table"):
        read_item_columns(path, ("site",))
    path.write_text("foo,site\na,s\n")
    with pytest.raises(cl.CredalError, match=r"no column that names the items.*--item"):
        read_item_columns(path, ("site",))
    assert read_item_columns(path, ("site",), item="foo").items == ["a"]


def test_images_without_their_row_are_refused(tmp_path: Path) -> None:
    make_images(tmp_path / "i", ["a", "b"])
    found = annotations_of(tmp_path, "item,annotator,label\na,ann,cat\nb,bo,dog\n")
    path = table_of(tmp_path / "f.csv", "item,site\na.png,s\nc,t\n")
    columns = read_item_columns(path, ("site",))
    with pytest.raises(cl.CredalError, match=r"1 of 2 items have no row in .*f.csv: 'b'.*--table"):
        prepare(found, tmp_path / "i", TrainOptions(group="site"), columns=columns)


def test_two_items_of_one_image_are_refused(tmp_path: Path) -> None:
    make_images(tmp_path / "i", ["a", "b"])
    found = annotations_of(tmp_path, "item,annotator,label\na,ann,cat\na.png,ann,dog\nb,bo,dog\n")
    with pytest.raises(cl.CredalError, match=r"'a' and 'a.png' of .* have the same image"):
        prepare(found, tmp_path / "i", TrainOptions())


# Options and places


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "relaxed"}, "labels must be one of 'relax'"),
        ({"method": "poc"}, "method must be one of 'pocc'"),
        ({"epochs": 0}, "epochs must be 1 or more; got 0"),
        ({"image_size": 4}, "image_size must be 8 or more; got 4. To fix: give --image-size 8"),
    ],
)
def test_options_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(cl.CredalError, match=re.escape(message)):
        TrainOptions(**options)  # type: ignore[arg-type]


def test_a_run_is_not_put_where_other_things_are(tmp_path: Path) -> None:
    team = make_team(tmp_path / "team")
    with pytest.raises(cl.CredalError, match=r"folder of other things, such as 'features.csv'"):
        check_place(team.folder)
    with pytest.raises(cl.CredalError, match=r"votes.csv is a file where the folder"):
        check_place(team.votes)
    with pytest.raises(cl.CredalError, match=r"votes.csv is no folder"):
        check_place(team.votes / "run")


def stop_after(output: Path, name: str, error: type[BaseException]) -> None:
    """Write one file of a run, then fail."""
    with staged(output, overwrite=True) as folder:
        (folder / name).write_text("begun")
        raise error


def test_what_fails_leaves_nothing_and_what_has_a_checkpoint_stays(tmp_path: Path) -> None:
    output = tmp_path / "new" / "run"
    with pytest.raises(ZeroDivisionError):
        stop_after(output, "run.json", ZeroDivisionError)
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        stop_after(output, "resume-1.safetensors", KeyboardInterrupt)
    assert not output.exists()
    with staged(output) as folder:
        assert (folder / "resume-1.safetensors").read_text() == "begun"
        (folder / "run.json").write_text("{}")
    assert [path.name for path in output.iterdir()] == ["run.json"]
    assert not partial_of(output).exists()


def test_a_file_that_cannot_be_written_is_told_of_the_run(tmp_path: Path) -> None:
    said = rf"^{tmp_path}/run cannot be written: File too large. .* folder with --output\.$"
    output = tmp_path / "run"
    with pytest.raises(cl.CredalError, match=said), full_disk(10), staged(output) as folder:
        write_json(folder / "run.json", {"classes": ["cat", "dog"]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (("guarantee.json",), "a rule"),
        (("sets.json",), "certified sets"),
        (("guarantee.json", "sets.json"), "a rule and certified sets"),
    ],
)
def test_what_was_certified_is_not_replaced(
    tmp_path: Path, names: tuple[str, ...], what: str
) -> None:
    output = tmp_path / "run"
    said = rf"run holds {what}, which a new run would replace. To fix: name another folder with -o,"
    with staged(output) as folder:
        (folder / "run.json").write_text("old")

    def certified_meanwhile() -> None:
        with staged(output) as folder:
            (folder / "resume-1.safetensors").write_text("trained for hours")
            for name in names:
                (output / name).write_text("certified")

    with pytest.raises(cl.CredalError, match=said):
        certified_meanwhile()
    before = snapshot(output)
    with pytest.raises(cl.CredalError, match=said), staged(output):
        pytest.fail("refused before anything is done")
    assert snapshot(output) == before
    with staged(output, overwrite=True) as folder:
        assert (folder / "resume-1.safetensors").read_text() == "trained for hours"
        (folder / "run.json").write_text("new")
    assert {path.name: path.read_text() for path in output.iterdir()} == {"run.json": "new"}
    (output / "run.json").unlink()
    (output / names[0]).write_text("left by a kill")
    check_place(output)


def test_a_new_run_replaces_an_old_one_whole_and_nothing_else(tmp_path: Path) -> None:
    output = tmp_path / "run"
    (output / "model").mkdir(parents=True)
    names = ("run.json", "guarantee.json", "report.html", "items.parquet", "model/config.json")
    for name in (*names, "my notes.txt"):
        (output / name).write_text("old")
    with pytest.raises(ZeroDivisionError):
        stop_after(output, "run.json", ZeroDivisionError)
    assert {(output / name).read_text() for name in names} == {"old"}
    with staged(output, overwrite=True) as folder:
        (folder / "model").mkdir()
        for name in ("run.json", "items.parquet", "model/config.json"):
            (folder / name).write_text("new")
    found = {p.relative_to(output).as_posix(): p for p in output.rglob("*") if p.is_file()}
    assert {name: path.read_text() for name, path in found.items()} == {
        "run.json": "new",
        "items.parquet": "new",
        "model/config.json": "new",
        "my notes.txt": "old",
    }
