"""Who voted, and how often: columns that name annotators, and votes given twice."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation_exports import LONG, Write, as_counts, to_lines
from credalearn.app.annotations import read_annotations
from credalearn.app.joined.merging import merge
from credalearn.app.steps.inspecting import inspection
from credalearn.errors import CredalError


def test_jobs_name_the_annotator_and_what_is_not_read_is_said(write: Write) -> None:
    rows = "1,a,ban,9:00\n1,b,ban,9:01\n1,a,ban,9:00\n2,b,ok,9:02\n"
    for name in ("moderator", "Nurse ID", "expert_id", "rater_id"):
        found = read_annotations(write(f"post_id,{name},decision,at\n{rows}"))
        assert found.counts().sum() == 3
        assert found.source.unread == ()
    path = write(f"post_id,who,decision,at\n{rows}")
    found = read_annotations(path)
    assert found.counts().sum() == 4  # nobody knows whether they are repeats
    told = "not read: 'who', 'at'; if one names the annotator, name it with --annotator"
    assert told in inspection(found)
    assert "3 votes" in inspection(read_annotations(path, annotator="who"))[1]
    assert merge(found, found).source.unread == ("who", "at")
    found = read_annotations(write("id,label,her excerpt\nx,cat,a\nx,dog,b\n"))
    told = "not read: 'her excerpt'; if one names the annotator, say --annotator 'her excerpt'"
    assert told in inspection(found)


@pytest.mark.parametrize(
    "table",
    [
        "item,email,label,expert\n1,a,A,no\n1,b,A,no\n1,c,B,yes\n2,a,B,no\n2,b,B,no\n",
        "item,label,expert\n1,A,A\n1,A,A\n1,B,A\n2,B,B\n2,B,B\n",
        "item,label,expert\n1,A,x\n1,A,x\n1,B,\n2,B,\n2,B,\n",
        "item,doctor,nurse,label\n1,a,b,A\n1,a,b,A\n1,c,d,B\n2,a,b,B\n2,a,b,B\n",
        "\n".join(
            f'{{"item": {item}, "label": "{label}", "expert": {told}}}'
            for item, label, told in (
                *((1, "A", "true"), (1, "A", "true"), (1, "B", "false")),
                *((2, "B", "true"), (2, "B", "true")),
            )
        ),
    ],
)
def test_jobs_that_name_nobody_leave_out_no_vote(write: Write, table: str) -> None:
    found = read_annotations(write(table))
    assert as_counts(found) == {("1", "A"): 2, ("1", "B"): 1, ("2", "B"): 2}
    assert {*found.source.unread} & {"expert", "nurse"}
    assert "if one names the annotator" in " ".join(inspection(found))


def test_doccanos_fields_called_by_jobs_leave_out_no_vote(write: Write) -> None:
    records = [{"id": "x", "label": [each], "expert": True} for each in ("A", "A", "B")]
    found = read_annotations(write(to_lines(records)))
    assert as_counts(found) == {("x", "A"): 2, ("x", "B"): 1}
    assert found.source.unread == ("expert",)


def test_words_like_jobs_are_no_misspelt_annotators(write: Write) -> None:
    for name in ("excerpt", "export", "physical", "moderated"):
        found = read_annotations(write(f"id,{name},label\nx,a,cat\nx,b,dog\n"))
        assert found.source.unread == (name,)


def test_jobs_may_be_columns_of_votes(write: Write) -> None:
    found = read_annotations(write("item,doctor,nurse\nx,cat,dog\ny,dog,dog\n"))
    assert found.annotators == ("doctor", "nurse")


def test_one_of_a_kind_is_told_as_one(write: Write) -> None:
    found = read_annotations(write("task,worker,label\nx,a,cat\ny,a,dog\n"))
    assert inspection(found)[1] == "2 items, 1 annotator, 2 votes; classes cat, dog"


def test_of_changed_votes_the_last_may_count(write: Write) -> None:
    path = write(
        "task,worker,label,weight\nx,a,cat,1\nx,b,dog,1\nx,a,cat,1\nx,a,dog,2\ny,b,cat,1\n"
    )
    with pytest.raises(CredalError, match=r"votes twice on item 'x'.*To fix: say --repeats last"):
        read_annotations(path)
    found = read_annotations(path, repeats="last")
    assert found.items == ("x", "y")
    assert found.counts().tolist() == [[0, 3], [1, 0]]
    assert found.source.left_out == {"replaced by the annotator's last answer": 2}
    assert inspection(found)[-1] == "replaced by the annotator's last answer: 2"
    with pytest.raises(CredalError, match="repeats is 'refuse' or 'last'; got 'first'"):
        read_annotations(path, repeats="first")  # type: ignore[arg-type]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(votes=st.lists(st.tuples(*map(st.sampled_from, ("ijk", "ab ", "uvw"))), min_size=1))
def test_the_last_votes_are_those_of_a_loop(
    write: Write, votes: list[tuple[str, str, str]]
) -> None:
    path = write(LONG + "".join(f"{','.join(vote)}\n" for vote in votes))
    found = read_annotations(path, repeats="last", classes=["u", "v", "w"])
    last: dict[tuple[str, str], str] = {}
    for i, (item, who, label) in enumerate(votes):
        last[item, who if who != " " else str(i)] = label  # unknown people are all different
    assert as_counts(found) == Counter((item, label) for (item, _), label in last.items())


def test_identical_repeats_count_once(write: Write) -> None:
    found = read_annotations(write("task,worker,label\nx,a,cat\nx,a,cat\nx,b,dog\nx,a,cat\n"))
    assert as_counts(found) == {("x", "cat"): 1, ("x", "dog"): 1}
    assert found.source.left_out == {"repeated": 2}
