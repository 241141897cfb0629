"""Choosing the threshold above which items are deferred.

Shapes: N items.
"""

from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import check_choice, check_number
from credalearn.errors import CredalError
from credalearn.guarantees._sample import Sample, as_sample
from credalearn.guarantees._search import CERTIFIERS
from credalearn.guarantees.bounds import interval
from credalearn.guarantees.guarantee import CertifyMethod, Guarantee
from credalearn.guarantees.shortfall import find_shortfall
from credalearn.guarantees.truths import Truth


def certify(
    score: ArrayLike,
    wrong: ArrayLike,
    *,
    max_error: float = 0.10,
    confidence: float = 0.95,
    method: CertifyMethod = "sgr",
    against: Truth | None = None,
    groups: ArrayLike | None = None,
) -> Guarantee:
    r"""The largest threshold on the score for which an error of at most ``max_error`` is certified.

    ============================  ==============================================================
    method                        what holds for new items drawn like these N
    ============================  ==============================================================
    ``"sgr"``                     with probability ``confidence`` over the calibration items, the
                                  error among the predicted items is at most max_error (Geifman
                                  and El-Yaniv, 2017)
    ``"learn-then-test"``         the same, by a fixed sequence of tests (Angelopoulos et al.,
                                  2021): usually keeps more, as each test has the whole risk
    ``"conformal-risk-control"``  the expected share of all items that are predicted **and** wrong
                                  is at most max_error (Angelopoulos et al., 2022): an average,
                                  without confidence, and not the error among the predicted
    ============================  ==============================================================

    The calibration items must not have been used to train or select the model. The first two
    methods are proved for a score without ties whose error does not fall as more items are kept;
    other scores are checked by simulation.

    Args:
        score: Uncertainty, larger is less certain, finite, shape (N,), such as 1 − lower
            probability of the predicted class.
        wrong: Whether each prediction is wrong, bools or 0 and 1, shape (N,): bounds are binomial.
            Or, as floats in [0, 1], the share of annotators who disagree with it: bounds are
            Hoeffding's and Bentkus's.
        max_error: In (0, 1).
        confidence: In (0, 1); not used by conformal risk control.
        method: One of the three above.
        against: What predictions were compared with to find ``wrong``; only for the sentence.
            Default: the class with the most votes, or a random annotator where errors are shares.
        groups: What group each item belongs to, such as its patient, shape (N,); only for the
            sentence, which says that items of one group are not independent.

    Returns:
        The guarantee. Where nothing can be certified it defers every item, and its ``shortfall``
        says how many items it would take and which error can be certified instead.

    Example:
        The 300 most certain of 400 items are right and the others wrong.

        >>> score = [k / 400 for k in range(400)]
        >>> found = certify(score, [k >= 300 for k in range(400)], max_error=0.05)
        >>> found.kept, found.errors, round(found.bound, 4), found.threshold
        (306, 6.0, 0.0499, 0.7625)
        >>> print(certify(score[:30], [False] * 30, max_error=0.05).shortfall)
        It would take about 198 calibration items like these. With these items an error of 26.5 %
        can be certified, keeping 100 %.
    """
    check_choice(method, get_args(CertifyMethod), name="method")
    check_number(max_error, name="max_error", above=0, below=1)
    check_number(confidence, name="confidence", above=0, below=1)
    max_error, risk = float(max_error), 1 - float(confidence)
    sample = as_sample(score, wrong)
    certifier = CERTIFIERS[method]
    place = certifier.search(sample, max_error, risk)
    # The search compares p-values; the bound that inverts them may differ in its last bit.
    bound = None if place is None else min(certifier.bound(sample, place, risk), max_error)
    short = None
    if place is None:
        short = find_shortfall(sample, method=method, max_error=max_error, risk=risk)
    return Guarantee(
        method=method,
        **_found(sample, place, against, groups),
        max_error=max_error,
        confidence=None if method == "conformal-risk-control" else float(confidence),
        bound=bound,
        shortfall=short,
    )


def by_capacity(
    score: ArrayLike,
    wrong: ArrayLike,
    *,
    defer: float,
    confidence: float = 0.95,
    against: Truth | None = None,
    groups: ArrayLike | None = None,
) -> Guarantee:
    """Defer the least certain items, as many as the reviewers can take; no error is promised.

    The threshold depends on the scores alone, so the interval of the error is that of the kept
    items (Clopper and Pearson's; for shares in [0, 1], by Hoeffding and Bentkus). Items with equal
    scores are all kept where deferring all of them would be too many.

    ``defer`` is the most to defer: a number of these items (an int), or a share of them in [0, 1]
    (a float). Other arguments as for :func:`~credalearn.certify`.

    Example:
        >>> found = by_capacity([0.1, 0.2, 0.3, 0.4], [False, False, False, True], defer=0.25)
        >>> found.threshold, found.errors, found.certified
        (0.3, 0.0, False)
        >>> print(found.sentence())
        No error rate is promised: 1 of 4 calibration items are deferred, and 0 % of the 3 predicted
        are wrong compared with the class with the most votes (95 % interval 0 % to 70.8 %).
    """
    check_number(confidence, name="confidence", above=0, below=1)
    sample = as_sample(score, wrong)
    fewest_kept = sample.num_items - _number_deferred(defer, sample.num_items)
    place = int((sample.kept < fewest_kept).sum()) if fewest_kept else None
    ends = None
    if place is not None:
        here = slice(place, place + 1)
        errors, kept = sample.errors[here], sample.kept[here]
        low, high = interval(errors, kept, confidence=confidence, binary=sample.binary)
        ends = (float(low[0]), float(high[0]))
    return Guarantee(
        method="capacity",
        **_found(sample, place, against, groups),
        max_error=None,
        confidence=float(confidence),
        bound=None,
        interval=ends,
    )


def _found(
    sample: Sample, place: int | None, against: Truth | None, groups: ArrayLike | None
) -> dict[str, Any]:
    """The fields of a guarantee that follow from the sample and the place of the threshold."""
    if against is None:
        against = "majority" if sample.binary else "a random annotator"
    check_choice(against, get_args(Truth), name="against")
    given = None if groups is None else np.asarray(groups)
    if given is not None and given.shape != (sample.num_items,):
        raise CredalError(f"groups must have shape ({sample.num_items},); got {given.shape}.")
    return {
        "against": against,
        "threshold": None if place is None else float(sample.thresholds[place]),
        "num_items": sample.num_items,
        "kept": 0 if place is None else round(float(sample.kept[place])),
        "errors": 0.0 if place is None else float(sample.errors[place]),
        "num_groups": None if given is None else len(set(given.tolist())),
    }


def _number_deferred(defer: float, num_items: int) -> int:
    whole = isinstance(defer, Integral)  # of Python or NumPy
    if whole and not isinstance(defer, bool) and 0 <= defer <= num_items:
        return int(defer)
    if isinstance(defer, Real) and not whole and 0 <= defer <= 1:
        return int(float(defer) * num_items + 1e-9)  # 0.29 of 100 is 28.999…: 29
    raise CredalError(
        f"defer must be a whole number in 0..{num_items} or a share in [0, 1]; got {defer!r}."
    )
