"""Our settings for few votes: families, patterns, and what is trained side by side."""

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch

from credalearn import CredalError
from credalearn.labels.votes import VoteRule
from credalearn_experiments.data import TASKS
from credalearn_experiments.records import Record
from credalearn_experiments.results.vote_tables import default_family
from credalearn_experiments.running.place import Place
from credalearn_experiments.running.runs import Run, plan
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.work import claim, work
from credalearn_experiments.settings import Annotators, Votes
from credalearn_experiments.settings.catalog import (
    ALL_SETTINGS,
    by_family,
    family_of,
    settings_named,
    spelled_out,
)
from credalearn_experiments.settings.costs import gpu_minutes, trainings
from credalearn_experiments.settings.paper import SETTINGS
from credalearn_experiments.settings.votes import BASELINE, FAMILIES, VOTE_SETTINGS, Family
from tiny_data import write_tiny_data

FEATURES = "cifar10h-features-votes"


def test_a_family_has_a_setting_for_each_number_and_rule() -> None:
    names = {name for name in VOTE_SETTINGS if name.startswith("cifar10h-votes-")}
    rules = ("precise", "relax", "relax-ties", "idm", "clopper-pearson")
    assert names == {
        f"cifar10h-votes-{k}-{r}" for k in ("1", "2", "3", "5", "10", "all") for r in rules
    }
    setting = VOTE_SETTINGS["cifar10h-votes-10-idm"]
    assert setting.labels == Votes(10, "idm")
    assert VOTE_SETTINGS["cifar10h-votes-all-relax"].labels == Votes(None, "relax")
    assert (setting.task, setting.backbone, setting.augment) == ("cifar10h-voted", "resnet18", True)
    assert setting.recipe == SETTINGS["cifar10h"].recipe
    assert (setting.methods, setting.seeds) == (("pocc",), (1, 2, 3))
    assert VOTE_SETTINGS["cifar10h-votes-1-precise"].methods == ("softmax",)
    assert {name for name in VOTE_SETTINGS if name.startswith("cifar10n-votes-")} == {
        f"cifar10n-votes-3-{rule}" for rule in rules
    }


@pytest.mark.parametrize("name", [FEATURES, "lidc-votes"])
def test_on_features_more_rules_are_tried_without_a_gpu(name: str) -> None:
    family = FAMILIES[name]
    assert {*FAMILIES["cifar10h-votes"].rules} < {*family.rules} < {*get_args(VoteRule)}
    for setting in family.settings:
        assert isinstance(setting.labels, Votes)
        center = setting.labels.rule in ("relax-ties", "idm")
        assert ("pocc-center" in setting.methods) == center
        assert ("pocc-mean" in setting.methods) == (setting.labels.rule == "relax-ties")
        assert (setting.backbone, setting.augment, len(setting.seeds)) == ("mlp", False, 10)
    assert len({setting.recipe for setting in family.settings}) == 1  # the same for every rule


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_what_its_rules_are_held_against(family: str) -> None:
    rule, method = BASELINE
    assert method in FAMILIES[family].rules[rule]
    for setting in FAMILIES[family].settings:
        assert family_of(setting.name) == family
        assert setting.published is None
        assert setting.task in TASKS
        for method in ("pocc-center", "softmax"):  # may be asked for under every rule
            assert setting.narrowed(methods=(method,)).methods == (method,)


def test_families_are_looked_up_without_making_their_settings_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def again(_: Family) -> None:
        raise AssertionError

    named = [setting.name for family in FAMILIES.values() for setting in family.settings]
    monkeypatch.setattr(Family, "settings", property(again))
    assert set(map(family_of, named)) == set(FAMILIES)
    record = Record(setting=named[-1], method="pocc", seed=1, metrics={"accuracy": 0.9})
    assert default_family([record]) == "lidc-votes"


def test_a_setting_of_a_plugin_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name: a family's tables have no column for it."""
    own = replace(VOTE_SETTINGS["lidc-votes-3-idm"], name="lidc-votes-4-idm")
    monkeypatch.setitem(ALL_SETTINGS, own.name, own)
    assert family_of(own.name) is None
    assert by_family([own.name, "lidc-votes-3-idm"]) == [own.name, "lidc-votes-K-RULE"]


def test_every_method_is_compared_at_equal_coverage() -> None:
    for name, seeds in (("cifar10h-voted", 3), ("cifar10h-features", 10)):
        setting = VOTE_SETTINGS[name]
        assert setting.labels == Annotators()
        assert set(setting.methods) == {*SETTINGS["cifar10h"].methods, "pocc-center", "softmax"}
        assert len(setting.seeds) == seeds
        assert family_of(name) is None


def test_names_and_json_are_told_apart() -> None:
    assert not SETTINGS.keys() & VOTE_SETTINGS.keys()
    texts = {json.dumps(setting.as_plain(), sort_keys=True) for setting in ALL_SETTINGS.values()}
    assert len(texts) == len(ALL_SETTINGS)
    asked = VOTE_SETTINGS["cifar10h-votes-3-idm"].as_plain()["labels"]
    assert asked == {"kind": "votes", "number": 3, "rule": "idm"}


def test_costs_are_known_where_a_gpu_is_needed() -> None:
    one = VOTE_SETTINGS["cifar10h-votes-3-idm"]
    assert trainings(one) == 3
    assert gpu_minutes(one) == pytest.approx(3 * 150 * 8_000 / 51_000 / 60)
    assert gpu_minutes(VOTE_SETTINGS["cifar10h-features"]) == 0


