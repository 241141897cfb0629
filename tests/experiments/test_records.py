"""Records, written and read back; tables and notes made of them."""

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credalearn import CredalError
from credalearn.metrics import balanced_quality, significance_ranking
from credalearn_experiments.drawing import latex, markdown, to_csv
from credalearn_experiments.records import (
    Record,
    copy_records,
    read_record,
    read_records,
    result_path,
    write_record,
)
from credalearn_experiments.results.compare import compare, comparison_markdown
from credalearn_experiments.results.notes import notes
from credalearn_experiments.results.seeds import (
    MAIN,
    POCC_COLLAPSED,
    balance,
    common_seeds,
    first_record,
    has,
    mean_and_std,
    records_in,
    runs_of,
)
from credalearn_experiments.results.tables import (
    balanced_table,
    foreign_table,
    setting_tables,
)
from credalearn_experiments.settings.paper import SEVEN
from fake_records import fake_records


def one(**changes: Any) -> Record:
    given = {"setting": "cifar10h", "method": "pocc", "seed": 1, "metrics": {"accuracy": 0.9}}
    return Record(**{**given, **changes})


def test_a_record_comes_back_to_six_digits(tmp_path: Path) -> None:
    record = fake_records(methods=["pocc"], seeds=[1])[0]
    path = result_path(tmp_path, "cifar10h", "pocc", 1)
    write_record(path, record)
    again = read_record(path)
    assert (again.name, again.config, again.versions) == (
        record.name,
        record.config,
        record.versions,
    )
    for name, value in record.metrics.items():
        assert again.metrics[name] == pytest.approx(value, rel=1e-5)
        assert again.metrics[name] == float(f"{value:.6g}")
    assert again.curves["accuracy_rejection"] == pytest.approx(
        record.curves["accuracy_rejection"], rel=1e-5
    )
    text = path.read_text()
    write_record(path, again)
    assert path.read_text() == text
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert sum(len(line) > 200 for line in text.splitlines()) == 1  # the curve


def test_text_with_brackets_is_left_alone(tmp_path: Path) -> None:
    record = one(versions={"device": 'a [ b ] "c" [\n1,\n2 ]'}, config={"seeds": [1, 2], "e": []})
    write_record(tmp_path / "a.json", record)
    assert read_record(tmp_path / "a.json") == record
    assert '"seeds": [1, 2]' in (tmp_path / "a.json").read_text()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setting": ""}, "setting must be a name; the record of  pocc seed 1 has ''"),
        ({"method": 3}, "method must be a name"),
        ({"seed": -1}, "seed must be a whole number, 0 or more; .* has -1"),
        ({"seed": True}, "seed must be a whole number"),
        ({"seed": 1.0}, "seed must be a whole number"),
        ({"metrics": {}}, "metrics must hold one or more"),
        ({"metrics": [0.9]}, "metrics must be an object"),
        ({"metrics": {"ece": math.nan}}, r"metrics\['ece'\] must be a finite number; .* has nan"),
        ({"metrics": {"ece": "0.1"}}, "must be a finite number"),
        ({"curves": {"a": [0.1, None]}}, r"curves\['a'\] must be a list of finite numbers"),
        ({"curves": {"accuracy_rejection": [1.0] * 100}}, "must hold 101 numbers; .* has 100"),
        ({"config": None}, "config must be an object"),
        ({"versions": "1"}, "versions must be an object"),
        ({"seconds": math.inf}, "seconds must be a finite number"),
        ({"seconds": 10**400}, "seconds must be a finite number"),
    ],
)
def test_a_wrong_record_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CredalError, match=message):
        one(**changes)


