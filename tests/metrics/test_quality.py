"""Comparing methods over seeds: against loops, SciPy and enumeration of all signs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from credalearn import CredalError, metrics
from credalearn_experiments.results.paper import published

THREE = ("accuracy", "ece", "auarc")
Table = dict[str, dict[str, list[float]]]


def random_table(num_methods: int, num_seeds: int, *, seed: int, digits: int = 6) -> Table:
    """Methods of increasing quality with noise; few digits make ties and zero differences."""
    random = np.random.default_rng(seed)
    noise = random.normal(0, 0.01, (num_methods, 3, num_seeds))
    means = np.array([0.8, 0.1, 0.9]) + 0.006 * np.arange(num_methods)[:, None] * [1, -1, 1]
    values = (means[:, :, None] + noise).round(digits)
    return {
        f"method {m}": {metric: values[m, i].tolist() for i, metric in enumerate(THREE)}
        for m in range(num_methods)
    }


def slow_balanced(table: Table, seed: int) -> dict[str, float]:
    """One seed's score as the definition reads, with 1 − ECE."""
    totals = dict.fromkeys(table, 0.0)
    for metric in THREE:
        value = {m: row[metric][seed] for m, row in table.items()}
        if metric == "ece":
            value = {m: 1 - v for m, v in value.items()}
        low, high = min(value.values()), max(value.values())
        for m, v in value.items():
            totals[m] += (v - low) / (high - low) / 3
    return totals


@pytest.mark.parametrize(("num_methods", "num_seeds"), [(2, 1), (5, 10), (7, 12)])
def test_balanced_quality_against_a_loop(num_methods: int, num_seeds: int) -> None:
    table = random_table(num_methods, num_seeds, seed=1)
    found = metrics.balanced_quality(table)
    assert list(found) == list(table)
    slow = [slow_balanced(table, seed) for seed in range(num_seeds)]
    for method, score in found.items():
        expected = [each[method] for each in slow]
        np.testing.assert_allclose(score.per_seed, expected, atol=1e-12)
        assert score.mean == pytest.approx(np.mean(expected))
        squares = sum((x - np.mean(expected)) ** 2 for x in expected)
        assert score.std == pytest.approx((squares / num_seeds) ** 0.5, abs=1e-12)


def test_a_metric_without_differences_scales_to_one_for_all() -> None:
    table = {
        "a": {"accuracy": [0.9, 0.9], "ece": [0.2, 0.1]},
        "b": {"accuracy": [0.9, 0.8], "ece": [0.2, 0.2]},
    }
    found = metrics.balanced_quality(table, metrics=("accuracy", "ece"))
    assert found["a"].per_seed == (1, 1)
    assert found["b"].per_seed == (1, 0)
    assert (found["b"].mean, found["b"].std) == (0.5, 0.5)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_p_values_against_all_signs(differences: list[int]) -> None:
    kept = [d for d in differences if d]
    sizes = sorted(abs(d) for d in kept)
    rank = {d: np.mean([i + 1 for i, s in enumerate(sizes) if s == d]) for d in sizes}
    observed = sum(rank[d] for d in kept if d > 0)
    ways = list(itertools.product([0, 1], repeat=len(kept)))
    sums = [sum(s * rank[abs(d)] for s, d in zip(signs, kept, strict=True)) for signs in ways]
    expected = sum(total >= observed - 1e-9 for total in sums) / len(ways)
    # 0.5 + 0.1·d in floating point: equal differences differ by rounding errors.
    table = {
        "a": {"accuracy": [0.5 + 0.1 * d for d in differences]},
        "b": {"accuracy": [0.5] * len(differences)},
    }
    assert metrics.pairwise_p_values(table, "accuracy")["a"]["b"] == pytest.approx(expected)


