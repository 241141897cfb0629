"""Split-conformal inflation: predicted sets widened by what calibration items were off by.

Shapes: N items, V vertices, K classes.
"""

import json
import math
from dataclasses import asdict, dataclass, fields
from numbers import Real
from typing import Any, Literal, Self, final, get_args

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from credalearn._checks import check_choice
from credalearn._formats import check_share, percent
from credalearn.conformal.checks import as_shares
from credalearn.conformal.distance import total_variation
from credalearn.conformal.scales import SCALES, Scale
from credalearn.errors import CredalError
from credalearn.sets import Intervals

Distance = Literal["box", "total-variation"]

# Every set is so much wider still, so that no rounding loses the item that the radius comes from:
# linear programs end within 1e-7, and in float32 a probability is off by up to 3e-8.
_SLACK = 1e-7


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inflation:
    r"""How much to widen predicted sets, and what that promises.

    Made by :meth:`CredalPredictions.inflation <credalearn.CredalPredictions.inflation>` from
    calibration items. Each has a nonconformity, the least r for which its observed label
    distribution lies in its set widened by r times its scale; the radius is the
    :math:`\lceil (n+1) \cdot \text{coverage} \rceil`-th smallest of the n. For a new item that is
    exchangeable with them

    .. math:: \text{coverage} \;\le\; P(\text{its observed distribution is in its widened set})
              \;\le\; \text{coverage} + \tfrac{1}{n+1},

    the second where no two nonconformities are equal (Vovk, Gammerman and Shafer, 2005; Lei et
    al., 2018, who scale by the item; the distance to an interval as in Romano, Patterson and
    Candès, 2019).

    What it is not: the probability is over the calibration items and the new item together, not
    for each item or class. It is about the observed shares of as many votes as the calibration
    items have, not about the distribution behind them: three votes give thirds, whatever it is.
    And the scale must not be chosen by looking at the calibration items.

    Args:
        coverage: What was asked for, in (0, 1).
        radius: In units of the scale; infinite where the items are too few, and then every set is
            the set of all distributions.
        distance: ``"box"``: the set becomes the box [lower − r·s, upper + r·s].
            ``"total-variation"``: it becomes all distributions within r·s of it in total variation,
            where a scale with a number a class counts as half its sum.
        scale: Its name in ``SCALES``.
        items: Number of calibration items, n.
        group: Name of what several items may share, such as their patient.
        num_groups: Number of groups that the calibration items come from; None if they have none.

    Raises:
        CredalError: If a field is out of its range, or a radius is promised from too few items.

    Example:
        >>> import torch
        >>> found = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=50)
        >>> point = torch.tensor([[0.95, 0.03, 0.02]])
        >>> found.widen(point, point, point)
        (tensor([[0.8500, 0.0000, 0.0000]]), tensor([[1.0000, 0.1300, 0.1200]]))
        >>> print(found.sentence())
        On average over calibration sets, the vote shares of at least 90 % of new items lie in their
        widened sets, for items drawn and voted on like the 50 calibration items.
    """

    coverage: float
    radius: float
    distance: Distance
    scale: Scale
    items: int
    group: str | None = None
    num_groups: int | None = None

    def __post_init__(self) -> None:
        check_share(self.coverage, name="coverage")
        check_choice(self.distance, get_args(Distance), name="distance")
        check_choice(self.scale, SCALES, name="scale")
        if type(self.items) is not int or self.items < 0:
            raise CredalError(f"items must be a whole number, 0 or more; got {self.items!r}.")
        if not isinstance(self.radius, Real) or not self.radius >= 0:
            raise CredalError(f"radius must be a number, 0 or more; got {self.radius!r}.")
        for name in ("coverage", "radius"):  # numbers of NumPy, which JSON does not hold, too
            object.__setattr__(self, name, float(getattr(self, name)))
        if self.rank > self.items and not self.vacuous:
            raise CredalError(
                f"a coverage of {self.coverage:g} takes {self.items_needed:,} items or more; got "
                f"items={self.items} and radius={self.radius:g}. To fix: calibrate on more items, "
                "or give radius=inf."
            )

    @property
    def rank(self) -> int:
        """Which of the calibration items' nonconformities, sorted, the radius is, from 1 on.

        More than there are items where these are too few; see :func:`rank_of`.
        """
        return rank_of(self.items, self.coverage)

    @property
    def vacuous(self) -> bool:
        """Whether the items were too few, so that every set holds everything."""
        return math.isinf(self.radius)

    @property
    def items_needed(self) -> int:
        """How many calibration items this coverage takes at the least, to be no empty promise."""
        return max(1, math.ceil(self.coverage / (1 - self.coverage) - 1e-9))

    @property
    def way(self) -> str:
        """How sets are widened, in words.

        Example:
            >>> Inflation(coverage=0.9, radius=1, distance="box", scale="binomial", items=50).way
            'class by class, scaled by binomial'
        """
        by = {"box": "class by class", "total-variation": "in total variation"}[self.distance]
        return f"{by}, {'not scaled' if self.scale == 'none' else f'scaled by {self.scale}'}"

    def sentence(self) -> str:
        """What is promised, about which items, and what groups do to it; or that nothing is."""
        share = percent(self.coverage, digits=4)
        if self.vacuous:
            return (
                f"Nothing is promised and every set contains all distributions: {share} takes at "
                f"least {self.items_needed:,} calibration items, and there are {self.items:,}."
            )
        promise = (
            f"On average over calibration sets, the vote shares of at least {share} of new items "
            f"lie in their widened sets, for items drawn and voted on like the {self.items:,} "
            "calibration items."
        )
        if self.num_groups is None or self.num_groups == self.items:
            return promise
        groups = "1 group" if self.num_groups == 1 else f"{self.num_groups:,} groups"
        return (
            f"{promise} They come from {groups}{f' ({self.group})' if self.group else ''}, and "
            "items of one group are alike: with few large groups the guarantee is weaker than "
            "stated."
        )

    def widen(self, lower: Tensor, upper: Tensor, probs: Tensor) -> tuple[Tensor, Tensor]:
        """The bounds of the widened sets, both of shape (N, K), reachable ones, in their dtype.

        No rounding loses a member, and ``probs`` stays inside. Of the total-variation neighborhood
        these are the box around it; :meth:`covers` is about the neighborhood itself.

        Args:
            lower: Smallest probabilities of the predicted sets, shape (N, K).
            upper: Largest probabilities, shape (N, K).
            probs: The chosen distributions, which the scale is of, shape (N, K).
        """
        inside, room = probs.double(), self._room(probs.double()) + _SLACK
        low = torch.minimum(lower.double(), inside) - room
        high = torch.maximum(upper.double(), inside) + room
        tight = Intervals(low.clamp(0, 1), high.clamp(0, 1))
        low = torch.minimum((tight.lower - _SLACK).clamp(min=0), inside)
        high = torch.maximum((tight.upper + _SLACK).clamp(max=1), inside)
        return low.to(lower.dtype), high.to(upper.dtype)

    def covers(
        self,
        observed: ArrayLike,
        lower: Tensor,
        upper: Tensor,
        probs: Tensor,
        *,
        vertices: Tensor | None = None,
    ) -> Tensor:
        """Whether each item's observed distribution lies in its widened set, shape (N,), bool.

        Args:
            observed: Votes or shares by class, shape (N, K); rows are divided by their sum.
            lower: Smallest probabilities of the predicted sets, shape (N, K).
            upper: Largest probabilities, shape (N, K).
            probs: The chosen distributions, shape (N, K).
            vertices: Points whose hull the predicted set is, shape (N, V, K); only the
                total-variation distance asks for them.
        """
        shares, low, high = as_shares(observed, lower), lower.double(), upper.double()
        room = self._room(probs.double()) + _SLACK
        if self.distance == "box":
            return ((shares >= low - room) & (shares <= high + room)).all(1)
        points = None if vertices is None else vertices.double()
        return total_variation(shares, low, high, vertices=points) <= room[:, 0]

    def to_json(self) -> str:
        """The inflation as JSON, with its sentence for readers; no radius if infinite."""
        radius = None if self.vacuous else self.radius
        told = asdict(self) | {"radius": radius, "sentence": self.sentence()}
        return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inflation that :meth:`to_json` wrote.

        Raises:
            CredalError: If the text is none.
        """
        try:
            content: Any = json.loads(text)
            given = {each.name: content[each.name] for each in fields(cls)}
            if given["radius"] is None:
                given["radius"] = math.inf
            return cls(**given)
        except (TypeError, KeyError, ValueError) as error:
            reason = error.reason if isinstance(error, CredalError) else str(error)
            reason = f"{error} is missing" if isinstance(error, KeyError) else reason
            raise CredalError(
                f"this is no inflation of sets: {reason}. To fix: calibrate again."
            ) from error

    def _room(self, probs: Tensor) -> Tensor:
        """By how much each bound moves, shape (N, 1) or (N, K)."""
        return self.radius * scale_of(probs, self.distance, self.scale)


def rank_of(items: int, coverage: float) -> int:
    r"""Which of n sorted nonconformities the radius is: :math:`\lceil (n+1) c \rceil`, 1 or more.

    Exceeds n where so few items can promise nothing.

    Example:
        >>> rank_of(99, 0.9), rank_of(5, 0.9)
        (90, 6)
    """
    # The 7th of 99 at 7 %, though .07 · 100 = 7.000000000000001; gives away 1e-9 / (n + 1).
    return max(1, math.ceil((items + 1) * coverage - 1e-9))


def scale_of(probs: Tensor, distance: Distance, scale: Scale) -> Tensor:
    """The scale as the distance takes it, shape (N, 1) or (N, K); of total variation (N, 1).

    Example:
        >>> scale_of(torch.tensor([[0.8, 0.2]]), "total-variation", "relative-variance")
        tensor([[0.2100]])
    """
    factor = SCALES[scale](probs)
    if distance == "total-variation" and factor.shape[1] > 1:
        return factor.sum(1, keepdim=True) / 2  # so far apart are two whose classes are off by s
    return factor
