"""What ``inspect`` prints."""

import json
from pathlib import Path

from credalearn.app.annotations import read_annotations
from credalearn.app.joined.rounds import read_rounds
from credalearn.app.steps.inspecting import annotation_facts, inspection


def votes_file(folder: Path, *rows: str) -> Path:
    path = folder / "votes.csv"
    path.write_text("\n".join(["item,annotator,label", *rows, ""]))
    return path


def test_an_inspection_says_who_disagrees_about_what(tmp_path: Path) -> None:
    rows = []
    for number in range(40):
        label = ("horse", "zebra")[number % 2]
        rows += [f"x{number},{who},{label}" for who in ("ann", "bo", "cy")]
        rows.append(f"x{number},contrary,{('zebra', 'horse')[number % 2]}")
    rows += ["y,ann,horse", "y,bo,zebra", "z,ann,hrose", "z,bo,horse"]
    lines = inspection(read_annotations(votes_file(tmp_path, *rows)))
    text = "\n".join(lines)
    for said in (
        "42 items, 4 annotators, 164 votes; classes horse, hrose, zebra",
        "votes an item: 2 to 4, 4 in the middle",
        "0 % are unanimous and 4.76 % tie; Krippendorff's alpha -0.006",
        "people confuse most: horse and zebra (99.2 %)",
        "far from the rest: contrary agrees with the others' majority on 0 of 40 items",
        "a typo? 'hrose' is seen once and looks like 'horse', seen 82 times: 1 letter differs",
    ):
        assert said in text
    assert not [line for line in lines if "\n" in line]


def test_labels_that_may_be_no_answer_are_told_with_the_option(tmp_path: Path) -> None:
    rows = ("a,ann,cat", "a,bo,idk", "b,ann,dog", "b,bo,N/A", "c,ann,?", "c,bo,Don't know")
    path = votes_file(tmp_path, *rows)
    lines = inspection(read_annotations(path, unsure=["zebra"]))
    told = """if people mean that they do not know, say --unsure '?' --unsure 'Don'"'"'t know' """
    assert [line for line in lines if line.startswith("no answer?")] == [
        f"""no answer? '?', "Don't know", 'N/A', 'idk': {told}--unsure N/A --unsure idk"""
    ]
    assert "--unsure 'zebra' changes nothing: no answer is this" in lines
    unsure = ["?", "Don't know", "N/A", "idk"]
    text = "\n".join(inspection(read_annotations(path, unsure=unsure)))
    assert "no answer" not in text
    assert "unsure: 4" in text
    path.write_text("item,count_cat,count_idk\nx,1,2\ny,2,1\n")
    text = "\n".join(inspection(read_annotations(path, unsure=["idk"])))
    assert "--unsure 'idk' changes nothing: it is for votes one by one" in text


def test_what_was_merged_follows_the_first_line(tmp_path: Path) -> None:
    path = votes_file(tmp_path, "a,ann,cat", "b,bo,dog")
    lines = inspection(read_rounds(path, [path], {}))
    assert lines[0].startswith(f"{path}: one row a vote")
    assert lines[1] == f"{path} adds 0 items and 0 votes; 2 votes were there before"


def test_one_vote_an_item_is_said(tmp_path: Path) -> None:
    path = votes_file(tmp_path, "a,ann,cat", "b,bo,dog")
    lines = inspection(read_annotations(path))
    assert "one vote an item: labels collapse to hard ones" in lines[-1]
    facts = annotation_facts(read_annotations(path))
    assert facts.agreement.votes_an_item == [1, 1.0, 1]
    assert facts.agreement.alpha is None
    json.dumps(facts, allow_nan=False)


def test_shares_are_inspected_without_votes(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("item,cat,dog\nx,0.25,0.75\ny,1,0\n")
    lines = inspection(read_annotations(path))
    assert lines[1] == "2 items, probabilities of the classes cat, dog"
    assert annotation_facts(read_annotations(path))["agreement"] is None
