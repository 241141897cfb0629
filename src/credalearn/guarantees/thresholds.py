"""Choosing the threshold above which items are deferred.

Shapes: N items.
"""

from numbers import Integral, Real
from typing import cast, get_args

from numpy.typing import ArrayLike

from credalearn._checks import check_choice
from credalearn._formats import check_share
from credalearn.errors import CredalError
from credalearn.guarantees.bounds import interval
from credalearn.guarantees.rule import Bound, CertifyMethod, Guarantee
from credalearn.guarantees.sample import Sample, as_sample
from credalearn.guarantees.search import CERTIFIERS
from credalearn.guarantees.shortfall import explain
from credalearn.guarantees.truths import Truth


def certify(
    score: ArrayLike,
    wrong: ArrayLike,
    *,
    max_error: float,
    confidence: float = 0.95,
    method: CertifyMethod = "sgr",
    against: Truth | None = None,
) -> Guarantee:
    r"""The largest threshold on the score for which an error of at most ``max_error`` is certified.

    ============================  ==============================================================
    method                        what holds for new items, if they are drawn like these N
    ============================  ==============================================================
    ``"sgr"``                     with probability ``confidence`` over the calibration items, the
                                  error among the predicted items is at most max_error (Geifman
                                  and El-Yaniv, 2017)
    ``"learn-then-test"``         the same, by a fixed sequence of tests (Angelopoulos et al.,
                                  2021): mostly keeps more, as each test has the whole risk
    ``"conformal-risk-control"``  the expected share of all items that are predicted **and** wrong
                                  is at most max_error (Angelopoulos et al., 2022): an average,
                                  without confidence, and not the error among the predicted
    ============================  ==============================================================

    The calibration items must be new to the model: neither trained on nor used to choose it. The
    first two are proved for a score without ties whose error does not fall as more is kept; for
    others they are checked by simulation. A threshold keeps all items with its score.

    Args:
        score: Uncertainty, larger is less certain, finite, shape (N,): 1 − lower probability of the
            predicted class, which ``credalearn certify`` uses, or 1 − top probability, which ranks
            errors as well or slightly better in our records.
        wrong: Whether each prediction is wrong, bools or 0 and 1, shape (N,): bounds are binomial.
            Or, as floats in [0, 1], the share of annotators who disagree with it: then they are
            Hoeffding's and Bentkus's, which hold for shares.
        max_error: In (0, 1).
        confidence: In (0, 1); not used by conformal risk control.
        method: One of the three above.
        against: What ``wrong`` was found against; said in the rule's statement, nothing more.
            None: the class with most votes, or of shares, which promise nothing about it, a random
            annotator.

    Returns:
        The rule. Where nothing can be certified it defers everything, and its ``shortfall`` says
        why, how many items it would take, and which error is within reach.

    Raises:
        CredalError: If an option is out of range, the sizes differ, a score is not finite or an
            error not in [0, 1].

    Example:
        Of 400 items the 300 most certain are right and the others wrong.

        >>> score = [k / 400 for k in range(400)]
        >>> rule = certify(score, [k >= 300 for k in range(400)], max_error=0.05)
        >>> rule.kept, rule.errors, round(rule.bound, 4), rule.threshold
        (306, 6.0, 0.0499, 0.7625)
        >>> print(certify(score[:30], [False] * 30, max_error=0.05).shortfall)
        30 calibration items are too few: even without an error it takes 197 by SGR, 59 by
        learn-then-test. About 198 calibration items like these would do by SGR, about 59 by
        learn-then-test. With these items 26.5 % can be certified, keeping 100 %.
    """
    check_choice(method, get_args(CertifyMethod), name="method")
    check_share(max_error, name="max_error")
    check_share(confidence, name="confidence")
    max_error, confidence = float(max_error), float(confidence)
    sample = as_sample(score, wrong)
    truth = _truth(against, sample)
    chosen, risk = CERTIFIERS[method], 1 - confidence
    group = chosen.search(sample, max_error, risk)
    # The search compares p-values; the bound that inverts them may differ in its last bit.
    bound = None if group is None else min(chosen.bound(sample, group, risk), max_error)
    short = (
        explain(sample, method=method, max_error=max_error, risk=risk) if group is None else None
    )
    return Guarantee(
        method=method,
        against=truth,
        threshold=_at(sample, group)[0],
        num_items=sample.num_items,
        kept=_at(sample, group)[1],
        errors=_at(sample, group)[2],
        max_error=max_error,
        confidence=None if method == "conformal-risk-control" else confidence,
        bound=bound,
        bound_by=cast(Bound, chosen.bounded_by(sample)),
        shortfall=short,
    )


