"""Sets of a run, widened on its calibration items and checked on its test items."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
import torch
from scipy.stats import betabinom

from credalearn import CredalError, CredalPredictions, Inflation, Run
from credalearn.app.steps.certify import certify
from credalearn.app.steps.certify_options import CertifyOptions
from credalearn.app.steps.set_coverage import WidenedSets, widened
from credalearn.app.steps.voted_items import VotedItems
from credalearn.conformal import Distance, Scale, Stratum, score_strata
from credalearn.conformal._calibration import NARROW
from fake_run import add_rule, fake_run, grouped, rows_of, with_facts, with_folds
from present import present
from small_run import features, make_run
from team_files import snapshot


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 300 calibration and 300 test items with four or five votes; do not change it."""
    return fake_run(tmp_path_factory.mktemp("runs") / "run")


def certified(run: Run, coverage: float = 0.9, **options: Any) -> WidenedSets:
    return present(certify(run, CertifyOptions(set_coverage=coverage, **options)).sets)


def slowly(run: Run, split: str) -> tuple[CredalPredictions, np.ndarray]:
    """Sets and votes of a split, row by row from the two tables."""
    rows, votes = rows_of(run, split)
    parts = (
        torch.tensor(np.array([[row[f"{part}:{name}"] for name in run.classes] for row in rows]))
        for part in ("p", "lower", "upper")
    )
    return CredalPredictions(*parts), votes


def score_of(predicted: CredalPredictions) -> np.ndarray:
    return predicted.score("lower-probability").numpy()


@pytest.mark.parametrize("distance", get_args(Distance))
@pytest.mark.parametrize("scale", get_args(Scale))
def test_calibrates_on_calibration_items_and_checks_on_test_items(
    run: Run, distance: Distance, scale: Scale
) -> None:
    coverage = 0.8
    options: dict[str, Any] = {"distance": distance, "scale": scale}
    if scale == "stretched" and distance != "box":
        return  # refused
    found = certified(run, coverage, **options)
    predicted, votes = slowly(run, "calibration")
    quarters = np.quantile(score_of(predicted), [0.25, 0.5, 0.75], method="lower")
    assert found.inflation.edges == pytest.approx(quarters, abs=1e-6)
    strata = score_strata(score_of(predicted), found.inflation.edges)
    for name in set(strata):
        rows = torch.tensor([each == name for each in strata])
        wanted = predicted[rows].inflation(votes[rows], coverage=coverage, **options)
        (part,) = (each for each in found.inflation.strata if each.name == name)
        assert part.radius == pytest.approx(wanted.radius, rel=1e-3)
        assert part.items == 75
    assert found.inflation == Run.load(run.path).sets
    tested, votes = slowly(run, "test")
    own = score_strata(score_of(tested), found.inflation.edges)
    wide = tested.conformalize(found.inflation, strata=own)
    assert found.covered == int(tested.covers(votes, found.inflation, strata=own).sum())
    before, after = (float((each.upper - each.lower).mean()) for each in (tested, wide))
    assert (found.width_before, found.width_after) == pytest.approx((before, after), rel=1e-5)
    assert after > before
    rank = found.inflation.rank
    low, high = betabinom(300, rank, 301 - rank).ppf([0.025, 0.975]) / 300
    assert f"300 test items (expected: {100 * low:.3g} % to {100 * high:.3g} %)" in found.lines[1]


