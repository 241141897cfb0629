"""Choosing the threshold above which items are deferred."""

import math
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Several
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import check_choice, check_number
from credalearn._formats import listed
from credalearn._ranks import kept_means
from credalearn.errors import CredalError
from credalearn.guarantees._bounds import interval
from credalearn.guarantees._sequence import ALONE, Sequence
from credalearn.guarantees._truths import Truth
from credalearn.guarantees.guarantee import CertifyMethod, DeferralScore, Guarantee, Shortfall
from credalearn.guarantees.items import ScoredItems
from credalearn.guarantees.promises import Promise

_FIRM = 20  # the error among fewer kept items is too uncertain to extrapolate
_STEPS = 1000  # of max_error


def certify(
    score: "ArrayLike",
    wrong: "ArrayLike | None" = None,
    *,
    max_error: float | None = 0.10,
    confidence: float = 0.95,
    method: CertifyMethod | None = None,
    against: Truth | None = None,
    groups: "ArrayLike | None" = None,
    predicted: "ArrayLike | None" = None,
    truth: "ArrayLike | None" = None,
    promises: Promise | Several[Promise] = (),
    per_class: bool = False,
    reference: ScoredItems | None = None,
) -> Guarantee:
    r"""The largest threshold on the score for which an error of at most ``max_error`` is certified.

    ============================  ==============================================================
    method                        what holds for new items drawn like these N
    ============================  ==============================================================
    ``"learn-then-test"``         with probability ``confidence`` over the calibration items, the
                                  error among the predicted items is at most max_error, by a fixed
                                  sequence of tests (Angelopoulos et al., 2021); the default
    ``"betting"``                 the same for a random item of a random group, without assuming
                                  that items of a group are independent (Waudby-Smith and Ramdas,
                                  2024); the default where there are groups
    ``"sgr"``                     as learn-then-test, by halving (Geifman and El-Yaniv, 2017):
                                  usually keeps less, as the tests share the risk
    ``"conformal-risk-control"``  the expected share of all items that are predicted **and** wrong
                                  is at most max_error (Angelopoulos et al., 2022): an average,
                                  without confidence, and not the error among the predicted
    ============================  ==============================================================

    The calibration items must not have been used to train or select the model. With reference items
    the first two methods are exact for every score; without them, where the error does not fall as
    more items are kept.
    Trying several targets or scores on the same items is choosing after looking: lower the risk
    1 − confidence of each so that they sum to what you can accept.

    Args:
        score: Uncertainty, larger is less certain, finite, shape (N,), such as 1 − lower
            probability of the predicted class.
        wrong: Whether each prediction is wrong, bools or 0 and 1, shape (N,): bounds are binomial.
            Or, as floats in [0, 1], the share of annotators who disagree with it: bounds are
            Hoeffding's and Bentkus's. None: ``predicted != truth``.
        max_error: In (0, 1), also where there are ``promises``; None where these alone are to hold.
        confidence: In (0, 1); not used by conformal risk control.
        method: One of the four above; by default, one of the first two.
        against: What predictions were compared with to find ``wrong``; only for the sentence.
            Default: the class with the most votes, or a random annotator where errors are shares.
        groups: What group each item belongs to, such as its patient, shape (N,).
        predicted: Predicted class of each item, shape (N,); for promises about classes.
        truth: True class of each item, shape (N,); likewise. Promises about classes and costs
            compare the two, whatever ``wrong`` is.
        promises: Further promises that the same threshold must keep, such as
            ``Promise(kind="missed", name="malignant", limit=0.1)``, or one with costs.
        per_class: Whether each predicted class gets a threshold of its own, at an equal share of
            the risk; at most max_error of each class's predicted items are then wrong.
        reference: Other items, such as out-of-fold predictions of the training items, which fix
            thresholds, start and order of the tests. They keep more, and promise nothing.

    Returns:
        The guarantee. Where nothing can be certified it defers every item, and its ``shortfall``
        says how many items it would take and which error can be certified instead.

    Example:
        The 300 most certain of 400 items are right and the others wrong.

        >>> score = [k / 400 for k in range(400)]
        >>> found = certify(score, [k >= 300 for k in range(400)], max_error=0.05)
        >>> found.kept, found.errors, round(found.bound, 4), found.threshold
        (308, 8.0, 0.0464, 0.7675)
        >>> print(certify(score[:30], [False] * 30, max_error=0.05).shortfall)
        It would take about 59 calibration items like these. In place of this target, an error of
        9.6 % would have been certified with these items, keeping 100 %.
    """
    check_number(confidence, name="confidence", above=0, below=1)
    if max_error is not None:
        check_number(max_error, name="max_error", above=0, below=1)
    promises = (promises,) if isinstance(promises, Promise) else tuple(promises)
    for each in promises:
        if not isinstance(each, Promise):
            raise CredalError(f"promises must be made with Promise; got {each!r}.")
    if not isinstance(reference, ScoredItems | None):
        raise CredalError(f"reference must be ScoredItems; got {type(reference).__name__}.")
    items = ScoredItems(score, wrong, groups=groups, predicted=predicted, truth=truth)
    grouped = items.num_groups is not None and items.num_groups < len(items)
    if method is None:
        method = "betting" if grouped else "learn-then-test"
    check_choice(method, get_args(CertifyMethod), name="method")
    overall = [] if max_error is None else [Promise(limit=float(max_error))]
    wanted, risk = [*overall, *promises], 1 - float(confidence)
    if not wanted:
        raise CredalError("nothing was requested. To fix: pass max_error, or promises.")
    if method in ALONE and (promises or per_class or reference is not None):
        raise CredalError(
            "method must be 'learn-then-test' or 'betting' for promises about classes and for "
            f"reference items; got {method!r}."
        )
    if method == "betting" and items.groups is None:
        items = ScoredItems(
            score, wrong, groups=range(len(items)), predicted=predicted, truth=truth
        )
    _check_classes(items, promises, compared=wrong is None)
    if not per_class:
        return _by_sequence(items, method, wanted, risk, against, reference)
    if promises or items.predicted is None:
        raise CredalError(
            "per_class must come with predicted classes and one largest error, without other "
            "promises. To fix: pass max_error=0.10 alone."
        )
    return _per_class(items, method, wanted[0], risk, against, reference)


