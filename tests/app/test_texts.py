"""Models of texts: from exports and tables to decisions, in Python and on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import credalearn as cl
from annotation_exports import studio_task
from team_files import Capture, succeed
from text_items import message_votes, messages, tone

PEOPLE = ("ann", "bo", "cy", "dee")


def severities(votes: np.ndarray, row: int) -> list[int]:
    """Votes for fine and rude as severities, below 0 where rude."""
    fine, rude = votes[row].tolist()
    return [1 - row % 2] * fine + [-1 - row % 3] * rude


def lewidi(num_items: int, *, random_state: int = 0, fields: bool = False) -> dict[str, Any]:
    """An official split; its ids start at 1."""
    texts, votes = messages(num_items, random_state=random_state)
    return {
        str(row + 1): {
            "text": {"post": "hello", "reply": text} if fields else text,
            "annotation task": "abuse detection",
            "annotations": ",".join(map(str, severities(votes, row))),
            "annotators": ",".join(PEOPLE),
            "hard_label": str(int(votes[row, 1] > votes[row, 0])),
        }
        for row, text in enumerate(texts)
    }


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training, a validation and a test export."""
    folder = tmp_path_factory.mktemp("official")
    for number, (name, size) in enumerate({"train": 120, "dev": 90, "test": 60}.items()):
        write(folder / f"{name}.json", lewidi(size, random_state=number))
    return folder


def train_arguments(folder: Path, run: Path) -> list[object]:
    names = ("train", folder / "train.json", "--validation", folder / "dev.json")
    return [*names, "--test", folder / "test.json", "--map", "-3,-2,-1=rude 0,1=fine", "-o", run]


def task(tool: str, row: int, text: str, rude: int) -> list[dict[str, Any]]:
    """What a tool exports of a message."""
    said, name = [tone(who, rude) for who in range(4)], f"m{row}"
    if tool == "label-studio":
        return [studio_task(row, {"id": name, "text": text}, *({"tone": x} for x in said))]
    if tool == "argilla":
        return [{"id": name, "text": text, "tone.responses": said}]
    if tool == "prodigy":
        shown = {"text": text, "meta": {"id": name}, "answer": "accept", "_input_hash": row}
        people = enumerate(said)
        return [{**shown, "accept": [each], "_annotator_id": str(who)} for who, each in people]
    return [{"id": name, "text": text, "label": said[:1]}]


@pytest.mark.parametrize("tool", ["label-studio", "argilla", "prodigy", "doccano"])
def test_the_text_of_an_export_is_found(tool: str, tmp_path: Path) -> None:
    texts, votes = messages(30)
    tasks = (task(tool, row, texts[row], votes[row, 1]) for row in range(30))
    path = write(tmp_path / "export.json", [record for each in tasks for record in each])
    data = cl.Dataset(cl.read_annotations(path))
    assert np.asarray(data.X).tolist() == texts
    assert data.items == [f"m{row}" for row in range(30)]
    assert data.inputs.kind == "texts"
    (line,) = data.lines
    assert line.startswith("30 items with texts in '")
    assert str(path) in line
    assert tool != "label-studio" or data.inputs.item == "data.id"


def test_tasks_of_label_studio_come_back_with_their_group(tmp_path: Path) -> None:
    texts, votes = messages(40)
    tasks = [
        studio_task(row, {"text": f"{text} {row}", "site": row}, *({"tone": x} for x in said))
        for row, text in enumerate(texts)
        for said in [[tone(who, votes[row, 1]) for who in range(4)]]
    ]
    paths = [tmp_path / name for name in ("first.json", "new.json", "tasks.json", "again.json")]
    first = cl.read_annotations(write(paths[0], tasks[:30]))
    run = cl.Run.train(cl.Dataset(first, group="site"), tmp_path / "run")
    found = run.predict(write(paths[1], tasks[30:]), threshold=0.0).to_polars()
    assert found["item"].to_list() == [task["data"]["text"] for task in tasks[30:]]
    run.defer(paths[1], paths[2], threshold=0.0)
    again = [each["data"] for each in json.loads(paths[2].read_text())]
    write(paths[3], [studio_task(90, each, {"tone": "rude"}) for each in again])
    data = cl.Dataset(cl.read_annotations(paths[0], merge=paths[3]), group="site")
    assert data.groups == [str(text).split()[-1] for text in data.X]
    assert run.predict(pl.DataFrame({"id": [1], "text": texts[:1]}), decision=False).items == 1
    write(paths[3], [studio_task(90, {"text": each["text"]}, {"tone": "rude"}) for each in again])
    with pytest.raises(cl.CredalError, match=r"again.json, record 1: item .* has no 'site'"):
        cl.Dataset(cl.read_annotations(paths[0], merge=paths[3]), group="site")


