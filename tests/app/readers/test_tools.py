"""What is special in the exports of one tool: questions, options, drafts, fields inside fields."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from annotation_exports import CLASSES, EXPORTS, Write, as_counts, studio_task, to_json, to_lines
from credalearn import CredalError, read_annotations


def test_a_question_is_chosen_where_there_are_several(write: Write) -> None:
    tasks = [
        studio_task(i, {"text": "words"}, {"tone": "glad", "kind": kind})
        for i, kind in enumerate(["poem", "letter"])
    ]
    path = write(to_json(tasks))
    with pytest.raises(CredalError, match=r"answers to 'tone', 'kind'. .* question="):
        read_annotations(path)
    with pytest.raises(CredalError, match=r"not to 'knd'. To fix: choose one with question="):
        read_annotations(path, question="knd")
    assert read_annotations(path, question="kind", item="id").items == ("0", "1")


@pytest.mark.parametrize("name", EXPORTS)
def test_a_column_that_nothing_has_is_refused(write: Write, name: str) -> None:
    path, of = write(EXPORTS[name].write()), EXPORTS[name].format
    for role in ("item", "annotator", "weight", *["label"] * (of != "ground-truth")):
        with pytest.raises(CredalError, match=r"no column 'xy'; its columns are|, not to 'xy'"):
            read_annotations(path, format=of, **{role: "xy"})


def test_binary_answers_of_prodigy_are_votes(write: Write) -> None:
    def record(label: str, answer: str, number: int) -> dict[str, object]:
        return {"label": label, "answer": answer, "_input_hash": number, "_session_id": "s"}

    one = [record("SPAM", "accept", 1), record("SPAM", "reject", 2), record("SPAM", "ignore", 3)]
    found = read_annotations(write(to_lines(one)))
    assert as_counts(found) == {("1", "SPAM"): 1, ("2", "not SPAM"): 1}
    assert found.source.left_out == {"skipped": 1}
    two = [record("A", "accept", 1), record("B", "accept", 2), record("B", "reject", 3)]
    found = read_annotations(write(to_lines(two)))
    assert as_counts(found) == {("1", "A"): 1, ("2", "B"): 1}
    assert found.source.left_out == {"rejected": 1}


def test_prodigys_options_go_by_their_texts_where_each_has_its_own(write: Write) -> None:
    def records(*texts: str) -> list[dict[str, object]]:
        return [
            {
                "options": [{"id": i, "text": text} for i, text in enumerate([*texts, final])],
                "accept": [number],
                "answer": "accept",
                "_input_hash": number,
                "_annotator_id": "a",
            }
            for number, final in enumerate(["owl", "owl"])
        ]

    path = write(to_lines(records("cat", "dog")))
    found = read_annotations(path)
    assert found.classes == ("cat", "dog")
    assert "options by their texts" in found.source.words
    for asked in ({"classes": ["1", "0", "2"]}, {"unsure": ["2"]}):  # the user's names are ids
        found = read_annotations(path, **asked)
        assert set(found.classes) >= {"0", "1"}
        assert "texts" not in found.source.words
    assert read_annotations(path, classes=["dog", "cat", "owl"]).classes == ("dog", "cat", "owl")
    changed = records("cat", "dog")
    changed[1]["options"] = [{"id": 0, "text": "cats"}, {"id": 1, "text": "dog"}]
    for other in (changed, records("same", "same")):
        assert read_annotations(write(to_lines(other))).classes == ("0", "1")


def nested(name: str, item: str, label: str) -> dict[str, Any]:
    """A record of a tool whose item is inside of another field."""
    meta, text = {"meta": {"item": item, "by": "a"}}, {"text": "words"}
    if name == "label-studio":
        task: dict[str, Any] = studio_task(3, text, {"q": label}, **meta)
        return task
    if name == "prodigy":
        return {"answer": "accept", "accept": [label], "_input_hash": 7, **meta}
    if name == "doccano":
        return {"id": 1, "label": [label], **text, **meta}
    return {"id": 1, "label": label, **meta}


@pytest.mark.parametrize("name", ["prodigy", "label-studio", "doccano", "long"])
def test_fields_of_records_go_by_a_path(write: Write, name: str) -> None:
    path = write(to_lines([nested(name, "x", "cat"), nested(name, "y", "dog")]))
    for item in ("meta.item", "item"):
        found = read_annotations(path, item=item)
        assert found.source.format == name
        assert found.items == ("x", "y")
    if name in ("prodigy", "doccano", "long"):
        assert read_annotations(path, item="item", annotator="meta.by").annotators == ("a",)


def test_three_ways_to_answer_in_mechanical_turk_are_read(write: Write) -> None:
    ticks = "WorkerId,Input.id,Answer.pet.cat,Answer.pet.dog\na,x,true,false\nb,x,false,true\n"
    assert as_counts(read_annotations(write(ticks + "c,x,true,true\n"))) == {
        ("x", "cat"): 1,
        ("x", "dog"): 1,
    }
    answers = (
        'WorkerId,Input.id,Answer.taskAnswers\na,x,"[{""pet"":{""cat"":true,""dog"":false}}]"\n'
    )
    found = read_annotations(write(answers + 'b,x,"[{""pet"":{""label"":""dog""}}]"\n'))
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}


def test_check_boxes_of_mechanical_turk_are_choices(write: Write) -> None:
    boxes = "WorkerId,Input.id,Answer.cat.on,Answer.dog.on,Answer.note\na,x,true,false,hm\n"
    path = write(boxes + "b,x,false,true,\nc,x,true,true,\n")
    with pytest.raises(CredalError, match=r"'Answer', 'Answer.note'\. To fix: .*question="):
        read_annotations(path)
    found = read_annotations(path, question="Answer")
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}


def test_edition_of_2025_and_soft_labels_of_lewidi_are_read(write: Write) -> None:
    new = {"7": {"annotators": "A,B", "annotations": {"A": "2", "B": "5"}, "soft_label": {}}}
    assert as_counts(read_annotations(write(to_json(new)))) == {("7", "2"): 1, ("7", "5"): 1}
    by_key = read_annotations(write(to_json(new)), item="id")  # as the column of the features
    assert by_key.items == ("7",)
    soft = {"7": {"annotations": "", "annotators": "", "soft_label": {"0": 0.4, "1": 0.6}}}
    found = read_annotations(write(to_json(soft)))
    assert found.kind == "probabilities"
    assert found.counts().tolist() == [[0.4, 0.6]]


def test_doccano_names_the_annotator_by_its_file(write: Write) -> None:
    lines = to_lines([{"id": 1, "text": "a", "label": ["x"]}, {"id": 2, "label": ["y"]}])
    assert read_annotations(write(lines, "ann.jsonl")).annotators == ("ann",)
    assert read_annotations(write(lines, "all.jsonl")).annotators == ()
    spans = to_lines([{"id": 1, "text": "a", "label": [[0, 2, "PER"]]}])
    with pytest.raises(CredalError, match="a label must be a class; got"):
        read_annotations(write(spans))


def worker(who: str, content: str) -> dict[str, object]:
    """An answer to Ground Truth."""
    return {"workerId": who, "annotationData": {"content": content}}


def test_answers_of_ground_truth_before_consolidation_are_read(write: Write) -> None:
    said = [f'{{"image-contains": {{"label": "{label}"}}}}' for label in ("cat", "dog")]
    given = {"annotations": [worker(who, each) for who, each in zip("ab", said, strict=True)]}
    request = [{"datasetObjectId": "0", "dataObject": {"s3Uri": "s3://b/x.jpg"}, **given}]
    found = as_counts(read_annotations(write(to_json(request))))
    assert found == {("s3://b/x.jpg", "cat"): 1, ("s3://b/x.jpg", "dog"): 1}
    both = [f'{{"mood": {{"label": "{x}"}}, "topic": {{"label": "{y}"}}}}' for x, y in ("ab", "cd")]
    given = {"annotations": [worker(who, each) for who, each in zip("ab", both, strict=True)]}
    request = [{"datasetObjectId": "0", "dataObject": {"s3Uri": "s3://b/x.jpg"}, **given}]
    found = as_counts(read_annotations(write(to_json(request)), label="mood"))
    assert found == {("s3://b/x.jpg", "a"): 1, ("s3://b/x.jpg", "c"): 1}


def test_argilla_is_read_from_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": ["x"],
            "q.responses": [["cat", "dog", "cat"]],
            "q.responses.users": [["a", "b", "c"]],
            "q.responses.status": [["submitted", "submitted", "draft"]],
        }
    )
    frame.write_parquet(tmp_path / "argilla.parquet")
    found = read_annotations(tmp_path / "argilla.parquet")
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}
    assert found.source.left_out == {"draft": 1}


def argilla(number: int, **answers: list[str]) -> dict[str, object]:
    """A record that two people answered, or nobody."""
    record: dict[str, object] = {"id": f"r{number}", "status": "completed", "_server_id": "s"}
    record["q1.suggestion"] = "cat"
    for question, labels in answers.items():
        record[f"{question}.responses"] = labels
        record[f"{question}.responses.users"] = ["a", "b"]
        record[f"{question}.responses.status"] = ["submitted", "submitted"]
    return record


def test_argillas_answers_may_begin_after_hundreds_of_records(write: Write) -> None:
    pending = [argilla(i) for i in range(200)]
    one = [*pending, argilla(200, q1=["cat", "dog"])]
    found = as_counts(read_annotations(write(to_lines(one))))
    assert found == {("r200", "cat"): 1, ("r200", "dog"): 1}
    path = write(to_lines([*one, argilla(201, q1=["cat", "cat"], q2=["a", "b"])]))
    found = as_counts(read_annotations(path, question="q2"))
    assert found == {("r201", "a"): 1, ("r201", "b"): 1}
    with pytest.raises(CredalError, match=r"answers to 'q1', 'q2'.*question="):
        read_annotations(path)


def test_label_studio_says_that_tasks_share_an_item(write: Write) -> None:
    tasks = [
        studio_task(number, {"text": text}, *({"q": label} for label in labels))
        for number, (text, labels) in enumerate([("Hi", "ab"), ("Hi", "ab"), ("Ho", "")], 11)
    ]
    path = write(to_json(tasks))
    found = read_annotations(path)
    assert (found.items, found.source.item) == (("Hi", "Ho"), "data.text")
    assert found.source.left_out == {"repeated": 2}  # "Ho" is no answer
    assert found.source.notes == ("2 tasks share an item; pass item='id' to keep all tasks apart",)
    assert read_annotations(path, item="id").items == ("11", "12", "13")
    nameless = write(to_json([*tasks, studio_task(14, {"text": " "})]))
    assert read_annotations(nameless).source.left_out == {"repeated": 2}
    for annotation in tasks[0]["annotations"]:  # without a vote, it is still an item
        annotation["was_cancelled"] = True
    found = read_annotations(write(to_json(tasks)), item="id")
    assert found.items == ("11", "12", "13")
    assert found.source.left_out == {"canceled": 2}
    tasks[1]["annotations"][0]["ground_truth"] = True
    note = "annotations marked as ground truth, which count as votes: 1"
    assert read_annotations(write(to_json(tasks)), item="id").source.notes == (note,)


def test_ground_truth_keeps_failed_objects_apart(write: Write) -> None:
    answers = [worker("a", '{"label": "cat"}'), worker("b", '{"label": "dog"}')]
    records = [
        {"source-ref": "x", "job": {"annotationsFromAllWorkers": answers}},
        {"source-ref": "y", "job-metadata": {"failure-reason": "too large"}},
    ]
    found = read_annotations(write(to_lines(records)))
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}
    assert found.source.left_out == {"failed": 1}
    with pytest.raises(CredalError, match=r"line 2: the record has no list"):
        read_annotations(write(to_lines([records[0], {"source-ref": "y"}])))


DAMAGED: dict[str, tuple[list[Any], str]] = {
    "label-studio": (
        [{"data": {"item": "x"}, "annotations": [{"result": []}]}, {"data": 1, "annotations": []}],
        "line 2: a task must have data",
    ),
    "argilla": ([{"id": 1, "q.responses": "cat"}], "record 1: 'q.responses' must be a list"),
    "prodigy": (
        [{"answer": "accept", "_input_hash": 1, "accept": "cat"}],
        "record 1: accept must be a list; got 'cat'",
    ),
    "lewidi": (
        [{"annotators": "A,B", "annotations": "1,2,3", "soft_label": {}}],
        "2 annotators and 3 annotations",
    ),
    "ground-truth": (
        [{"datasetObjectId": 1, "annotations": [{"workerId": "a"}]}],
        "an answer must have JSON in annotationData.content",
    ),
    "doccano": (
        [{"id": 1, "annotations": [{"label": "cat", "user": [1]}]}],
        "record 1: a user must be a name; got",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_records_are_refused_with_their_place(write: Write, name: str) -> None:
    records, message = DAMAGED[name]
    with pytest.raises(CredalError, match=message):
        read_annotations(write(to_lines(records)), format=name)


@pytest.mark.parametrize("name", ["label_counter", "soft_label"])
def test_counts_in_records_have_no_class_called_item(write: Write, name: str) -> None:
    records = {"x": {name: {"item": 3, "dog": 2, "cat": 1}}}
    with pytest.raises(CredalError, match="no class can be called 'item'"):
        read_annotations(write(to_json(records)))


def test_label_chooses_the_field_of_chaosnli(write: Write) -> None:
    path = write(EXPORTS["nested"].write())
    old = read_annotations(path, label="old_labels")
    assert as_counts(old) == EXPORTS["nested"].counts()
    assert (old.kind, old.annotators) == ("votes", ())
    with pytest.raises(CredalError, match=r"'label_count' lists 3 counts .* with classes="):
        read_annotations(path, label="label_count")
    listed = read_annotations(path, label="label_count", classes=CLASSES)
    assert as_counts(listed) == EXPORTS["nested"].counts()
    own = [{"id": i, "poll": {"yes": 3 - i, "no": i}, "note": []} for i in range(3)]
    assert read_annotations(write(to_json(own)), label="poll").counts().tolist()[2] == [1, 2]


def test_older_responses_of_argilla_are_read(write: Write) -> None:
    def response(who: str, label: str, status: str) -> dict[str, object]:
        return {"user_id": who, "status": status, "values": {"tone": {"value": label}}}

    given = [response("u1", "glad", "submitted"), response("u2", "sad", "discarded")]
    records = [
        {"id": "a", "fields": {"text": "Hi"}, "responses": given},
        {"id": "b", "fields": {"text": "Bye"}, "responses": [response("u2", "sad", "submitted")]},
        {"id": "c", "fields": {"text": "Oh"}, "responses": []},
    ]
    found = read_annotations(write(to_json(records)))
    assert as_counts(found) == {("a", "glad"): 1, ("b", "sad"): 1}
    assert found.source.left_out == {"discarded": 1}
    for damaged in (7, [7], [{"values": 7}], [{"values": {"tone": 7}}]):
        path = write(to_json([*records, {"id": "d", "responses": damaged}]))
        with pytest.raises(CredalError, match=r"record 4: a response must be an object; got 7"):
            read_annotations(path)
