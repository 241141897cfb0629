"""A backbone with several classification heads, computed as one matrix product."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.nets.standardize import Standardize


class MLP(nn.Module):
    """Standardized inputs (N, D) through hidden layers of these widths, if any, with rectifiers."""

    def __init__(self, input_shape: tuple[int, ...], hidden: tuple[int, ...] = (128, 128)) -> None:
        super().__init__()
        if len(input_shape) != 1:
            got = f"one item of X has shape {input_shape}"
            raise CredalError(f"the backbone 'mlp' takes a table; {got}. To fix: flatten X.")
        layers: list[nn.Module] = [Standardize(input_shape[0])]
        for width_in, width_out in pairwise((input_shape[0], *hidden)):
            layers += [nn.Linear(width_in, width_out), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    @property
    def standardize(self) -> Standardize:
        """The first layer."""
        return cast(Standardize, self.layers[0])

    def forward(self, inputs: Tensor) -> Tensor:
        """Features, shape (N, hidden[-1])."""
        return self.layers(inputs)


class Network(nn.Module):
    """Features of any backbone, flattened to (N, D), then H linear heads over K classes."""

    def __init__(
        self,
        backbone: nn.Module,
        *,
        num_features: int,
        num_heads: int,
        num_classes: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        places_dropout = bool(getattr(backbone, "places_dropout", False))
        if places_dropout and backbone.dropout != dropout:
            raise CredalError(
                f"the backbone {type(backbone).__name__} places dropout itself and was built with "
                f"{backbone.dropout}. To fix: build it with dropout={dropout}, or give its name."
            )
        self.backbone = backbone
        self.dropout_rate = dropout  # wherever dropout is placed
        self.dropout = nn.Dropout(0.0 if places_dropout else dropout)
        self.heads = nn.Linear(num_features, num_heads * num_classes)
        self.shape = (num_heads, num_classes)

    @classmethod
    def on(cls, backbone: nn.Module, sample: Tensor, **shape: int | float) -> Self:
        """A network on ``backbone``, whose features are counted on a few inputs, ``sample``."""
        was_training = backbone.training
        try:
            with torch.no_grad():
                features = backbone.eval()(sample)
        except (RuntimeError, AssertionError) as error:  # timm asserts the size of images
            raise CredalError(
                f"the backbone {type(backbone).__name__} fails on items of shape "
                f"{tuple(sample.shape[1:])} and type {sample.dtype}: {error}. To fix: give X the "
                "shape that it takes, and let it take float32."
            ) from error
        backbone.train(was_training)
        if not isinstance(features, Tensor) or features.ndim < 2 or len(features) != len(sample):
            got = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise CredalError(
                "a backbone must return one row of features per item, shape (items, features); "
                f"{type(backbone).__name__} returned {got} for {len(sample)} items."
            )
        return cls(backbone, num_features=features.flatten(1).shape[1], **shape)  # type: ignore[arg-type]

    def features(self, inputs: Tensor) -> Tensor:
        """Features of the backbone, shape (N, D)."""
        return self.backbone(inputs).flatten(1)

    def logits(self, features: Tensor) -> Tensor:
        """Logits of every head from features, shape (N, H, K)."""
        return self.heads(self.dropout(features)).view(-1, *self.shape)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of every head, shape (N, H, K)."""
        return self.logits(self.features(inputs))

    def sparse_logits(self, X: Any) -> Tensor:
        """Logits of every head from a sparse matrix (N, D), where the backbone is linear."""
        assert isinstance(self.backbone, MLP)
        layer, heads = self.backbone.standardize, self.heads
        weight = heads.weight.double().cpu() / layer.scale.cpu()
        bias = heads.bias.double().cpu() - weight @ layer.mean.cpu()
        logits = torch.from_numpy(X @ weight.T.detach().numpy().astype(X.dtype)) + bias.detach()
        return logits.view(-1, *self.shape)

    def compiled(self) -> Callable[[Tensor], Tensor]:
        """The forward pass with the backbone's layers fused by torch.compile, at its first call."""
        # Only the backbone: networks that differ in their heads share what was compiled.
        backbone = torch.compile(self.backbone, dynamic=False)
        return lambda inputs: self.logits(backbone(inputs).flatten(1))