def test_tasks_that_nobody_answered_may_have_a_gold_label(tmp_path: Path) -> None:
    texts, _ = messages(6)
    fields = [{"uid": f"u{row}", "text": text} for row, text in enumerate(texts)]
    answered = [studio_task(row, fields[row], {"tone": "ab"[row]}) for row in range(2)]
    pending = [studio_task(row, fields[row] | {"right": "a"}) for row in range(2, 5)]
    votes = cl.read_annotations(write(tmp_path / "x.json", [*answered, *pending]), item="uid")
    data = cl.Dataset(votes, item="uid", gold="right")
    assert data.items == ["u0", "u1", "u2", "u3", "u4"]
    assert data.unvoted.tolist() == [False, False, True, True, True]
    assert data.truth.tolist() == [-1, -1, 0, 0, 0]


def test_several_columns_are_joined_with_their_names(tmp_path: Path) -> None:
    path = write(tmp_path / "train.json", lewidi(20, fields=True))
    votes = cl.read_annotations(path)
    data = cl.Dataset(votes)
    assert data.inputs.texts == ("text.post", "text.reply")
    assert data.X[0] == f"text.post: hello\ntext.reply: {messages(20)[0][0]}"
    other = lewidi(9, random_state=1, fields=True)
    test = cl.read_annotations(write(tmp_path / "test.json", other))
    data = cl.Dataset(votes, text="reply", test=test)
    assert np.asarray(data.X).tolist() == [*messages(20)[0], *messages(9, random_state=1)[0]]
    with pytest.raises(cl.CredalError, match=r": 20 items have the name and content of an item of"):
        cl.Dataset(votes, validation=votes, test=test)
    with pytest.raises(cl.CredalError, match=r": 9 items have the name and content of an item of"):
        cl.Dataset(votes, validation=test, test=test)
    run = cl.Run.train(data, tmp_path / "run")
    with pytest.raises(cl.CredalError, match=r"no column 'reply'; .* as in training"):
        run.predict(pl.DataFrame({"item": ["a"], "x": [1]}), threshold=0.5)


