"""``credalearn inspect``: what an export holds and who disagrees about what, in lines to read."""

import shlex

from credalearn._checks import folded
from credalearn._formats import percent
from credalearn.app.annotations import (
    Annotations,
    agreement,
    annotator_agreement,
    confused_pairs,
    typo_classes,
)
from credalearn.app.annotations.places import listed, many
from credalearn.app.facts import AgreementFacts, AnnotationFacts

_MOST_SHOWN = 5
_UNSURE = {  # what people write who do not know, as ``folded`` has it; "" is "-" or "..."
    *("", "?", "??", "???", "na", "n/a", "none", "null", "nil", "idk", "dk", "unsure", "notsure"),
    *("dontknow", "don'tknow", "don’tknow", "unknown", "uncertain", "undecided", "cannottell"),
    *("can'ttell", "canttell", "noidea", "noanswer", "skip", "skipped"),
}


def inspection(annotations: Annotations) -> list[str]:
    """Lines that say what was read and how far people agree.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> print(inspection(three_items())[1])
        3 items, 3 annotators, 7 votes; classes cat, dog
    """
    source = annotations.source
    lines = [f"{source.path}: {source.words}", *source.merged]
    if annotations.kind not in ("votes", "counts"):
        count = f"{many(len(annotations.items), 'item')}, {annotations.kind} of the classes"
        lines.append(f"{count} {_listed(annotations.classes)}")
        return lines + left_out_lines(annotations)
    found = agreement(annotations)
    people = f"{many(found.annotators, 'annotator')}, " if found.annotators else ""
    lines.append(
        f"{many(found.items, 'item')}, {people}{many(found.votes, 'vote')}; classes "
        f"{_listed(annotations.classes)}"
    )
    lines.append(f"votes an item: {found.fewest} to {found.most}, {found.median:g} in the middle")
    if found.unanimous is not None and found.tied is not None:
        alpha = "not defined" if found.alpha is None else f"{found.alpha:.3f}"
        lines.append(
            f"of items with two votes or more {percent(found.unanimous)} are unanimous and "
            f"{percent(found.tied)} tie; Krippendorff's alpha {alpha}"
        )
    if found.most == 1:
        lines.append(
            "one vote an item: labels collapse to hard ones, and no disagreement can be learned"
        )
    pairs = confused_pairs(annotations, most=_MOST_SHOWN)
    if pairs:
        told = ", ".join(
            f"{a} and {b} ({percent(pair.share)})" for pair in pairs for a, b in [pair.classes]
        )
        lines.append(f"people confuse most: {told}")
    if annotations.kind == "votes":
        far = [each for each in annotator_agreement(annotations) if each.far]
        for each in far[:_MOST_SHOWN]:
            lines.append(
                f"far from the rest: {each.name} agrees with the others' majority on "
                f"{each.agreed} of {each.compared} items"
            )
        if len(far) > _MOST_SHOWN:
            lines.append(f"far from the rest: {len(far) - _MOST_SHOWN} more")
    for typo in typo_classes(annotations):
        lines.append(
            f"a typo? {typo.label!r} is seen {_times(typo.votes)} and looks like {typo.like!r}, "
            f"seen {_times(typo.like_votes)}: {typo.why}"
        )
    if annotations.kind == "votes":
        lines += _perhaps_unsure(annotations)
    lines += _later_classes(annotations)
    return lines + left_out_lines(annotations)


def left_out_lines(annotations: Annotations) -> list[str]:
    """Lines that say what was not read, left out or changed.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> left_out_lines(three_items())
        []
    """
    source = annotations.source
    lines = list(source.notes)
    if source.unread:
        fix = "name it with --annotator"
        if len(source.unread) == 1:
            fix = f"say --annotator {shlex.quote(source.unread[0])}"
        lines.append(f"not read: {listed(source.unread)}; if one names the annotator, {fix}")
    if source.unused:
        why = "no answer is this" if annotations.kind == "votes" else "it is for votes one by one"
        lines.append(f"--unsure {listed(source.unused)} changes nothing: {why}")
    told = {**source.left_out, **source.mended}
    if told:
        lines.append("; ".join(f"{reason}: {count:,}" for reason, count in told.items()))
    return lines


def annotation_facts(annotations: Annotations) -> AnnotationFacts:
    """The same for ``run.json``."""
    source = annotations.source
    found, pairs = None, None
    if annotations.kind in ("votes", "counts"):
        found = agreement(annotations)
        pairs = confused_pairs(annotations, most=_MOST_SHOWN)
    return AnnotationFacts(
        kind=annotations.kind,
        path=str(source.path),
        later=tuple(str(path) for path in source.later),
        format=source.words,
        item=source.item,
        items=len(annotations.items),
        annotators=len(annotations.annotators) or None,
        votes=None if found is None else found.votes,
        left_out=dict(source.left_out),
        agreement=None
        if found is None
        else AgreementFacts(
            alpha=found.alpha,
            unanimous=found.unanimous,
            tied=found.tied,
            votes_per_item=(found.fewest, found.median, found.most),
            confused=tuple((*pair.classes, pair.share) for pair in pairs or ()),
        ),
    )


def _perhaps_unsure(annotations: Annotations) -> list[str]:
    """Classes that may be no answer, and the option that says so."""
    found = [name for name in annotations.classes if folded(name) in _UNSURE]
    if not found:
        return []
    options = " ".join(f"--unsure {shlex.quote(name)}" for name in found)
    return [f"no answer? {listed(found)}: if people mean that they do not know, say {options}"]


def _later_classes(annotations: Annotations) -> list[str]:
    """Classes that nobody gives an item of the first round: such items alone are held out."""
    first = annotations.source.first_items
    if first is None:
        return []
    counts = annotations.counts()
    absent = (counts[:first].sum(0) == 0) & (counts.sum(0) > 0)
    found = [name for name, is_absent in zip(annotations.classes, absent, strict=True) if is_absent]
    if not found:
        return []
    told = f"only items of later exports have votes for {listed(found)}"
    return [f"{told}: without --split no calibration or test item can have it"]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _listed(names: tuple[str, ...], most: int = 12) -> str:
    more = f", … {len(names)} in all" if len(names) > most else ""
    return ", ".join(names[:most]) + more