def test_leaves_out_items_with_one_vote(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    calibration = run.items.filter(split="calibration")["item"].to_list()
    tested = run.items.filter(split="test")["item"].to_list()[:5]
    lonely, silent = calibration[:7], calibration[7:10]
    votes = run.annotations.with_columns(first=pl.int_range(pl.len()).over("item") == 0)
    one = pl.col("item").is_in([*lonely, *tested])
    votes = votes.filter((pl.col("first") | ~one) & ~pl.col("item").is_in(silent)).drop("first")
    unsure = votes.head(1).with_columns(item=pl.lit(lonely[0]), label=pl.lit(None, pl.String))
    found = certified(with_facts(run, annotations=pl.concat([votes, unsure])))
    assert (found.inflation.items, found.left_out, found.seen) == (90, 10, 95)
    assert found.lines[0].endswith("items. 10 with fewer than two votes were left out.")
    assert (
        replace(found, left_out=1).lines[0].endswith(" 1 with fewer than two votes was left out.")
    )


@pytest.mark.parametrize("kind", ["counts", "probabilities"])
def test_takes_counts_and_probabilities(tmp_path: Path, kind: Any) -> None:
    run = fake_run(tmp_path / "run", num_items=400)
    wanted = certified(run)
    items, names = run.items, [f"n:{name}" for name in run.classes]
    if kind == "probabilities":
        items = items.with_columns(pl.col(name) / pl.sum_horizontal(names) for name in names)
    table = items.select("item", *(pl.col(name).alias(name[2:]) for name in names))
    run = with_facts(run, items=items, annotations=table)
    known = run.facts.annotations
    found = certified(with_facts(run, annotations=replace(known, kind=kind)))
    assert found.inflation.radius == pytest.approx(wanted.inflation.radius)
    assert found.lines == wanted.lines


def test_too_few_items_say_how_many_it_takes_and_change_nothing(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    certified(run, 0.8)
    before = snapshot(run.path)
    with pytest.raises(CredalError, match=r"95 % takes at least 19 calibration items.* are 15"):
        certified(run, 0.95)
    assert snapshot(run.path) == before


def test_rejects_runs_without_vote_shares(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run", num_items=60)
    stated = with_facts(run, annotations=replace(run.facts.annotations, kind="bounds"))
    with pytest.raises(CredalError, match=r"trained on stated bounds.*To fix: train on votes"):
        certified(stated)
    run = with_facts(run, annotations=replace(run.facts.annotations, kind="votes"))
    with pytest.raises(CredalError, match=r"no calibration item .* has two or more votes.*To fix"):
        certified(with_facts(run, annotations=run.annotations.unique("item")))
    tested = run.items.filter(split="test")["item"].to_list()
    unseen = run.annotations.filter(~pl.col("item").is_in(tested))
    found = certified(with_facts(run, annotations=unseen))
    assert found.lines[1] == "No test item has enough votes to check the widened sets on."


def test_sets_are_widened_and_checked_item_by_item(run: Run) -> None:
    found = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=50)
    point = torch.tensor([[0.7, 0.3], [0.7, 0.3], [0.5, 0.5]], dtype=torch.float64)
    observed = np.array([[3.0, 1.0], [0.0, 4.0], [1.0, 0.0]])
    usable, score = np.array([True, True, False]), np.array([0.1, 0.9, 0.1])
    predicted = CredalPredictions(point, point, point)
    table = pl.DataFrame({"score": score, "label": ["benign"] * 3})
    items = VotedItems(predicted, observed, usable, counted=True, table=table)
    run = add_rule(run)
    rule = replace(present(run.guarantee), threshold=0.5)
    wide = widened(replace(run, guarantee=rule), found, items)
    np.testing.assert_allclose(wide.lower[0], [0.6, 0.2], atol=1e-6)
    assert (wide.seen, wide.covered, wide.kept) == (2, 1, (1, 1))
    assert (wide.width_before, wide.width_after) == pytest.approx((0, 0.2), abs=1e-6)
    assert "Of 1 kept item the widened sets contain 100 %" in wide.by_decision
    assert wide.facts["kept_covered"] == 1
    assert wide.facts["usual"] == wide.usual
    assert wide.saying_nothing == 0


def test_likely_kept_and_likely_deferred_items_are_calibrated_apart(tmp_path: Path) -> None:
    run = with_folds(fake_run(tmp_path / "run"))
    found = certify(run, CertifyOptions(max_error=0.05, set_coverage=0.9))
    assert found.sets is not None
    sets = found.sets.inflation
    assert sets.edges == (present(found.guarantee).expected_threshold,)
    assert sets.by == run.deferral_score
    assert [each.items for each in sets.strata] == [
        int((run.held_out("calibration")["score"] <= sets.edges[0]).sum()),
        int((run.held_out("calibration")["score"] > sets.edges[0]).sum()),
    ]
    text = " ".join(found.sets.lines)
    assert f"separately for each stratum: score up to {sets.edges[0]:.4g}, score above" in text
    assert "kept items the widened sets contain" in text
    assert "both together" not in text
    assert "fixed without the calibration labels" in " ".join(found.sets.assumptions)


def test_the_scale_is_the_narrowest_on_out_of_fold_predictions(tmp_path: Path) -> None:
    run = with_folds(fake_run(tmp_path / "run"))
    found = certified(run).inflation
    widths = {}
    for scale in NARROW:
        own = certified(run, scale=scale)
        predicted, votes = slowly(run, "calibration")
        tested, more = slowly(run, "test")
        probs, lower, upper = (
            torch.cat([getattr(each, name) for each in (predicted, tested)])
            for name in ("probs", "lower", "upper")
        )
        every = CredalPredictions(probs, lower, upper)
        strata = score_strata(score_of(every), own.inflation.edges)
        fit = every.inflation(np.concatenate([votes, more]), scale=scale, strata=strata)
        wide = every.conformalize(fit, strata=strata)
        widths[scale] = float((wide.upper - wide.lower).mean())
    assert found.scale == min(widths, key=lambda each: widths[each])


def test_without_folds_a_third_of_the_calibration_groups_chooses_the_scale(tmp_path: Path) -> None:
    run = grouped(fake_run(tmp_path / "run", num_items=2600), 3)
    found = certified(run)
    calibration = run.held_out("calibration").filter(pl.sum_horizontal("^n:.*$") >= 2)
    assert found.chose + found.inflation.items == len(calibration)
    assert f"{found.chose} others chose the scale" in found.lines[0]
    assert found.inflation.scale in (*NARROW, "none")
    groups = calibration["group"].n_unique()
    assert found.inflation.num_groups == groups - -(-groups // 3)  # none is in both parts
    assert not found.short
    assert "with other options before: choosing the narrowest" not in found.lines[0]
    again = certified(Run.load(run.path), scale="none")
    assert "with other options before: choosing the narrowest" in again.lines[0]
    assert again.chose == 0
    kept = [certified(run, 0.99), certified(run, stratum="label"), certified(grouped(run, 9999))]
    for found in (*kept, certified(fake_run(tmp_path / "few"))):
        assert (found.chose, found.inflation.scale) == (0, "relative-variance")


def test_strata_by_label_and_by_column(tmp_path: Path) -> None:
    run = fake_run(tmp_path / "run")
    sites = pl.DataFrame({"item": run.items["item"]}).with_row_index()
    sites = sites.with_columns(site=pl.format("s{}", pl.col("index") % 3)).drop("index")
    by_label = certified(run, stratum="label").inflation
    assert [each.name for each in by_label.strata] == sorted(run.classes)
    found = certified(run, stratum="site", table=sites)
    assert [each.name for each in found.inflation.strata] == ["s0", "s1", "s2"]
    assert "This holds separately for each site: s0, s1, s2." in found.lines[0]
    seldom = pl.int_range(pl.len()) % 200 == 0
    rare = sites.with_columns(site=pl.when(seldom).then(pl.lit("rare")).otherwise(pl.lit("site")))
    few = certified(run, stratum="site", table=rare, scale="none").inflation
    assert ([each.name for each in few.strata], few.items) == (["site"], 298)
    with pytest.raises(CredalError, match=r"no column 'city'"):
        certified(run, stratum="city", table=sites)
    with pytest.raises(CredalError, match=r"no row with 'site' for .*To fix: pass the whole table"):
        certified(run, stratum="site", table=sites.head(10))


def test_predict_needs_the_column_of_the_strata(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    parts = (Stratum("a", 0.1, 30), Stratum("b", 0.4, 30))
    made = Inflation(
        coverage=0.9, radius=0.4, distance="box", scale="none", items=60, strata=parts, by="site"
    )
    run = run.keeping(sets=made)
    values = features(6, random_state=7)
    names = run.facts.inputs.features
    data = pl.DataFrame(dict(zip(names, values.T, strict=True)))
    data = data.with_columns(item=pl.Series(map(str, range(6))), site=pl.Series([*"ababcb"]))
    found, plain = run.predict(data), make_run(tmp_path / "plain").predict(data).table
    table = found.table
    assert "widened sets say nothing (1 item)" in found.lines[0]
    assert "say nothing" not in repr(run.predict(data.filter(pl.col("site") != "c")))
    assert table is not None
    assert table.columns == [*present(plain).columns, "set_lower", "set_upper"]
    predicted = run.load_model().predict_credal(values)
    wide = predicted.conformalize(made, strata=[*"ababcb"])
    top = predicted.classes[:, None]
    np.testing.assert_allclose(table["set_lower"], wide.lower.gather(1, top)[:, 0], atol=1e-6)
    assert (table["set_lower"][4], table["set_upper"][4]) == (0, 1)  # a site that was not seen
    with pytest.raises(CredalError, match="calibrated by 'site', and the data have no such column"):
        run.predict(data.drop("site"))
