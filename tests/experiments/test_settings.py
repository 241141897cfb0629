"""The paper's settings, their trainings and what they cost."""

import dataclasses
import json
from collections import Counter

import pytest

from credalearn import CredalError
from credalearn.methods import BASES, METHODS
from credalearn.train import Recipe
from credalearn_experiments import published
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS, family_of, setting_named
from credalearn_experiments.settings.costs import (
    IMAGES_PER_SECOND,
    TRAINING_IMAGES,
    cost_lines,
    gpu_minutes,
    member_seeds,
    networks,
    trainings,
)
from credalearn_experiments.settings.paper import (
    FIVE,
    FOREIGN_SETS,
    PAPER_METHODS,
    SETTINGS,
    SEVEN,
    Annotators,
    Smoothing,
    Teacher,
)
from credalearn_experiments.settings.votes import FAMILIES


def test_every_published_setting_is_ours_exactly_once() -> None:
    wanted = {(row.dataset, row.supervision, row.setting) for row in published()}
    ours = Counter(setting.published for setting in SETTINGS.values())
    assert ours.pop(None) == 1  # cifar10h-warm
    assert set(ours) == wanted
    assert set(ours.values()) == {1}
    plain = [setting for setting in SETTINGS.values() if setting.published is not None]
    assert sum(not setting.collapsed for setting in plain) == 23
    assert sum(setting.collapsed for setting in plain) == 3


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_has_the_methods_that_the_paper_prints_for_it(name: str) -> None:
    setting = SETTINGS[name]
    assert setting.name == name
    if setting.published is None:
        return
    dataset, supervision, column = setting.published
    rows = published(dataset=dataset, supervision=supervision, setting=column)
    printed = {row.method for row in rows}
    assert {PAPER_METHODS[method] for method in setting.methods} == printed
    foreign = {row.metric for row in rows if row.metric.startswith("OOD")}
    assert bool(setting.foreign) == bool(foreign)
    assert setting.seeds == tuple(range(1, 11))


def test_names_are_those_of_the_results() -> None:
    assert list(SETTINGS)[:4] == [
        *("cifar10h", "micebone", "treeversity"),
        "cifar10-teacher-resnet20-2.5",
    ]
    promised = """cifar10h-collapsed micebone-collapsed treeversity-collapsed cifar10h-warm
        cifar10-smooth-0.05 cifar100-smooth-0.2 cifar100-teacher-mobilenetv2-1
        cifar10-teacher-shufflenetv2-2.5"""
    assert set(promised.split()) <= set(SETTINGS)
    assert len(SETTINGS) == 27
    assert setting_named("cifar10h") is SETTINGS["cifar10h"]
    with pytest.raises(CredalError, match=r"'cifar' is unknown; close are cifar10h, .*\. To fix"):
        setting_named("cifar")


def test_the_recipes_are_the_papers() -> None:
    at_32 = Recipe(
        epochs=200,
        batch_size=128,
        optimizer="sgd",
        learning_rate=0.1,
        momentum=0.9,
        weight_decay=0.0005,
        schedule="cosine",
    )
    at_224 = Recipe(
        epochs=60,
        batch_size=128,
        optimizer="adam",
        learning_rate=0.00001,
        weight_decay=0.0005,
        schedule="constant",
    )
    hundred = dataclasses.replace(
        at_32, warmup_epochs=5, warmup_start=0.001, final_learning_rate=0.000001
    )
    expected = {
        "cifar10h": ("resnet18", 32, False, dataclasses.replace(at_32, epochs=150)),
        "cifar10": ("resnet18", 32, False, at_32),
        "cifar100": ("wrn-28-4", 32, False, hundred),
        "micebone": ("torchvision:densenet121", 224, True, at_224),
        "treeversity": ("torchvision:densenet121", 224, True, at_224),
    }
    for setting in SETTINGS.values():
        if setting.name == "cifar10h-warm":
            continue
        found = (setting.backbone, setting.image_size, setting.pretrained, setting.recipe)
        assert found == expected[setting.task], setting.name


