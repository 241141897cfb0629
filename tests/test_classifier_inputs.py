"""Sparse matrices, missing values and categories, through the classifier."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix, random_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import credalearn as cl
from clouds import classifier, clouds
from python_process import run_python

TEXTS = ["a good dog", "a nice dog", "good dog here", "bad cat", "a bad, bad cat", "no cat"] * 5
KINDS = ["dog", "dog", "dog", "cat", "cat", "cat"] * 5

# A dense copy would take 16 GB; the process may have 6 GB, and torch only reserves most of that.
LARGE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
import numpy as np
from scipy.sparse import csr_array
import credalearn as cl
from credalearn import _selection
_selection.PENALTIES = _selection.PENALTIES[2:3]  # one is enough here
rng = np.random.default_rng(0)
rows, columns = np.repeat(np.arange(2000), 5), rng.integers(10, 1_000_000, 10_000)
y = np.arange(2000) % 2
columns[::5] = y + 2 * rng.integers(3, size=2000)  # one column of each row predicts the class
X = csr_array((np.ones(10_000), (rows, columns)), shape=(2000, 1_000_000))
clf = cl.CredalClassifier().fit(X, y)
assert clf.score(X, y) > 0.99
clf.save("model")
assert np.allclose(cl.load("model").predict_proba(X), clf.predict_proba(X), atol=1e-6)
"""


def sparse_clouds() -> tuple[csr_array, np.ndarray, np.ndarray]:
    """Items of three classes with many zeros, and their votes."""
    X, y, counts = clouds()
    return csr_array(np.where(np.abs(X) > 2, X, 0)), y, counts


def test_a_sparse_matrix_gives_the_model_of_its_numbers(tmp_path: Path) -> None:
    X, y, counts = sparse_clouds()
    labels = cl.from_votes(counts)
    clf = cl.CredalClassifier().fit(X, labels)
    assert clf.score(X, y) > 0.95
    found = clf.predict_proba(X)
    # The model is linear in the numbers as they are, without standardization.
    (network,) = clf.model_.members
    heads = network.heads.weight.detach().numpy(), network.heads.bias.detach().numpy()
    logits = (X.toarray() @ heads[0].T + heads[1]).reshape(90, 3, 3)
    vertices = torch.from_numpy(logits).softmax(2)
    pred = cl.CredalPredictions.from_vertices(vertices).temper(clf.temperatures_["truth"])
    np.testing.assert_allclose(found, pred.probs.numpy(), atol=1e-5)
    for same in (X.toarray(), csr_matrix(X), csc_matrix(X), coo_array(X), X.astype(np.float32)):
        np.testing.assert_allclose(clf.predict_proba(same), found, atol=1e-5)
    clf.save(tmp_path)
    loaded = cl.load(tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(X), found, atol=1e-6)
    np.testing.assert_allclose(loaded.predict_proba(X.toarray()), found, atol=1e-5)
    assert loaded.choice_ == clf.choice_
    assert loaded.temperatures_ == clf.temperatures_
    for other in (csc_matrix(X), csr_matrix(X).astype(np.float32)):
        again = cl.CredalClassifier().fit(other, labels)
        np.testing.assert_allclose(again.predict_proba(X), found, atol=1e-3)


def test_a_large_sparse_matrix_is_never_made_dense(tmp_path: Path) -> None:
    run_python(LARGE, folder=tmp_path)


def test_rejects_sparse_matrices_where_they_do_not_fit() -> None:
    X, y, _ = sparse_clouds()
    with pytest.raises(cl.CredalError, match=r"for the default learner.* pass X\.toarray\(\)"):
        classifier().fit(X, y)
    own = classifier(backbone=torch.nn.Identity(), epochs=1).fit(X.toarray(), y)
    with pytest.raises(cl.CredalError, match=r"for the default learner.* pass X\.toarray\(\)"):
        own.predict(X)
    with pytest.raises(cl.CredalError, match=r"fitted on a dense table\. To fix: pass X\.toarray"):
        cl.CredalClassifier().fit(X.toarray(), y).predict(X)
    with pytest.raises(cl.CredalError, match=r"sparse X must contain no NaN.* X\.toarray\(\)"):
        cl.CredalClassifier().fit(X * np.nan, y)
    with pytest.raises(cl.CredalError, match=r"For texts: encoder='tfidf'\."):
        cl.CredalClassifier().fit(TEXTS, KINDS)
    with pytest.raises(ValueError, match="expecting 5 features"):
        cl.CredalClassifier().fit(X, y).predict(random_array((3, 4), rng=0))


def test_texts_in_a_pipeline_with_a_vectorizer() -> None:
    pipe = make_pipeline(TfidfVectorizer(), cl.CredalClassifier()).fit(TEXTS, KINDS)
    assert pipe.predict(["what a dog", "what a cat"]).tolist() == ["dog", "cat"]
    assert cross_val_score(pipe, TEXTS, KINDS, cv=3).min() == 1
    pred = pipe[-1].predict_credal(pipe[:-1].transform(["dog", "neither"]))
    top = pred.score("top-probability")
    assert top[0] < top[1]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Four columns with gaps: the site decides, and so does whether a size is known."""
    random = np.random.default_rng(0)
    y = np.arange(200) % 2
    frame = pd.DataFrame(
        {
            "age": random.integers(20, 80, 200).astype(float),
            "size": np.where(random.random(200) < 0.2 + 0.6 * y, np.nan, random.normal(size=200)),
            "site": np.where(random.random(200) < 0.2, random.choice(["x", "z"], 200), "y"),
            "empty": np.nan,
        }
    )
    frame.loc[y == 1, "site"] = frame.loc[y == 1, "site"].replace("y", "w")
    frame.loc[::17, "site"] = None
    frame.loc[::13, "age"] = np.nan
    return frame, np.array(["no", "yes"])[y]


@pytest.mark.parametrize("method", ["auto", "pocc"])
def test_missing_values_and_categories_are_learned_saved_and_loaded(
    method: str, tmp_path: Path
) -> None:
    frame, y = table()
    train, test = frame[:150], frame[150:]
    clf: Any = cl.CredalClassifier() if method == "auto" else classifier(epochs=20)
    clf.fit(train, y[:150])
    assert clf.score(test, y[150:]) > 0.85
    assert clf.feature_names_in_.tolist() == ["age", "size", "site", "empty"]
    found = clf.predict_proba(test)
    clf.save(tmp_path)
    loaded = cl.load(tmp_path)
    np.testing.assert_allclose(loaded.predict_proba(test), found, atol=1e-6)
    np.testing.assert_allclose(clf.predict_proba(test[::-1])[::-1], found, atol=1e-6)
    columns = {name: [None if x != x else x for x in test[name]] for name in test}
    other = pl.DataFrame(columns)
    np.testing.assert_allclose(clf.predict_proba(other), found, atol=1e-6)
    # An unknown site has none of the known ones, and says nothing about the class.
    unknown = loaded.predict_proba(test.assign(site="elsewhere", size=0.0))
    known = loaded.predict_proba(test.assign(site="w", size=0.0))
    assert (unknown[:, 1] < known[:, 1]).all()
    for wrong, message in (
        (test.assign(site=3.5), r"column 'site' must contain texts, as in training; row 0 is 3\.5"),
        (test.assign(age="old"), r"column 'age' must contain numbers, as in training; row 0 is"),
        (test.assign(age=np.inf), "column 'age' must contain finite numbers, or NaN if missing"),
    ):
        with pytest.raises(cl.CredalError, match=message):
            loaded.predict(wrong)
