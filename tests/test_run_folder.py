"""What ``run.json`` must say, and what it says people gave."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from credalearn.annotations import read_annotations
from credalearn.annotations.examples import three_items
from credalearn.errors import CredalError
from credalearn.workflow.inspecting import annotation_facts
from credalearn.workflow.run.examples import empty_run
from credalearn.workflow.run.folder import RunFolder, write_json
from credalearn.workflow.run.voted import said_of
from fake_run import fake_run, with_facts


@pytest.mark.parametrize("name", ["classes", "inputs", "splits", "method", "created", "seed"])
def test_what_every_run_says_is_asked_for_once(name: str) -> None:
    run = empty_run()
    facts = {key: value for key, value in run.facts.items() if key != name}
    write_json(run.path / "run.json", facts)
    with pytest.raises(CredalError, match=rf"run\.json lacks '{name}'\. To fix: train again\."):
        RunFolder(run.path)


@pytest.mark.parametrize(
    ("changed", "lacking"),
    [
        ({"splits": None}, "'splits'"),
        ({"method": 3}, "'method'"),
        ({"inputs": {}}, "the 'kind' of its 'inputs'"),
        ({"inputs": {"kind": ["features"]}}, "the 'kind' of its 'inputs'"),
        ({"inputs": {"kind": "features"}}, "'features' of its 'inputs'"),
        ({"inputs": {"kind": "images", "features": []}}, "'image_size' of its 'inputs'"),
    ],
)
def test_what_it_says_has_its_form(changed: dict[str, Any], lacking: str) -> None:
    with pytest.raises(CredalError, match=rf"run\.json lacks {lacking}\. To fix: train again\."):
        with_facts(empty_run(), **changed)


def test_what_people_gave_is_written_down_and_read(tmp_path: Path) -> None:
    assert annotation_facts(three_items())["kind"] == "votes"
    path = tmp_path / "stated.csv"
    path.write_text("item,at_least,at_most\nx,0.25,0.75\ny,0.5,0.5\n")
    stated = read_annotations(path, format="probabilities")
    run = fake_run(tmp_path / "run", num_items=60, classes=stated.classes)
    stated.table.write_parquet(run.path / "annotations.parquet")
    run = with_facts(run, annotations=annotation_facts(stated))
    assert (run.kind, run.said, run.truth) == ("probabilities",) * 3
    assert said_of(run).kind == "probabilities"
    run = with_facts(run, annotations=run.facts["annotations"] | {"kind": "counts"})
    assert (run.kind, run.said, run.truth) == ("counts", "votes", "majority")
    assert said_of(run).kind == "counts"


@pytest.mark.parametrize(
    ("columns", "votes", "kind"),
    [
        (["item", "annotator", "label", "weight"], 7, "votes"),
        (["item", "label", "at_least"], None, "bounds"),
        (["item", "at_least", "at_most"], None, "probabilities"),
        (["item", "cat", "dog"], 7, "counts"),
    ],
)
def test_of_a_run_from_before_it_is_told_by_the_columns(
    columns: list[str], votes: int | None, kind: str
) -> None:
    run = with_facts(empty_run(), annotations={"votes": votes})
    pl.DataFrame({name: ["x"] for name in columns}).write_parquet(run.path / "annotations.parquet")
    assert run.kind == kind
    assert run.said == ("votes" if kind == "counts" else kind)