def test_what_makes_the_labels() -> None:
    assert SETTINGS["micebone"].labels == Annotators()
    assert SETTINGS["cifar100-smooth-0.15"].labels == Smoothing(0.15)
    assert SETTINGS["cifar10-teacher-mobilenetv2-1"].labels == Teacher("mobilenetv2", 1.0)
    assert SETTINGS["cifar10h-collapsed"].collapsed
    assert sum(setting.collapsed for setting in SETTINGS.values()) == 3
    with pytest.raises(CredalError, match=r"epsilon must lie in \(0, 1\); got 1.5"):
        Smoothing(1.5)
    with pytest.raises(CredalError, match=r"epsilon must lie in \(0, 1\); got 'x'"):
        Smoothing("x")  # type: ignore[arg-type]
    with pytest.raises(CredalError, match=r"teacher must be one of 'resnet20', .*; got 'vgg'"):
        Teacher("vgg", 1.0)
    for temperature in (0, float("inf"), "x"):
        said = f"temperature must be a finite number above 0; got {temperature!r}. To fix"
        with pytest.raises(CredalError, match=said):
            Teacher("resnet20", temperature)  # type: ignore[arg-type]


def test_the_warm_setting_is_cifar10h_but_for_its_start() -> None:
    warm, plain = SETTINGS["cifar10h-warm"], SETTINGS["cifar10h"]
    assert warm.recipe.warmup_epochs == 5
    assert warm.methods == (*plain.methods, "pocc-mean", "pocc-center", "softmax")
    assert warm.seeds == (1, 2, 3, 4, 5)
    same = dataclasses.replace(
        warm,
        **{
            name: getattr(plain, name)
            for name in ("name", "recipe", "methods", "seeds", "published")
        },
    )
    assert same == plain


def test_foreign_sets_belong_to_three_settings_of_the_paper() -> None:
    names = ("cifar10h", "cifar10-teacher-resnet20-2.5", "cifar10-smooth-0.05")
    for name, setting in SETTINGS.items():
        has = name in names or name == "cifar10h-warm"
        assert setting.foreign == (FOREIGN_SETS if has else ())
        assert ("pocc-ensemble" in setting.methods) == has


def test_narrowing_changes_what_is_asked_and_nothing_else() -> None:
    setting = SETTINGS["cifar100-smooth-0.1"]
    assert setting.narrowed() == setting
    short = setting.narrowed(epochs=3, seeds=(2,), methods=("pocc",))
    assert (short.recipe.epochs, short.recipe.warmup_epochs) == (3, 3)
    assert setting.narrowed(epochs=10).recipe.warmup_epochs == 5
    assert (short.seeds, short.methods) == ((2,), ("pocc",))
    assert short.narrowed(epochs=200, seeds=setting.seeds, methods=SEVEN).recipe.epochs == 200
    with pytest.raises(CredalError, match=r"'pok' of setting .* is unknown\. To fix: take"):
        SETTINGS["cifar10h"].narrowed(methods=("pok",))
    with pytest.raises(CredalError, match=r"one method or more, each once; got \['edl', 'edl'\]"):
        SETTINGS["cifar10h"].narrowed(methods=("edl", "edl"))
    for seeds in ((), (1, 1), (0,)):
        with pytest.raises(CredalError, match="one seed or more, whole numbers from 1, each once"):
            SETTINGS["cifar10h"].narrowed(seeds=seeds)
    with pytest.raises(CredalError, match="epochs must be 1 or more; got 0"):
        SETTINGS["cifar10h"].narrowed(epochs=0)


def test_plain_json_tells_settings_apart_and_not_what_is_asked_beside() -> None:
    texts = {
        name: json.dumps(setting.as_plain(), sort_keys=True) for name, setting in SETTINGS.items()
    }
    assert len(set(texts.values())) == len(SETTINGS)
    setting = SETTINGS["cifar10h"]
    assert setting.narrowed(seeds=(3,), methods=("edl",)).as_plain() == setting.as_plain()
    seeded = dataclasses.replace(
        setting, recipe=dataclasses.replace(setting.recipe, random_state=7)
    )
    assert seeded.as_plain() == setting.as_plain()
    assert setting.narrowed(epochs=1).as_plain() != setting.as_plain()
    assert json.loads(texts["cifar10h"]) == setting.as_plain()