def _check_classes(items: ScoredItems, promises: Several[Promise], *, compared: bool) -> None:
    """Raise if no item can be right, or if a cost is about a class that no item has."""
    if items.predicted is None or items.truth is None:
        return  # which promises with costs refuse
    predicted, true = set(items.predicted.tolist()), set(items.truth.tolist())
    if compared and not predicted & true:
        raise CredalError(
            f"predicted and truth have no class in common: {listed(sorted(predicted))}, and "
            f"{listed(sorted(true))}. To fix: use the same names."
        )
    named = {name for each in promises for *pair, _ in each.costs for name in pair}
    for name in sorted(named - predicted - true):
        raise CredalError(
            f"no item is or is called {name!r}, so its cost would count for nothing. To fix: check "
            "its name, or leave the cost out."
        )


def _by_sequence(
    items: ScoredItems,
    method: CertifyMethod,
    promises: Several[Promise],
    risk: float,
    against: Truth | None,
    reference: ScoredItems | None,
) -> Guarantee:
    sequence = Sequence.of(items, promises, method=method, reference=reference)
    place = sequence.search(risk)
    threshold = None if place is None else float(sequence.thresholds[place])
    bounds = [None] * len(promises) if place is None else sequence.bounds(place, risk)
    kept = items.score <= (-math.inf if threshold is None else threshold)
    made = [
        replace(each.counted(items, kept), bound=None if bound is None else bound * each.largest)
        for each, bound in zip(promises, bounds, strict=True)
    ]
    overall = promises[0] if promises[0].kind == "error" and not promises[0].costs else None
    return Guarantee(
        method=method,
        **_found(items, kept, against),
        threshold=threshold,
        max_error=None if overall is None else overall.limit,
        confidence=None if method == "conformal-risk-control" else 1 - risk,
        bound=None if overall is None else bounds[0],
        promises=tuple(made if overall is None else made[1:]),
        shortfall=_shortfall(items, sequence, promises, risk, reference) if place is None else None,
        expected_threshold=sequence.expected_threshold(risk),
    )


