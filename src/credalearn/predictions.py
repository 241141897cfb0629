"""Predictions of every method: a set of distributions for each item, and its scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, final

from numpy.typing import ArrayLike
from torch import Tensor, cat

from credalearn._checks import check_choice
from credalearn._formats import many
from credalearn._scores import SCORES
from credalearn._temperature import temper
from credalearn.errors import CredalError
from credalearn.sets._checks import (
    as_floats,
    as_rows,
    map_tensors,
    moved,
    require,
    require_distributions,
    require_shape,
)

if TYPE_CHECKING:
    from credalearn.conformal import Distance, Inflation, Scale, Target

_TOLERANCE = 1e-5  # the mean of V float32 heads may leave their range by a rounding


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CredalPredictions:
    r"""A predicted set of distributions for each item, with one distribution chosen from it.

    Made by the methods, mostly through :meth:`from_vertices`; checked once, here.

    Args:
        probs: The chosen distribution, which classes and probabilities come from, shape (N, K).
        lower: Smallest probability of each class over the set, shape (N, K).
        upper: Largest one, shape (N, K). Bounds that miss ``probs`` or [0, 1] by a rounding, up to
            1e-5, are moved there.
        vertices: Points whose hull is the set (heads, ensemble members, passes), shape (N, V, K);
            None where the set is only known by its bounds.
        concentration: Dirichlet parameters of a second-order method, shape (N, K), or None.

    Example:
        Two heads agree on the class and differ by 0.2 in its probability.

        >>> import torch
        >>> heads = torch.tensor([[[0.6, 0.4], [0.8, 0.2]]])
        >>> pred = CredalPredictions.from_vertices(heads)
        >>> pred
        CredalPredictions(1 item, 2 classes, 2 vertices)
        >>> pred.probs, pred.score("mmi"), pred.score("lower-probability")
        (tensor([[0.7000, 0.3000]]), tensor([0.2000]), tensor([0.4000]))
    """

    probs: Tensor
    lower: Tensor
    upper: Tensor
    vertices: Tensor | None = None
    concentration: Tensor | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None or each.default is MISSING:
                tensor = as_floats(value, name=each.name, ndim=3 if each.name == "vertices" else 2)
                object.__setattr__(self, each.name, tensor)
                shape = (len(self.probs), *tensor.shape[1:-1], self.probs.shape[1])
                require_shape(tensor, shape, name=each.name)
        require_distributions(self.probs, name="probs")
        require(
            (self.lower <= self.probs + _TOLERANCE)
            & (self.probs <= self.upper + _TOLERANCE)
            & (self.lower >= -_TOLERANCE)
            & (self.upper <= 1 + _TOLERANCE),
            rule="0 <= lower <= probs <= upper <= 1 must hold for every class",
            remedy="choose a distribution inside the set",
            lower=self.lower,
            probs=self.probs,
            upper=self.upper,
        )
        # The scores allow no tolerance. The bounds of a point are its probs.
        if self.lower is not self.probs:
            object.__setattr__(self, "lower", self.lower.minimum(self.probs).clamp(0, 1))
        if self.upper is not self.probs:
            object.__setattr__(self, "upper", self.upper.maximum(self.probs).clamp(0, 1))
        if self.vertices is not None:
            require_distributions(self.vertices, name="vertices")
            require(
                (self.vertices >= self.lower[:, None] - _TOLERANCE)
                & (self.vertices <= self.upper[:, None] + _TOLERANCE),
                rule="the vertices must lie within the bounds",
                remedy="use CredalPredictions.from_vertices(vertices)",
                vertices=self.vertices,
                lower=self.lower,
                upper=self.upper,
            )
        if self.concentration is not None:
            require(
                self.concentration > 0,
                rule="Dirichlet parameters must be above 0",
                remedy="check the link that makes them",
                concentration=self.concentration,
            )

    @classmethod
    def from_vertices(cls, vertices: Tensor) -> Self:
        """The hull of several predicted distributions (N, V, K), with their mean as ``probs``."""
        vertices = as_floats(vertices, name="vertices", ndim=3)
        lower, upper = vertices.amin(1), vertices.amax(1)
        return cls(vertices.mean(1).clamp(lower, upper), lower, upper, vertices)

    @classmethod
    def from_probs(cls, probs: ArrayLike) -> Self:
        """The probabilities of any model, an array of shape (N, K): each set is a point."""
        point = as_floats(probs, name="probs", ndim=2)
        return cls(point, point, point)

    @property
    def classes(self) -> Tensor:
        """Index of the predicted class, shape (N,), int64; the lowest index among equals."""
        return self.probs.argmax(1)

    def score(self, name: str) -> Tensor:
        """Uncertainty of each item by the score of this name, shape (N,); larger is less certain.

        ========================  ==============================================================
        name                      what it measures
        ========================  ==============================================================
        ``"lower-probability"``   1 − lower probability of the predicted class: for deferring
        ``"mmi"``                 largest total-variation distance in the set: the paper's score
        ``"entropy-difference"``  largest less smallest entropy in the set, bits
        ``"max-entropy"``         largest entropy in the set, bits
        ``"min-entropy"``         smallest entropy in the set, bits
        ``"mutual-information"``  H(mean of the vertices) − mean of their H, bits; needs vertices
        ``"evidence"``            K / Σα of a Dirichlet; needs ``concentration``
        ``"top-probability"``     1 − probability of the predicted class: every method has it
        ``"entropy"``             entropy of ``probs``, bits
        ========================  ==============================================================
        """
        check_choice(name, SCORES, name="score")
        return SCORES[name](self)

    def temper(self, temperature: float) -> Self:
        r"""The same predictions with every logit divided by ``temperature``, above 0.

        Probabilities and vertices become :math:`p^{1/T}`, normalized; the tempered ``probs`` may
        leave the hull of the tempered vertices and become one of them. Where only the bounds are
        known, their log-odds are divided, and the box is widened to contain ``probs``; a point
        stays a point. Dirichlet parameters stay.

        Example:
            >>> import torch
            >>> CredalPredictions.from_vertices(torch.tensor([[[0.9, 0.1]]])).temper(2.0).probs
            tensor([[0.7500, 0.2500]])
        """
        if not temperature > 0:
            raise CredalError(f"temperature must be above 0; got {temperature}.")
        probs = temper(self.probs, temperature)
        vertices = self.vertices
        if vertices is not None:
            vertices = temper(vertices, temperature)
            if vertices.shape[1] > 1:  # whatever the values, so that batches fit together
                vertices = cat([vertices, probs[:, None]], 1)
            lower, upper = vertices.aminmax(dim=1)
        else:
            is_point = ((self.lower == self.probs) & (self.upper == self.probs)).all(1, True)
            odds = [(each.double().logit() / temperature) for each in (self.lower, self.upper)]
            lower, upper = (each.sigmoid().to(probs.dtype) for each in odds)
            lower = probs.where(is_point, lower.minimum(probs))
            upper = probs.where(is_point, upper.maximum(probs))
        return type(self)(probs, lower, upper, vertices, self.concentration)

    def inflation(
        self,
        observed: ArrayLike,
        *,
        coverage: float = 0.9,
        distance: Distance = "box",
        scale: Scale = "relative-variance",
        strata: Sequence[str] | None = None,
        target: Target = "votes",
        random_state: int = 0,
    ) -> Inflation:
        """How much to widen sets like these so that they contain what people say about new items.

        These must be predictions of items that were not used for training. ``observed`` are votes
        or shares (N, K); with ``strata``, N names, each stratum gets a radius of its own. The
        guarantee and the options: :class:`~credalearn.conformal.Inflation`. With
        ``target="distribution"`` it is an estimate from random draws.

        Example:
            >>> import torch
            >>> pred = CredalPredictions.from_vertices(torch.full((9, 1, 2), 0.5))
            >>> votes = torch.tensor([[4 + k, 4 - k] for k in (0, 0, 1, 1, 1, 1, 1, 2, 2)])
            >>> pred.inflation(votes, coverage=0.7, scale="none").radius
            0.125
        """
        from credalearn.conformal import Inflation  # few runs widen sets
        from credalearn.conformal._calibration import calibrate

        asked = Inflation(
            coverage=coverage,
            radius=math.inf,
            distance=distance,
            scale=scale,
            items=len(self),
            target=target,
        )
        return calibrate(self, observed, asked, strata=strata, random_state=random_state)

    def conformalize(self, inflation: Inflation, *, strata: Sequence[str] | None = None) -> Self:
        """The same predictions with every set widened to its box; classes and ``probs`` stay.

        A ball becomes the box around it; :meth:`covers` is about the ball itself.

        Args:
            inflation: The result of :meth:`inflation` on calibration items.
            strata: Stratum of each item, where the inflation has strata.
        """
        from credalearn.conformal._calibration import widened_bounds

        lower, upper = widened_bounds(self, inflation, strata)
        return type(self)(self.probs, lower, upper, concentration=self.concentration)

    def covers(
        self, observed: ArrayLike, inflation: Inflation, *, strata: Sequence[str] | None = None
    ) -> Tensor:
        """Whether each item's observed distribution lies in its set once widened, shape (N,), bool.

        For predictions that :meth:`conformalize` has not widened yet; ``observed``, ``inflation``
        and ``strata`` as there and in :meth:`inflation`.
        """
        from credalearn.conformal._calibration import covered

        return covered(self, observed, inflation, strata)

    def to_polars(self, classes: Sequence[Any] | None = None) -> Any:
        """One row per item as a polars table: ``probability_0``, ``lower_0``, ``upper_0``, ….

        ``classes``: names in place of the numbers, such as ``clf.classes_``.
        """
        return import_module("polars").DataFrame(self._columns(classes))

    def to_pandas(self, classes: Sequence[Any] | None = None) -> Any:
        """The same as a pandas table."""
        return import_module("pandas").DataFrame(self._columns(classes))

    def _columns(self, classes: Sequence[Any] | None) -> dict[str, Any]:
        parts = {"probability": self.probs, "lower": self.lower, "upper": self.upper}
        numbers = range(self.probs.shape[1])
        if classes is not None and len(classes) != len(numbers):
            raise CredalError(f"classes must name all {len(numbers)} classes; got {len(classes)}.")
        named = zip(numbers, numbers if classes is None else classes, strict=True)
        arrays = {part: each.detach().double().cpu().numpy() for part, each in parts.items()}
        return {f"{part}_{name}": arrays[part][:, k] for k, name in named for part in arrays}

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same predictions on another device or in another dtype, as ``torch.Tensor.to``."""
        return moved(self, *args, **kwargs)

    def __getitem__(self, rows: Any) -> Self:
        chosen = as_rows(rows, length=len(self), device=self.probs.device)
        return map_tensors(self, lambda tensor: tensor[chosen])

    def __len__(self) -> int:
        return self.probs.shape[0]

    def __repr__(self) -> str:
        parts = [many(len(self), "item"), many(self.probs.shape[1], "class", "classes")]
        if self.vertices is not None:
            parts.append(many(self.vertices.shape[1], "vertex", "vertices"))
        return f"CredalPredictions({', '.join(parts)})"
