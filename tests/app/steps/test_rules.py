"""``inspect --rules``: which label rules held-out votes contradict, and one line of advice."""

from dataclasses import replace

import pytest

from credalearn import CredalError, read_annotations
from credalearn.app.nodules import load_nodules
from credalearn.app.steps.rules import RuleComparison, compare_rules
from credalearn.labels import VOTE_RULES
from credalearn.theory import RuleCoverage
from made_annotations import bounds_of, crowd, votes_of


def rule_of(name: str, **changes: float) -> RuleCoverage:
    plain = RuleCoverage(name, 100, 0.2, 0.97, 0.01, 1.0, 0.6, 0.7, 0.01, 2.0)
    return replace(plain, **changes)  # type: ignore[arg-type]


def comparison_of(*rules: RuleCoverage) -> RuleComparison:
    return RuleComparison(rules=rules, building=2, held_out=2, by_annotator=True, splits=20)


def test_rules_on_the_votes_of_radiologists() -> None:
    votes = read_annotations(load_nodules().votes, format="counts")
    found = compare_rules(votes, splits=5)
    rows = {row["rule"]: row for row in found.table().to_dicts()}
    assert list(rows) == list(VOTE_RULES)
    # Two radiologists who agree state 100 %; the next one agrees with them in less than half.
    assert rows["relax"]["stated"] == pytest.approx(0.734, abs=0.01)
    assert rows["relax"]["held_out"] == pytest.approx(0.433, abs=0.02)
    assert rows["relax"]["fails"] == "both"
    assert rows["idm"]["fails"] == "bound"
    assert rows["clopper-pearson"]["fails"] is None
    assert rows["total-variation"]["votes_needed"] is None  # nothing can reject a vacuous set
    assert not found.by_annotator
    assert found.advice().startswith("Too few votes to choose a rule: clopper-pearson is not ref")


def test_named_annotators_are_split_and_the_seed_decides() -> None:
    votes = votes_of(crowd(60))
    first, again, other = (compare_rules(votes, splits=4, random_state=k) for k in (0, 0, 1))
    assert first.by_annotator
    assert first.building + first.held_out == 4
    assert first.table().equals(again.table())
    assert not first.table().equals(other.table())
    lines = first.lines()
    assert lines[0].startswith("4 splits of annotators; votes per item: ")
    assert [line.split()[0] for line in lines[2:-1]] == list(VOTE_RULES)
    assert max(map(len, lines[:-1])) <= 100


def test_advises_the_smallest_unrefuted_sets() -> None:
    found = comparison_of(
        rule_of("relax", diameter=0.1, agree=0.90),
        rule_of("precise", diameter=0.0, stated=0.73),
        rule_of("idm", diameter=0.3),
        rule_of("hull", diameter=0.4, agree=0.99),
    )
    assert found.best is found.rules[2]
    assert [found.fails(each) for each in found.rules] == ["agree", "bound", "", ""]
    assert found.advice().startswith("Use idm: the smallest sets (mean diameter 0.300)")


def test_advice_says_when_votes_are_too_few() -> None:
    weak = comparison_of(rule_of("idm", testable=0.3)).advice()
    assert weak.endswith("Take care: the held-out votes could reject only 30 % of its sets.")
    few = comparison_of(rule_of("idm", testable=0.0, votes_needed=7.0)).advice()
    assert "could reject only 0 % of its sets; 7 held-out votes per item could" in few
    none = comparison_of(rule_of("relax", agree=0.8), rule_of("precise", agree=0.9)).advice()
    assert none.startswith("Held-out votes refute every rule; precise comes closest, with 90 %")


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (votes_of([("x", "a", "1"), ("y", "b", "2")]), "no item of votes.csv has two votes"),
        (votes_of(crowd(60), weight=0.5), "the weight 0.5"),
        (
            bounds_of(("x", "1", 0.4), ("x", "2", 0.4)),
            "label rules are made of votes; .* contains bounds",
        ),
    ],
)
def test_votes_that_cannot_be_split_are_refused(votes: object, message: str) -> None:
    with pytest.raises(CredalError, match=message):
        compare_rules(votes, splits=2)  # type: ignore[arg-type]
