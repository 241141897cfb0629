"""Items as the networks take them: tables as numbers, texts as TF-IDF, sparse rows, images."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data
from torch import Tensor

from credalearn._checks import refuse_masked
from credalearn._classifier_options import TABLE_BACKBONES
from credalearn._ranks import as_array
from credalearn._table_encoder import Table, TableEncoder
from credalearn._text_encoder import TextEncoder, as_texts
from credalearn.errors import CredalError
from credalearn.sets._checks import as_tensor
from credalearn.train._linear import Inputs

if TYPE_CHECKING:
    from credalearn.classifier import CredalClassifier

Encoder = TableEncoder | TextEncoder | None  # None: a sparse matrix, or an array of any shape


def fit_encoder(
    estimator: "CredalClassifier", X: Any, used: np.ndarray | None
) -> tuple[Encoder, Inputs]:
    """Learn from the ``used`` rows how items are encoded, and encode all."""
    X = as_numpy(X, name="X")
    if estimator.encoder == "tfidf":
        given = as_texts(X)
        validate_data(estimator, given[:, None], skip_check_array=True)
        words = TextEncoder.fit(given if used is None else given[used])
        return words, words.count(given)  # each fold of a selection weighs the counts itself
    if issparse(X) or estimator._backbone() not in TABLE_BACKBONES:
        sparse = estimator._selects and issparse(X)
        return None, _numbers(estimator, X, sparse=sparse, reset=True)
    opened = Table.of(X)
    validate_data(estimator, X, skip_check_array=True)
    encoder = TableEncoder.fit(opened if used is None else opened[used])
    return encoder, _as_tensor(encoder.transform(opened))


def encode(estimator: "CredalClassifier", X: Any) -> Inputs:
    """Encode new items; without an encoder, as sparse rows if the estimator takes them."""
    X, encoder = as_numpy(X, name="X"), estimator._encoder
    if isinstance(encoder, TextEncoder):
        texts = as_texts(X)
        validate_data(estimator, texts[:, None], reset=False, skip_check_array=True)
        return encoder.transform(texts)
    if isinstance(encoder, TableEncoder):
        if issparse(X):
            raise CredalError(
                "X is sparse, but the model was fitted on a dense table. To fix: pass X.toarray()."
            )
        table = Table.of(X)
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return _as_tensor(encoder.transform(table))
    inputs = _numbers(estimator, X, sparse=estimator._selects, reset=False)
    found, shape = tuple(inputs.shape[1:]), estimator._input_shape
    if found != shape:
        raise CredalError(f"X must have items of shape {shape}, as in fit; got {found}.")
    return inputs


def as_numpy(values: Any, *, name: str) -> Any:
    """Tensors and objects with an array as arrays; scikit-learn would ignore a mask."""
    refuse_masked(values, name=name)
    if isinstance(values, Tensor):
        return as_array(as_tensor(values, name=name))
    is_table = hasattr(values, "columns") or issparse(values)
    return np.asarray(values) if hasattr(values, "__array__") and not is_table else values


def _numbers(estimator: BaseEstimator, X: Any, *, sparse: bool, reset: bool) -> Inputs:
    """Sparse rows (CSR) or a table, in float64; else items of any shape, in float32."""
    if issparse(X) and not sparse:
        raise CredalError("a sparse X is for the default learner. To fix: pass X.toarray().")
    if issparse(X) and not np.isfinite(X.tocsr().data).all():
        raise CredalError("a sparse X must contain no NaN and no infinity. To fix: X.toarray().")
    kind = np.float64 if sparse else np.float32
    rules = {"accept_sparse": "csr" if sparse else False, "allow_nd": not sparse, "order": "C"}
    X = validate_data(estimator, X, reset=reset, dtype=kind, **rules)
    return X if issparse(X) else _as_tensor(X)


def _as_tensor(array: np.ndarray) -> Tensor:
    """The same numbers; torch warns about arrays that it may not write to, so they are copied."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())
