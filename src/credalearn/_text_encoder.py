"""Texts as numbers: TF-IDF of words and of characters, for any language."""

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer

from credalearn._table_encoder import column_values, refusal
from credalearn.errors import CredalError

# Characters within words: on tweets and dialogues better than across them, with fewer terms.
_TERMS = {
    "words": CountVectorizer(ngram_range=(1, 2)).build_analyzer(),
    "characters": CountVectorizer(analyzer="char_wb", ngram_range=(2, 5)).build_analyzer(),
}
_MOST_TERMS = 2**17  # of each kind, the most frequent: a linear model of two classes has 6 MB


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Terms of the training texts, each with the number of texts that contain it."""

    # A term that occurs c times in a text has the value (1 + ln c) (1 + ln((1 + n) / (1 + d))) if d
    # of n training texts contain it. The values of words and those of characters have length 1.

    num_texts: int
    words: dict[str, int]  # one and two words
    characters: dict[str, int]  # two to five characters of a word with the spaces around it

    def __post_init__(self) -> None:
        numbers = [*self.words.values(), *self.characters.values()]
        if not numbers or min(numbers) < 1 or max(numbers) > self.num_texts:
            raise CredalError(f"every term must be in 1 to {self.num_texts} texts.")

    @classmethod
    def fit(cls, texts: np.ndarray) -> Self:
        """Learn the terms of the training texts (N,)."""
        vocabularies: dict[str, dict[str, int]] = {}
        for name, terms in _TERMS.items():
            counts = Counter(term for text in texts for term in set(terms(text)))
            most = sorted(counts, key=lambda term: (-counts[term], term))[:_MOST_TERMS]
            vocabularies[name] = {term: counts[term] for term in sorted(most)}
        if not any(vocabularies.values()):
            raise CredalError("no text contains a word. To fix: pass texts, one per item.")
        return cls(num_texts=len(texts), **vocabularies)

    def transform(self, texts: np.ndarray) -> csr_matrix:
        """Encoded texts (N,), shape (N, D), sparse, in float32: half the memory and time."""
        return self.weigh(self.count(texts))

    def count(self, texts: np.ndarray) -> csr_matrix:
        """One plus the logarithm of each term's number in the texts (N,), shape (N, D)."""
        ends, columns, numbers = [0], array("i"), array("d")
        words = {term: number for number, term in enumerate(self.words)}
        characters = {term: number for number, term in enumerate(self.characters, len(words))}
        for text in texts:
            for terms, column_of in zip(_TERMS.values(), (words, characters), strict=True):
                counts = Counter(column_of[term] for term in terms(text) if term in column_of)
                columns.extend(counts.keys())
                numbers.extend(counts.values())
            ends.append(len(columns))
        values = (1 + np.log(numbers, dtype=np.float32), np.asarray(columns), ends)
        return csr_matrix(values, shape=(len(texts), len(self.names)))

    def weigh(self, counts: csr_matrix, rows: np.ndarray | None = None) -> csr_matrix:
        """Encoded texts from their counts (N, D); with ``rows``, as if fitted on these alone."""
        if rows is None:
            size = self.num_texts
            texts_with = np.array([*self.words.values(), *self.characters.values()])
        else:
            size = len(rows)
            texts_with = np.bincount(counts[rows].indices, minlength=counts.shape[1])
        rarity = 1 + np.log((1 + size) / (1 + texts_with))
        weights = np.where(texts_with > 0, rarity, 0).astype(np.float32)
        values = counts.data * weights[counts.indices]
        part = 2 * np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        part += counts.indices >= len(self.words)
        length = np.sqrt(np.bincount(part, values**2, minlength=2 * counts.shape[0]))
        values /= np.where(length > 0, length, 1).astype(np.float32)[part]
        return csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)

    @property
    def names(self) -> list[str]:
        """Names of the D encoded features: the terms, words first."""
        return [*self.words, *self.characters]


def as_texts(X: Any) -> np.ndarray:
    """Texts (N,) from a list, an array or a series; a missing one is empty."""
    values = np.asarray(X, dtype=object)
    if values.ndim != 1 or not len(values):
        got = "a single text" if isinstance(X, str) else f"shape {values.shape}"
        raise CredalError(f"X must be a list or a column of texts, one per item; got {got}.")
    texts = column_values("X", values)
    if texts.dtype == object:
        return texts
    if not np.isnan(texts).all():
        raise refusal("X", values, ~np.isnan(texts), "texts")
    return np.full(len(texts), "", dtype=object)
