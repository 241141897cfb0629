"""Options that are refused: the message says what to take instead."""

from pathlib import Path

import pytest

from credalearn import CredalError
from credalearn.checks import check_choice
from credalearn.workflow.tables.naming import naming


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("relaxed", "'relax'"),
        ("IDM", "'idm'"),
        ("nonsense", "one of these"),
        (["idm"], "one of these"),
        (None, "one of these"),
    ],
)
def test_the_nearest_choice_is_named(value: object, fix: str) -> None:
    with pytest.raises(CredalError) as found:
        check_choice(value, ("relax", "idm"), name="rule")
    said = f"rule must be one of 'relax', 'idm'; got {value!r}. To fix: take {fix}."
    assert str(found.value) == said


def test_a_file_that_is_not_there_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "features.csv").touch()
    for name, fix in (
        ("feature.csv", f"name {tmp_path}/features.csv"),
        ("other.npy", f"look for it in {tmp_path}"),
        ("absent/features.csv", f"look at the path: there is no folder {tmp_path}/absent"),
    ):
        path = tmp_path / name
        with pytest.raises(CredalError) as found, naming(path):
            path.stat()
        assert str(found.value) == f"there is no file {path}. To fix: {fix}."
