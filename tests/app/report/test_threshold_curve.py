"""The accuracy-rejection curve against a loop over items and thresholds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from credalearn import CredalError
from credalearn.app.report.evaluation import NO_TRUTH, HeldOut
from credalearn.app.report.threshold_curve import (
    KEEP_NONE,
    MOST_THRESHOLDS,
    Slider,
    class_rows,
    threshold_curve,
)


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
        scores={"score": (score * steps).round() / steps if steps else score},
        votes=noise.integers(0, 4, size=probs.shape).astype(float),
        heads={"probability": probs},
        against="majority",
    )


@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.sampled_from([0, 1, 5]),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_outcomes_match_a_slow_loop(
    random_state: int, num_items: int, steps: int, threshold: float | None
) -> None:
    items = some_items(random_state, num_items, steps=steps)
    curve = threshold_curve(items, "score", threshold=threshold)
    rows = class_rows(items, np.array([each.threshold for each in curve.outcomes]))
    counts = [each.kept for each in curve.outcomes]
    assert counts == sorted(set(counts))
    assert (counts[0], counts[-1]) == (0, num_items)
    for place, found in enumerate(curve.outcomes):
        kept = [row for row in range(num_items) if items.score[row] <= found.threshold]
        judged = [row for row in kept if items.truth[row] != NO_TRUTH]
        wrong = sum(items.truth[row] != items.label[row] for row in judged)
        assert (found.kept, found.judged, found.wrong) == (len(kept), len(judged), wrong)
        assert sum(each[place] for _, _, each in rows) == found.items - found.kept
        if judged:
            exact = binomtest(int(wrong), len(judged)).proportion_ci(0.95, method="exact")
            assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
        else:
            assert (found.low, found.high, found.error, found.accuracy) == (0, 1, None, None)


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_chosen_threshold_has_its_own_position(random_state: int, threshold: float) -> None:
    items = some_items(random_state, 2000)
    curve = threshold_curve(items, "score", threshold=threshold)
    assert len(curve.outcomes) <= MOST_THRESHOLDS
    (found,) = (each for each in curve.outcomes if each.threshold == threshold)
    assert found.kept == (items.score <= threshold).sum()
    assert Slider.of(items, threshold).outcome == found
    assert Slider.of(items, None).outcome.kept == len(items.score)


def test_the_largest_coverage_within_an_error() -> None:
    curve = threshold_curve(some_items(5, 200), "score")
    fits = [each.coverage for each in curve.outcomes if each.wrong <= 0.4 * each.judged]
    assert curve.coverage_at(0.4) == max(fits)
    assert curve.nearest(0.5).coverage == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("num_classes", "own_rows", "shared"), [(24, 24, False), (25, 25, False), (26, 24, True)]
)
def test_small_classes_share_a_row(num_classes: int, own_rows: int, shared: bool) -> None:
    items = some_items(0, 3000, num_classes=num_classes)
    found = class_rows(items, np.array([KEEP_NONE]))
    *names, last = (name for name, _, _ in found)
    assert last == "no single most-voted class"
    assert ("other classes" in names) == shared
    assert len(names) == own_rows + shared
    assert all(deferred == [total] for _, total, deferred in found)
    assert sum(total for _, total, _ in found) == 3000
    for name, total, _ in found[:own_rows]:
        assert total == (items.truth == items.classes.index(name)).sum()


def test_rejects_test_items_without_a_truth() -> None:
    with pytest.raises(CredalError, match="needs a test item with a truth: their votes are tied"):
        replace(some_items(0, 5), truth=np.full(5, NO_TRUTH))
