"""What a study of label rules says, in sentences and in a table to print."""

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from credalearn._formats import percent
from credalearn.app.annotations import Annotations
from credalearn.app.annotations.places import enumerated, many
from credalearn.app.steps.label_study import HARDLY, LabelStudy
from credalearn.labels import PROMISING
from credalearn.theory import RuleCoverage

LEGEND = """\
diameter: mean imprecision of the sets. agree: sets that the held-out votes agree with, by binomial
tests of all classes together, which refute 5 % of right sets at most, whatever --confidence is.
Coverage is at most agree / 0.95, and may be far less. testable: sets that some outcome could have
rejected. says at least: mean lower bound of the class with most votes, beside the share of the
held-out votes that it got. ±: one standard error (beside the share: of the difference), for the
chance of items and splits, not of who was asked. Tested are labels from the building votes alone:
from all votes of an item they rest on more."""

_HEADS = ("diameter", "agree\n%", "testable\n%", "says at\nleast %", "held-out\nshare %")
_HALF = 0.5  # of the sets must be open to rejection before a rule is called tested


def read_line(annotations: Annotations) -> str:
    """What was read, in a line.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> read_line(three_items())
        'votes.csv: 3 items, 3 annotators, 2 classes (one row a vote)'
    """
    people = many(len(annotations.annotators), "annotator") + ", " if annotations.annotators else ""
    source = annotations.source
    return (
        f"{source.path}: {many(len(annotations.items), 'item')}, {people}"
        f"{many(len(annotations.classes), 'class', 'classes')} ({source.words})"
    )


def split_line(study: LabelStudy) -> str:
    """How the votes were split, in a line.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> from credalearn.app.steps.label_study import study_labels
        >>> split_line(study_labels(three_items(), splits=5))
        '5 splits of the annotators; votes an item: 1 (1 to 2) build, 1 held out'
    """
    what = "the annotators" if study.people else "each item's votes"
    line = (
        f"{many(study.splits, 'split')} of {what}; votes an item: {study.building} build, "
        f"{study.held_out} held out"
    )
    if study.left_out:
        never, are = ("never has", "is") if study.left_out == 1 else ("never have", "are")
        line += f"; {many(study.left_out, 'item')} {never} votes on both sides and {are} left out"
    return line


def coverage_table(study: LabelStudy) -> Table:
    """The rules in rows, the recommended one in bold; it fits 80 columns.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> from credalearn.app.steps.label_study import study_labels
        >>> coverage_table(study_labels(three_items(), rules=("idm",), splits=2)).row_count
        1
    """
    name = Column("rule", overflow="fold")  # in 80 columns the longest name takes two lines
    table = Table(name, box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for head in _HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("fails by", no_wrap=True)
    best = study.best
    for each in study.rules:
        cells = (
            each.rule,
            f"{each.diameter:.3f}",
            f"{_hundredths(each.agree)}±{_hundredths(each.agree_error)}" if each.testable else "–",
            f"{100 * each.testable:.1f}",
            _hundredths(each.stated),
            f"{_hundredths(each.held_out)}±{_hundredths(each.gap_error)}",
            study.fails(each) or "–",
        )
        table.add_row(*cells, style="bold" if each is best else None)
    return table


def recommendation(study: LabelStudy) -> str:
    """Which rule to take, or why none can be named; and what sets with a promise cost.

    The rule of smallest mean diameter among those whose sets agree with the held-out votes for a
    share of the confidence or more, and whose bounds are not above the held-out share, each but for
    two standard errors. That is no proof of coverage, which it says.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> from credalearn.app.steps.label_study import study_labels
        >>> recommendation(study_labels(three_items(), rules=("idm",), splits=5)).split(":")[0]
        'No rule can be named by these votes'
    """
    return f"{_named(study)}\n{_TO_LEARN}"


_TO_LEARN = (
    "Which rule to learn from is another question: sets that hold may be too wide to teach "
    "anything. docs/few-votes.md shows how accurately models learned from each, train's default "
    "relax-ties among them, by the number of votes."
)


def _named(study: LabelStudy) -> str:
    best = study.best
    wanted = percent(study.confidence)
    if best is None:
        return _none_holds(study, wanted)
    why = (
        f"of the rules whose sets agree with the held-out votes for {wanted} of the items and "
        "whose bounds these bear out"
    )
    if best.testable >= _HALF:
        only = len([each for each in study.rules if not study.fails(each)]) == 1
        sets = "the only one" if only else "the one of smallest sets"
        return (
            f"Take {best.rule}: {sets} {why} (mean diameter {best.diameter:.3f}).\n"
            f"{_LIMIT} {_promise(study, wanted)}"
        )
    votes = "vote" if str(study.held_out) == "1" else "votes"
    share = "none" if best.testable == 0 else f"only {percent(best.testable)}"
    few = f"{study.held_out} held-out {votes} an item can reject {share} of its sets"
    needed = _needed(best)
    if best.testable >= HARDLY:
        return (
            f"Take {best.rule} with care: it has the smallest sets {why} (mean diameter "
            f"{best.diameter:.3f}), but {few}. {needed}\n{_LIMIT} {_promise(study, wanted)}"
        )
    refuted = [each.rule for each in study.rules if study.fails(each)]
    against = f" What can be told: {enumerated(refuted)} {_fail(refuted)}." if refuted else ""
    return (
        f"No rule can be named by these votes: {best.rule} has the smallest sets of those that "
        f"nothing speaks against, but {few}. {needed}{against}\n{_promise(study, wanted)}"
    )


_LIMIT = (
    "Coverage is at most agree / 0.95, and may be far less: votes do not refute sets that miss by "
    "less than their own noise."
)


def _promise(study: LabelStudy, wanted: str) -> str:
    """Which rules promise to contain the distribution, and how wide their sets are here."""
    if study.skill != "equal":
        return "On top of a model of the annotators no rule promises to contain a distribution."
    start = (
        "If sets must contain the distribution that votes are drawn from, with probability "
        f"{wanted}, these promise it of independent votes:"
    )
    tried = [each for each in study.rules if each.rule in PROMISING]
    if not tried:
        return f"{start} {enumerated(PROMISING)}, none of them tried here."
    prices = [
        f"{each.rule} (mean diameter {each.diameter:.3f}{', fails here' * bool(study.fails(each))})"
        for each in tried
    ]
    return f"{start} {enumerated(prices)}."


def _none_holds(study: LabelStudy, wanted: str) -> str:
    nearest = max(study.rules, key=lambda each: each.agree)
    low = {
        "agree": f"agrees with the held-out votes for {percent(nearest.agree)} and not {wanted}",
        "bound": (
            f"states {percent(nearest.stated)} where the held-out votes give "
            f"{percent(nearest.held_out)}"
        ),
    }
    fails = study.fails(nearest)
    why = " and ".join(text for name, text in low.items() if fails in (name, "both"))
    return (
        f"No rule of these holds: {nearest.rule}, which comes nearest, {why}. To fix: try all "
        "rules, a larger --s, or more votes an item."
    )


def _needed(found: RuleCoverage) -> str:
    if found.votes_needed == float("inf"):
        return "No number of held-out votes can reject half of them: they exclude too little."
    votes = many(round(found.votes_needed), "held-out vote")
    return f"It takes {votes} an item to be able to reject half of them."


def _fail(rules: list[str]) -> str:
    return "fails" if len(rules) == 1 else "fail"


def _hundredths(share: float) -> str:
    return f"{100 * share:.2f}"