def by_capacity(
    score: ArrayLike,
    wrong: ArrayLike,
    *,
    defer: float,
    confidence: float = 0.95,
    against: Truth | None = None,
) -> Guarantee:
    """Defer the least certain items, as many as the reviewers can take; nothing is promised.

    The threshold is set by the scores alone, so the interval of the error is that of the kept items
    (Clopper and Pearson's; for shares in [0, 1], by Hoeffding and Bentkus). Of items with equal
    scores all are kept where deferring all would be too many.

    Args:
        score: Uncertainty, as for :func:`~credalearn.certify`, shape (N,).
        wrong: Errors, as for :func:`~credalearn.certify`, shape (N,).
        defer: The most to defer: a whole number of these items (an int), or a share in [0, 1] of
            them (a float).
        confidence: Of the interval, in (0, 1).
        against: What ``wrong`` was found against, as for :func:`~credalearn.certify`.

    Raises:
        CredalError: As :func:`~credalearn.certify`.

    Example:
        >>> rule = by_capacity([0.1, 0.2, 0.3, 0.4], [False, False, False, True], defer=0.25)
        >>> rule.threshold, rule.errors, rule.certified
        (0.3, 0.0, False)
        >>> print(rule.statement)
        No error is promised: 1 of 4 calibration items are deferred, and of the 3 predicted 0 % are
        wrong against the class with most votes (95 % interval 0 % to 70.8 %).
    """
    check_share(confidence, name="confidence")
    sample = as_sample(score, wrong)
    truth = _truth(against, sample)
    most = _number_deferred(defer, sample.num_items)
    fewest_kept = sample.num_items - most
    group = int((sample.kept < fewest_kept).sum()) if fewest_kept else None
    ends = None
    if group is not None:
        here = slice(group, group + 1)
        low, high = interval(
            sample.errors[here], sample.kept[here], confidence=confidence, binary=sample.binary
        )
        ends = (float(low[0]), float(high[0]))
    threshold, kept, errors = _at(sample, group)
    return Guarantee(
        method="capacity",
        against=truth,
        threshold=threshold,
        num_items=sample.num_items,
        kept=kept,
        errors=errors,
        max_error=None,
        confidence=float(confidence),
        bound=None,
        bound_by="binomial" if sample.binary else "hoeffding-bentkus",
        interval=ends,
    )


def _truth(against: Truth | None, sample: Sample) -> Truth:
    """What the errors are against: as said, else as their kind tells."""
    if against is None:
        return "majority" if sample.binary else "a random annotator"
    check_choice(against, get_args(Truth), name="against")
    return against


def _at(sample: Sample, group: int | None) -> tuple[float | None, int, float]:
    """Threshold, items kept and errors among them."""
    if group is None:
        return None, 0, 0.0
    return (
        float(sample.thresholds[group]),
        round(float(sample.kept[group])),
        float(sample.errors[group]),
    )


def _number_deferred(defer: float, num_items: int) -> int:
    whole = isinstance(defer, Integral)  # of Python or NumPy
    if whole and not isinstance(defer, bool) and 0 <= defer <= num_items:
        return int(defer)
    if isinstance(defer, Real) and not whole and 0 <= defer <= 1:
        return int(float(defer) * num_items + 1e-9)  # 0.29 of 100 is 28.999…: 29
    raise CredalError(
        f"defer must be a whole number in 0..{num_items} or a share in [0, 1]; got {defer!r}."
    )
