"""Damaged files of every format: one line that says what is wrong, or the right counts."""

from pathlib import Path

import pytest

from annotation_exports import EXPORTS
from fuzzing import read_changed_export


@pytest.mark.parametrize("name", EXPORTS)
def test_damage_is_refused_in_one_line_and_harmless_changes_count_equally(
    tmp_path: Path, name: str
) -> None:
    for seed in range(60):  # scripts/attack.py takes more
        read_changed_export(name, seed, tmp_path / "export")
