"""The names by which columns are known: of items, annotators, labels, weights and bounds."""

from collections.abc import Collection, Sequence

from credalearn._checks import folded

# In the order in which they are tried, without case, spaces, "_", "-" and ".".
ITEM = (
    *("item", "itemid", "task", "taskid", "unit", "unitid", "example", "exampleid", "sampleid"),
    *("sample", "instance", "instanceid", "recordid", "documentid", "docid", "imageid", "image"),
    *("filename", "file", "filepath", "path", "imageurl", "url", "question", "questionid", "hitid"),
    *("textid", "commentid", "postid", "id", "uid", "uuid", "key", "name"),
)
ANNOTATOR = (
    *("annotator", "annotatorid", "worker", "workerid", "rater", "raterid", "performer"),
    *("performerid", "user", "userid", "username", "labeler", "labelerid", "labeller", "coder"),
    *("coderid", "judge", "judgeid", "reviewer", "reviewerid", "assessor", "reader", "readerid"),
    *("participant", "participantid", "labeledby", "annotatedby", "completedby", "createdby"),
    *("moderator", "moderatorid", "expertid", "physicianid", "doctorid", "nurseid"),
)
LABEL = (
    *("label", "labels", "answer", "vote", "class", "category", "annotation", "choice", "response"),
    *("rating", "judgment", "judgement", "value", "decision", "diagnosis", "sentiment", "tag"),
)
TOP = ("top", "topclass", "mostprobable", "mostprobableclass")
TOP_PERCENT = ("toppercent", "topprob", "mostprobableprob", "mostprobableclassprob")
AT_LEAST = ("atleast", "lowerbound", "lower", "minimum", "minprobability", "bound")


def find(columns: Sequence[str], names: Collection[str]) -> str | None:
    """The column that goes by the first of ``names`` that any column goes by."""
    by_name = {folded(column): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def same_field(one: str | None, other: str | None) -> bool:
    """Whether two names mean one field, such as ``patient`` and ``data.patient``, or both none."""
    short, long = sorted(((one or "").casefold(), (other or "").casefold()), key=len)
    return short == long or (short != "" and long.endswith(f".{short}"))
