"""What a run must say of itself and of its items, and what it says people gave."""

from pathlib import Path
from typing import Any

import pytest

from credalearn.app.annotations import read_annotations
from credalearn.app.annotations.examples import three_items
from credalearn.app.run.examples import empty_run
from credalearn.app.run.facts import FACTS
from credalearn.app.run.folder import RunFolder, write_json
from credalearn.app.run.voted import said_of
from credalearn.app.steps.inspecting import annotation_facts
from credalearn.errors import CredalError
from fake_run import fake_run, with_facts


@pytest.mark.parametrize("name", [place[0] for place in FACTS if len(place) == 1])
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
        ({"annotations": {}}, "'kind' of its 'annotations'"),
        ({"annotations": {"kind": "songs"}}, "'kind' of its 'annotations'"),
        ({"inputs": {}}, "'kind' of its 'inputs'"),
        ({"inputs": {"kind": ["features"]}}, "'kind' of its 'inputs'"),
        ({"inputs": {"kind": "songs", "path": ""}}, "'kind' of its 'inputs'"),
        ({"inputs": {"kind": "features"}}, "'path' of its 'inputs'"),
        ({"inputs": {"kind": "features", "path": ""}}, "'features' of its 'inputs'"),
        ({"inputs": {"kind": "images", "path": ""}}, "'image_size' of its 'inputs'"),
        ({"options": {}}, "'s' of its 'options'"),
        ({"recalibrated_from": {}}, "'path' of its 'recalibrated_from'"),
        (
            {"recalibrated_from": {"path": "", "said": "", "created": ""}},
            "'path' of its 'inputs' of its 'recalibrated_from'",
        ),
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


@pytest.mark.parametrize("name", ["item", "split", "group", "truth", "digest"])
def test_what_a_run_knows_of_its_items_is_asked_for_once(name: str) -> None:
    run = empty_run()
    run.items.drop(name).write_parquet(run.path / "items.parquet")
    said = rf"items\.parquet lacks the column '{name}'\. To fix: train again\.$"
    with pytest.raises(CredalError, match=said):
        RunFolder(run.path)
    (run.path / "items.parquet").unlink()
    with pytest.raises(
        CredalError, match=r"items\.parquet cannot be read.* To fix: train again\.$"
    ):
        RunFolder(run.path)
