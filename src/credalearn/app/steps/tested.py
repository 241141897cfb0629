"""What a page shows of a run: its test items, its rule, its annotations, and what its sets hold.

Shapes: N items, K classes.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import polars as pl

from credalearn.app.annotations import dawid_skene
from credalearn.app.joined.labeling import make_labels
from credalearn.app.report import (
    Disagreement,
    HeldOut,
    LabelSets,
    PageRule,
    WidenedSets,
)
from credalearn.app.report.heldout import NO_TRUTH
from credalearn.app.report.verdict import Quantity
from credalearn.app.run import Run
from credalearn.app.steps.certify import one_of_each
from credalearn.app.steps.set_coverage import widened
from credalearn.app.steps.voted_items import read_voted, said_of
from credalearn.errors import CredalError
from credalearn.guarantees.truths import HAVING, TRUTHS
from credalearn.labels import VoteRule
from credalearn.theory import risk_profile

# Column of predictions.parquet by name of the score; rules are about the first.
_SCORES = {"lower-probability": "score", "mmi": "mmi", "top-probability": "top_probability"}
_METHODS: dict[str, tuple[Quantity, str]] = {
    "sgr": ("error", "selection with guaranteed risk (Geifman and El-Yaniv, 2017)"),
    "learn-then-test": ("error", "learn then test (Angelopoulos et al., 2021)"),
    "conformal-risk-control": (
        "kept-and-wrong",
        "conformal risk control (Angelopoulos et al., 2022)",
    ),
    "capacity": ("capacity", "the reviewers' capacity"),
}


def read_test_items(run: Run) -> HeldOut:
    """The test items of a run with the votes they got.

    Raises:
        CredalError: If a column is missing, or no test item has a truth.
    """
    classes, facts = run.classes, run.facts
    table = run.predictions.filter(pl.col("split") == "test")
    place = {name: number for number, name in enumerate(classes)}
    try:
        truth = [NO_TRUTH if each is None else place[each] for each in table["truth"]]
        probs = _matrix(table, "p", classes)
        lower, upper = _matrix(table, "lower", classes), _matrix(table, "upper", classes)
        two = f"v1:{classes[0]}" in table.columns and f"v2:{classes[0]}" not in table.columns
        heads = {"lower bound": lower, "upper bound": upper} if (upper > lower).any() else {}
        if two and facts.method.startswith("pocc"):
            pair = (_matrix(table, name, classes) for name in ("v0", "v1"))
            heads = dict(zip(("pessimist", "optimist"), pair, strict=True))
        return HeldOut(
            items=tuple(table["item"]),
            classes=classes,
            probs=probs,
            label=np.array([place[each] for each in table["label"]], dtype=np.int64),
            truth=np.array(truth, dtype=np.int64),
            scores={name: table[column].to_numpy() for name, column in _SCORES.items()},
            votes=_votes(run, table, classes),
            heads=heads,
            against=run.truth,
        )
    except (pl.exceptions.ColumnNotFoundError, KeyError) as error:
        raise CredalError(
            f"{run.path / 'predictions.parquet'} does not fit run.json: {error} is not there. "
            "To fix: train again."
        ) from error


def read_rule(run: Run) -> PageRule | None:
    """What ``credalearn certify`` decided about a run; None before.

    Raises:
        CredalError: If ``guarantee.json`` holds no rule.
    """
    rule = run.guarantee
    if rule is None:
        return None
    quantity, method = _METHODS[rule.method]
    short = rule.shortfall
    one_of_each_group: tuple[str, ...] = ()
    if rule.certified and rule.one_per_group:
        tested = run.predictions.filter(split="test")
        one_of_each_group = tuple(one_of_each(run, tested, rule.against)["item"])
    # A capacity of everything: no threshold and no shortfall, but nothing is kept.
    return PageRule(
        threshold=-1.0 if rule.threshold is None and short is None else rule.threshold,
        quantity=quantity,
        method=method,
        max_error=rule.max_error,
        confidence=rule.confidence,
        coverage=rule.coverage,
        num_items=rule.num_items,
        left_out=rule.left_out,
        truth=TRUTHS[rule.against],
        having=HAVING[rule.against],
        why_not="" if short is None else str(short),
        about_groups=rule.sentence() if rule.num_groups else "",
        one_of_each_group=one_of_each_group,
    )


def read_disagreement(run: Run) -> Disagreement:
    """The annotations of a run in numbers, from ``run.json`` and ``items.parquet``."""
    facts = run.facts
    known = facts.annotations
    agreement = known.agreement
    items = run.items
    found = {name: float(items[f"n:{name}"].sum()) for name in run.classes}
    return Disagreement(
        items=known.items,
        annotators=known.annotators,
        votes=known.votes,
        votes_an_item=agreement.votes_per_item if agreement else None,
        alpha=agreement.alpha if agreement else None,
        unanimous=agreement.unanimous if agreement else None,
        tied=agreement.tied if agreement else None,
        confused=agreement.confused if agreement else (),
        left_out=known.left_out,
        no_part=facts.inputs.left_out,
        said=run.said,
        class_votes=found,
        splits=facts.splits.sizes,
    )


def read_label_sets(run: Run, held_out: HeldOut) -> LabelSets:
    """The sets that the run's own rule makes of the test items' votes, and the risk they leave.

    Where annotators were weighed by their skill in training, they are here, by all votes there
    are: the labels of test items were not made then.
    """
    facts = run.facts
    rule: str = facts.label_rule
    options = facts.options
    skilled = options.skill != "equal"
    s, confidence = options.s, options.confidence
    posterior = None
    try:
        said = said_of(run)
        if said.kind == "bounds":
            rule, skilled = "", False
        elif skilled:
            found = dict(zip(said.items, dawid_skene(said), strict=True))
            posterior = np.stack([found[item] for item in held_out.items])
        name = cast(VoteRule, rule)  # one that is none is refused
        labels = make_labels(
            said, held_out.votes, name, s=s, confidence=confidence, posterior=posterior
        )
        profile = risk_profile(held_out.probs, labels)
        return LabelSets(rule, profile, skilled=skilled, confidence=confidence)
    except CredalError as error:
        return LabelSets(rule, None, str(error), skilled)


def read_widened(run: Run) -> WidenedSets | None:
    """The test items' sets as ``certify --set-coverage`` widens them; None before.

    Raises:
        CredalError: If the annotations do not fit the run.
    """
    inflation = run.sets
    return None if inflation is None else widened(inflation, read_voted(run, "test"), run.guarantee)


def _matrix(table: pl.DataFrame, part: str, classes: Sequence[str]) -> np.ndarray:
    columns = [table[f"{part}:{name}"].to_numpy() for name in classes]
    values: np.ndarray = np.stack(columns, axis=1).astype(np.float64)
    return values


def _votes(run: Run, table: pl.DataFrame, classes: Sequence[str]) -> np.ndarray:
    both = ["item", "split"]  # of a run calibrated again trained items may have the same names
    items = table.select(both).join(run.items, on=both, how="left", maintain_order="left")
    votes: np.ndarray = np.nan_to_num(_matrix(items.fill_null(0), "n", classes))
    return votes
