"""Damaged files of exports and of runs: one line that says what is wrong, or the right result."""

from pathlib import Path

import pytest

from annotation_exports import EXPORTS
from fuzzing import RUN_FILES, ChangedRun, read_changed_export


@pytest.mark.parametrize("name", EXPORTS)
def test_damage_is_refused_in_one_line_and_harmless_changes_count_equally(
    tmp_path: Path, name: str
) -> None:
    for seed in range(60):  # scripts/attack.py takes more
        read_changed_export(name, seed, tmp_path / "export")


@pytest.fixture(scope="module")
def changed_run(tmp_path_factory: pytest.TempPathFactory) -> ChangedRun:
    return ChangedRun(tmp_path_factory.mktemp("changed"))


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_changed_file_is_refused_in_one_line_or_used(changed_run: ChangedRun, name: str) -> None:
    for seed in range(50):  # scripts/attack.py takes more
        changed_run.use_changed(name, seed, command=seed % 2 == 0)
