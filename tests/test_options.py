"""Options of every verb: each value has the type of its field, or nothing is done."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import polars as pl
import pytest

import credalearn as cl
from credalearn._options import check_options, option
from small_run import make_run
from team_files import make_team, snapshot, team_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One option of each type."""

    overwrite: bool = option(False, "")
    name: str = option("a", "")
    item: str | None = option(None, "")
    weights: Path | None = option(None, "")
    drop: tuple[str, ...] = option((), "")
    classes: tuple[str, ...] | None = option(None, "")
    features: tuple[Path, ...] | Any = option((), "")
    table: Path | Any | None = option(None, "")
    mode: Literal["one", "two"] | None = option(None, "")
    epochs: int = option(1, "", least=1)
    rate: float | None = option(None, "", above=0)

    def __post_init__(self) -> None:
        check_options(self)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("overwrite", "no", "must be True or False; got 'no'"),
        ("overwrite", 1, "must be True or False; got 1"),
        ("overwrite", None, "must be True or False; got None"),
        ("name", None, "must be text; got None"),
        ("item", 3, "must be text; got 3"),
        ("item", ["a"], r"must be text; got \['a'\]"),
        ("weights", 3, "must be a path; got 3"),
        ("drop", None, "must be text, or a list of texts; got None"),
        ("drop", ("a", 3), r"must be text, or a list of texts; got \('a', 3\)"),
        ("classes", 3, "must be text, or a list of texts; got 3"),
        ("mode", "three", "must be one of 'one', 'two'; got 'three'"),
        ("epochs", True, "must be a whole number of 1 or more; got True"),
        ("epochs", "3", "must be a whole number of 1 or more; got '3'"),
        ("rate", 0, "must be above 0; got 0"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(cl.CredalError, match=rf"^{name} {message}"):
        Options(**{name: value})


def test_texts_become_paths_and_tuples() -> None:
    table: Any = object()
    given: dict[str, Any] = {"weights": "w.pt", "drop": "a", "classes": ["x", "y"]}
    found = Options(**given, features="f.csv", table=table)
    assert (found.weights, found.drop, found.classes) == (Path("w.pt"), ("a",), ("x", "y"))
    assert (found.features, found.table, found.item) == (("f.csv",), table, None)
    assert Options(features=[table, "f.csv"]).features == (table, "f.csv")
    assert Options(features=None).features == ()


def test_a_wrong_value_never_replaces_a_run(tmp_path: Path) -> None:
    team = make_team(tmp_path)
    data = team_data(team)
    run = cl.Run.train(data, team.run)
    run.certify(max_error=0.9)
    before = snapshot(team.run)
    with pytest.raises(cl.CredalError, match=r"^overwrite must be True or False; got 'no'\.$"):
        cl.Run.train(data, team.run, overwrite="no")
    with pytest.raises(cl.CredalError, match=r"^missing\.pt is not a regular file"):
        cl.Run.train(data, team.run, overwrite=True, method="pocc", weights="missing.pt")
    with pytest.raises(cl.CredalError, match=r"^called must look like"):
        run.certify(called="cat")
    with pytest.raises(cl.CredalError, match=r"^item must be text; got 3"):
        cl.read_annotations(team.votes, item=3)
    with pytest.raises(cl.CredalError, match=r"^data must be a credalearn.Dataset; got str"):
        cl.Run.train("votes.csv", team.run, overwrite=True)  # type: ignore[arg-type]
    assert snapshot(team.run) == before


def test_an_unknown_keyword_names_the_verb_and_the_nearest_option(tmp_path: Path) -> None:
    run, table = make_run(tmp_path / "run"), pl.DataFrame({"item": ["a", "b"], "label": ["b", "c"]})
    data: Any = None
    for call, message in (
        (lambda: cl.read_annotations(table, items="a"), "read_annotations has no option items"),
        (lambda: cl.Dataset(cl.read_annotations(table), feature=table), "Dataset has no option f"),
        (lambda: run.train(data, "r", epoch=3), "Run.train has no option epoch. To fix: write ep"),
        (lambda: run.predict(table, limits=1), "run.predict has no option limits. To fix: take"),
        (lambda: run.export(x=1), "run.export has no option x. To fix: take one of onnx."),
    ):
        with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
            call()


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_tables_of_both_kinds_are_options(tmp_path: Path, kind: Any) -> None:
    run, table = make_run(tmp_path / "run"), kind({"item": ["a", "b"], "site": ["x", "y"]})
    with pytest.raises(cl.CredalError, match=r"^table must come with a coverage"):
        run.certify(max_error=0.3, table=table)
    rows = [(f"x{n}", "ann", "cat" if n % 2 else "dog") for n in range(40)]
    votes = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    votes[30:].write_csv(tmp_path / "test.csv")
    features = kind({"item": [row[0] for row in rows], "size": range(40)})
    first = cl.read_annotations(kind(votes[:20].to_dict(as_series=False)))
    for test in (kind(votes[30:].to_dict(as_series=False)), str(tmp_path / "test.csv")):
        official: dict[str, Any] = {"validation": cl.read_annotations(votes[20:30]), "test": test}
        data = cl.Dataset(first, features=features, **official).split()
        assert data.part is not None
        assert data.part.tolist() == ["train"] * 20 + ["calibration"] * 10 + ["test"] * 10
    unknown = kind({"item": ["x30"], "annotator": ["ann"], "label": ["eel"]})
    with pytest.raises(cl.CredalError, match="row 1: 'eel' is none of"):
        cl.Dataset(first, features=features, test=unknown)
    with pytest.raises(cl.CredalError, match="'eel' is none of"):
        cl.read_annotations(votes, merge=[unknown])
