"""Split-conformal inflation: by how much predicted sets are widened, and what that promises.

Shapes: N items, V vertices, K classes.
"""

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, Self, final, get_args

from numpy.typing import ArrayLike

from credalearn._checks import check_choice, check_number
from credalearn._formats import many, percent
from credalearn.errors import CredalError

if TYPE_CHECKING:
    from torch import Tensor

Distance = Literal["box", "total-variation"]
Scale = Literal["relative-variance", "binomial", "top-probability", "none"]

# Every set is wider by this, so that rounding never loses the item that the radius comes from:
# linear programs end within 1e-7, and in float32 a probability is off by up to 3e-8.
_SLACK = 1e-7


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Inflation:
    r"""How much to widen predicted sets, and what that promises.

    Made by :meth:`CredalPredictions.inflation <credalearn.CredalPredictions.inflation>` from
    calibration items. The nonconformity of an item is the least r for which its observed label
    distribution lies in its set widened by r times its scale; the radius is the
    :math:`\lceil (n+1) \cdot \text{coverage} \rceil`-th smallest of the n. For a new item that is
    exchangeable with them

    .. math:: \text{coverage} \;\le\; P(\text{its observed distribution is in its widened set})
              \;\le\; \text{coverage} + \tfrac{1}{n+1},

    the second where no two nonconformities are equal (Vovk, Gammerman and Shafer, 2005; Lei et
    al., 2018; Romano, Patterson and Candès, 2019). The probability is over the calibration items
    and the new item together. It is about the observed shares of as many votes as the calibration
    items have. The scale must not be chosen by looking at the calibration items.

    Args:
        coverage: Share of new items to cover, in (0, 1).
        radius: In units of the scale; infinite where the items are too few, and then every set is
            the set of all distributions.
        distance: ``"box"``: the set becomes the box [lower − r·s, upper + r·s].
            ``"total-variation"``: it becomes all distributions within r·s of it in total variation,
            where a scale with one number per class counts as half its sum.
        scale: How much an item is widened compared with the others: ``"relative-variance"`` gives
            the narrowest intervals (``"binomial"`` with few classes and much disagreement),
            ``"top-probability"`` the smallest diameters; ``"none"`` widens all alike.
        items: Number of calibration items, n.
        group: Name of what several items may share, such as their patient.
        num_groups: Number of groups that the calibration items come from; None if they have none.

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
        check_number(self.coverage, name="coverage", above=0, below=1)
        check_choice(self.distance, get_args(Distance), name="distance")
        check_choice(self.scale, get_args(Scale), name="scale")
        for name in ("coverage", "radius"):  # NumPy's numbers do not go into JSON
            object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 <= self.items <= 2**53 or not self.radius >= 0:
            raise CredalError(f"items and radius must be 0 or more; got {self!r}.")
        if self.rank > self.items and not self.vacuous:
            raise CredalError(
                f"a coverage of {self.coverage:g} takes at least "
                f"{many(self.items_needed, 'item')}; got items={self.items} and "
                f"radius={self.radius:g}. To fix: calibrate on more items, or pass radius=inf."
            )

    @property
    def rank(self) -> int:
        r"""Which of the n sorted nonconformities the radius is: :math:`\lceil (n+1) c \rceil`."""
        # The 7th of 99 at 7 %, though .07 · 100 = 7.000000000000001; gives away 1e-9 / (n + 1).
        return max(1, math.ceil((self.items + 1) * self.coverage - 1e-9))

    @property
    def vacuous(self) -> bool:
        """Whether the items were too few, so that every set contains everything."""
        return math.isinf(self.radius)

    @property
    def items_needed(self) -> int:
        """The smallest number of calibration items that this coverage takes."""
        return max(1, math.ceil(self.coverage / (1 - self.coverage) - 1e-9))

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
        name = f" ({self.group})" if self.group else ""
        return (
            f"{promise} The guarantee assumes independent items; these come from "
            f"{many(self.num_groups, 'group')}{name}, and with few large groups it is weaker than "
            "stated."
        )

    def widen(self, lower: "Tensor", upper: "Tensor", probs: "Tensor") -> tuple["Tensor", "Tensor"]:
        """The reachable bounds of the widened sets, both of shape (N, K); ``probs`` stays inside.

        For total variation these are the bounds of the box around the neighborhood; :meth:`covers`
        is about the neighborhood itself. Arguments as for :meth:`covers`.
        """
        import torch

        from credalearn.sets import Intervals

        inside, room = probs.double(), self._room(probs)
        low = torch.minimum(lower.double(), inside) - room
        high = torch.maximum(upper.double(), inside) + room
        tight = Intervals(low.clamp(0, 1), high.clamp(0, 1))
        low = torch.minimum((tight.lower - _SLACK).clamp(min=0), inside)
        high = torch.maximum((tight.upper + _SLACK).clamp(max=1), inside)
        return low.to(lower.dtype), high.to(upper.dtype)

    def covers(
        self,
        observed: ArrayLike,
        lower: "Tensor",
        upper: "Tensor",
        probs: "Tensor",
        *,
        vertices: "Tensor | None" = None,
    ) -> "Tensor":
        """Whether each item's observed distribution lies in its widened set, shape (N,), bool.

        ``observed`` are votes or shares by class, (N, K); ``lower``, ``upper``, ``probs`` and
        ``vertices`` (N, V, K), which only total variation uses, are the predictions.
        """
        from credalearn.conformal.distance import as_shares, total_variation

        shares, low, high = as_shares(observed, lower), lower.double(), upper.double()
        room = self._room(probs)
        if self.distance == "box":
            return ((shares >= low - room) & (shares <= high + room)).all(1)
        points = None if vertices is None else vertices.double()
        return total_variation(shares, low, high, vertices=points) <= room[:, 0]

    def to_json(self) -> str:
        """The inflation as JSON, with its sentence for readers; an infinite radius is null."""
        radius = None if self.vacuous else self.radius
        known = asdict(self) | {"radius": radius, "sentence": self.sentence()}
        return json.dumps(known, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inflation that :meth:`to_json` wrote."""
        import msgspec  # here, so that calibrating tensors does not need it

        try:
            content = msgspec.json.decode(text, type=dict)
            if content.get("radius", 0) is None:
                content["radius"] = math.inf
            return msgspec.convert(content, cls)
        except msgspec.MsgspecError as error:
            why = CredalError(str(error)).reason
            raise CredalError(
                f"not an inflation of sets: {why}. To fix: calibrate again."
            ) from error

    def _room(self, probs: "Tensor") -> "Tensor":
        """By how much each bound moves, shape (N, 1) or (N, K)."""
        from credalearn.conformal.calibration import scale_of

        return self.radius * scale_of(probs.double(), self.distance, self.scale) + _SLACK
