"""What was said of each item into a label to learn from and a truth to be measured against.

Shapes: N items, K classes.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from credalearn._checks import nearest
from credalearn.app.annotations import Annotations, typo_classes
from credalearn.app.annotations.dawid_skene import dawid_skene
from credalearn.app.annotations.numbers import plain_number
from credalearn.app.annotations.places import listed, shown
from credalearn.app.annotations.weights import refuse_weights
from credalearn.app.joined.options import TrainOptions
from credalearn.errors import CredalError
from credalearn.labels import VoteRule, at_least, from_posterior, from_votes
from credalearn.labels.soft import SOFT_RULES
from credalearn.sets import CredalSet, LowerBounds

if TYPE_CHECKING:
    from credalearn.app.joined.joining import Prepared


def training_labels(
    annotations: Annotations, prepared: "Prepared", options: TrainOptions
) -> CredalSet:
    """Credal labels of the training items, in their order.

    A model of the annotators knows the votes about these items alone: with the others' in it, the
    labels would tell of the items that the classifier is calibrated and tested on.

    Args:
        annotations: What people said.
        prepared: The items, split.
        options: The rule, its options, and whether annotators are weighed by their skill.

    Raises:
        CredalError: As :func:`make_labels`.
    """
    rows = [row for row, name in enumerate(prepared.split) if name == "train"]
    posterior = None
    if options.skill != "equal":
        items = [prepared.items[row] for row in rows]
        known = set(items)
        among = np.array([item in known for item in annotations.items])
        found = dict(zip(annotations.items, dawid_skene(annotations, among=among), strict=True))
        posterior = np.stack([found[item] for item in items])
    return make_labels(
        annotations,
        prepared.counts[rows],
        options.labels,
        s=options.s,
        confidence=options.confidence,
        posterior=posterior,
    )


def make_labels(
    annotations: Annotations,
    values: np.ndarray,
    rule: VoteRule,
    *,
    s: float = 1.0,
    confidence: float = 0.95,
    posterior: np.ndarray | None = None,
) -> CredalSet:
    """Credal labels of items: by the rule, or as stated where people stated bounds.

    An item that everybody was unsure of is the set of all distributions, whatever the rule.

    Args:
        annotations: Says what the values are.
        values: Votes, shares or bounds by class, shape (N, K).
        rule: What votes become.
        s: As for :func:`credalearn.from_votes`.
        confidence: As there.
        posterior: What a model of the annotators makes of the votes, shape (N, K), to take the
            place of their shares.

    Raises:
        CredalError: If the rule counts votes, and these are shares or have weights.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> make_labels(three_items(), np.array([[3.0, 1.0], [0.0, 0.0]]), "relax").lower.tolist()
        [[0.75, 0.0], [0.0, 0.0]]
    """
    if annotations.kind == "bounds":
        return at_least(values)
    if rule in SOFT_RULES:
        return _of_shares(values, rule, posterior)
    # The others count, so many of so many, and leave the set open where nobody voted.
    if posterior is not None:
        return from_posterior(posterior, values.sum(1), rule=rule, s=s, confidence=confidence)
    refuse_weights(
        annotations,
        rule=f"the rule {rule!r} counts votes",
        instead=", or give --labels relax-ties or --labels precise, which take shares",
    )
    if annotations.kind == "probabilities" or (values != values.round()).any():
        raise CredalError(_no_counts(annotations, values, rule))
    return from_votes(values, rule=rule, s=s, confidence=confidence)


def _of_shares(values: np.ndarray, rule: VoteRule, posterior: np.ndarray | None) -> LowerBounds:
    """The rule on the posterior or else the shares, and all distributions where nobody voted."""
    voted = values.sum(1, keepdims=True) > 0
    if posterior is None:
        filled = np.where(voted, values, 1.0)
        posterior = filled / filled.sum(1, keepdims=True)
    shares = torch.from_numpy(posterior)
    labels = SOFT_RULES[rule](shares, shares.argmax(1))
    return LowerBounds(labels.lower.numpy() * voted, soft=posterior)


def _no_counts(annotations: Annotations, values: np.ndarray, rule: str) -> str:
    if annotations.kind == "probabilities":
        what = "probabilities"
    else:
        value = values[values != values.round()][0]
        what = f"not whole, such as {value:g}"
    return (
        f"the rule {rule!r} counts votes; those of {annotations.source.path} are {what}. To fix: "
        "give --labels relax-ties or --labels precise, or give the votes themselves."
    )


def majority(counts: np.ndarray) -> np.ndarray:
    """Index of the class with most votes, −1 on a tie or without votes, shape (N,).

    Example:
        >>> majority(np.array([[1.0, 3.0], [2.0, 2.0], [0.0, 0.0]])).tolist()
        [1, -1, -1]
    """
    top = counts.max(1, keepdims=True)
    # Sums of weights such as 0.1 and 0.2 tie with 0.3 but for rounding.
    single = (counts >= top * (1 - 1e-9)).sum(1) == 1
    return np.where(single & (top[:, 0] > 0), counts.argmax(1), -1)


def gold_classes(
    gold: Sequence[object],
    classes: Sequence[str],
    items: Sequence[str],
    *,
    place: Callable[[int], str] | None = None,
) -> np.ndarray:
    """Index of the true class of each item, −1 where it is not known, shape (N,).

    Args:
        gold: Name of the true class of each item, None or empty where it is not known.
        classes: Names of all classes.
        items: Name of each item.
        place: Where an item stands, for the message.

    Raises:
        CredalError: If it is none of the classes.

    Example:
        >>> gold_classes(["dog", None], ["cat", "dog"], ["x", "y"]).tolist()
        [1, -1]
    """
    number = {name: index for index, name in enumerate(classes)}
    found = []
    for row, (item, value) in enumerate(zip(items, gold, strict=True)):
        name = None if value is None else plain_number(str(value).strip())
        if name and name not in number:
            near = nearest(name, classes)
            fix = f"write {near!r}" if near else "correct it, or leave it empty"
            where = f"{place(row)}: " if place is not None else ""
            raise CredalError(
                f"{where}the gold label of item {shown(item)} is {shown(name)}, which nobody voted "
                f"for; the classes are {listed(classes)}. To fix: {fix}."
            )
        found.append(number[name] if name else -1)
    return np.array(found)


def refuse_typos(annotations: Annotations) -> None:
    """Do not train on a class that is probably another one misspelt.

    Raises:
        CredalError: If there is one.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> refuse_typos(three_items())
    """
    if annotations.kind != "votes":
        return  # elsewhere a class is a column, which somebody named once and looked at
    for typo in typo_classes(annotations):
        votes = annotations.table.filter(pl.col("label") == typo.label)
        item, who = votes["item"][0], votes["annotator"][0]
        seen = "once" if typo.votes == 1 else f"{typo.votes:,} times"
        voter = "" if who is None else f" by {shown(who)}"
        raise CredalError(
            f"{annotations.source.path}, item {shown(item)}: the class {shown(typo.label)} is "
            f"seen {seen}, here{voter}, and looks like {shown(typo.like)}, seen "
            f"{typo.like_votes:,} times. To fix: write {typo.like!r}; or, if both "
            "are meant, name every class with --classes."
        )