def test_a_folder_is_read_and_its_damage_named(tmp_path: Path) -> None:
    good = fake_records(methods=["pocc", "edl"], seeds=[1, 2])
    for record in good[:3]:
        write_record(result_path(tmp_path, record.setting, record.method, record.seed), record)
    store = tmp_path / "store" / "cifar10h" / "edl" / "seed-2"
    write_record(store / "metrics.json", good[3])
    (store / "config.json").write_text("not looked at")
    (store / ".metrics.json.partial").write_text("{")
    folder = tmp_path / "cifar10h"
    (folder / "cut.json").write_text('{"setting": "cif')
    (folder / "bytes.json").write_bytes(b"\xff\xfe")
    (folder / "list.json").write_text("[1]")
    (folder / "other.json").write_text('{"color": 1}')
    (folder / "half.json").write_text('{"setting": "cifar10h", "method": "edl"}')
    write_record(folder / "pocc-seed-7.json", good[0])
    found = read_records(tmp_path)
    names = [record.name for record in found.records]
    assert names == [
        f"cifar10h {method} seed {seed}" for method in ("edl", "pocc") for seed in (1, 2)
    ]
    assert len(found.damaged) == 6
    told = {Path(line.split(": ")[0]).name: line for line in found.damaged}
    assert "this is no JSON" in told["cut.json"]
    assert "this is no JSON" in told["bytes.json"]
    assert "this holds list" in told["list.json"]
    assert "this holds ['color']" in told["other.json"]
    assert "a record must have seed, metrics" in told["half.json"]
    assert "belongs at cifar10h/pocc-seed-1.json" in told["pocc-seed-7.json"]
    with pytest.raises(CredalError, match=r"there is none at .*nowhere"):
        read_records(tmp_path / "nowhere")


def test_copies_replace_records_of_their_kind_alone(tmp_path: Path) -> None:
    config: dict[str, Any] = {"epochs": 150, "limit": None, "files": {"model.safetensors": {}}}
    config["built_on"] = {"cifar10h/softmax/seed-1": "0f"}
    whole = [one(seed=seed, config=config) for seed in (1, 2)]
    copy_records(whole, tmp_path)
    paths = sorted(tmp_path.rglob("*.json"))
    assert [path.name for path in paths] == ["pocc-seed-1.json", "pocc-seed-2.json"]
    assert read_record(paths[0]).config == {"epochs": 150, "limit": None}
    copy_records([replace(record, metrics={"accuracy": 0.8}) for record in whole], tmp_path)
    assert read_record(paths[0]).metrics == {"accuracy": 0.8}
    before = [path.read_text() for path in paths]
    for changed, told in (
        ({"epochs": 1}, "epochs=150, that of the store epochs=1"),
        ({"limit": 512}, "limit=None, that of the store limit=512"),
        ({"weights": "random"}, "weights=None, that of the store weights=random"),
    ):
        rehearsal = [one(seed=seed, config=config | changed) for seed in (3, 2)]
        message = rf"pocc-seed-2\.json has {told}\. To fix: name another folder with --output"
        with pytest.raises(CredalError, match=message):
            copy_records(rehearsal, tmp_path)
        assert [path.read_text() for path in sorted(tmp_path.rglob("*.*"))] == before
    paths[1].write_text("{")  # a damaged record is replaced
    copy_records(whole, tmp_path)
    assert read_record(paths[1]).seed == 2