def slow_net(table: Table, metric: str, level: float) -> dict[str, int]:
    """Wins less losses from SciPy's tests, pair by pair."""
    net = dict.fromkeys(table, 0)
    for a, b in itertools.permutations(table, 2):
        difference = np.subtract(table[a][metric], table[b][metric])
        side = "less" if metric == "ece" else "greater"
        if wilcoxon(difference, alternative=side).pvalue < level:
            net[a] += 1
            net[b] -= 1
    return net


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_ranking_against_a_loop(level: float) -> None:
    table = random_table(6, 10, seed=4)
    found = metrics.significance_ranking(table, level=level)
    nets = {metric: slow_net(table, metric, level) for metric in THREE}
    assert len(set(nets["accuracy"].values())) > 2
    for method, place in found.items():
        assert place.net == {metric: nets[metric][method] for metric in THREE}
        scaled = [
            (net[method] - min(net.values())) / (max(net.values()) - min(net.values()))
            for net in nets.values()
        ]
        assert place.score == pytest.approx(np.mean(scaled))


@pytest.mark.parametrize(("level", "fewest"), [(0.05, 5), (0.01, 7), (0.25, 3)])
def test_too_few_seeds_give_no_ranking(level: float, fewest: int) -> None:
    # At level 1/4 two seeds give p = 1/4 at best, which is not below it.
    for num_seeds in (1, fewest - 1, fewest):
        rows = {"a": [0.9 + 0.001 * s for s in range(num_seeds)], "b": [0.5] * num_seeds}
        table = {method: {"accuracy": row} for method, row in rows.items()}
        found = metrics.significance_ranking(table, metrics=["accuracy"], level=level)
        if num_seeds < fewest:
            assert found["a"] == found["b"] == metrics.Significance(None, None)
            assert str(found["a"]) == "–"
        else:
            assert (str(found["a"]), str(found["b"])) == ("100.0", "0.0")
            assert found["a"].net == {"accuracy": 1}


def test_all_published_scores_follow_from_the_published_nets() -> None:
    rows = [r for r in published() if r.table.startswith(("Table: ST-", "Table: ST_"))]
    groups: dict[tuple[str, ...], dict[str, dict[str, float]]] = {}
    for row in rows:
        group = groups.setdefault((row.table, row.setting), {})
        group.setdefault(row.method, {})[row.metric] = row.mean
    checked = 0
    for place, group in groups.items():
        printed = {method: f"{values.pop('BQS-ST'):.1f}" for method, values in group.items()}
        assert {len(values) for values in group.values()} == {3}
        scores = metrics.balanced_significance(group)
        found = {method: f"{100 * score:.1f}" for method, score in scores.items()}
        assert found == printed, place
        checked += len(printed)
    assert checked == 115


GOOD = {"accuracy": [0.9, 0.8], "ece": [0.1, 0.1], "auarc": [0.9, 0.9]}


@pytest.mark.parametrize(
    ("table", "names", "message"),
    [
        ({}, THREE, r"one or more methods .* got methods=\[\]"),
        ({"a": GOOD}, "ece", "metrics='ece'"),
        ({"a": GOOD}, ("ECE",), "metric must be one of 'accuracy', .* got 'ECE'"),
        ({"a": GOOD, "b": {"ece": [0.1]}}, THREE, r"table\['b'\]\['accuracy'\] is missing"),
        ({"a": GOOD, "b": GOOD | {"ece": [0.1]}}, THREE, r"'b'\]\['ece'\] must be one finite"),
        ({"a": GOOD | {"ece": [0.1]}}, THREE, "one value for each of the same seeds"),
        ({"a": {"ece": [0.1, np.inf]}}, ("ece",), r"\['a'\]\['ece'\] must be one finite number"),
        ({"a": {"ece": ["low"]}}, ("ece",), r"\['a'\]\['ece'\] must be an array of numbers"),
    ],
)
def test_rejects_bad_tables(table: Table, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        metrics.balanced_quality(table, metrics=names)
    with pytest.raises(CredalError, match=message):
        metrics.significance_ranking(table, metrics=names)


def test_rejects_bad_levels_and_nets() -> None:
    with pytest.raises(CredalError, match="level must be above 0 and below 1; got 1"):
        metrics.significance_ranking({"a": GOOD}, level=1)
    with pytest.raises(CredalError, match="net must have the same metrics for every method"):
        metrics.balanced_significance({"a": {"ece": 1.0}, "b": {"auarc": 1.0}})
    with pytest.raises(CredalError, match=r"net\['b'\]\['ece'\] must be a number; got nan"):
        metrics.balanced_significance({"a": {"ece": 1}, "b": {"ece": np.nan}})
