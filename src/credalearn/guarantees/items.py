"""Items with the scores of any model, and whether each is right or wrong, its group and class."""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import ArrayLike

from credalearn._checks import check_present
from credalearn._ranks import as_array, as_scores
from credalearn.errors import CredalError


@final
@dataclass(frozen=True, slots=True, eq=False, init=False)
class ScoredItems:
    """Items of any model, checked once; :func:`~credalearn.certify` takes them as ``reference``.

    Args:
        score: Uncertainty, larger is less certain, finite, shape (N,).
        wrong: Whether each prediction is wrong, bools or 0 and 1, shape (N,); or, as floats in
            [0, 1], the share of annotators who disagree. None: ``predicted != truth``.
        groups: Group of each item, such as its patient, shape (N,), or None.
        predicted: Predicted class of each item, shape (N,), or None.
        truth: True class of each item, shape (N,), or None.

    Example:
        >>> items = ScoredItems([0.1, 0.4], predicted=["cat", "dog"], truth=["cat", "cat"])
        >>> items.wrong, items.binary
        (array([0., 1.]), True)
    """

    score: np.ndarray
    wrong: np.ndarray
    groups: np.ndarray | None
    predicted: np.ndarray | None
    truth: np.ndarray | None
    binary: bool  # whether every item is either wrong or right

    def __init__(
        self,
        score: "ArrayLike",
        wrong: "ArrayLike | None" = None,
        *,
        groups: "ArrayLike | None" = None,
        predicted: "ArrayLike | None" = None,
        truth: "ArrayLike | None" = None,
    ) -> None:
        if np.asarray(as_array(score)).dtype == bool:
            raise CredalError("score must be numbers; got truth values. To fix: pass score first.")
        scores = as_scores(score, name="score").astype(np.float64)
        if not np.isfinite(scores).all():
            row = int(np.isfinite(scores).argmin())
            raise CredalError(
                f"score must be finite; item {row} has {scores[row]}. To fix: fill or drop it."
            )
        named = {"groups": groups, "predicted": predicted, "truth": truth}
        given = {name: _names(each, name, len(scores)) for name, each in named.items()}
        if wrong is None and (given["predicted"] is None or given["truth"] is None):
            raise CredalError(
                "certifying needs errors. To fix: pass wrong, or predicted and truth."
            )
        found = given["predicted"] != given["truth"] if wrong is None else wrong
        shares = as_scores(found, name="wrong", num_items=len(scores)).astype(np.float64)
        binary = np.asarray(as_array(found)).dtype.kind in "biu"  # bools and whole numbers
        good = np.isin(shares, (0, 1)) if binary else (shares >= 0) & (shares <= 1)
        if not good.all():
            row = int(good.argmin())
            rule = "0 or 1" if binary else "in [0, 1]"
            raise CredalError(
                f"wrong must be {rule} for every item; item {row} has {shares[row]:g}. To fix: "
                "give wrong = predicted != true, or the share of annotators who disagree."
            )
        for name, value in {"score": scores, "wrong": shares, "binary": binary, **given}.items():
            object.__setattr__(self, name, value)

    @property
    def num_groups(self) -> int | None:
        """Number of groups; None where items have none."""
        return None if self.groups is None else len(set(self.groups.tolist()))

    def __getitem__(self, rows: np.ndarray) -> Self:
        chosen = {
            name: None if (each := getattr(self, name)) is None else each[rows]
            for name in ("groups", "predicted", "truth")
        }
        wrong = self.wrong[rows].astype(bool) if self.binary else self.wrong[rows]
        return type(self)(self.score[rows], wrong, **chosen)

    def __len__(self) -> int:
        return len(self.score)


def _names(values: "ArrayLike | None", name: str, num_items: int) -> np.ndarray | None:
    """Names of classes as text, of groups as text or whole numbers."""
    if values is None:
        return None
    array = np.asarray(as_array(values))
    if array.shape != (num_items,):
        raise CredalError(f"{name} must have shape ({num_items},); got {array.shape}.")
    if name == "groups" and array.dtype.kind in "iu":
        return array
    names = list(values) if isinstance(values, list | tuple) else array.tolist()
    check_present(names, name=name)
    return np.array([as_name(each) for each in names])


def as_name(value: object) -> str:
    """A class or a group as text; 1.0 as 1, since pandas has floats next to missing numbers."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
