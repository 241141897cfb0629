"""The whole way on real disagreement: inspect, train, certify, predict, report."""

from pathlib import Path

import polars as pl
import torch

from credalearn._files import check_file, whole_file
from credalearn.app.annotations import read_annotations
from credalearn.app.dataset import Dataset
from credalearn.app.nodules import CLASSES, Nodules, load_nodules
from credalearn.app.run import Run
from credalearn.app.steps.certify import CertifyOptions, certify
from credalearn.app.steps.inspecting import inspection
from credalearn.app.steps.predicting import predict
from credalearn.app.steps.report import ReportOptions, report
from credalearn.errors import CredalError

MAX_ERROR = 0.20
COVERAGE = 0.90


def run_way(output: Path, *, epochs: int = 40, random_state: int = 0) -> None:
    """Go from votes to certified decisions, printing each step's command: see ``demo``."""
    check_file(output / "votes.csv", (".csv",), other="name another folder with --output")
    torch.set_num_threads(1)  # the networks are tiny: threads would wait for each other
    nodules = load_nodules()
    print(
        f"Lung nodules of LIDC-IDRI: {len(nodules.votes):,} nodules of "
        f"{len(set(nodules.patients)):,} patients, each rated by three or four radiologists."
    )
    votes, features = _write_tables(output, nodules)
    run = output / "run"

    _say(f"inspect {votes} --format counts")
    annotations = read_annotations(votes, format="counts")
    for line in inspection(annotations):
        print(line)

    _say(f"train {votes} --format counts --features {features} --group patient -o {run}")
    data = Dataset(annotations, features=features, group="patient", random_state=random_state)
    trained = Run.train(data, run, epochs=epochs, random_state=random_state, overwrite=True)
    sizes = trained.facts.splits
    print(
        f"trained on {sizes.train} nodules; {sizes.calibration} to calibrate, "
        f"{sizes.test} to test, no patient in two of them"
    )

    _say(f"certify {run} --max-error {MAX_ERROR:.2f} --set-coverage {COVERAGE:.2f}")
    wanted = CertifyOptions(max_error=MAX_ERROR, set_coverage=COVERAGE)
    try:
        found = certify(trained, wanted)
    except CredalError as error:  # as after a single epoch: go on without decisions
        print(error)
        found = certify(trained, CertifyOptions(set_coverage=COVERAGE))
    trained = found.run
    for line in found.lines[:-1]:
        print(line)

    decisions = output / "decisions.csv"
    decide = trained.guarantee is not None
    _say(f"predict {run} {features} -o {decisions}{'' if decide else ' --no-decision'}")
    summary = predict(trained, features, decisions, decide=decide)
    told = "" if summary.deferred is None else f", {summary.deferred:,} of them deferred"
    print(f"{summary.items:,} nodules{told}")

    _say(f"report {run}")
    title = "Lung nodules that radiologists disagree about"
    page = report(trained, ReportOptions(title=title)).path
    print(f"{page}: open it in a browser")


def _write_tables(output: Path, nodules: Nodules) -> tuple[Path, Path]:
    """The votes and the features as an applied team would have them."""
    names = [f"nodule-{number:04d}" for number in range(len(nodules.votes))]
    votes = {name: nodules.votes[:, column] for column, name in enumerate(CLASSES)}
    columns = enumerate(nodules.feature_names)
    features = {name: nodules.features[:, column] for column, name in columns}
    tables = {
        "votes.csv": pl.DataFrame({"item": names, **votes}),
        "features.csv": pl.DataFrame({"item": names, "patient": nodules.patients, **features}),
    }
    for name, table in tables.items():
        with whole_file(output / name) as partial:
            table.write_csv(partial)
    return output / "votes.csv", output / "features.csv"


def _say(command: str) -> None:
    print(f"\n$ credalearn {command}")