def test_runs_are_in_the_papers_order_without_mere_members() -> None:
    records = fake_records()
    members = fake_records(methods=["softmax"], seeds=range(1, 15))
    runs = runs_of(records[::-1] + members, "cifar10h")
    assert list(runs) == [*SEVEN, "pocc-ensemble", "softmax"]
    assert all(list(found) == list(range(1, 11)) for found in runs.values())
    # Alone, or with others of the same seeds, seeds that are not the setting's count.
    assert list(runs_of(members[10:], "cifar10h")["softmax"]) == [11, 12, 13, 14]
    other = fake_records(methods=["edl"], seeds=[11])
    assert list(runs_of(members + other, "cifar10h")["softmax"]) == list(range(1, 12))
    # Of the setting's seeds too, where ensembles use them and no other method has them.
    some = fake_records(seeds=(1, 2)) + members[:6]
    assert list(runs_of(some, "cifar10h")["softmax"]) == [1, 2]
    # But not if there is one that nothing is built on: then softmax was run for itself.
    assert list(runs_of(some + members[6:7], "cifar10h")["softmax"]) == list(range(1, 8))
    # Where nothing is built on them, they are no members.
    alone = "cifar10h-votes-2-precise"
    more = fake_records(alone, methods=["softmax"], seeds=range(1, 7))
    assert list(runs_of(more, alone)["softmax"]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("method", ["pocc", "softmax"])
def test_networks_that_are_members_only_answer_for_no_method(method: str) -> None:
    ensemble = {"pocc": "pocc-ensemble", "softmax": "deep-ensemble"}[method]
    members = fake_records(methods=[method], seeds=range(100, 105))
    records = members + fake_records(methods=[ensemble], seeds=[1], members="independent")
    assert list(runs_of(records, "cifar10h")) == [ensemble]
    assert {row.method for row in compare(records)} == {ensemble}
    assert notes(records, "cifar10h")[0] == "1 seed of every method."
    # Nor where POCC on the labels as they are stands beside collapsed labels.
    collapsed = fake_records("cifar10h-collapsed", methods=["edl"], seeds=[1])
    assert list(runs_of(records + collapsed, "cifar10h-collapsed")) == ["edl"]
    own = fake_records(methods=[method], seeds=[1, 2])
    assert list(runs_of(records + own, "cifar10h")[method]) == [1, 2]


def test_records_of_different_kinds_are_not_mixed() -> None:
    record = one(config={"epochs": 150, "limit": None})
    assert runs_of([record, record], "cifar10h") == {"pocc": {1: record}}
    with pytest.raises(CredalError, match="one record; cifar10h pocc seed 1 has two that differ"):
        runs_of([record, replace(record, metrics={"accuracy": 0.8})], "cifar10h")
    for changed in ({"epochs": 1, "limit": None}, {"epochs": 150, "limit": 512}):
        rehearsal = one(seed=2, config=changed)
        with pytest.raises(CredalError, match=r"must all have the same (epochs|limit); got"):
            runs_of([record, rehearsal], "cifar10h")
    with pytest.raises(CredalError, match=r"'micebone'; .* of cifar10h\. To fix: take one of"):
        runs_of([record], "micebone")
    few = [one(setting=f"cifar10h-votes-{number}-idm") for number in (1, 2, 3)]
    with pytest.raises(CredalError, match=r"some of cifar10h, cifar10h-votes-K-RULE\. To fix"):
        runs_of([*few, record], "micebone")


def test_collapsed_labels_are_set_beside_pocc_on_credal_ones() -> None:
    collapsed = fake_records("cifar10h-collapsed", seeds=[1, 2])
    own = runs_of(collapsed, "cifar10h-collapsed")
    assert list(own) == [*(m for m in SEVEN if m != "pocc"), POCC_COLLAPSED]
    runs = runs_of(collapsed + fake_records(), "cifar10h-collapsed")
    assert list(runs) == [*SEVEN, POCC_COLLAPSED]
    assert {record.setting for record in runs["pocc"].values()} == {"cifar10h"}
    assert list(runs["pocc"]) == [1, 2]  # the seeds that the others have
    assert {record.setting for record in runs[POCC_COLLAPSED].values()} == {"cifar10h-collapsed"}
    said = " ".join(notes(collapsed + fake_records(), "cifar10h-collapsed"))
    assert "pocc is trained on the labels as they are (setting cifar10h)" in said


def test_means_and_balance_against_numpy() -> None:
    records = fake_records()
    runs = runs_of(records, "cifar10h")
    for method, by_seed in runs.items():
        values = [r.metrics["ece"] for r in records if r.method == method]
        mean, std, count = mean_and_std(by_seed, "ece") or (0.0, 0.0, 0)
        assert mean == pytest.approx(np.mean(values))
        assert std == pytest.approx(np.std(values))
        assert count == 10
    table = {
        method: {m: [r.metrics[m] for r in records if r.method == method] for m in MAIN}
        for method in SEVEN
    }
    found = balance(runs, SEVEN)
    assert found is not None
    assert found.quality == balanced_quality(table)
    assert found.significance == significance_ranking(table)
    assert found.seeds == tuple(range(1, 11))


def test_balance_uses_the_seeds_that_all_have() -> None:
    records = [r for r in fake_records() if r.method != "edl" or r.seed in (2, 4)]
    runs = runs_of(records, "cifar10h")
    found = balance(runs, SEVEN)
    assert found is not None
    assert found.seeds == (2, 4)
    assert common_seeds(runs, ["pocc", "dappr"], MAIN) == tuple(range(1, 11))
    assert balance(runs, ["pocc"]) is None
    assert balance(runs, ["pocc", "softmax"]) is None
    assert balance(runs, ["pocc", "edl"], ["auarc_mmi"]) is None
    table = balanced_table(runs_of(records, "cifar10h"), "cifar10h")
    assert [column.name for column in table.columns] == ["ACC", "ECE", "AUARC", "BQS, 2 seeds"]
    assert "edl (2 seeds)" in table.rows
    assert "pocc (10 seeds)" in table.rows
    said = notes(records, "cifar10h")
    assert said[0].startswith("Seeds: edl 2, laplace-bridge 10")
    assert any("over the 2 seeds that all of them have" in line for line in said)
    assert any("BQS-ST is left out: with fewer than 5 seeds" in line for line in said)


def test_the_main_table_says_what_the_metrics_say() -> None:
    records = fake_records()
    table = balanced_table(runs_of(records, "cifar10h"), "cifar10h")
    assert table.corner == "method (10 seeds)"
    found = balance(runs_of(records, "cifar10h"), SEVEN)
    assert found is not None
    for method in SEVEN:
        row = table.rows[method]
        quality, place = found.quality[method], found.significance[method]
        assert row["BQS"] == (quality.mean, quality.std)
        assert row["BQS-ST"] == (place.score, None)
        assert (
            row["ACC"] == (mean_and_std(runs_of(records, "cifar10h")[method], "accuracy") or ())[:2]
        )
    assert table.rows["pocc-ensemble"]["BQS"] is None
    with_ensemble = balanced_table(
        runs_of(records, "cifar10h"), "cifar10h", compared=["pocc", "pocc-ensemble"]
    )
    assert with_ensemble.rows["pocc-ensemble"]["BQS"] is not None
    assert with_ensemble.rows["edl"]["BQS"] is None


def test_every_table_is_written_in_every_form() -> None:
    tables = setting_tables(fake_records(), "cifar10h")
    assert list(tables) == [
        "Accuracy, calibration and deferral",
        "AUARC by score",
        "Normalized AUARC",
        "Rank correlation of uncertainty and error",
        "AUROC, foreign against test images",
    ]
    for table in tables.values():
        assert table.corner == "method (10 seeds)"
        for form in (markdown, latex, to_csv):
            assert "pocc-ensemble" in form(table)
    scores = tables["AUARC by score"]
    assert scores.rows["edl"]["MMI"] is None
    assert scores.rows["pocc"]["MMI"] == scores.rows["pocc"]["own score"]
    names = [column.name for column in tables["Rank correlation of uncertainty and error"].columns]
    assert names == ["ACC", "ECE", "Spearman", "BQS-Spearman", "BQS-ST-Spearman"]
    names = [column.name for column in tables["Normalized AUARC"].columns]
    assert names[3:] == ["BQS-normalized", "BQS-ST-normalized"]
    foreign = foreign_table(runs_of(fake_records(), "cifar10h"), "cifar10h")
    assert foreign is not None
    assert [column.name for column in foreign.columns][2:] == [
        "fashion-mnist",
        "imagenet",
        "tiny-imagenet",
    ]
    assert foreign_table(runs_of(fake_records("micebone"), "micebone"), "micebone") is None


def test_the_runs_of_a_setting_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counted(records: Iterable[Record], setting: str) -> dict[str, dict[int, Record]]:
        looked.append(setting)
        return runs_of(records, setting)

    monkeypatch.setattr("credalearn_experiments.results.tables.runs_of", counted)
    assert len(setting_tables(iter(fake_records()), "cifar10h")) == 5
    assert looked == ["cifar10h"]


def test_records_are_found_at_any_depth() -> None:
    first, second = one(seed=1), one(seed=2)
    for held in (
        {"pocc": {1: first, 2: second}},
        {"pocc, idm": {3: {1: first}, None: {2: second}}},
    ):
        assert list(records_in(held)) == [first, second]
        assert first_record(held) is first
        assert has(held, "accuracy")
        assert not has(held, "f1")


def test_one_seed_has_no_deviation() -> None:
    table = balanced_table(runs_of(fake_records(seeds=[1]), "cifar10h"), "cifar10h")
    assert table.corner == "method (1 seed)"
    for row in table.rows.values():
        assert all(value is None or value[1] is None for value in row.values())


def test_a_metric_that_some_seeds_lack_is_left_out_and_named() -> None:
    records = fake_records(methods=["pocc", "edl"])
    first = records[0]
    without = {name: value for name, value in first.metrics.items() if name != "auroc_svhn"}
    records = [replace(first, metrics=without), *records[1:]]
    foreign = foreign_table(runs_of(records, "cifar10h"), "cifar10h")
    assert foreign is not None
    assert foreign.rows["pocc"]["svhn"] is None
    assert foreign.rows["edl"]["svhn"] is not None
    said = notes(records, "cifar10h")
    assert said[-1] == "Not on every seed, so left out: auroc_svhn of pocc."


def test_foreign_images_are_told_by_the_seeds_that_looked_at_some() -> None:
    records = fake_records(methods=["pocc", "edl"])
    first = records[0]
    more = {**first.metrics, "auroc_training_svhn": 0.9}
    records = [replace(first, metrics=more), *records[1:]]
    table = foreign_table(runs_of(records, "cifar10h"), "cifar10h", inside="training")
    assert table is not None
    assert (table.corner, table.rows) == ("method (1 seed)", {"pocc": {"svhn": (0.9, None)}})
    assert not any("left out" in line for line in notes(records, "cifar10h"))


def test_notes_say_who_shares_members_and_what_is_no_whole_run() -> None:
    shared = " ".join(notes(fake_records(), "cifar10h"))
    assert "Members of deep-ensemble and pocc-ensemble are shared: ensembles of neigh" in shared
    assert "rehearsal" not in shared
    assert "Without runs" not in shared
    alone = " ".join(notes(fake_records(members="independent"), "cifar10h"))
    assert "are independent: every ensemble has networks of its own." in alone
    mixed = fake_records(seeds=[1]) + fake_records(seeds=[2], members="independent")
    assert "are independent and shared." in " ".join(notes(mixed, "cifar10h"))
    short = one(config={"epochs": 1, "limit": 512})
    said = notes([short], "cifar10h")
    assert "A rehearsal: epochs 1, not 150." in said
    assert "A rehearsal: 512 training and test items at most." in said
    assert any(line.startswith("Not in these tables: edl, laplace-bridge") for line in said)


def test_notes_name_the_members_of_every_ensemble() -> None:
    """Also of one that a plugin made, by what its records say."""
    own = [
        replace(record, method="brier-ensemble")
        for record in fake_records(methods=["deep-ensemble"], seeds=[1])
    ]
    said = " ".join(notes([*own, *fake_records(methods=["edl"], seeds=[1])], "cifar10h"))
    assert "Members of brier-ensemble are shared: " in said


def test_notes_name_what_the_setting_lacks() -> None:
    def missing(records: list[Record], setting: str, asked: list[str] | None = None) -> list[str]:
        said = notes(records, setting, asked=asked)
        return [line for line in said if line.startswith("Not in these tables")]

    ours = fake_records("cifar10h-warm", methods=["pocc-mean", *SEVEN], seeds=[1])
    assert missing(ours, "cifar10h-warm") == [
        "Not in these tables: pocc-ensemble, pocc-center, softmax."
    ]
    paper = fake_records(methods=SEVEN[1:], seeds=[1])
    assert missing(paper, "cifar10h") == ["Not in these tables: edl."]
    assert missing(paper, "cifar10h", ["edl", "pocc"]) == ["Not in these tables: edl."]
    assert not missing(paper, "cifar10h", ["pocc"])


def test_only_methods_with_runs_are_compared() -> None:
    records = fake_records(seeds=[1])
    with pytest.raises(CredalError, match=r"'poc' cannot be compared in setting 'cifar10h': .*edl"):
        balanced_table(runs_of(records, "cifar10h"), "cifar10h", compared=["pocc", "poc"])
    assert (
        "BQS"
        not in balanced_table(runs_of(records, "cifar10h"), "cifar10h", compared=()).rows["pocc"]
    )
    # A method of a user's own is compared, whether or not its plugin is given.
    own = [replace(record, setting="mine") for record in records]
    own += [replace(record, method="brier") for record in own if record.method == "edl"]
    assert balanced_table(runs_of(own, "mine"), "mine").rows["brier"]["BQS"] is not None


def test_notes_say_that_networks_started_from_random_weights() -> None:
    line = "The networks started from random weights, the paper's from pretrained ones."
    photos = one(setting="micebone", config={"weights": "random"})
    assert line in notes([photos], "micebone")
    assert line in comparison_markdown([photos])
    assert line not in notes([one(setting="micebone", config={"weights": "a.pth"})], "micebone")
    assert line not in notes([one()], "cifar10h")


def test_settings_that_are_not_the_papers_have_tables_too() -> None:
    records = [replace(record, setting="mine") for record in fake_records(seeds=range(1, 6))]
    table = balanced_table(runs_of(records, "mine"), "mine")
    assert table.rows["edl"]["BQS-ST"] is not None
    assert notes(records, "mine")[0] == "5 seeds of every method."
