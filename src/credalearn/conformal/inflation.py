"""Split-conformal inflation: by how much predicted sets are widened, and what that promises."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Self, final, get_args

import numpy as np

from credalearn._checks import check_choice, check_number
from credalearn._formats import about_groups, many, number, percent
from credalearn.errors import CredalError

Distance = Literal["box", "total-variation", "kullback-leibler"]
Scale = Literal["relative-variance", "binomial", "stretched", "top-probability", "none"]
Target = Literal["votes", "distribution"]


@dataclass(frozen=True, slots=True)
class Stratum:
    """A part of the items that is calibrated on its own."""

    name: str  # its name
    radius: float  # in units of the scale; infinite where its items are too few
    items: int  # number of its calibration items


def rank_of(items: int, coverage: float) -> int:
    r"""Which of n sorted nonconformities the radius is: :math:`\lceil (n+1) c \rceil`."""
    # The 7th of 99 at 7 %, though .07 · 100 = 7.000000000000001; gives away 1e-9 / (n + 1).
    return max(1, math.ceil((items + 1) * coverage - 1e-9))


def score_strata(score: np.ndarray, edges: Sequence[float]) -> list[str]:
    """The stratum of each item by its score: up to the first edge, up to the second, …, above."""
    names = [f"{place}: score up to {number(edge)}" for place, edge in enumerate(edges, start=1)]
    names.append(f"{len(edges) + 1}: score above {number(edges[-1])}" if edges else "all")
    return [names[place] for place in np.searchsorted(edges, score)]


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
            ``"total-variation"`` and ``"kullback-leibler"``: the ball of all q with
            :math:`\frac12\sum_k |q_k - p_k| \le r s` or :math:`\mathrm{KL}(q \| p) \le r s` around
            p, the predicted ``probs``, whatever the predicted set is; a scale with one number per
            class counts as half its sum. Without a scale these are conformal credal sets
            (Javanmardi, Stutz and Hüllermeier, 2024).
        scale: How much an item is widened compared with the others: ``"relative-variance"`` gives
            the narrowest intervals with many classes, ``"binomial"`` with few classes and much
            disagreement; ``"stretched"`` first moves each bound by √(p(1 − p)) and then all alike,
            inward too; ``"top-probability"`` gives the smallest diameters; ``"none"`` widens all
            alike.
        items: Number of calibration items, n.
        group: Name of what several items may share, such as their patient.
        num_groups: Number of groups that the calibration items come from; None if they have none.
        strata: Parts of the items with a radius of their own; ``radius`` is then the largest. The
            promise holds in each. A stratum must be known before the votes: the score, the
            predicted class, the site; not the true class.
        by: What the strata are of: the name of a score or a column, or ``"label"``.
        edges: For strata by score, the scores between them.
        target: What is covered: ``"votes"``, the shares of as many votes as the calibration items
            have; or ``"distribution"``, what very many votes would show. That is an estimate from a
            model of how distributions scatter around predictions, not a guarantee.

    Example:
        >>> import torch
        >>> from credalearn import CredalPredictions
        >>> found = Inflation(coverage=0.9, radius=0.1, distance="box", scale="none", items=50)
        >>> point = torch.tensor([[0.95, 0.03, 0.02]])
        >>> wide = CredalPredictions.from_probs(point).conformalize(found)
        >>> wide.lower, wide.upper
        (tensor([[0.8500, 0.0000, 0.0000]]), tensor([[1.0000, 0.1300, 0.1200]]))
        >>> print(found.sentence())
        On average over calibration sets, the vote shares of at least 90 % of new items lie in their
        widened sets, for items drawn and voted on like the 50 calibration items.
    """

    coverage: float
    radius: float
    distance: Distance = "box"
    scale: Scale = "relative-variance"
    items: int
    group: str | None = None
    num_groups: int | None = None
    strata: tuple[Stratum, ...] = ()
    by: str | None = None
    edges: tuple[float, ...] = ()
    target: Target = "votes"

    def __post_init__(self) -> None:
        check_number(self.coverage, name="coverage", above=0, below=1)
        check_choice(self.distance, get_args(Distance), name="distance")
        check_choice(self.scale, get_args(Scale), name="scale")
        check_choice(self.target, get_args(Target), name="target")
        for name in ("coverage", "radius"):  # NumPy's numbers do not go into JSON
            object.__setattr__(self, name, float(getattr(self, name)))
        least = -1.0 if self.scale == "stretched" else 0.0
        if not 0 <= self.items <= 2**53 or not self.radius >= least:
            raise CredalError(f"items and radius must be 0 or more; got {self!r}.")
        if self.scale == "stretched" and self.distance != "box":
            raise CredalError("scale='stretched' is about boxes. To fix: pass distance='box'.")
        if self.rank > self.items and not self.vacuous:
            raise CredalError(
                f"a coverage of {self.coverage:g} takes at least "
                f"{many(self.items_needed, 'item')}; got items={self.items} and "
                f"radius={self.radius:g}. To fix: calibrate on more items, or pass radius=inf."
            )

    @property
    def rank(self) -> int:
        """Which of the n sorted nonconformities the radius is; with strata, the sum of theirs."""
        parts = [each.items for each in self.strata] or [self.items]
        return sum(rank_of(items, self.coverage) for items in parts)

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
        if self.target == "distribution":
            return (
                f"An estimate, not a guarantee: the label distributions of about {share} of new "
                "items lie in their widened sets, if distributions scatter around predictions as a "
                f"model of the votes on {self.items:,} calibration items says."
            )
        promise = (
            f"On average over calibration sets, the vote shares of at least {share} of new items "
            f"lie in their widened sets, for items drawn and voted on like the {self.items:,} "
            "calibration items."
        )
        if self.strata:
            names = ", ".join(each.name.split(": ")[-1] for each in self.strata)
            what = "stratum" if self.by is None or self.edges else self.by
            promise += f" This holds separately for each {what}: {names}."
        return f"{promise} {about_groups(self.num_groups, self.items, self.group)}".rstrip()

    def to_json(self) -> str:
        """The inflation as JSON, with its sentence for readers; an infinite radius is null."""
        known = asdict(self) | {"sentence": self.sentence()}
        for part in (known, *known["strata"]):
            part["radius"] = None if math.isinf(part["radius"]) else part["radius"]
        return json.dumps(known, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inflation that :meth:`to_json` wrote."""
        import msgspec  # here, so that calibrating tensors does not need it

        try:
            content = msgspec.json.decode(text, type=dict)
            strata = content.get("strata")
            for part in (content, *(strata if isinstance(strata, list) else ())):
                if isinstance(part, dict) and part.get("radius", 0) is None:
                    part["radius"] = math.inf
            return msgspec.convert(content, cls)
        except msgspec.MsgspecError as error:
            why = CredalError(str(error)).reason
            raise CredalError(
                f"not an inflation of sets: {why}. To fix: calibrate again."
            ) from error
