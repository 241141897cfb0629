"""Label rules by the number of votes, and one rule in every family with Holm's correction."""

import numpy as np
import pytest

from credalearn import CredalError
from credalearn_experiments.records import Record
from credalearn_experiments.results.votes import family_cells, holm, vote_table, votes_page
from credalearn_experiments.settings.catalog import FAMILIES
from fake_records import fake_records, one

FAMILY = "cifar10h-votes"


def family_records(family: str = FAMILY) -> list[Record]:
    return [record for each in FAMILIES[family].settings for record in fake_records(each.name)]


def test_notes_report_uneven_seeds() -> None:
    records = [r for r in family_records() if r.seed < 3 or "-all-" not in r.setting]
    seeds = str(votes_page(family_cells(records, FAMILY), FAMILY)[-1])
    start = "3 seeds of every run, but 2 seeds at all votes of softmax, precise; pocc, relax; "
    assert seeds.startswith(start)


def test_rejects_unknown_families_and_metrics() -> None:
    message = r"no record of the family .* run 'cifar10n-votes-\*'`"
    with pytest.raises(CredalError, match=message):
        family_cells(family_records(), "cifar10n-votes")
    with pytest.raises(CredalError, match=r"family must be one of 'cifar10h-votes', .*'x'"):
        family_cells(family_records(), "x")
    cells = family_cells([one(setting=f"{FAMILY}-1-idm")], FAMILY)
    with pytest.raises(CredalError, match=r"metric must be one of 'accuracy'; got 'human_gap'"):
        vote_table(cells, "human_gap", FAMILY)


def test_holm_adjusts_the_textbook_example() -> None:
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_holm_rarely_rejects_where_nothing_differs() -> None:
    draws = np.random.default_rng(0).random((2000, 17))
    rejected = [min(holm(dict(enumerate(row))).values()) < 0.05 for row in draws]  # type: ignore[arg-type]
    assert np.mean(rejected) == pytest.approx(0.05, abs=0.015)
