"""Annotators of unequal skill: Dawid and Skene's posteriors of the true class, by crowd-kit.

Shapes: N items, K classes, V votes.
"""

import sys
import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from credalearn.app.annotations.places import shown
from credalearn.app.annotations.table import Annotations
from credalearn.app.annotations.weights import refuse_weights
from credalearn.errors import CredalError

Codes = NDArray[np.int64]

_MODULE = "crowdkit.aggregation.classification.dawid_skene"
# Of expectation and maximization. Crowd-kit's own rule stops when its lower bound of the likelihood
# gains less than 1e-5 a vote, but adds the class shares once a vote and not once an item, so that
# it is no such bound: on 120 items by five people it stops after 6 rounds of the 43 that settle
# every posterior to 1e-8, with single ones 0.12 off. So all rounds are gone through. On 10,000
# items with 5 votes each of 50 people, 10 classes, they take 4 s and leave posteriors 0.00004 off
# in the mean and 0.28 at the worst item, which takes 1,000 rounds to settle.
_ROUNDS = 100


def dawid_skene(
    annotations: Annotations, *, among: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    r"""Probability of each class being an item's true one, from who voted for what, (N, K).

    Every annotator w has a matrix :math:`\pi^w_{jk} = P(\text{says } k \mid \text{true } j)`, and
    the classes shares :math:`\rho`; both are found with the posteriors
    :math:`p_{ij} \propto \rho_j \prod_w \pi^w_{j, y_{iw}}` by expectation maximization from the
    vote shares (Dawid and Skene, 1979), in 100 rounds: to a local optimum, but for single items
    that take longer to settle. The model knows one true class an item and annotators who err
    independently: where an item is truly ambiguous its posterior is far surer than people are. It
    needs many votes of each annotator, K(K − 1) numbers apiece.

    Needs the package crowd-kit: ``pip install 'credalearn[crowd]'``.

    Args:
        annotations: Votes by named annotators, without weights. Unsure votes count nowhere.
        among: Items whose votes may be used, bool (N,); all unless given.

    Returns:
        Posteriors in the order of ``annotations.items`` and ``.classes``; an item without votes has
        the classes' shares ρ.

    Raises:
        CredalError: If these are no votes, a voter has no name, a vote has a weight, nobody is
            sure of anything, or crowd-kit is not installed.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> dawid_skene(three_items())[0].round(3).tolist()
        [1.0, 0.0]
    """
    item, who, label = named_votes(annotations)
    if among is not None:
        item, who, label = (codes[among[item]] for codes in (item, who, label))
    shape = (len(annotations.items), len(annotations.classes))
    return posteriors(item, who, label, shape=shape)


def named_votes(annotations: Annotations) -> tuple[Codes, Codes, Codes]:
    """Item, annotator and class of each vote that is sure, as numbers, shape (V,).

    Raises:
        CredalError: If these are no votes, a voter has no name, or a vote has a weight.

    Example:
        >>> from credalearn.app.annotations.examples import three_items
        >>> named_votes(three_items())[1].tolist()
        [0, 1, 2, 0, 1, 0, 2]
    """
    path = annotations.source.path
    fix = "leave --skill out, so that every vote counts alike"
    if annotations.kind != "votes":
        raise CredalError(
            f"the skill of annotators is known from their votes; {path} holds {annotations.kind}. "
            f"To fix: give one row a vote with who gave it, or {fix}."
        )
    item, who, label = (annotations.codes(name) for name in ("item", "annotator", "label"))
    refuse_weights(
        annotations,
        rule="Dawid and Skene's model weighs the annotators itself",
        instead=", or leave --skill out",
    )
    sure = label >= 0
    nameless = sure & (who < 0)
    if nameless.any():
        row = int(nameless.argmax())
        raise CredalError(
            f"the skill of an annotator without a name cannot be known; {nameless.sum():,} of "
            f"{sure.sum():,} votes of {path} have none, the first about item "
            f"{shown(annotations.table['item'][row])}. To fix: name the column of the annotators "
            f"with --annotator, or {fix}."
        )
    return item[sure], who[sure], label[sure]


def posteriors(
    item: Codes, annotator: Codes, label: Codes, *, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """:func:`dawid_skene` of votes as numbers: item, annotator and class of each, shape (V,).

    Args:
        item: From 0 to N − 1.
        annotator: From 0.
        label: From 0 to K − 1.
        shape: (N, K).

    Raises:
        CredalError: If there is no vote, or crowd-kit is not installed.

    Example:
        >>> votes = (np.array([0, 0, 2]), np.array([0, 1, 0]), np.array([1, 1, 0]))
        >>> posteriors(*votes, shape=(3, 2)).round(3).tolist()
        [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    """
    model = _model()  # before anything else: whoever lacks the package is told so
    if not len(item):
        raise CredalError(
            "nobody voted for any class, so that no annotator's skill can be known. To fix: leave "
            "--skill out."
        )
    pandas = import_module("pandas")
    votes = pandas.DataFrame({"task": item, "worker": annotator, "label": label})
    with warnings.catch_warnings():
        # It was written for an older pandas, whose ways are called deprecated now.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        model.fit(votes)
    rows, classes = range(shape[0]), range(shape[1])
    shares = model.priors_.reindex(classes, fill_value=0.0).to_numpy()
    found = model.probas_.reindex(columns=classes, fill_value=0.0).reindex(rows).to_numpy()
    found = np.where(np.isnan(found), shares, found).astype(np.float64)
    normalized: NDArray[np.float64] = found / found.sum(1, keepdims=True)  # it adds 1e-10 each
    return normalized


def _model() -> Any:
    try:
        module = import_module(_MODULE)
    except ImportError as error:
        # Its aggregators of texts, imported after this one, want nltk; without it this one is
        # there all the same.
        if _MODULE not in sys.modules:
            raise CredalError(
                f"Dawid and Skene's model is crowd-kit's, and {error.name or 'it'} is not "
                "installed. To fix: pip install 'credalearn[crowd]'."
            ) from error
        module = sys.modules[_MODULE]
    return module.DawidSkene(_ROUNDS, tol=-np.inf)
