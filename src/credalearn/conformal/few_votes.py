r"""Label distributions behind a few votes: an estimate that rests on a model.

The shares of three votes scatter far more than the distribution they are drawn from, so sets that
cover such shares are wider than the distribution needs. How distributions scatter around a
prediction p is taken as a mixture of Dirichlet distributions with parameters
:math:`a\, p^\tau / \sum_k p_k^\tau + 0.001`, over a grid of a and τ. The weights of the mixture are
those of largest likelihood given the votes. From n votes per item only the first n moments can be
known; the rest is the model's.

Shapes: N items, G parts of the mixture, K classes.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import torch
from torch import Tensor

_CONCENTRATIONS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_EXPONENTS = (0.5, 1.0, 2.0, 4.0)
_FLOOR = 0.001
_STEPS = 400  # of expectation maximization
_DRAWS = 30  # per item


def plausible_distributions(votes: Tensor, probs: Tensor, *, random_state: int) -> Iterator[Tensor]:
    """Thirty draws from the distribution behind each item's votes, each of shape (N, K)."""
    grid = probs.new_tensor(list(product(_CONCENTRATIONS, _EXPONENTS)))  # (G, 2)
    fits = torch.stack([_log_likelihood(votes, _parameters(probs, *each)) for each in grid], 1)
    fits = (fits - fits.amax(1, keepdim=True)).exp()  # (N, G)
    weights = torch.ones_like(fits[0]) / len(grid)
    for _ in range(_STEPS):
        shares = fits * weights
        weights = (shares / shares.sum(1, keepdim=True)).mean(0)
    ends = (fits * weights).cumsum(1).numpy(force=True)
    random = np.random.default_rng(random_state)
    for _ in range(_DRAWS):
        places = random.uniform(size=(len(votes), 1)) * ends[:, -1:]
        part = (ends < places).sum(1).clip(max=len(grid) - 1)
        chosen = _parameters(probs, *grid[part].T[..., None]) + votes
        drawn = random.standard_gamma(chosen.numpy(force=True))
        yield torch.from_numpy(drawn / drawn.sum(1, keepdims=True)).to(probs)


def _parameters(probs: Tensor, concentration: Tensor, exponent: Tensor) -> Tensor:
    """Of the Dirichlet distribution with numbers for all items, or one for each, (N, 1)."""
    sharp = probs**exponent
    return concentration * sharp / sharp.sum(1, keepdim=True) + _FLOOR


def _log_likelihood(votes: Tensor, parameters: Tensor) -> Tensor:
    """Of votes that are drawn from a distribution with Dirichlet parameters (N, K), shape (N,)."""
    total, count = parameters.sum(1), votes.sum(1)
    each = ((parameters + votes).lgamma() - parameters.lgamma()).sum(1)
    return each + total.lgamma() - (total + count).lgamma()
