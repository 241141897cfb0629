"""The names that columns and fields go by, and how one is found."""

from collections.abc import Collection, Sequence

from credalearn._checks import edit_distance, folded, nearest
from credalearn.app.annotations.asked import Asked
from credalearn.app.annotations.numbers import plain_number
from credalearn.app.annotations.places import listed, refuse, shown
from credalearn.app.annotations.text_tables import Table

# In the order in which they are tried, without case, spaces, "_", "-" and ".".
ITEM = (
    *("item", "itemid", "task", "taskid", "unit", "unitid", "example", "exampleid", "sampleid"),
    *("sample", "instance", "instanceid", "recordid", "documentid", "docid", "imageid", "image"),
    *("filename", "file", "filepath", "path", "imageurl", "url", "question", "questionid", "hitid"),
    *("textid", "commentid", "postid", "id", "uid", "uuid", "key", "name"),
)
NAMED_ANNOTATOR = (
    *("annotator", "annotatorid", "worker", "workerid", "rater", "raterid", "performer"),
    *("performerid", "user", "userid", "username", "labeler", "labelerid", "labeller", "coder"),
    *("coderid", "judge", "judgeid", "reviewer", "reviewerid", "assessor", "reader", "readerid"),
    *("participant", "participantid", "labeledby", "annotatedby", "completedby", "createdby"),
)
_JOBS = ("moderator", "expert", "physician", "doctor", "radiologist", "nurse", "pathologist")
# No misspelling is looked for in jobs: "excerpt" and "physical" are columns of their own.
JOBS = tuple(f"{job}{end}" for job in _JOBS for end in ("", "id", "name"))
_FLAGS = {"yes", "no", "y", "n", "true", "false", "t", "f", "0", "1"}
ANNOTATOR = (*NAMED_ANNOTATOR, *JOBS)
LABEL = (
    *("label", "labels", "answer", "vote", "class", "category", "annotation", "choice", "response"),
    *("rating", "judgment", "judgment", "value", "decision", "diagnosis", "sentiment", "tag"),
)
AT_LEAST = ("atleast", "lowerbound", "lower", "minimum", "minprobability", "bound")
WEIGHT = ("weight",)
PREDICTED = ("label", "probability", "lower", "upper", "score")  # the columns of ``predict``


def find(columns: Sequence[str], names: Collection[str]) -> str | None:
    """The column that goes by the first of ``names`` that any goes by.

    Example:
        >>> find(["Worker ID", "answer"], ANNOTATOR)
        'Worker ID'
    """
    by_name = {folded(column): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def item_column(table: Table, asked: Asked) -> str | None:
    """The column that names the item: the user's, or one of a known name."""
    if asked.item is not None:
        return table.column(asked.item, option="item")
    return find(table.columns, ITEM)


def annotator_column(table: Table, asked: Asked) -> str | None:
    """The column that names the annotator; one called by a job only if it seems to hold names."""
    if asked.annotator is not None:
        return table.column(asked.annotator, option="annotator")
    return find(table.columns, NAMED_ANNOTATOR) or _job_column(table, asked)


def label_column(table: Table, asked: Asked) -> str | None:
    """The column with the label."""
    if asked.label is not None:
        return table.column(asked.label, option="label")
    return find(table.columns, LABEL)


def _job_column(table: Table, asked: Asked) -> str | None:
    """The one column called by a job, unless it says who is an expert or what the expert said."""
    found = [column for column in table.columns if folded(column) in JOBS]
    label = label_column(table, asked)
    if len(found) != 1 or label is None:
        return None
    names, labels = (_values(table, column) for column in (found[0], label))
    return found[0] if len(names) > 1 and not names <= _FLAGS and not names & labels else None


def _values(table: Table, column: str) -> set[str]:
    cells = table.head[column].drop_nulls().unique()
    return {plain_number(cell.strip().casefold()) for cell in cells} - {""}


def refuse_predictions(table: Table) -> None:
    """Refuse what a model said: nobody learns from it what people say."""
    if set(PREDICTED) <= set(table.columns) and find(table.columns, ANNOTATOR) is None:
        rule = f"these are predictions, not annotations: there are columns {listed(PREDICTED)}"
        fix = "give the export of the annotation tool; of predictions, `credalearn defer` makes"
        refuse(table.path, "line 1", rule, fix=f"{fix} tasks for people")


def need(table: Table, column: str | None, names: Sequence[str], *, option: str) -> str:
    """The column, or the error that it is missing."""
    if column is not None:
        return column
    close = (nearest(folded(each), names) for each in table.columns)
    guess = next((each for each, name in zip(table.columns, close, strict=True) if name), None)
    fix = f"say --{option} {guess!r}" if guess else f"say with --{option} which of them it is"
    rule = f"no column is the {option}; the columns are {listed(table.columns, 20)}"
    return refuse(table.path, "line 1", rule, fix=fix)


def refuse_near_miss(
    table: Table, taken: Sequence[str], names: Sequence[str], *, option: str
) -> None:
    """Refuse a table without a column that another, misspelt, was probably meant to be."""
    long = [name for name in names if len(name) >= 5]
    for column in table.columns:
        word = folded(column)
        if column in taken or len(word) < 5 or word in (*ITEM, *LABEL):
            continue
        if _is_near(word, long):
            rule = f"no column is the {option}, and {shown(column)} looks like a misspelling of it"
            refuse(table.path, "line 1", rule, fix=f"rename that column to {option!r}")


def _is_near(word: str, names: Sequence[str]) -> bool:
    allowed = 1 if len(word) < 7 else 2
    return any(edit_distance(word, name, most=allowed) <= allowed for name in names)
