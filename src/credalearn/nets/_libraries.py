"""Backbones of other packages by name, ``torchvision:NAME`` and ``timm:NAME``; no downloads."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.nets.backbones import load_weights, read_weights
from credalearn.nets.residual import image_channels
from credalearn.nets.standardize import Standardize

# Files of DenseNet are older than its names: denselayer1.norm.1.weight is the weight of norm1.
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|conv))\.(\d\.)")


class OutsideBackbone(nn.Module):
    """Standardized images through another package's network without its classifier."""

    def __init__(
        self, name: str, input_shape: tuple[int, ...], *, weights: Path | None = None
    ) -> None:
        super().__init__()
        package, _, model = name.partition(":")
        channels = image_channels(input_shape, backbone=name)
        build = _from_timm if package == "timm" else _from_torchvision
        self.standardize = Standardize(channels)
        self.network, classifiers, address = build(imported(package, name), model, channels)
        if weights is not None:
            if not weights.is_file():
                fix = f"download the weights of {name!r} from {address}"
                raise CredalError(f"there is no file {weights}. To fix: {fix}.")
            own = {
                _OLD_DENSENET.sub(r"\1\2", key): tensor
                for key, tensor in read_weights(weights, part="backbone.network.").items()
                if not key.startswith(tuple(f"{each}." for each in classifiers))
            }
            load_weights(self.network, own, source=weights)

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, D)."""
        features: Tensor = self.network(self.standardize(images))
        return features


def imported(package: str, name: str) -> Any:
    """The package, imported; else an error that names the reason."""
    try:
        return import_module(package)
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        # A missing operator torchvision::nms means that torchvision was built for another torch.
        missing = isinstance(error, ModuleNotFoundError)
        fix = f"pip install {package}" if missing else "install the build for this torch"
        raise CredalError(
            f"backbone {name!r} needs {package}, which cannot be imported with torch "
            f"{torch.__version__}: {error}. To fix: {fix}."
        ) from error


# The network, the names of the classifiers that were removed, and where to find weights.
_Built = tuple[nn.Module, tuple[str, ...], str]


def _from_torchvision(package: Any, model: str, channels: int) -> _Built:
    models = package.models
    known = models.list_models(module=models)  # classifiers; detectors have modules of their own
    if model not in known or model in ("googlenet", "inception_v3"):  # these return tuples
        fix = "use one of torchvision.models.list_models(module=torchvision.models)"
        raise CredalError(f"torchvision has no such backbone, {model!r}. To fix: {fix}.")
    if channels != 3:
        rule = f"backbone 'torchvision:{model}' takes images of 3 channels"
        raise CredalError(f"{rule}; X has {channels}. To fix: repeat the channel.")
    network: nn.Module = models.get_model(model, weights=None)
    # The classifier has many names; it is the last linear layer, over ImageNet's 1000 classes.
    linear = {name: x for name, x in network.named_modules() if isinstance(x, nn.Linear)}
    names = [name for name, layer in linear.items() if layer.out_features == 1000]
    if not names:  # squeezenet classifies by a convolution
        raise CredalError(f"torchvision's {model!r} has no linear classifier to remove.")
    parent, _, last = names[-1].rpartition(".")
    setattr(network.get_submodule(parent), last, nn.Identity())
    return network, (names[-1],), models.get_model_weights(model).DEFAULT.url


def _from_timm(package: Any, model: str, channels: int) -> _Built:
    if not package.is_model(model):
        raise CredalError(f"timm has no model {model!r}. To fix: use one of timm.list_models().")
    network: nn.Module = package.create_model(
        model, pretrained=False, num_classes=0, in_chans=channels
    )
    config: dict[str, Any] = getattr(network, "pretrained_cfg", {})
    classifiers = config.get("classifier") or ()
    names = (classifiers,) if isinstance(classifiers, str) else tuple(classifiers)
    return network, names, f"the Hugging Face hub, model {config.get('hf_hub_id')}"