def _shortfall(
    items: ScoredItems,
    sequence: Sequence,
    promises: Several[Promise],
    risk: float,
    reference: ScoredItems | None,
) -> Shortfall:
    """What it would take to certify, and what can be certified instead."""
    number = round(sequence.evidence[0].number)
    firm = min(_FIRM / number, 0.5)
    needed = _least(lambda units: (_share_kept(sequence, risk, units) or 0) >= firm, number + 1)
    error = coverage = independent = None
    if len(promises) == 1 and not promises[0].costs:

        def share_at(step: int) -> float | None:
            return _share_kept(replace(sequence, rates=(step / _STEPS,)), risk)

        first = int(promises[0].limit * _STEPS) + 1
        step = _least(lambda step: share_at(step) is not None, first, _STEPS // 2)
        if step is not None:
            error, coverage = step / _STEPS, share_at(step)
    sequence_of = partial(Sequence.of, items, method=sequence.method, reference=reference)
    several = promises if len(promises) > 1 else ()
    failing = [str(each) for each in several if sequence_of([each]).search(risk) is None]
    by_group = sequence.method == "betting" and number != len(items)
    if by_group:
        independent = _share_kept(Sequence.of(items, promises), risk)
    return Shortfall(needed, error, coverage, by_group, independent, failing=tuple(failing))


def _least(passes: Callable[[int], bool], start: int, most: int = 10**9) -> int | None:
    """The least number in start..most that passes, by doubling and halving; None if none does."""
    low, high = start - 1, start  # low fails, or lies below the start
    while high > most or not passes(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _share_kept(sequence: Sequence, risk: float, units: int | None = None) -> float | None:
    """Share under the largest certified threshold; with so many units like these."""
    place = sequence.search(risk, units)
    return None if place is None else float(sequence.shares[place])


def _per_class(
    items: ScoredItems,
    method: CertifyMethod,
    promise: Promise,
    risk: float,
    against: Truth | None,
    reference: ScoredItems | None,
) -> Guarantee:
    """One threshold per predicted class, each certified at an equal share of the risk."""
    assert items.predicted is not None
    if reference is not None and reference.predicted is None:
        raise CredalError("reference items need predicted classes too. To fix: pass them.")
    names = sorted(set(items.predicted.tolist()))
    found: dict[str, Guarantee] = {}
    for name in names:
        own, of_class = items[items.predicted == name], None
        if reference is not None and (there := reference.predicted == name).any():
            of_class = reference[there]
        found[name] = _by_sequence(own, method, (promise,), risk / len(names), against, of_class)
    limits = {name: each.threshold for name, each in found.items()}
    if all(limit is None for limit in limits.values()):
        name, largest = max(found.items(), key=lambda each: each[1].num_items)
        assert largest.shortfall is not None
        shortfall = replace(largest.shortfall, predicted=name, items=largest.num_items)
        nothing = _found(items, np.zeros(len(items), dtype=bool), against)
        return replace(largest, **nothing, confidence=1 - risk, shortfall=shortfall)
    per_item = np.array([-math.inf if limits[k] is None else limits[k] for k in items.predicted])
    kept = items.score <= per_item
    return Guarantee(
        method=method,
        **_found(items, kept, against),
        threshold=max(limit for limit in limits.values() if limit is not None),
        max_error=promise.limit,
        confidence=1 - risk,
        bound=max(each.bound for each in found.values() if each.bound is not None),
        class_thresholds=tuple(limits.items()),
    )


def by_capacity(
    score: "ArrayLike",
    wrong: "ArrayLike",
    *,
    defer: float,
    confidence: float = 0.95,
    against: Truth | None = None,
    groups: "ArrayLike | None" = None,
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
        No error rate is promised: 1 of 4 calibration items is deferred, and 0 % of the 3 predicted
        are wrong compared with the class with the most votes (95 % interval 0 % to 70.8 %).
    """
    check_number(confidence, name="confidence", above=0, below=1)
    items = ScoredItems(score, wrong, groups=groups)
    fewest_kept = len(items) - _number_deferred(defer, len(items))
    threshold = float(np.sort(items.score)[fewest_kept - 1]) if fewest_kept else None
    kept = items.score <= (-math.inf if threshold is None else threshold)
    known, ends = _found(items, kept, against), None
    if threshold is not None:
        counts = (np.asarray(known[name]) for name in ("errors", "kept"))
        low, high = interval(*counts, confidence=confidence, binary=items.binary)
        ends = float(low), float(high)
    return Guarantee(
        method="capacity",
        **known,
        threshold=threshold,
        max_error=None,
        confidence=float(confidence),
        bound=None,
        interval=ends,
    )


def better_score(scores: Mapping[DeferralScore, ArrayLike], wrong: "ArrayLike") -> DeferralScore:
    """The score with the smallest mean error over all shares kept; the first of equal ones."""
    items = {name: ScoredItems(each, wrong) for name, each in scores.items()}
    return min(items, key=lambda name: kept_means(items[name].score, items[name].wrong).mean())


def _found(items: ScoredItems, kept: np.ndarray, against: Truth | None) -> dict[str, Any]:
    """The fields of a guarantee that follow from the items and which of them are kept."""
    if against is None:
        against = "majority" if items.binary else "a random annotator"
    check_choice(against, get_args(Truth), name="against")
    return {
        "against": against,
        "num_items": len(items),
        "kept": int(kept.sum()),
        "errors": float(items.wrong[kept].sum()),
        "num_groups": items.num_groups,
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
