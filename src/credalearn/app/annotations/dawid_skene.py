"""Annotators of unequal skill: Dawid and Skene's posteriors of the true class, by crowd-kit."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from credalearn._formats import many, shown
from credalearn.app.annotations.table import Annotations, check_unweighted
from credalearn.errors import CredalError

Codes = NDArray[np.int64]

_MODULE = "crowdkit.aggregation.classification.dawid_skene"
# Rounds of expectation and maximization, all of them: crowd-kit's stopping rule adds the class
# shares once per vote, not once per item, and stops too soon. On 10,000 items with 5 votes of 50
# people and 10 classes, 100 rounds take 4 s and leave posteriors 0.00004 off on average.
_ROUNDS = 100


def dawid_skene(
    annotations: Annotations, items: Sequence[str], *, alone: bool = False
) -> NDArray[np.float64]:
    r"""Probability that each class is the true one of these items, from who voted for what, (N, K).

    Posteriors :math:`p_{ij} \propto \rho_j \prod_w \pi^w_{j, y_{iw}}` by expectation maximization
    (Dawid and Skene, 1979), from all votes, or from those about these items alone; without votes ρ.
    """
    path = annotations.source.path
    fix = "leave out skill=, so that all votes count equally"
    if annotations.contains != "votes":
        raise CredalError(
            f"the skill of annotators is known from their votes; {path} contains "
            f"{annotations.contains}. To fix: pass one row per vote with its annotator, or {fix}."
        )
    check_unweighted(
        annotations,
        "Dawid and Skene's model weights the annotators itself",
        instead=", or leave out skill=",
    )
    item, who, label = (annotations.codes[name] for name in ("item", "annotator", "label"))
    sure = label >= 0
    nameless = sure & (who < 0)
    if nameless.any():
        row = int(nameless.argmax())
        raise CredalError(
            "the skill of an unnamed annotator cannot be known; the annotator is missing in "
            f"{nameless.sum():,} of {many(int(sure.sum()), 'vote')} of {path}, the first about "
            f"item {shown(annotations.table['item'][row])}. To fix: name the column of the "
            f"annotators with annotator=, or {fix}."
        )
    row_of = {name: row for row, name in enumerate(annotations.items)}
    rows = [row_of[name] for name in items]
    used = sure & np.isin(item, rows) if alone else sure
    shape = (len(annotations.items), len(annotations.classes))
    return posteriors(item[used], who[used], label[used], shape=shape)[rows]


def posteriors(
    item: Codes, annotator: Codes, label: Codes, *, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """:func:`dawid_skene` of votes as numbers: item, annotator and class of each, shape (V,)."""
    try:
        module = import_module(_MODULE)
    except ImportError as error:
        # crowd-kit's aggregators of texts, imported after this one, need nltk.
        if _MODULE not in sys.modules:
            raise CredalError(
                f"Dawid and Skene's model needs crowd-kit, and {error.name or 'it'} is not "
                "installed. To fix: pip install 'credalearn[crowd]'."
            ) from error
        module = sys.modules[_MODULE]
    model = module.DawidSkene(_ROUNDS, tol=-np.inf)
    if not len(item):
        raise CredalError(
            "there is no vote to learn the annotators' skill from. To fix: leave out skill=."
        )
    pandas = import_module("pandas")
    votes = pandas.DataFrame({"task": item, "worker": annotator, "label": label})
    with warnings.catch_warnings():
        # crowd-kit was written for an older pandas.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        model.fit(votes)
    rows, classes = range(shape[0]), range(shape[1])
    shares = model.priors_.reindex(classes, fill_value=0.0).to_numpy()
    found = model.probas_.reindex(columns=classes, fill_value=0.0).reindex(rows).to_numpy()
    found = np.where(np.isnan(found), shares, found).astype(np.float64)
    return found / found.sum(1, keepdims=True)  # it adds 1e-10 each
