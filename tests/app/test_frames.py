"""Tables in memory as a Python user has them: categories alone, odd columns, mistyped names."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import credalearn as cl
from credalearn.app.item_stream import open_items
from credalearn.app.steps.set_coverage import strata_of_batch
from present import present

NUMBER = 120
RNG = np.random.default_rng(0)
SIZE = RNG.normal(size=NUMBER)
YES = RNG.binomial(5, 1 / (1 + np.exp(-4 * SIZE)))
VOTES = pd.DataFrame({"item": range(NUMBER), "no": 5 - YES, "yes": YES})
COLORS = np.where(SIZE > 0, "red", "blue")
FEATURES = pd.DataFrame({"item": range(NUMBER), "size": SIZE, "color": COLORS})
NOTHING: Any = None


def dataset(features: pd.DataFrame = FEATURES, **options: object) -> cl.Dataset:
    return cl.Dataset(cl.read_annotations(VOTES, format="counts"), features=features, **options)


@pytest.fixture
def run(tmp_path: Path) -> cl.Run:
    return cl.Run.train(dataset(), tmp_path / "run")


def test_categories_alone_are_features(tmp_path: Path) -> None:
    run = cl.Run.train(dataset(FEATURES[["item", "color"]]), tmp_path / "run")
    labels = run.predict(FEATURES[["item", "color"]], threshold=1).to_pandas()["label"]
    assert ((labels == "yes") == (COLORS == "red")).all()


def test_a_category_is_a_stratum(run: cl.Run) -> None:
    found = present(run.certify(set_coverage=0.5, stratum="color", table=FEATURES).sets)
    assert [each.name for each in found.inflation.strata] == ["blue", "red"]
    with pytest.raises(cl.CredalError, match=r"'color' was in .*the table of features.* table=\.$"):
        run.certify(set_coverage=0.6, stratum="color")
    assert "does not show the widened sets: the column 'color'" in run.report().lines[0]
    assert run.predict(FEATURES, decision=False).items == NUMBER


def test_missing_values_are_a_stratum_of_their_own(tmp_path: Path) -> None:
    gaps = FEATURES.assign(size=np.where(SIZE > 0, 1.0, np.nan))
    run = cl.Run.train(dataset(gaps), tmp_path / "run")
    sets = present(run.certify(set_coverage=0.5, stratum="size", table=gaps).run.sets)
    assert [each.name for each in sets.strata] == ["1", "None"]
    (batch,) = open_items(run, gaps).batches
    strata = strata_of_batch(run, sets, NOTHING, NOTHING, batch)
    assert strata == ["1" if size > 0 else "None" for size in SIZE]


def test_new_votes_are_read_with_options(run: cl.Run, tmp_path: Path) -> None:
    names = [f"new {number}" for number in range(NUMBER)]
    votes = VOTES.assign(item=names, yes=YES + 1)
    features = FEATURES.assign(item=names, size=SIZE + 0.01)
    new = run.recalibrate(votes, tmp_path / "new", features=features, format="counts")
    assert len(new.run.held_out()) == NUMBER
    with pytest.raises(TypeError, match=r"no option labels\. To fix: write label"):
        run.recalibrate(votes, tmp_path / "other", labels="counts")
    named = features.rename(columns={"item": "key"})
    run.recalibrate(votes, tmp_path / "key", features=named, item="key", format="counts")
    read = cl.read_annotations(votes, format="counts")
    with pytest.raises(cl.CredalError, match="Leave out format=, as the votes are read"):
        run.recalibrate(read, tmp_path / "other", features=features, format="counts")


def test_a_threshold_is_kept_if_sets_fail_and_every_class_has_its_set(run: cl.Run) -> None:
    with pytest.raises(cl.CredalError, match=r"^The threshold is certified, and kept\. But these"):
        run.certify(max_error=0.4, set_coverage=0.99)
    assert run.guarantee is not None
    assert run.certify(set_coverage=0.9).sets is not None
    found = run.predict(FEATURES, all_classes=True).to_pandas()
    assert (found["set_lower_no"] <= found["lower_no"]).all()


def test_no_column_is_lost_or_taken_for_another() -> None:
    table = dataset(FEATURES.assign(truth=1.5)).to_pandas()
    assert set(table["truth"].dropna()) == {"no", "yes"}
    assert (table["feature:truth"] == 1.5).all()
    other = r"the table of features has no column 'itme'; the column 'item' would name the items"
    with pytest.raises(cl.CredalError, match=other):
        dataset(item="itme")
    with pytest.raises(cl.CredalError, match="two columns are called 'size'"):
        dataset(pd.concat([FEATURES, FEATURES[["size"]]], axis=1))


def test_columns_of_a_wide_table_that_are_used_otherwise_are_no_annotators() -> None:
    wide = FEATURES[["item", "color"]].assign(text="a text", ann=COLORS, bob=COLORS)
    with pytest.raises(cl.CredalError, match=r"'color' of .* annotator's.*with ignore='color'"):
        cl.Dataset(cl.read_annotations(wide), text="text", group="color")
    assert len(cl.Dataset(cl.read_annotations(wide, ignore="Color"), group="color").items) == NUMBER
    with pytest.raises(cl.CredalError, match=r"'color' .*, and is a feature.*ignore='color'"):
        cl.Dataset(cl.read_annotations(wide), features=FEATURES)


def test_periods_and_spans_are_texts() -> None:
    days = pd.period_range("2020", periods=NUMBER, freq="D")
    with pytest.raises(cl.CredalError, match="'day' contains dates"):
        dataset(FEATURES.assign(day=days))
    spans = dataset(FEATURES.assign(span=pd.to_timedelta(RNG.integers(0, 3, NUMBER), "D")))
    assert spans.to_pandas()["span"].nunique() == 3
