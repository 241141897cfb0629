"""The script that builds the table of lung nodules, and the table that is shipped."""

import csv
import sqlite3
from pathlib import Path

import build_lidc as lidc
import numpy as np
import pytest

SCAN = lidc.Scan(patient="LIDC-IDRI-0001", pixel=0.5, thickness=2.5, step=2.0)
SQUARE = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]])


def dots(*xs: float) -> list[np.ndarray]:
    """One reading per position, each a single point on the x axis."""
    return [np.array([[x, 0.0, 0.0]]) for x in xs]


def reading(malignancy: int, *, size: float = 1.0) -> lidc.Reading:
    contour = lidc.Contour(0.0, SQUARE * size)
    return lidc.Reading((5, 1, 6, 4, 4, 1, 1, 5), malignancy, (contour,))


def test_readings_within_the_tolerance_are_one_nodule() -> None:
    assert lidc.cluster(dots(0, 50, 1), tolerance=1.25) == [[0, 2], [1]]


def test_a_chain_of_five_is_cut_at_its_widest_gap() -> None:
    # Gaps of 0.5, 0.5, 0.5 and 0.9: the tolerance passes 0.9 before it reaches 0.5. Linkage of
    # the centers alone would cut between the second and the third.
    assert lidc.cluster(dots(0, 0.5, 1, 1.5, 2.4), tolerance=2.5) == [[0, 1, 2, 3], [4]]


def test_outlines_that_share_a_pixel_are_cut_by_their_centers() -> None:
    # Three readings near 0 and two near 20, all through the origin: no tolerance parts them.
    far = (-0.2, 0.0, 0.2, 20.0, 20.2)
    clouds = [np.array([[0.0, 0.0, 0.0], [x, 0.0, 0.0]]) for x in far]
    assert lidc.cluster(clouds, tolerance=2.5) == [[0, 1, 2], [3, 4]]


def test_a_hole_is_subtracted_from_its_slice() -> None:
    hole = lidc.Contour(0.0, SQUARE / 2 + 1, hole=True)
    contours = [lidc.Contour(0.0, SQUARE), hole, lidc.Contour(2.0, SQUARE)]
    assert lidc.volume(contours, SCAN) == pytest.approx((16 - 4 + 16) * 2.0)


def test_votes_are_counted_and_malignancy_reaches_no_feature() -> None:
    low = lidc.describe([reading(m) for m in (1, 2, 3)], SCAN)
    high = lidc.describe([reading(m) for m in (5, 4, 5)], SCAN)
    assert low[:3] == ["2", "1", "0"]
    assert high[:3] == ["0", "0", "3"]
    assert low[3:] == high[3:]
    assert len(low) == len(lidc.COLUMNS) - 2


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Patients B and A, in this order of ids: a nodule of three readers each, one of two in A."""
    path = tmp_path / "small.sqlite"
    ratings = (
        "subtlety, calcification, internalStructure, sphericity, margin, lobulation, "
        "spiculation, texture"
    )
    with sqlite3.connect(path) as connection:
        connection.executescript(f"""
            CREATE TABLE scans (id, patient_id, slice_thickness, pixel_spacing);
            CREATE TABLE zvals (scan_id, val);
            CREATE TABLE annotations (id, scan_id, {ratings}, malignancy);
            CREATE TABLE contours (id, annotation_id, inclusion, image_z_position, coords);
            INSERT INTO scans VALUES (1, 'B', 2.5, 0.5), (2, 'A', 2.5, 0.5);
            INSERT INTO zvals VALUES (1, 0), (1, 2), (1, 4), (2, 0), (2, 2), (2, 4);
        """)
        votes = [(1, 1), (1, 2), (1, 5), (2, 3), (2, 3), (2, 4)]
        for number, (scan, malignancy) in enumerate([*votes, (2, 1), (2, 1)]):
            x = number + (100 if number >= len(votes) else 0)
            connection.execute(
                "INSERT INTO annotations VALUES (?, ?, 5, 3, 1, 4, 4, 1, 1, 5, ?)",
                (number, scan, malignancy),
            )
            connection.execute(
                "INSERT INTO contours VALUES (?, ?, 1, 2, ?)",
                (number, number, f"{x},0\n{x + 8},0\n{x + 8},8\n{x},0"),
            )
    connection.close()
    return path


def test_builds_a_table_from_a_small_database(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "folder" / "small.csv"
    lidc.main(["--database", str(database), "--output", str(output)])
    rows = [line for line in output.read_text().splitlines() if not line.startswith("#")]
    assert rows[0].split(",") == list(lidc.COLUMNS)
    features = "5.66,3.13,2,0.539,1.73,0,5,1,0,4,4,1,1,5"
    assert rows[1:] == [f"1,A,0,2,1,{features}", f"2,B,2,0,1,{features}"]
    assert [path.name for path in output.parent.iterdir()] == ["small.csv"]
    assert "3 nodules " in capsys.readouterr().out


def test_the_table_has_its_license_and_attribution() -> None:
    assert lidc.DEFAULT_OUTPUT.stat().st_size < 200_000
    head = "".join(
        line for line in lidc.DEFAULT_OUTPUT.read_text().splitlines(True) if line.startswith("#")
    )
    for needed in (
        "CC BY 3.0",
        "https://creativecommons.org/licenses/by/3.0/",
        "doi:10.7937/K9/TCIA.2015.LO9QL9SX",
        "doi:10.1118/1.3528204",
        "doi:10.1007/s10278-013-9622-7",
        "doi:10.1117/1.JMI.3.4.044504",
        "Changes:",
        *(f"- {column}: " for column in lidc.COLUMNS),
    ):
        assert needed in head


def test_the_table_has_what_its_columns_describe() -> None:
    with lidc.DEFAULT_OUTPUT.open(newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert list(rows[0]) == list(lidc.COLUMNS)
    assert 1380 <= len(rows) <= 1400
    assert [int(row["nodule"]) for row in rows] == list(range(1, len(rows) + 1))
    patients = [row["patient"] for row in rows]
    assert patients == sorted(patients)

    names = list(lidc.COLUMNS)[2:]
    values = np.array([[float(row[name]) for name in names] for row in rows])
    assert np.isfinite(values).all()
    votes, column = values[:, :3], dict(zip(names, values.T, strict=True))
    assert (votes >= 0).all()
    assert set(votes.sum(1)) == {3, 4}
    for name in lidc.RATINGS:
        least, most = (0, 1) if name in ("calcified", "not_soft_tissue") else (1, 5)
        assert least <= column[name].min() < column[name].max() <= most
    assert column["diameter_mm"].min() > 2  # only nodules of 3 mm or more were outlined
    assert (column["size_spread"] >= 0).all()
