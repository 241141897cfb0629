"""What is kept and deferred at every threshold: the numbers behind the slider of the page."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from credalearn import CredalError
from credalearn.app.report import HeldOut, walk
from credalearn.app.report.heldout import NO_TRUTH
from credalearn.app.report.walks import MOST_POSITIONS, OTHERS, class_groups
from credalearn.app.steps.reporting import write_report
from credalearn.guarantees._sample import as_sample
from fake_run import add_rule, fake_run, without_test_items


def some_items(
    random_state: int, num_items: int, *, num_classes: int = 3, steps: int = 0
) -> HeldOut:
    """Random test items; ``steps`` makes scores tie."""
    noise = np.random.default_rng(random_state)
    probs = noise.dirichlet(np.ones(num_classes), size=num_items)
    score = 1 - probs.max(1)
    truth = noise.integers(NO_TRUTH, num_classes, size=num_items)
    truth[0] = 0  # one item has a truth
    return HeldOut(
        items=tuple(map(str, range(num_items))),
        classes=tuple(f"class {k}" for k in range(num_classes)),
        probs=probs,
        label=probs.argmax(1),
        truth=truth,
        scores={"mmi": (score * steps).round() / steps if steps else score},
        votes=noise.integers(0, 4, size=probs.shape).astype(float),
    )


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.sampled_from([0, 1, 5]),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_every_position_is_what_a_loop_counts(
    random_state: int, num_items: int, steps: int, threshold: float | None
) -> None:
    items = some_items(random_state, num_items, steps=steps)
    names, groups = class_groups(items)
    found = walk(items, "mmi", groups, len(names), threshold=threshold)
    assert found.kept[-1] == num_items
    assert (np.diff(found.kept) > 0).all()
    for place, limit in enumerate(found.thresholds):
        kept = [row for row in range(num_items) if items.scores["mmi"][row] <= limit]
        judged = [row for row in kept if items.truth[row] != NO_TRUTH]
        wrong = sum(items.truth[row] != items.label[row] for row in judged)
        assert (found.kept[place], found.judged[place]) == (len(kept), len(judged))
        assert found.wrong[place] == wrong
        for group in range(len(names)):
            gone = [r for r in range(num_items) if groups[r] == group and r not in kept]
            assert found.deferred[place, group] == len(gone)
        if judged:
            exact = binomtest(int(wrong), len(judged)).proportion_ci(0.95, method="exact")
            assert found.low[place] == pytest.approx(exact.low, abs=1e-9)
            assert found.high[place] == pytest.approx(exact.high, abs=1e-9)
        else:
            assert (found.low[place], found.high[place], found.error(place)) == (0, 1, None)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_certified_threshold_has_its_own_position(random_state: int, threshold: float) -> None:
    items = some_items(random_state, 2000)
    found = walk(items, "mmi", np.zeros(2000, dtype=np.int64), 1, threshold=threshold)
    assert len(found.kept) <= MOST_POSITIONS
    place = found.position(threshold)
    assert found.thresholds[place] == threshold
    assert found.kept[place] == (items.scores["mmi"] <= threshold).sum()


def test_the_walk_goes_by_what_certifying_knows() -> None:
    items = some_items(3, 80)
    items = replace(items, truth=np.where(items.truth == NO_TRUTH, 0, items.truth))
    found = walk(items, "mmi", np.zeros(80, dtype=np.int64), 1)
    sample = as_sample(items.scores["mmi"], items.wrong)
    np.testing.assert_array_equal(found.kept[1:], sample.kept)
    np.testing.assert_array_equal(found.thresholds[1:], sample.thresholds)
    np.testing.assert_array_equal(found.wrong[1:], sample.errors)
    with pytest.raises(CredalError, match=r"score must be one of mmi; got 'nonsense'"):
        walk(items, "nonsense", np.zeros(80, dtype=np.int64), 1)


def test_small_classes_share_a_row_and_ties_have_one() -> None:
    items = some_items(0, 3000, num_classes=60)
    names, groups = class_groups(items)
    assert len(names) == 26
    assert names[-2:] == (OTHERS, "no single most-voted class")
    assert (groups == 25).sum() == (items.truth == NO_TRUTH).sum()
    for row in range(50):
        if groups[row] < 24:
            assert names[groups[row]] == items.classes[items.truth[row]]
    for many, rows in ((24, 24), (25, 25), (26, 25)):  # a single class needs no row to share
        names, _ = class_groups(some_items(0, 3000, num_classes=many))
        assert (len(names) - 1, OTHERS in names) == (rows, many > 25)


def test_a_class_without_test_items_has_no_share(tmp_path: Path) -> None:
    run = without_test_items(add_rule(fake_run(tmp_path / "run")), "benign")
    text = write_report(run).read_text(encoding="utf-8").split("Deferred by class")[-1]
    row = re.search(r'<th scope="row">benign</th>(.*?)</tr>', text)
    assert row is not None
    assert row[1].startswith("<td>0</td><td>0</td>")
    assert row[1].endswith('<span class="number">–</span></td>')


def test_test_items_are_checked() -> None:
    items = some_items(0, 5)
    with pytest.raises(CredalError, match=r"probs must have shape \(5, 3\); got \(5, 2\)"):
        replace(items, probs=np.zeros((5, 2)))
    with pytest.raises(CredalError, match=r"scores\['mmi'\] of item '2' is nan"):
        replace(items, scores={"mmi": np.array([0, 0, np.nan, 0, 0])})
    nothing = np.full(5, NO_TRUTH)
    with pytest.raises(CredalError, match="none can be right or wrong: their votes tie"):
        replace(items, truth=nothing)
    with pytest.raises(CredalError, match=r"wrong: they have no gold label\. To fix: train with"):
        replace(items, truth=nothing, against="gold")
    with pytest.raises(CredalError, match="one test item and one score or more; got 5 items and 0"):
        replace(items, scores={})
