"""Linear credal models: heads that are linear in the features, fitted by L-BFGS with a penalty.

Features are a tensor or a sparse matrix of SciPy; sparse ones are never made dense.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.linalg import cholesky, solve_triangular
from torch.nn.functional import linear, logsigmoid

from credalearn.nets import MLP, Network
from credalearn.sets import CredalSet

Inputs = Any  # a tensor or a SciPy sparse matrix, shape (N, D)
Objective = Callable[[Tensor], tuple[float, Tensor]]  # a point to its value and slope
Target = Callable[[Tensor], Tensor]  # the distribution to learn, given the logits, both (N, K)

_MOST_STEPS = 300
_SLOPE, _GAIN = 1e-5, 1e-8  # a fit ends at this slope, or at this gain of a step
# The slope of a worst or best case jumps: such fits end earlier; more steps change nothing visible.
_CREDAL_STEPS, _CREDAL_GAIN = 40, 1e-5
_INTERCEPT_PENALTY = 1e-6  # keeps the intercept of a class without items finite

# Dense features are correlated: steps in coordinates in which the loss curves about alike in all
# directions need a third of the evaluations, and end lower. Their covariance comes from a few rows.
_MOST_SCALED, _ROWS_PER_FEATURE = 1024, 8

# L-BFGS by Nocedal's two loops: ``torch.optim.LBFGS`` imports torch's compiler, which takes more
# than a second, and SciPy's uses the threads of the whole process.
_MEMORY = 10  # steps that the curvature is taken from
_DECREASE, _FLATTER = 1e-4, 0.9  # of the weak Wolfe conditions
_MOST_TRIALS = 25  # in one line search


class LinearProblem:
    r"""Training items, prepared once for fits of several heads and penalties.

    A fit minimizes the mean over items of :math:`-q_i^\top \log p_i` plus
    :math:`\frac\lambda2 \|W\|^2`, intercepts free, in float64. Dense features are standardized and
    kept in float32, as networks take them; sparse ones stay as they are. λ is ``penalty`` times the
    mean squared length of an item, so that one range of penalties serves a table of ten columns and
    texts of 100,000 words.
    """

    def __init__(self, X: Inputs, num_classes: int, *, weight: Tensor | None = None) -> None:
        items, self.num_features = X.shape
        weights = torch.ones(items, dtype=torch.float64) if weight is None else weight
        self.weight = (weights / weights.sum())[:, None]
        self.num_classes, self.X = num_classes, X
        self.backbone = MLP((self.num_features,), hidden=())
        if isinstance(X, Tensor):
            layer = self.backbone.standardize
            layer.fit(X, weight=None if weight is None else self.weight)
            self.X = X.double().sub(layer.mean).div_(layer.scale).float()
            squares = self.X.square().sum(1).double()
        else:
            squares = torch.from_numpy(X.multiply(X).sum(1)).double().ravel()
        self.length = float(squares @ self.weight[:, 0]) or 1.0
        self.covariance: Tensor | None = None  # of the features, (D, D), unless it is too large
        if isinstance(X, Tensor) and self.num_features <= _MOST_SCALED:
            step = max(1, len(self.X) // (_ROWS_PER_FEATURE * self.num_features))
            rows, share = self.X[::step], self.weight[::step].float()
            self.covariance = (rows.T @ (rows * share)).double() / share.sum().clamp(min=1e-9)

    def fit(
        self,
        target: Target,
        penalty: float,
        start: Tensor | None = None,
        *,
        offset: Tensor | None = None,
        most_steps: int = _MOST_STEPS,
        gain: float = _GAIN,
    ) -> Tensor:
        """One head, weights and then the intercept, shape (D + 1, K), from ``start``."""
        # With an offset (N, K), the head is added to these log-odds and learned class by class.
        shape = (self.num_features + 1, self.num_classes)
        penalties = torch.full((shape[0], 1), penalty * self.length, dtype=torch.float64)
        penalties[-1] = _INTERCEPT_PENALTY
        at = torch.zeros(shape, dtype=torch.float64) if start is None else start
        factor, curvature = None, 1.0
        if self.covariance is not None:
            curvature = (self.num_classes - 1) / self.num_classes**2  # at equal probabilities
            hessian = curvature * self.covariance
            hessian.diagonal().add_(penalty * self.length)
            factor = cholesky(hessian)
            at = torch.cat([factor.T @ at[:-1], curvature**0.5 * at[-1:]])

        def unscaled(values: Tensor, *, upper: bool) -> Tensor:
            """A head from its coordinates (upper), or a slope in these."""
            if factor is None:
                return values
            weights = solve_triangular(factor.T if upper else factor, values[:-1], upper=upper)
            return torch.cat([weights, values[-1:] / curvature**0.5])

        def objective(scaled: Tensor) -> tuple[float, Tensor]:
            head = unscaled(scaled, upper=True)
            logits = self._times(head[:-1]) + head[-1]
            logits = logits if offset is None else logits + offset
            log_probs = logits.log_softmax(1) if offset is None else logsigmoid(logits)
            wanted = target(logits)
            error = (log_probs.exp() - wanted) * self.weight
            slope = torch.cat([self._transposed_times(error), error.sum(0, keepdim=True)])
            cost = -(self.weight * wanted * log_probs).sum()
            if offset is not None:
                cost -= (self.weight * (1 - wanted) * logsigmoid(-logits)).sum()
            cost += (penalties * head.square()).sum() / 2
            return float(cost), unscaled(slope + penalties * head, upper=False)

        found = minimize(objective, at, most_steps=most_steps, slope=_SLOPE, gain=gain)
        return unscaled(found, upper=True)

    def fit_credal(self, labels: CredalSet, penalty: float, center: Tensor) -> list[Tensor]:
        """The pessimistic, the optimistic and the center head, which is fitted already."""
        # The first two start from the center: at zero all logits tie, and training stays at chance.
        # A class costs less, the larger its logit: the best member for logits is the worst case.
        both = [
            self.fit(target, penalty, center, most_steps=_CREDAL_STEPS, gain=_CREDAL_GAIN)
            for target in (labels.best_target, labels.worst_target)
        ]
        return [*both, center]

    def fit_bounds(self, labels: CredalSet, penalty: float, center: Tensor) -> list[Tensor]:
        """Heads of the lower and the upper bounds, and the center head, which is fitted already."""
        odds = log_odds(self._times(center[:-1]) + center[-1])
        targets = map(soft_target, (labels.lower, labels.upper))
        return [*(self.fit(each, penalty, offset=odds) for each in targets), center]

    def network(self, heads: list[Tensor]) -> Network:
        """The heads as a network, which takes features as they are."""
        shape = {"num_heads": len(heads), "num_classes": self.num_classes}
        with torch.device("meta"):  # draws no first weights: theirs follow
            network = Network(self.backbone, num_features=self.num_features, **shape)
        network.heads.to_empty(device="cpu")
        values = torch.cat(heads, 1).float()  # (D + 1, H · K)
        with torch.no_grad():
            network.heads.weight.copy_(values[:-1].T)
            network.heads.bias.copy_(values[-1])
        return network

    def _times(self, weights: Tensor) -> Tensor:
        if isinstance(self.X, Tensor):
            return linear(self.X, weights.T.float()).double()
        return torch.from_numpy(self.X @ weights.numpy().astype(self.X.dtype)).double()

    def _transposed_times(self, error: Tensor) -> Tensor:
        if isinstance(self.X, Tensor):
            # Twelve times as fast as self.X.T @ error, which walks down the columns.
            return (error.float().T @ self.X).T.double()
        return torch.from_numpy(self.X.T @ error.numpy().astype(self.X.dtype)).double()


def minimize(
    objective: Objective, start: Tensor, *, most_steps: int, slope: float, gain: float
) -> Tensor:
    """A point of least value: no number of its slope exceeds ``slope``, or no step gains more."""
    steps: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=_MEMORY)
    point, (value, uphill) = start, objective(start)
    for _ in range(most_steps):
        if uphill.abs().max() <= slope:
            break
        direction = _direction(uphill, steps)
        found = _line_search(objective, point, value, uphill, direction)
        if found is None:
            break
        new_point, new_value, new_uphill = found
        step, change = new_point - point, new_uphill - uphill
        curvature = float(step.ravel() @ change.ravel())
        if curvature > 0:
            steps.append((step, change, curvature))
        gained = value - new_value
        point, value, uphill = new_point, new_value, new_uphill
        if gained <= gain:
            break
    return point


def _direction(uphill: Tensor, steps: deque[tuple[Tensor, Tensor, float]]) -> Tensor:
    """Minus the slope, times the inverse of the curvature that the last steps have seen."""
    direction, shares = uphill.neg(), []
    for step, change, curvature in reversed(steps):
        share = float(step.ravel() @ direction.ravel()) / curvature
        direction.sub_(change, alpha=share)
        shares.append(share)
    if steps:
        _, change, curvature = steps[-1]
        direction.mul_(curvature / float(change.ravel() @ change.ravel()))
    for (step, change, curvature), share in zip(steps, reversed(shares), strict=True):
        back = float(change.ravel() @ direction.ravel()) / curvature
        direction.add_(step, alpha=share - back)
    return direction


def _line_search(
    objective: Objective, point: Tensor, value: float, uphill: Tensor, direction: Tensor
) -> tuple[Tensor, float, Tensor] | None:
    """A point along the direction, lower and less steep, with its value and slope; None if none."""
    # It allows edges (Lewis and Overton, 2013): the slope of a worst case jumps.
    steepness = float(uphill.ravel() @ direction.ravel())
    near, far, length = 0.0, None, 1.0
    best: tuple[Tensor, float, Tensor] | None = None
    for _ in range(_MOST_TRIALS if steepness < 0 else 0):
        there = point + length * direction
        found, slope = objective(there)
        along = float(slope.ravel() @ direction.ravel())
        if not found <= value + _DECREASE * length * steepness:
            far = length
        elif along < _FLATTER * steepness:
            near, best = length, (there, found, slope)
        else:
            return there, found, slope
        if far is not None:
            length = (near + far) / 2
        else:  # where the slope would be 0 if it went on like this
            growth = steepness / (steepness - along) if along > steepness else 10.0
            length *= min(max(growth, 2.0), 10.0)
    return best


def log_odds(logits: Tensor) -> Tensor:
    """Log-odds of each class under the softmax of logits (N, K), between −20 and 20."""
    return logits.double().softmax(1).logit(eps=1e-12).clamp(-20, 20).to(logits.dtype)


def soft_target(soft: Tensor) -> Target:
    """Learn the soft label of each item, shape (N, K)."""
    return lambda _: soft
