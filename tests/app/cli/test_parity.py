"""A command and the verb of its name: the same options, the same facts, the same errors."""

import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import credalearn as cl
from credalearn.app.annotations.table import Annotations
from credalearn.app.cli._command import _as_flags, command
from credalearn.app.cli.commands import COMMANDS
from present import present
from team_files import (
    Capture,
    Team,
    as_json,
    facts_of,
    in_process,
    make_team,
    team_data,
    train_arguments,
)

Verb = Callable[..., Any]
VERBS: dict[str, tuple[Verb, ...]] = {  # what has the options of each command
    "inspect": (cl.read_annotations, Annotations.inspect),
    "train": (cl.read_annotations, cl.Dataset, cl.Run.train),
    "import": (cl.read_annotations, cl.Run.from_predictions),
    "certify": (cl.Run.certify,),
    "predict": (cl.Run.predict,),
    "defer": (cl.Run.defer,),
    "report": (cl.Run.report,),
    "export": (cl.Run.export,),
    "recalibrate": (cl.read_annotations, cl.Run.recalibrate),
}
_ROUNDS = {"merge", "merge_item", "merge_conflicts"}
PYTHON_ONLY = {  # what commands need inside, and later rounds where one is read
    "inspect": {"elsewhere"},
    "train": {"verbose", "names", "categories", "called", "elsewhere"},
    "import": {*_ROUNDS, "elsewhere"},
    "recalibrate": {*_ROUNDS, "elsewhere"},
}


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return make_team(tmp_path)


@pytest.fixture
def run(team: Team) -> cl.Run:
    return cl.Run.train(team_data(team), team.run)


def keywords_of(verb: Verb, run: cl.Run) -> set[str]:
    """The keywords that a verb takes, as it lists them itself."""
    given = [
        run if name == "self" and verb is not Annotations.inspect else None
        for name, each in inspect.signature(verb).parameters.items()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    with pytest.raises(TypeError, match=r" has no option zzz\. To fix: take one of ") as refused:
        verb(*given, zzz=1)
    return set(re.findall(r"\w+", str(refused.value).partition("take one of ")[2]))


def test_every_command_has_a_verb() -> None:
    assert set(COMMANDS) == {"demo", *VERBS}


@pytest.mark.parametrize("name", VERBS)
def test_command_and_verb_have_the_same_options(name: str, run: cl.Run) -> None:
    own = set(inspect.signature(COMMANDS[name]).parameters)  # arguments, not options
    flags = set(inspect.signature(command(COMMANDS[name])).parameters) - own - {"json", "quiet"}
    taken = set[str]().union(*(keywords_of(verb, run) for verb in VERBS[name]))
    assert flags == taken - PYTHON_ONLY.get(name, set())


def test_python_finds_what_the_commands_print(team: Team, run: cl.Run, capsys: Capture) -> None:
    printed = facts_of(capsys, *train_arguments(team, "--overwrite"))
    again = cl.Run.load(team.run)
    for name in ("classes", "splits", "options", "sha256", "comparison", "label_diameter"):
        assert printed[name] == as_json({name: getattr(run.facts, name)})[name]
    assert (printed["run"], printed["test_scores"]) == (str(team.run), {})  # no official test
    assert run.test_scores() == again.test_scores()

    other = team.folder / "other"
    shutil.copytree(team.run, other)
    printed = facts_of(capsys, "certify", other, "--max-error", "0.9", "--set-coverage", "0.5")
    certified = again.certify(max_error=0.9, set_coverage=0.5)
    assert printed == as_json({"warnings": [], **certified.facts}) | {"run": str(other)}
    promised = present(certified.guarantee).sentence()
    assert (printed["guarantee"]["sentence"], printed["sets"]["coverage"]) == (promised, 0.5)

    decisions = again.predict(team.features, team.folder / "decisions.csv")
    printed = facts_of(capsys, "predict", team.run, team.features, "-o", decisions.output)
    assert {name: printed[name] for name in printed if name != "warnings"} == as_json(
        {name: getattr(decisions, name) for name in printed if name != "warnings"}
    )
    assert printed["made_by"] == {
        "run": str(team.run),
        "created": again.facts.created,
        "predictions_sha256": again.facts.sha256["predictions"],
        "threshold": None,
        "guarantee": promised,
        "kept": present(again.guarantee).coverage,
        "set_coverage": 0.5,
    }
    options = {"threshold": 0.0, "limit": 3}
    tasks = again.defer(team.features, team.folder / "tasks.json", **options)
    given = ("-o", tasks.output, "--threshold", "0", "--limit", "3")
    printed = facts_of(capsys, "defer", team.run, team.features, *given)
    assert printed["written"] == tasks.written == len(tasks.to_polars()) == 3
    assert facts_of(capsys, "report", team.run)["path"] == str(again.report().path)


WRONG: dict[str, tuple[tuple[str, ...], Callable[[Team, cl.Run], Any]]] = {
    "inspect": (
        ("{votes}", "--merge-conflicts", "latest"),
        lambda team, run: cl.read_annotations(team.votes, merge_conflicts="latest"),
    ),
    "train": (
        ("{votes}", "--features", "{features}", "--test", "missing.csv", "-o", "{folder}/new"),
        lambda team, run: cl.Dataset(
            cl.read_annotations(team.votes), features=team.features, test="missing.csv"
        ),
    ),
    "certify": (("{run}", "--confidence", "95"), lambda team, run: run.certify(confidence=95.0)),
    "predict": (
        ("{run}", "{features}", "-o", "{folder}/d.csv", "--threshold", "2"),
        lambda team, run: run.predict(team.features, threshold=2.0),
    ),
    "defer": (
        ("{run}", "{features}", "-o", "{folder}/t.csv", "--to", "prodigy"),
        lambda team, run: run.defer(team.features, "t.csv", to="prodigy"),
    ),
    "recalibrate": (
        ("{run}", "{votes}", "-o", "{folder}/new", "--random-state", "-1"),
        lambda team, run: run.recalibrate(team.votes, "new", random_state=-1),
    ),
    "export": (("{run}", "--onnx", "{votes}"), lambda team, run: run.export(onnx=team.votes)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values_get_the_same_message(
    name: str, team: Team, run: cl.Run, capsys: Capture
) -> None:
    arguments, call = WRONG[name]
    places = {each: getattr(team, each) for each in ("folder", "votes", "features", "run")}
    done = in_process(capsys, name, *(each.format(**places) for each in arguments))
    assert done.code == 2
    flags = inspect.signature(command(COMMANDS[name])).parameters
    with pytest.raises(cl.CredalError) as refused:
        call(team, run)
    assert done.err == f"credalearn: {_as_flags(str(refused.value), flags)}\n"
