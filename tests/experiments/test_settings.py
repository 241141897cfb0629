"""Settings of the paper and ours: recipes, families, names, members and costs."""

import dataclasses
import json
from collections.abc import Callable
from typing import get_args

import pytest

from credalearn import CredalError
from credalearn.labels.votes import VoteRule
from credalearn_experiments.data import TASKS
from credalearn_experiments.results.paper import published
from credalearn_experiments.settings import Votes
from credalearn_experiments.settings.catalog import (
    ALL_SETTINGS,
    BASELINE,
    FAMILIES,
    FAMILY_OF,
    settings_named,
)
from credalearn_experiments.settings.paper import FOREIGN_SETS, PAPER, SETTINGS

OUR_EPOCHS = {
    "cifar10h-warm": 150,
    "cifar10h-cutmix": 130,
    "cifar10h-long": 260,
    "cifar10n": 130,
    "cifar10n-collapsed": 130,
    "cifar10n-centered": 130,
    "cifar10n-network": 40,
}


def test_every_published_setting_is_there_once() -> None:
    assert PAPER.keys() == {row.setting for row in published()}
    assert SETTINGS.keys() == PAPER.keys() | OUR_EPOCHS.keys()
    assert len(SETTINGS) == 33


@pytest.mark.parametrize("name", PAPER)
def test_a_setting_has_the_methods_that_the_paper_prints_for_it(name: str) -> None:
    setting = PAPER[name]
    rows = [row for row in published() if row.setting == name]
    assert set(setting.methods) == {row.method for row in rows}
    foreign = any(row.metric.startswith("OOD") for row in rows)
    assert setting.foreign == (FOREIGN_SETS if foreign else ())
    assert setting.seeds == tuple(range(1, 11))


def test_the_recipes_are_those_of_the_paper() -> None:
    # Network, size, pretrained, epochs, optimizer, learning rate and epochs of warm-up.
    photos = ("torchvision:densenet121", 224, True, 60, "adam", 0.00001, 0)
    expected = {
        "cifar10h": ("resnet18", 32, False, 150, "sgd", 0.1, 0),
        "cifar10": ("resnet18", 32, False, 200, "sgd", 0.1, 0),
        "cifar100": ("wrn-28-4", 32, False, 200, "sgd", 0.1, 5),
        "micebone": photos,
        "treeversity": photos,
    }
    for setting in SETTINGS.values():
        recipe = setting.recipe
        assert (recipe.batch_size, recipe.weight_decay) == (128, 0.0005)
        found = (
            *(setting.backbone, setting.image_size, setting.pretrained, recipe.epochs),
            *(recipe.optimizer, recipe.learning_rate, recipe.warmup_epochs),
        )
        warm = ("resnet18", 32, False, OUR_EPOCHS.get(setting.name), "sgd", 0.1, 5)
        assert found == (expected[setting.task] if setting.name in PAPER else warm)


def test_rejects_methods_and_mixing_that_could_not_run() -> None:
    few = ALL_SETTINGS["cifar10h-votes-3-precise"]
    wrong: dict[str, Callable[[], object]] = {
        "a method of setting .*; got 'pok'": lambda: few.narrowed(methods=("pok",)),
        "'credal-bounds' would learn from d": lambda: few.narrowed(methods=("credal-bounds",)),
        "mix must be one of 'none', 'mixup'": lambda: dataclasses.replace(few, mix="both"),  # type: ignore[arg-type]
        "would learn from different votes": lambda: few.narrowed(methods=("deep-ensemble",)),
    }
    for message, make in wrong.items():
        with pytest.raises(CredalError, match=message):
            make()


def test_narrowing_changes_only_the_request() -> None:
    setting = SETTINGS["cifar100-smooth-0.1"]
    assert setting.narrowed() == setting
    short = setting.narrowed(epochs=3, seeds=(2,), methods=("pocc",))
    assert (short.recipe.epochs, short.recipe.warmup_epochs) == (3, 3)
    assert (short.seeds, short.methods) == ((2,), ("pocc",))
    assert setting.narrowed(epochs=10).recipe.warmup_epochs == 5


def test_plain_json_identifies_a_setting_without_its_methods_and_seeds() -> None:
    texts = {json.dumps(each.as_plain(), sort_keys=True) for each in ALL_SETTINGS.values()}
    assert len(texts) == len(ALL_SETTINGS)
    setting = SETTINGS["cifar10h"]
    assert setting.narrowed(seeds=(3,), methods=("edl",)).as_plain() == setting.as_plain()
    assert setting.narrowed(epochs=1).as_plain() != setting.as_plain()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_a_setting_for_each_number_and_rule(name: str) -> None:
    family = FAMILIES[name]
    rule, method = BASELINE
    assert method in family.rules[rule]
    assert set(family.rules) < set(get_args(VoteRule))
    assert len(family.settings) == len(family.numbers) * len(family.rules)
    for setting in family.settings:
        assert ALL_SETTINGS[setting.name] == setting
        assert FAMILY_OF[setting.name] == name
        assert setting.recipe == family.base.recipe
        assert setting.task in TASKS
        assert isinstance(setting.labels, Votes)
        number = "all" if setting.labels.number is None else setting.labels.number
        assert setting.name == f"{name}-{number}-{setting.labels.rule}"


def test_patterns_stand_for_several_settings() -> None:
    found = [setting.name for setting in settings_named(["cifar10h-votes-?-idm", "cifar10h"])]
    assert found == [*(f"cifar10h-votes-{number}-idm" for number in (1, 2, 3, 5)), "cifar10h"]
    assert len(settings_named(["*", "cifar10h"])) == len(ALL_SETTINGS)  # each once
