"""What ``run.json`` says of every run, and in which form."""

from types import UnionType
from typing import Any, get_args

from credalearn.app.annotations.raw import Kind

FACTS: dict[tuple[str, ...], type | UnionType] = {
    ("classes",): list,
    ("created",): str,
    ("versions",): dict,
    ("annotations",): dict,
    ("annotations", "kind"): str,
    ("inputs",): dict,
    ("inputs", "kind"): str,
    ("inputs", "path"): str,
    ("splits",): dict,
    ("truth",): str,
    ("method",): str,
    ("label_rule",): str,
    ("backbone",): str,
    ("epochs",): int,
    ("random_state",): int,
    ("options",): dict,
    ("options", "s"): int | float,
    ("options", "confidence"): int | float,
    ("options", "skill"): str,
    ("options", "weights"): str | None,
    ("options", "augment"): str,
    ("options", "learning_rate"): int | float,
    ("options", "batch_size"): int,
}
_EARLIER: dict[tuple[str, ...], type | UnionType] = {  # where it was trained in another run
    ("recalibrated_from", "path"): str,
    ("recalibrated_from", "said"): str,
    ("recalibrated_from", "created"): str,
    ("recalibrated_from", "inputs", "path"): str,
    ("recalibrated_from", "splits", "train"): int,
}
_INPUTS = {"features": ("features", list), "images": ("image_size", int)}


def lacking_facts(facts: dict[str, Any]) -> list[str]:
    """What the facts of a run lack, or hold in another form; empty where they are whole.

    Example:
        >>> from credalearn.app.run.examples import empty_run
        >>> lacking_facts(empty_run().facts | {"options": {}})[0]
        "'s' of its 'options'"
    """
    wanted = FACTS | (_EARLIER if "recalibrated_from" in facts else {})
    places = [place for place, form in wanted.items() if not _holds(facts, place, form)]
    if not places:
        kind = facts["inputs"]["kind"]
        if facts["annotations"]["kind"] not in get_args(Kind):
            places.append(("annotations", "kind"))
        elif kind not in _INPUTS:
            places.append(("inputs", "kind"))
        elif not _holds(facts["inputs"], _INPUTS[kind][:1], _INPUTS[kind][1]):
            places.append(("inputs", _INPUTS[kind][0]))
    return [" of its ".join(repr(name) for name in reversed(place)) for place in places]


def _holds(facts: object, place: tuple[str, ...], form: type | UnionType) -> bool:
    """Whether there is a value of this form at a place, within the objects of these names."""
    for name in place:
        if not isinstance(facts, dict) or name not in facts:
            return False
        facts = facts[name]
    return isinstance(facts, form)
