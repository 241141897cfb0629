"""Damaged files of the experiments' store: one line each, and never a wrong number of records."""

from pathlib import Path

from fuzzing import read_changed_result


def test_a_changed_file_of_the_store_is_named_or_used(tmp_path: Path) -> None:
    for seed in range(150):  # scripts/attack.py takes more
        read_changed_result(seed, tmp_path)
