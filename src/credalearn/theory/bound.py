"""The paper's generalization bound, term by term, and what it can and cannot say.

Shapes: N items, D features, K classes.
"""

import math
from dataclasses import dataclass
from typing import Literal, final, get_args

from credalearn._checks import check_choice
from credalearn.errors import CredalError

Basis = Literal["measured", "assumed", "estimated"]


@final
@dataclass(frozen=True, slots=True)
class BoundTerm:
    """One of the four terms of the bound, in nats.

    Args:
        name: What it stands for.
        value: 0 or more.
        formula: The paper's expression.
        basis: The weakest thing it rests on. ``"measured"``: only what was seen on the training
            items. ``"assumed"``: that something seen there holds for all items and all networks of
            the class. ``"estimated"``: a simplification that may make it too small.
        source: Where its numbers come from, in words.

    Raises:
        CredalError: If the value is negative or not a number, or the basis is none of the three.

    Example:
        >>> BoundTerm("optimization", 0.05, "η", "measured", "the training loss").value
        0.05
    """

    name: str
    value: float
    formula: str
    basis: Basis
    source: str

    def __post_init__(self) -> None:
        check_choice(self.basis, get_args(Basis), name="basis")
        if not 0 <= self.value < math.inf:
            raise CredalError(
                f"a term of the bound must be finite and 0 or more; {self.name} is {self.value!r}."
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralisationBound:
    r"""How far the risk of POCC's averaged prediction can be above the best of its class.

    .. math:: R_0(\bar f) - \inf_f R_0(f) \le 4\mathfrak R_n
              + 2B\sqrt{\tfrac{\log(2/\delta)}{2n}} + \eta + L\,\mathbb E[d_Q]

    with probability 1 − δ (Wang and Chau, 2026, Theorem 1), for the risk R₀ under the true label
    distributions, which every label's set must contain. The theorem is about sets that are a fixed
    function of the item and a class fixed beforehand; what is assumed in their place is in the
    ``statement``. Made by :func:`~credalearn.theory.generalization_bound`.

    Args:
        complexity: 4 times the Rademacher complexity of the objective.
        sampling: What n items leave to chance.
        optimization: η, how far training stayed above the least objective.
        imprecision: L times the mean total-variation diameter of the labels.
        items: n.
        num_classes: K.
        confidence: 1 − δ.
        loss_range: L, the largest difference between the losses of two classes.
        loss_bound: B, the largest cross-entropy.
        mean_diameter: Of the labels, in [0, 1].

    Raises:
        CredalError: If a number is out of range.

    Example:
        >>> bound = GeneralisationBound(
        ...     complexity=BoundTerm("model class", 0.4, "4·R", "estimated", "heads"),
        ...     sampling=BoundTerm("sampling", 0.2, "2B·sqrt(log(2/δ)/2n)", "assumed", "n, δ, B"),
        ...     optimization=BoundTerm("optimization", 0.1, "η", "measured", "training loss"),
        ...     imprecision=BoundTerm("imprecision", 0.5, "L·mean d", "assumed", "labels"),
        ...     items=1000, num_classes=3, confidence=0.95, loss_range=2.5, loss_bound=3.1,
        ...     mean_diameter=0.2,
        ... )
        >>> round(bound.total, 4), bound.vacuous, bound.items_needed
        (1.2, True, 1449)
        >>> print(bound.verdict)
        The bound is vacuous: at 1.20 nats it does not fall below log K = 1.10, the risk of a
        uniform guess. About 1,400 items like these would bring it there.
    """

    complexity: BoundTerm
    sampling: BoundTerm
    optimization: BoundTerm
    imprecision: BoundTerm
    items: int
    num_classes: int
    confidence: float
    loss_range: float
    loss_bound: float
    mean_diameter: float

    def __post_init__(self) -> None:
        self._check(self.items >= 1, "items must be 1 or more")
        self._check(self.num_classes >= 2, "num_classes must be 2 or more")
        self._check(0 < self.confidence < 1, "confidence must lie in (0, 1)")
        self._check(0 <= self.loss_range <= self.loss_bound, "0 <= L <= B must hold")
        self._check(0 <= self.mean_diameter <= 1 + 1e-6, "mean_diameter must lie in [0, 1]")

    @property
    def terms(self) -> tuple[BoundTerm, ...]:
        """The four, in the order of the formula."""
        return self.complexity, self.sampling, self.optimization, self.imprecision

    @property
    def total(self) -> float:
        """The right-hand side, in nats."""
        return sum(term.value for term in self.terms)

    @property
    def vacuous(self) -> bool:
        """Whether the total is log K or more, the risk of a uniform guess."""
        return self.total >= math.log(self.num_classes)

    @property
    def items_needed(self) -> int | None:
        """From how many items on it is not vacuous, all else equal; None: more never suffice.

        The first two terms fall as 1/√n, the other two do not.
        """
        room = math.log(self.num_classes) - self.optimization.value - self.imprecision.value
        if room <= 0:
            return None
        share = (self.complexity.value + self.sampling.value) / room
        return math.floor(self.items * share**2) + 1

    @property
    def verdict(self) -> str:
        """Whether the bound says anything, and what it would take, in words."""
        guess = f"log K = {math.log(self.num_classes):.2f}, the risk of a uniform guess"
        if not self.vacuous:
            return f"The bound is informative: at {self.total:.2f} nats it is below {guess}."
        text = f"The bound is vacuous: at {self.total:.2f} nats it does not fall below {guess}" + (
            f", nor below B = {self.loss_bound:.2f}, which no risk exceeds anyway. "
            if self.total >= self.loss_bound
            else ". "
        )
        if self.items_needed is not None:
            return (
                text
                + f"About {_rounded(self.items_needed):,} items like these would bring it there."
            )
        fixed = self.optimization.value + self.imprecision.value
        return text + (
            f"More items would not mend it: the last two terms, {fixed:.2f}, do not fall with n. "
            "To fix: more precise labels, or a network whose logits range less."
        )

    @property
    def statement(self) -> str:
        """What the bound claims and what it assumes for that, in two sentences."""
        return (
            f"With {100 * self.confidence:g} % confidence the risk of the averaged prediction is "
            f"at most {self.total:.2f} nats above the best of its class, if all that is assumed is "
            "so: every label's set holds the true distribution and follows from its item alone, "
            "without the chance of who voted; over all items the mean diameter is no larger than "
            f"the {self.mean_diameter:.3f} of these, and no two classes' losses differ by more "
            f"than {self.loss_range:.2f} nats; the features and the largest norms of the heads had "
            "been fixed before training. The confidence is in the draw of the items, not in any "
            "of this."
        )

    def _check(self, ok: bool, rule: str) -> None:
        if not ok:
            raise CredalError(f"{rule}; got {self!r}.")


def _rounded(count: int) -> int:
    """To two digits: what an extrapolation is worth."""
    return int(float(f"{count:.2g}"))
