"""The built-in backbone for tables of features."""

from itertools import pairwise

from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.nets.standardize import Standardize


class MLP(nn.Module):
    """Standardized inputs (N, D) through hidden layers of these widths, with rectifiers.

    Without hidden layers the heads on top of it are linear in the inputs, which may then be sparse.
    """

    def __init__(self, input_shape: tuple[int, ...], hidden: tuple[int, ...] = (128, 128)) -> None:
        super().__init__()
        if len(input_shape) != 1:
            got = f"one item of X has shape {input_shape}"
            raise CredalError(f"the backbone 'mlp' takes a table; {got}. To fix: flatten X.")
        widths = (input_shape[0], *hidden)
        self.is_linear = not hidden
        layers: list[nn.Module] = [Standardize(input_shape[0])]
        for width_in, width_out in pairwise(widths):
            layers += [nn.Linear(width_in, width_out), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    @property
    def standardize(self) -> Standardize:
        """The first layer."""
        layer = self.layers[0]
        assert isinstance(layer, Standardize)
        return layer

    def forward(self, inputs: Tensor) -> Tensor:
        """Features, shape (N, hidden[-1])."""
        features: Tensor = self.layers(inputs)
        return features
