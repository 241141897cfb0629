"""Credal sets from soft labels, which stay their ``reference``, teachers and smoothing."""

from collections.abc import Callable
from typing import Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import one_hot

from credalearn import sets
from credalearn._checks import check_choice, check_number
from credalearn.sets import CredalSet, LowerBounds
from credalearn.sets._checks import as_classes, as_distributions, as_floats, check_sets, require

SoftRule = Literal["relax", "relax-ties", "precise"]


def relax(probs: "ArrayLike", *, ties: bool = False) -> LowerBounds:
    r"""The paper's relaxation of soft labels: keep the top class's probability, free the rest.

    :math:`Q = \{q \in \Delta : q_j \ge \alpha\}` with :math:`j = \arg\max_k q_k` and
    :math:`\alpha = q_j` (Wang and Chau, 2026). A one-hot label stays a single point.

    Args:
        probs: Soft labels, shape (N, K), rows that sum to 1.
        ties: What happens to classes that tie for the top. False, as in the paper: only the lowest
            index is j. True, the default of :func:`~credalearn.from_votes` and
            ``CredalClassifier`` (``"relax-ties"``): each keeps its probability.

    Example:
        >>> relax([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]]).lower
        tensor([[0.0000, 0.7000, 0.0000],
                [0.5000, 0.0000, 0.0000]])
        >>> relax([[0.5, 0.5, 0.0]], ties=True).lower
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    soft = as_distributions(probs, name="probs", ndim=2)
    return relax_ties(soft) if ties else relax_at(soft, soft.argmax(1))


def precise(probs: "ArrayLike") -> LowerBounds:
    """Soft labels as they are: each set is the single distribution ``probs`` (N, K).

    Example:
        >>> precise([[0.25, 0.75]]).diameter()
        tensor([0.])
    """
    soft = as_distributions(probs, name="probs", ndim=2)
    return LowerBounds(soft, soft=soft)


def relax_at(probs: Tensor, top: Tensor) -> LowerBounds:
    """Relax soft labels (N, K) whose top class (N,) is known better than from ``probs``."""
    top = top[:, None]
    lower = torch.zeros_like(probs).scatter(1, top, probs.gather(1, top))
    return LowerBounds(lower, soft=probs)


def relax_ties(probs: Tensor) -> LowerBounds:
    """Relax soft labels (N, K), and let every class that ties for the top keep its probability."""
    rounding = 8 * torch.finfo(probs.dtype).eps  # 0.1 + 0.2 ties with 0.3
    tied = probs >= probs.amax(1, keepdim=True) * (1 - rounding)
    return LowerBounds(torch.where(tied, probs, 0), soft=probs)


# A rule's name: what it makes of soft labels (N, K) and, if it asks, their top classes (N,).
SOFT_RULES: dict[str, Callable[[Tensor, Tensor], LowerBounds]] = {
    "relax": relax_at,
    "relax-ties": lambda probs, _: relax_ties(probs),
    "precise": lambda probs, _: LowerBounds(probs, soft=probs),
}


def contaminate(probs: "ArrayLike", epsilon: float) -> LowerBounds:
    r"""Credal labels :math:`\{(1 - \epsilon) q + \epsilon p : p \in \Delta\}` around soft labels.

    The ε-contamination model (Huber, 1964): a share ε of the annotators, 0 <= ε <= 1, may have
    answered anything. Exactly the lower bounds :math:`(1 - \epsilon) q`.

    Example:
        >>> sets = contaminate([[0.75, 0.25]], 0.2)
        >>> sets.lower, sets.upper
        (tensor([[0.6000, 0.2000]]), tensor([[0.8000, 0.4000]]))
    """
    check_number(epsilon, name="epsilon", least=0, most=1)
    soft = as_distributions(probs, name="probs", ndim=2)
    return LowerBounds((1 - epsilon) * soft, soft=soft)


def smooth(
    labels: "ArrayLike", epsilon: float, num_classes: int, *, rule: SoftRule = "relax"
) -> LowerBounds:
    r"""Credal labels from label smoothing: a rule on :math:`(1 - \epsilon) e_y + \epsilon / K`.

    ``labels`` are class indices (N,) in 0..K-1, and 0 <= ε < 1. The ``rule`` is ``"relax"`` (the
    paper), ``"relax-ties"`` or ``"precise"``.

    Example:
        >>> smooth([1], 0.2, 4).lower
        tensor([[0.0000, 0.8500, 0.0000, 0.0000]])
    """
    check_choice(rule, SOFT_RULES, name="rule")
    check_number(epsilon, name="epsilon", least=0, below=1)
    check_number(num_classes, name="num_classes", least=1, whole=True)
    top = as_classes(labels, num_classes=num_classes, name="labels")
    hard = one_hot(top, num_classes).to(torch.get_default_dtype())
    probs = (1 - epsilon) * hard + epsilon / num_classes
    return SOFT_RULES[rule](probs, top)


def from_teacher(
    logits: "ArrayLike", *, temperature: float = 2.5, rule: SoftRule = "relax"
) -> LowerBounds:
    r"""Credal labels from a teacher: a rule on :math:`\mathrm{softmax}(z / T)`.

    The top class is taken from the logits, where a high temperature cannot tie two classes by
    rounding; equal logits go to the lowest index.

    ``logits`` are the outputs before the softmax (N, K), and T > 0; ``rule`` as in :func:`smooth`.

    Example:
        >>> from_teacher([[2.0, 0.0]], temperature=2.0).lower
        tensor([[0.7311, 0.0000]])
    """
    check_choice(rule, SOFT_RULES, name="rule")
    check_number(temperature, name="temperature", above=0)
    outputs = as_floats(logits, name="logits", ndim=2)
    probs = (outputs / temperature).softmax(1)
    return SOFT_RULES[rule](probs, outputs.argmax(1))


def taught_labels(probs: Tensor) -> "sets.Intervals":
    """The boxes around the probabilities of M teachers (N, M, K), with their mean as soft label."""
    lower, upper = probs.aminmax(dim=1)
    return sets.Intervals(lower, upper, soft=probs.mean(1).clamp(lower, upper))


def collapse(labels: CredalSet) -> LowerBounds:
    """Precise one-hot labels on the top class of each set's ``reference``: no disagreement is kept.

    Ties go to the lowest index.

    Example:
        >>> collapse(precise([[0.25, 0.75], [0.5, 0.5]])).lower
        tensor([[0., 1.],
                [1., 0.]])
    """
    check_sets(labels)
    reference = labels.reference
    return precise(one_hot(reference.argmax(1), labels.num_classes).to(reference.dtype))


def at_least(bounds: "ArrayLike") -> LowerBounds:
    """Credal labels from stated lower bounds (N, K), 0 where there is none.

    The bounds of an item must sum to 1 or less; an item without any is the set of all
    distributions.

    Example:
        >>> at_least([[0.7, 0.0, 0.1]]).upper
        tensor([[0.9000, 0.2000, 0.3000]])
    """
    return LowerBounds(bounds)


def hull(statements: "ArrayLike") -> "sets.Vertices":
    """Credal labels from stated distributions: all mixtures of the statements about an item.

    A set contains every annotator's own distribution, and the true one if it is a mixture of them.
    Its ``reference`` is the mean of the statements.

    Args:
        statements: One distribution per item and annotator, shape (N, V, K); rows of NaN where an
            annotator made no statement about an item.

    Example:
        >>> nan = float("nan")
        >>> sets = hull([[[0.8, 0.2], [0.5, 0.5]], [[0.1, 0.9], [nan, nan]]])
        >>> sets.upper, sets.diameter()
        (tensor([[0.8000, 0.5000],
                [0.1000, 0.9000]]), tensor([0.3000, 0.0000]))
    """
    given = as_floats(statements, name="statements", ndim=3, finite=False)
    stated = ~given.isnan()
    require(
        stated.all(2) | ~stated.any(2),
        rule="a statement must be a distribution, or NaN for every class where there is none",
        remedy="fill it or make it NaN throughout",
        statements=given,
    )
    require(
        stated.any(2).any(1, keepdim=True),
        rule="an item needs one statement or more",
        remedy="drop the item",
        statements=given,
    )
    # The mean of the statements lies in the hull, and changes neither the set nor its center.
    mean = given.nanmean(1, keepdim=True)
    points = as_distributions(torch.where(stated, given, mean), name="statements", ndim=3)
    return sets.Vertices(points)
