"""Damaged and forged files of a run: one line that says what is wrong, or a result."""

import pytest

from fuzzing import RUN_FILES, ChangedRun


@pytest.fixture(scope="module")
def changed_run(tmp_path_factory: pytest.TempPathFactory) -> ChangedRun:
    return ChangedRun(tmp_path_factory.mktemp("changed"))


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_changed_file_is_refused_in_one_line_or_used(changed_run: ChangedRun, name: str) -> None:
    for seed in range(50):  # scripts/attack.py takes more
        changed_run.use_changed(name, seed, command=seed % 2 == 0)