def test_texts_groups_and_gold_labels_of_a_table() -> None:
    table = message_votes(30)
    annotations = cl.read_annotations(table.drop("text"))
    items = table.unique("item", maintain_order=True).select("item", message="text")
    authors = pl.format("a{}", pl.int_range(30) // 3)
    items = items.with_columns(author=authors, right=pl.lit("fine"))
    texts = items["message"].to_list()
    given = {"text": "message", "group": "author", "gold": "right"}
    data = cl.Dataset(annotations, table=items, **given)
    assert np.asarray(data.X).tolist() == texts
    assert data.groups == items["author"].to_list()
    assert data.truth.tolist() == [data.annotations.classes.index("fine")] * 30
    assert data.to_polars()["text"].to_list() == texts
    with pytest.raises(cl.CredalError, match=r"no column 'mesage'; its columns are: .*message"):
        cl.Dataset(annotations, table=items, text="mesage")
    with pytest.raises(
        cl.CredalError, match=r"columns are: .*, label\. To fix: pass text='COLUMN'"
    ):
        cl.Dataset(annotations)
    with pytest.raises(cl.CredalError, match="5 of 30 items have no text in"):
        cl.Dataset(annotations, table=items[:25], text="message")
    with pytest.raises(cl.CredalError, match="drop must be left out without features"):
        cl.Dataset(annotations, table=items, text="message", drop=("author",))


@pytest.mark.parametrize("name", ["item", "row", "table", "first"])
def test_the_group_of_texts_may_have_any_name(name: str) -> None:
    votes = {"id": ["a", "a", "b"], "label": ["no", "yes", "yes"], "text": ["Hi", "Hi", "Ho"]}
    table = pl.DataFrame(votes | {name: ["g", "g", "h"]})
    data = cl.Dataset(cl.read_annotations(table, item="id"), text="text", group=name, split=name)
    assert (data.items, data.groups, list(data.X)) == (["a", "b"], ["g", "h"], ["Hi", "Ho"])
    mixed = table.with_columns(pl.Series(name, ["g", "h", "h"]))
    with pytest.raises(cl.CredalError, match=f"row 2: item 'a' has 'h' in column '{name}' here"):
        cl.Dataset(cl.read_annotations(mixed, item="id"), text="text", group=name)


def test_empty_texts_are_counted_and_refused_if_all_are(tmp_path: Path) -> None:
    texts, votes = messages(30)
    rows = [
        {"item": f"m{row}", "label": label, "message": text, "title": "", "nothing": " "}
        for row, text in enumerate([*texts[:25], "", " ", None, "", ""])
        for label in ["fine"] * votes[row, 0] + ["rude"] * votes[row, 1]
    ]
    export = cl.read_annotations(pl.DataFrame(rows))
    for columns in ("message", ("title", "message")):
        assert "5 texts are empty" in cl.Dataset(export, text=columns).lines[0]
    with pytest.raises(cl.CredalError, match=r"texts of all 30 items in .* are empty.*text="):
        cl.Dataset(export, text="nothing")
    run = cl.Run.train(cl.Dataset(export, text="message"), tmp_path / "run")
    found = run.predict(pl.DataFrame(rows), decision=False)  # the export: a row per vote
    assert found.to_polars()["item"].to_list() == list(export.items)


@pytest.mark.parametrize("place", [0, 3], ids=["first", "last"])
def test_a_text_may_be_in_one_row_of_its_item(place: int, tmp_path: Path) -> None:
    shown = pl.when(annotator=place).then("text").otherwise(pl.lit(""))
    sites = pl.format("s{}", pl.int_range(240) // 4 % 20)
    rows, path = message_votes(60).with_columns(text=shown, site=sites), tmp_path / "votes.csv"
    rows.write_csv(path)
    data = cl.Dataset(cl.read_annotations(path), text="text", group="site")
    assert np.asarray(data.X).tolist() == messages(60)[0]
    run = cl.Run.train(data, tmp_path / "run")
    if place == 0:
        assert run.predict(path, decision=False).items == 60
    else:  # the blank row was predicted before the text came
        with pytest.raises(cl.CredalError, match=r"line 5: item 'm0' has other inputs"):
            run.predict(path, decision=False)
    rows[5, "site"] = "other"
    rows.write_csv(path)
    for option in ("group", "gold", "split"):
        with pytest.raises(cl.CredalError, match=r"item 'm1' has 'other' in column 'site' here"):
            cl.Dataset(cl.read_annotations(path), text="text", **{option: "site"})


def test_equal_texts_are_drawn_into_one_split(tmp_path: Path) -> None:
    content = lewidi(40)
    for number in range(1, 11):
        content[str(number)]["text"] = "the same text"
    data = cl.Dataset(cl.read_annotations(write(tmp_path / "train.json", content))).split()
    assert data.part is not None
    assert len(set(data.part[:10])) == 1


def test_official_splits_from_raw_files_to_decisions(
    official: Path, tmp_path: Path, capsys: Capture
) -> None:
    run = tmp_path / "run"
    done = succeed(capsys, *train_arguments(official, run))
    assert "note: votes by class: rude: " in done.out
    assert "(-3, -2, -1), fine: " in done.out
    assert "270 items with texts in 'text' of" in done.out
    assert "items: 120 train, 90 calibration, 60 test" in done.out
    assert len(done.out.splitlines()) <= 11
    trained = cl.Run.load(run)
    first = [trained.items.filter(split=each)["item"][0] for each in trained.facts.splits]
    assert first == ["1", "calibration:1", "test:1"]
    # The scores of the shared task, from the files alone.
    votes = json.loads((official / "test.json").read_text()).values()
    rude = [np.mean([int(x) < 0 for x in each["annotations"].split(",")]) for each in votes]
    clf = trained.load_model()
    texts = [each["text"] for each in votes]
    probs = clf.predict_credal(texts, meaning="votes").probs.double().numpy()
    shares = np.column_stack([rude, 1 - np.array(rude)])
    cost = -(shares * np.log(probs)).sum(1).mean()
    clear = shares.max(1) > 0.5
    right = (probs.argmax(1) == shares.argmax(1))[clear].mean()
    assert f"60 test items: cross-entropy {cost:.3f} to the votes; micro-F1" in done.out
    assert f"(accuracy) {right:.3f} against the class with the most votes" in done.out

    succeed(capsys, "report", run)
    succeed(capsys, "certify", run, "--max-error", "0.2")
    page = (run / "report.html").read_text()
    held_out = [text for text in texts if text in page]
    assert held_out, "the page shows no text"

    new = write(tmp_path / "new.json", lewidi(30, random_state=9))
    done = succeed(capsys, "predict", run, new, "-o", tmp_path / "decisions.csv")
    assert "Ignored" not in done.out
    found = pl.read_csv(tmp_path / "decisions.csv")
    again = clf.predict_proba(messages(30, random_state=9)[0])
    np.testing.assert_allclose(found["probability"], again.max(1), atol=1e-6)

    content = {f"new-{name}": each for name, each in lewidi(30, random_state=9).items()}
    new = write(tmp_path / "new.json", content)
    tasks = tmp_path / "tasks.json"
    options = ("--threshold", "0", "--limit", "3", "-o", tasks)
    done = succeed(capsys, "defer", run, new, *options)
    assert "it shows the column 'text'" in done.out
    written = json.loads(tasks.read_text())
    assert len(written) == 3
    assert written[0]["data"]["text"] in messages(30, random_state=9)[0]

    later = tmp_path / "later"
    done = succeed(capsys, "recalibrate", run, new, "--map", "-3,-2,-1=rude 0,1=fine", "-o", later)
    assert cl.Run.load(later).facts.splits == {"calibration": 15, "test": 15}


def test_recalibrate_knows_the_texts_of_a_wide_table(tmp_path: Path) -> None:
    def wide(random_state: int) -> pl.DataFrame:
        texts, votes = messages(90, random_state=random_state)
        said = np.where(np.arange(4) < votes[:, 1:], "rude", "fine")
        people = {f"person {who}": said[:, who] for who in range(4)}
        return pl.DataFrame(
            {"id": [f"{random_state}-{k}" for k in range(90)], "text": texts, **people}
        )

    run = cl.Run.train(
        cl.Dataset(cl.read_annotations(wide(0), ignore="text"), text="text"), tmp_path / "run"
    )
    assert sum(run.recalibrate(wide(1), tmp_path / "new").run.facts.splits.values()) == 90


def test_one_official_split_is_enough(official: Path) -> None:
    train, test = (cl.read_annotations(official / f"{name}.json") for name in ("train", "test"))
    data = cl.Dataset(train, test=test).split()
    assert data.part is not None
    assert (data.part == "test").sum() == 60
    assert 0 < (data.part == "calibration").sum() < (data.part == "train").sum()
    assert all(
        name.startswith("test:") == (part == "test")
        for name, part in zip(data.items, data.part, strict=True)
    )
    with pytest.raises(cl.CredalError, match="Pass either split=, or validation= and test="):
        cl.Dataset(train, test=test, split="part")


def test_python_takes_texts_and_tables_of_them_in_small_batches(
    official: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotations = cl.read_annotations(official / "train.json", map="-3,-2,-1=rude 0,1=fine")
    run = cl.Run.train(cl.Dataset(annotations, text="text"), tmp_path / "run")
    texts = messages(20, random_state=5)[0]
    whole = run.predict(texts, threshold=0.5).to_polars()
    table = pl.DataFrame({"id": range(20), "text": texts, "author": "x"})
    with pytest.raises(cl.CredalError, match="has no column 'text'"):
        run.predict(table.rename({"text": "message"}), threshold=0.5)
    monkeypatch.setattr("credalearn.app.item_stream._TEXTS", 7)
    seen: list[int] = []
    encode = cl.CredalClassifier.encode

    def watched(clf: cl.CredalClassifier, X: Any) -> Any:
        seen.append(len(X))
        return encode(clf, X)

    monkeypatch.setattr(cl.CredalClassifier, "encode", watched)
    assert run.predict(table, threshold=0.5).to_polars()["score"].equals(whole["score"])
    assert seen == [7, 7, 6]


def test_onnx_starts_after_the_encoder(official: Path, tmp_path: Path, capsys: Capture) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = tmp_path / "run"
    succeed(capsys, *train_arguments(official, run))
    done = succeed(capsys, "export", run, "--onnx", tmp_path / "model.onnx")
    assert "starts after the encoder" in done.out
    card = (tmp_path / "model.md").read_text()
    assert "The ONNX model starts after the encoder of the texts." in card
    clf, texts = cl.load(run / "model"), messages(10, random_state=4)[0]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    features = clf.encode(texts).toarray().astype(np.float64)
    (found,) = session.run(["probabilities"], {"features": features})
    np.testing.assert_allclose(found, clf.predict_proba(texts), atol=1e-5)