def test_patterns_stand_for_several_settings() -> None:
    found = [setting.name for setting in settings_named(["cifar10h-votes-3-*", "cifar10h"])]
    rules = ("precise", "relax", "relax-ties", "idm", "clopper-pearson")
    assert found == [*(f"cifar10h-votes-3-{rule}" for rule in rules), "cifar10h"]
    assert len(settings_named(["*", "cifar10h"])) == len(ALL_SETTINGS)  # each once
    assert [each.name for each in settings_named(["cifar10h-votes-?-idm"])] == [
        f"cifar10h-votes-{number}-idm" for number in (1, 2, 3, 5)
    ]
    with pytest.raises(CredalError, match=r"no setting fits 'mnist\*'. To fix: see"):
        settings_named(["mnist*"])
    assert spelled_out(["x"], []) == ["x"]


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("cifar10h-votes-4-idm", "; close are cifar10h-votes-1-idm, "),
        ("CIFAR10-H", "; close are cifar10h. "),
        ("miceb?n", "; close are micebone. "),
        ("mice", "; close are micebone, micebone-collapsed. "),
        ("nonsense", ". "),
    ],
)
def test_an_unknown_name_is_told_with_the_few_that_are_close(name: str, close: str) -> None:
    with pytest.raises(CredalError) as error:
        settings_named([name])
    words = "no setting fits {!r}" if "?" in name else "setting {!r} is unknown"
    assert str(error.value).startswith(words.format(name) + close)
    assert str(error.value).endswith("To fix: see `credalearn-experiments list --all`.")
    assert len(str(error.value)) < 220  # of 33 names and 120 more five are told


# Side by side.


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_tiny_data(folder, items=20)
    return folder


@pytest.fixture(autouse=True)
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDALEARN_UNVERIFIED", "1")


def rehearsal(*patterns: str, seeds: tuple[int, ...] = (1,), limit: int | None = 8) -> list[Run]:
    settings = [each.narrowed(epochs=1, seeds=seeds) for each in settings_named(patterns)]
    return plan(settings, limit=limit)


def test_trainings_of_several_settings_go_side_by_side(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = rehearsal("cifar10h-votes-3-*", "cifar10n-votes-3-*", seeds=(1, 2))
    claims, waiting = claim(store, runs, 12)
    assert not waiting
    assert [run.name for run in claims] == [run.name for run in runs[:12]]
    assert {run.setting.task for run in claims} == {"cifar10h-voted"}
    assert len({run.setting.name for run in claims}) == 5
    # Others take what is left: nothing twice, and never another task's.
    more, waiting = claim(store, runs, 8)
    assert waiting
    assert {run.setting.task for run in more} == {"cifar10n"}
    for lock in (*claims.values(), *more.values()):
        lock.release()


@pytest.mark.parametrize(
    "change",
    [
        {"task": "cifar10n"},
        {"backbone": "wrn-28-4"},
        {"augment": False},
        {"image_size": 64},
        {"foreign": ("svhn",)},
        {"pretrained": True},
        {"recipe": replace(SETTINGS["cifar10h"].recipe, epochs=7)},
    ],
)
def test_what_differs_otherwise_is_not_trained_beside(change: dict[str, object]) -> None:
    setting = VOTE_SETTINGS["cifar10h-votes-3-idm"]
    run = Run(setting, "pocc", 1, limit=4)
    other = Run(replace(setting, name="other", **change), "pocc", 1, limit=4)  # type: ignore[arg-type]
    assert run.surroundings != other.surroundings
    assert run.surroundings != replace(run, limit=5).surroundings
    assert run.surroundings != replace(run, weights="file").surroundings
    seeded = replace(
        setting, recipe=replace(setting.recipe, random_state=9), labels=Votes(1, "relax")
    )
    assert run.surroundings == Run(seeded, "softmax", 2, limit=4).surroundings


def test_a_group_is_trained_each_with_its_own_labels(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, four at once; each ends as it would alone."""
    runs = rehearsal(f"{FEATURES}-1-precise", f"{FEATURES}-1-relax", f"{FEATURES}-all-relax")
    together, alone = (
        Place(tmp_path / name, (data,), device="cpu", verbose=False) for name in "ab"
    )
    bench = together.bench()
    assert len({run.surroundings for run in runs}) == 1
    assert bench.train(runs) == runs
    kept = {run.name for run in bench._networks}
    assert kept == {run.name for run in runs if run.method in ("softmax", "pocc")}
    work(alone.bench(), runs)
    for run in runs:
        one, two = (
            Store(place.store).tensors(run, "model.safetensors") for place in (together, alone)
        )
        assert all(torch.equal(one[name], two[name]) for name in one)
    # Networks of settings that are done with are let go.
    next_run, _ = rehearsal(f"{FEATURES}-2-precise")
    bench.train([next_run])
    assert {run.setting.name for run in bench._networks} == {f"{FEATURES}-2-precise"}


def test_labels_are_kept_by_seed_where_votes_are_drawn(data: Path, tmp_path: Path) -> None:
    bench = Place(tmp_path, (data,), device="cpu", verbose=False).bench()
    one, two, *_ = rehearsal(f"{FEATURES}-1-precise", seeds=(1, 2), limit=None)
    assert not torch.equal(bench.labels(one).lower, bench.labels(two).lower)
    assert bench.labels(one) is bench.labels(one)
    one, two, *_ = rehearsal(f"{FEATURES}-all-precise", seeds=(1, 2), limit=None)
    assert bench.labels(one) is bench.labels(two)
    # The same people were asked for both rules.
    (relaxed,) = (
        run for run in rehearsal(f"{FEATURES}-3-relax", limit=None) if run.method == "pocc"
    )
    precise, _ = rehearsal(f"{FEATURES}-3-precise", limit=None)
    assert torch.equal(bench.labels(relaxed).reference, bench.labels(precise).reference)
