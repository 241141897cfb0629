"""Statements of people as sets: the rules for contradictions, and several people per item."""

import gzip
import json
from typing import Any

import pandas
import pytest
import torch
from torch.testing import assert_close

import credalearn as cl
from tiny_data import real_data

CLASSES = ["cat", "dog", "fox", "ship"]
NAN = float("nan")
REST = ["fox", "ship"]


@pytest.mark.parametrize(
    ("statement", "lower", "upper", "conflict"),
    [
        (("cat", 70, "dog", 20, ["ship"]), [0.7, 0.2, 0, 0], [0.8, 0.3, 0.1, 0], None),
        (("cat", 70, None, NAN, []), [0.7, 0, 0, 0], [1, 0.3, 0.3, 0.3], None),
        (("", NAN, None, NAN, ["ship"]), [0, 0, 0, 0], [1, 1, 1, 0], None),
        (("cat", 60, "cat", 30, ["ship"]), [0.6, 0, 0, 0], [1, 0.4, 0.4, 0], "second is top"),
        (("cat", 20, "dog", 50, ["ship"]), [0.2, 0.5, 0, 0], [0.5, 0.8, 0.3, 0], "second is larg"),
        (("cat", 50, "dog", 10, ["dog"]), [0.5, 0.1, 0, 0], [0.9, 0.5, 0.4, 0.4], "named but"),
        (("cat", 90, "dog", 30, []), [0.75, 0.25, 0, 0], [0.75, 0.25, 0, 0], "above 100"),
        (("cat", 60, "dog", 20, REST), [0.75, 0.25, 0, 0], [0.75, 0.25, 0, 0], "no other class"),
        (("cat", 0, "dog", 0, REST), [0, 0, 0, 0], [1, 1, 0, 0], "no other class"),
    ],
)
def test_statement_is_an_interval_set(
    statement: tuple[Any, ...], lower: list[float], upper: list[float], conflict: str | None
) -> None:
    columns = [[each] for each in statement]
    sets = cl.from_statements(*columns, classes=CLASSES)
    assert isinstance(sets, cl.Intervals)
    assert_close(sets.lower, torch.tensor([lower]).float())
    assert_close(sets.upper, torch.tensor([upper]).float())
    top, top_percent, second, second_percent, impossible = columns
    others = {"second": second, "second_percent": second_percent, "impossible": impossible}
    counted = cl.statement_conflicts(top, top_percent, **others, classes=CLASSES)
    found = [kind for kind, count in counted.items() if count]
    assert len(found) == (conflict is not None)
    assert all(kind.startswith(str(conflict)) for kind in found)


def test_the_loss_of_several_people_is_the_mean_of_their_losses(generator: torch.Generator) -> None:
    columns: list[Any] = [
        ["cat", "dog", "cat"],
        [70, 90, 50],
        ["dog", None, "fox"],
        [20, NAN, 30],
        [["ship"], [], ["ship"]],
    ]
    together = cl.from_statements(*columns, classes=CLASSES, items=[1, 0, 1])
    alone = cl.from_statements(*columns, classes=CLASSES)
    assert isinstance(together, cl.MeanIntervals)
    cost = torch.randn(2, 4, generator=generator)
    for worst_or_best in ("worst", "best"):
        own = getattr(alone, worst_or_best)(cost[[1, 0, 1]])
        expected = torch.stack([own[1], (own[0] + own[2]) / 2])
        assert_close(getattr(together, worst_or_best)(cost), expected)
    first, second = (torch.randn(2, 4, generator=generator) for _ in range(2))
    people = [cl.pocc_loss(first[[1]], second[[1]], alone[row]) for row in (0, 2)]
    assert_close(cl.pocc_loss(first[[1]], second[[1]], together[1]), (people[0] + people[1]) / 2)


def test_one_statement_per_item_gives_intervals_in_the_order_of_the_items() -> None:
    sets = cl.from_statements(["cat", "dog"], [60, 80], classes=CLASSES, items=[1, 0])
    assert isinstance(sets, cl.Intervals)
    assert_close(sets.lower, torch.tensor([[0, 0.8, 0, 0], [0.6, 0, 0, 0]]))


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ((["cow"], [50]), {}, "names the class 'cow'.* To fix: correct it"),
        ((["cat"], [150]), {}, "top_percent must lie between 0 and 100; row 0 has"),
        ((["cat", "dog"], [0.7, 0.5]), {}, "no percentage is above 1. To fix: multiply"),
        ((["cat"], [50, 60]), {}, "one number per statement, 1; got 2"),
        ((["cat"], [50], ["dog", "fox"]), {}, "one entry for each of the 1 statements; got 2"),
        ((["cat", "dog"], [50, 50]), {"items": [0, 2]}, "from 0 on without gaps"),
        (([None], [NAN], None, None, [CLASSES]), {}, "must leave a class possible"),
        (("cat", [50]), {}, r"top must be a list of classes; got 'cat'\. To fix: pass \['cat'\]"),
        ((["cat"], [50], None, None, ["dog"]), {}, r"impossible .* got 'dog'\. .* \['dog'\]"),
    ],
)
def test_rejects_bad_statements(columns: Any, options: Any, message: str) -> None:
    with pytest.raises(cl.CredalError, match=message):
        cl.from_statements(*columns, classes=CLASSES, **options)
    with pytest.raises(cl.CredalError, match="classes must be different"):
        cl.from_statements(["cat"], [50], classes=["cat", "cat"])


def test_missing_values_of_tables_state_nothing() -> None:
    named = pandas.Series(["cat", None], dtype="string")
    sets = cl.from_statements(named, [60, 0], impossible=[None, ["fox"]], classes=CLASSES)
    assert_close(sets.lower, torch.tensor([[0.6, 0, 0, 0], [0, 0, 0, 0]]))
    assert sets.upper[1].tolist() == [1, 1, 0, 1]


def test_rejects_bad_mean_intervals() -> None:
    box = torch.zeros(1, 2, 3), torch.ones(1, 2, 3)
    with pytest.raises(cl.CredalError, match=r"weight, .* shape \(1, 2\); got \(1, 1\)"):
        cl.MeanIntervals(*box, [[1.0]])
    with pytest.raises(cl.CredalError, match="one person of each item must have one above 0"):
        cl.MeanIntervals(*box, [[0.0, 0.0]])


def test_counts_the_contradictions_of_cifar10s() -> None:
    name = "cifar10s/human_soft_labels_data.json.gz"
    path = real_data(name).find(name, what="CIFAR-10S", get="see the message")
    with gzip.open(path, "rt") as file:
        stated = [person for people in json.load(file).values() for person in people]
    names = ("Most Probable Class", "Second Most Probable Class")
    columns: list[Any] = []
    for name in names:
        columns.append([None if each[name] == "No" else each[name] for each in stated])
        percents = [each[f"{name} Prob"] for each in stated]
        columns.append([NAN if each is None else each for each in percents])
    columns.append([each["Impossible Class(es)"] for each in stated])
    classes = sorted({name for names in columns[-1] for name in names})
    assert cl.statement_conflicts(*columns, classes=classes) == {
        "second is top": 153,
        "second is larger": 36,
        "named but impossible": 45,
        "above 100 %": 674,
        "no other class, below 100 %": 473,
    }
    assert len(cl.from_statements(*columns, classes=classes)) == 6723
