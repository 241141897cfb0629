"""``credalearn demo``: all steps on real disagreement, from votes to a report."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from credalearn._files import check_file, whole_file
from credalearn.app.dataset import Dataset
from credalearn.app.nodules import CLASSES, load_nodules
from credalearn.app.readers import read_annotations
from credalearn.app.run import Run

_TITLE = "Lung nodules that radiologists disagree about"


def run_demo(output: Path) -> Iterator[str]:
    """Go from votes to certified decisions: each command, then what it prints."""
    votes, features, run = output / "votes.csv", output / "features.csv", output / "run"
    check_file(votes, (".csv",), other="choose another folder")
    yield _write_tables(votes, features)

    yield from ("", f"$ credalearn inspect {votes} --format counts")
    annotations = read_annotations(votes, format="counts")
    yield from annotations.inspect().lines

    given = f"--format counts --features {features} --group patient"
    yield from ("", f"$ credalearn train {votes} {given} -o {run}")
    data = Dataset(annotations, features=features, group="patient")
    yield from data.lines
    trained = Run.train(data, run, overwrite=True)
    facts = trained.facts
    yield from facts.comparison.lines if facts.comparison is not None else ()
    yield f"Wrote {run}: {facts.trained}."

    yield from ("", f"$ credalearn certify {run} --max-error 0.20 --set-coverage 0.90")
    yield from trained.certify(max_error=0.20, set_coverage=0.90).lines

    decisions = output / "decisions.csv"
    yield from ("", f"$ credalearn predict {run} {features} -o {decisions}")
    yield from trained.predict(features, decisions).lines

    yield from ("", f"$ credalearn report {run} --title '{_TITLE}'")
    yield from trained.report(title=_TITLE).lines


def _write_tables(votes: Path, features: Path) -> str:
    """Write the votes and the features as a team would have them; returns what they are."""
    nodules = load_nodules()
    names = [f"nodule-{number:04d}" for number in range(len(nodules.votes))]
    counts = dict(zip(CLASSES, nodules.votes.T, strict=True))
    values = dict(zip(nodules.feature_names, nodules.features.T, strict=True))
    tables = {
        votes: pl.DataFrame({"item": names, **counts}),
        features: pl.DataFrame({"item": names, "patient": nodules.patients, **values}),
    }
    for path, table in tables.items():
        with whole_file(path) as partial:
            table.write_csv(partial)
    patients = len(set(nodules.patients))
    return (
        f"{len(names):,} lung nodules of {patients:,} patients (LIDC-IDRI), each rated by three or "
        "four radiologists."
    )
