"""L-BFGS for functions of one tensor: Nocedal's two loops, and a line search that edges allow.

``torch.optim.LBFGS`` imports torch's compiler, which takes more than a second, and SciPy's uses the
threads of the whole process.
"""

from collections import deque
from collections.abc import Callable

from torch import Tensor

_MEMORY = 10  # steps that the curvature is taken from
_DECREASE, _FLATTER = 1e-4, 0.9  # of the weak Wolfe conditions
_MOST_TRIALS = 25  # in one line search

Objective = Callable[[Tensor], tuple[float, Tensor]]  # a point to its value and slope


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
