"""TextEncoder, and the classifier of texts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_union

import credalearn as cl
from credalearn._text_encoder import TextEncoder, as_texts
from largest_tensor import LargestTensor
from present import present
from text_items import messages

TEXTS = np.array(
    ["The cat sat on the mat", "the dog, the DOG", "", "مرحبا بالعالم", "你好 世界 世界", "a b"],
    dtype=object,
)


def rival(texts: Any) -> Any:
    """The same by scikit-learn."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    return make_union(words, characters).fit(texts)


def test_encodes_as_scikit_learn_does() -> None:
    known, new = TEXTS, np.array(["the cat and the dog", "unknown", "世界"], dtype=object)
    encoder, other = TextEncoder.fit(known), rival(known)
    for texts in (known, new):
        np.testing.assert_allclose(
            encoder.transform(texts).toarray(), other.transform(texts).toarray(), atol=1e-12
        )
    assert issparse(encoder.transform(new))
    assert len(encoder.names) == encoder.transform(new).shape[1]


@pytest.mark.catches("_text_encoder.py", "if rows is None:", "if True:")
def test_a_fold_encodes_as_an_encoder_of_its_own_texts() -> None:
    encoder, rows = TextEncoder.fit(TEXTS), np.array([0, 1, 3])
    found = encoder.weigh(encoder.count(TEXTS), rows).toarray()
    alone = TextEncoder.fit(TEXTS[rows])
    kinds = [(each, name) for name in ("words", "characters") for each in getattr(encoder, name)]
    known = [(each, name) for name in ("words", "characters") for each in getattr(alone, name)]
    own = dict(zip(known, alone.transform(TEXTS).toarray().T, strict=True))
    wanted = np.transpose([own.get(each, np.zeros(len(TEXTS))) for each in kinds])
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_keeps_the_most_frequent_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("credalearn._text_encoder._MOST_TERMS", 2)
    encoder = TextEncoder.fit(np.array(["cat dog", "cat owl", "dog cat"], dtype=object))
    assert encoder.words == {"cat": 3, "dog": 2}
    assert len(encoder.characters) == 2


def test_texts_from_lists_arrays_and_series() -> None:
    wanted = ["cat", "", "dog"]
    for given in (
        ["cat", None, "dog"],
        ("cat", float("nan"), "dog"),
        np.array(wanted),
        pd.Series(["cat", None, "dog"]),
        pd.Series(["cat", pd.NA, "dog"], dtype="string"),
        pl.Series(["cat", None, "dog"]),
    ):
        assert as_texts(given).tolist() == wanted
    assert as_texts(["", None]).tolist() == ["", ""]


def test_rejects_inputs_that_are_not_text() -> None:
    clf, y = cl.CredalClassifier(encoder="tfidf"), ["a", "b"]
    for X, message in (
        ("cat", "one per item; got a single text"),
        ([["cat"], ["dog"]], r"got shape \(2, 1\)"),
        ([1, 2], "must contain texts; row 0 is 1"),
        (["cat", 3], "only numbers or only texts"),
        (["", " "], "no text contains a word"),
    ):
        with pytest.raises(cl.CredalError, match=message):
            clf.fit(X, y)
    with pytest.raises(cl.CredalError, match="for the default learner"):
        cl.CredalClassifier("pocc", encoder="tfidf").fit(["cat", "dog"], y)
    with pytest.raises(cl.CredalError, match="encoder must be one of"):
        cl.CredalClassifier(encoder="bert").fit(["cat", "dog"], y)  # type: ignore[arg-type]


def test_classifier_learns_texts_and_is_saved_with_its_encoder(tmp_path: Path) -> None:
    texts, votes = messages(160)
    new, truth = messages(60, random_state=1)
    with LargestTensor() as largest:
        clf = cl.CredalClassifier(encoder="tfidf").fit(
            texts, cl.from_votes(votes), classes=["fine", "rude"]
        )
    width = clf._input_shape[0]
    assert width > 800
    assert largest.numel < 20 * width  # the heads; a dense matrix would have 160 times as many
    clear = truth.max(1) >= 3
    right = np.array(["fine", "rude"])[truth.argmax(1)]
    assert (clf.predict(new) == right)[clear].mean() > 0.9
    clf.save(tmp_path)
    np.testing.assert_array_equal(cl.load(tmp_path).predict_proba(new), clf.predict_proba(new))
    assert len(present(clf.out_of_fold_)) == 160
    again = clone(clf).fit(pd.Series(texts), cl.from_votes(votes), classes=["fine", "rude"])
    np.testing.assert_array_equal(again.predict_proba(new), clf.predict_proba(new))


@pytest.mark.catches(
    "_folds.py", "self.encode(self.inputs, rows)", "self.encode(self.inputs, np.arange(len(self)))"
)
def test_each_fold_is_encoded_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[Any] = []
    weigh = TextEncoder.weigh

    def watched(encoder: TextEncoder, counts: Any, rows: Any = None) -> Any:
        fitted.append(rows)
        return weigh(encoder, counts, rows)

    monkeypatch.setattr(TextEncoder, "weigh", watched)
    texts, votes = messages(40)
    clf = cl.CredalClassifier(encoder="tfidf").fit(texts, cl.from_votes(votes))
    wanted = [np.flatnonzero(present(clf.folds_) != fold) for fold in range(4)]
    assert [each.tolist() for each in fitted] == [*(each.tolist() for each in wanted), [*range(40)]]


def test_items_without_weight_do_not_reach_the_encoder() -> None:
    texts, votes = messages(40)
    weight = np.ones(41)
    weight[-1] = 0
    y = cl.from_votes(np.vstack([votes, [4, 0]]))
    clf = cl.CredalClassifier(encoder="tfidf").fit([*texts, "zebra"], y, sample_weight=weight)
    assert isinstance(clf._encoder, TextEncoder)
    assert "zebra" not in clf._encoder.words