def test_members_by_hand() -> None:
    ten = tuple(range(1, 11))
    for method in METHODS:
        alone = method not in BASES or METHODS[method].num_members == 1
        for seed in ten:
            members = member_seeds(method, seed, ten)
            assert members[0] == seed
            assert len(set(members)) == (1 if alone else 5)
    assert member_seeds("deep-ensemble", 10, ten) == (10, 11, 12, 13, 14)
    assert member_seeds("pocc-ensemble", 10, ten) == (10, 1, 2, 3, 4)
    assert member_seeds("pocc-ensemble", 3, ten, independent=True) == (300, 301, 302, 303, 304)
    # Of five seeds, wrapped round, every ensemble would be the same.
    assert member_seeds("pocc-ensemble", 3, (1, 2, 3, 4, 5)) == (3, 4, 5, 6, 7)
    assert member_seeds("pocc-ensemble", 30, ten) == (30, 31, 32, 33, 34)


def test_independent_ensembles_share_no_network() -> None:
    for method in ("deep-ensemble", "pocc-ensemble"):
        members = [m for seed in range(1, 11) for m in member_seeds(method, seed, (), True)]
        assert len(set(members)) == 50
        assert not set(members) & set(range(1, 11))


def test_trainings_by_hand() -> None:
    setting = SETTINGS["cifar10h"]
    by_method = Counter(method for method, _ in networks(setting))
    assert by_method == {"edl": 10, "dappr": 10, "pocc": 10, "mc-dropout": 10, "softmax": 14}
    # 10 softmax for the two post-hoc methods, 50 for deep ensembles, 50 for ensembles of POCC.
    assert trainings(setting, independent=True) == 40 + 10 + 50 + 50
    assert trainings(SETTINGS["micebone"]) == 30 + 14
    # Softmax and POCC have four more.
    assert trainings(SETTINGS["cifar10h-warm"]) == 5 * 5 + (5 + 4) * 2
    one = setting.narrowed(seeds=(9,), methods=("pocc-ensemble",))
    assert networks(one) == tuple(("pocc", seed) for seed in (9, 10, 1, 2, 3))


def test_costs_by_hand() -> None:
    def minutes(setting: Setting, independent: bool = False) -> float:
        found = gpu_minutes(setting, independent)
        assert found is not None
        return found

    smooth = SETTINGS["cifar10-smooth-0.05"]
    assert minutes(smooth) == pytest.approx(54 * 200 * 48_000 / 51_000 / 60)
    whole = minutes(SETTINGS["cifar10h"])
    assert whole < 30
    assert minutes(SETTINGS["cifar10h"].narrowed(epochs=15)) == pytest.approx(whole / 10)
    for setting in SETTINGS.values():
        assert setting.backbone in IMAGES_PER_SECOND
        assert setting.task in TRAINING_IMAGES
        assert 0 < minutes(setting) < minutes(setting, independent=True)
    assert gpu_minutes(dataclasses.replace(SETTINGS["cifar10h"], backbone="mlp")) == 0
    assert gpu_minutes(dataclasses.replace(SETTINGS["cifar10h"], backbone="mine")) is None
    assert gpu_minutes(dataclasses.replace(SETTINGS["cifar10h"], task="mine")) is None


def test_the_lines_of_costs_add_up() -> None:
    known = list(ALL_SETTINGS.values())
    each, folded = cost_lines(known), cost_lines(known, by_family=True)
    assert [line.name for line in each] == list(ALL_SETTINGS)
    assert [(line.settings, line.minutes) for line in each] == [
        (1, gpu_minutes(setting)) for setting in known
    ]
    assert len(folded) == len([name for name in ALL_SETTINGS if family_of(name) is None]) + len(
        FAMILIES
    )
    for name, family in FAMILIES.items():
        (line,) = (line for line in folded if line.name == f"{name}-K-RULE")
        inside = [line for line in each if family_of(line.name) == name]
        assert line.settings == len(inside) == len(family.settings)
        assert line.trainings == sum(part.trainings for part in inside)
        assert line.minutes == pytest.approx(sum(part.minutes or 0 for part in inside))
    assert sum(line.trainings for line in folded) == sum(line.trainings for line in each)
    (own,) = cost_lines([SETTINGS["cifar10h"]], independent=True)
    assert own.trainings == 150
    unknown = dataclasses.replace(SETTINGS["cifar10h"], task="mine")
    assert cost_lines([unknown])[0].minutes is None


def test_five_are_the_seven_without_two() -> None:
    assert set(SEVEN) - set(FIVE) == {"laplace-bridge", "mc-dropout"}
    assert set(PAPER_METHODS) <= set(METHODS)
