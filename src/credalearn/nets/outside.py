"""Backbones of other packages by name, ``torchvision:NAME`` and ``timm:NAME``, if installed.

Nothing is downloaded: weights come from a file that the user names, or are drawn at random.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.nets.convolutions import image_channels
from credalearn.nets.standardize import Standardize
from credalearn.nets.weights import load_weights, of_saved_model, read_weights

PACKAGES = ("torchvision", "timm")

# The same layers under the same names in the other package: 1024 features, and one file of weights
# fits both.
_ALIKE = {"torchvision:densenet121": "timm:densenet121"}

# Files of DenseNet are older than its names: denselayer1.norm.1.weight is norm1's weight.
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|conv))\.(\d\.)")


class OutsideBackbone(nn.Module):
    """Standardized images through another package's network without its classifier.

    Args:
        name: ``torchvision:NAME`` or ``timm:NAME``.
        input_shape: (channels, height, width); torchvision's networks take three channels.
        weights: File of the whole network's state dict as it was published, classifier or not,
            or ``model.safetensors`` of a saved classifier; else random weights.

    Raises:
        CredalError: If the package, the network or the file of weights is not to be had, or the
            inputs are no images.
    """

    def __init__(
        self, name: str, input_shape: tuple[int, ...], *, weights: Path | None = None
    ) -> None:
        super().__init__()
        package, _, model = name.partition(":")
        channels = image_channels(input_shape, backbone=name)
        build = _from_timm if package == "timm" else _from_torchvision
        self.standardize = Standardize(channels)
        self.network, classifiers, where = build(_package(package, name), model, channels)
        if weights is not None:
            if not weights.is_file():
                raise CredalError(
                    f"the weights of backbone {name!r} are missing: there is no file {weights}. "
                    f"To fix: download them yourself{where} and name the file; nothing is "
                    "downloaded silently."
                )
            found = of_saved_model(read_weights(weights), "backbone.network.")
            load_weights(self.network, _own(found, classifiers), source=weights)

    def forward(self, images: Tensor) -> Tensor:
        """Features, shape (N, D)."""
        features: Tensor = self.network(self.standardize(images))
        return features


def at_hand(name: str) -> str:
    """The backbone, or the same of another package where its own does not import.

    Where neither does, the name stays: who builds it is told what is missing.

    Example:
        >>> at_hand("resnet18")
        'resnet18'
    """
    other = _ALIKE.get(name)
    if other is None or _imports(name) or not _imports(other):
        return name
    return other


def _imports(name: str) -> bool:
    try:
        _package(name.partition(":")[0], name)
    except CredalError:
        return False
    return True


def _package(package: str, name: str) -> Any:
    """The package, imported; else why not, and what to do."""
    other = f", or timm: {_ALIKE[name]} is the same network" if name in _ALIKE else ""
    if find_spec(package) is None:
        raise CredalError(
            f"backbone {name!r} needs {package}, which is not installed. To fix: "
            f"pip install {package}{other}."
        )
    try:
        return import_module(package)
    except (ImportError, RuntimeError, OSError, AttributeError) as error:
        raise CredalError(
            f"backbone {name!r} needs {package}, which is installed but does not import beside "
            f"torch {torch.__version__}: {error}. A missing operator torchvision::nms means that "
            "torchvision was built for another torch, for instance one with a GPU. To fix: install "
            "the torchvision that belongs to this torch, from the same place as torch itself"
            f"{other}."
        ) from error


# Each gives the network, the names of the classifiers that were taken off, and where weights are.
_Built = tuple[nn.Module, tuple[str, ...], str]


def _from_torchvision(package: Any, model: str, channels: int) -> _Built:
    models = package.models
    known = models.list_models(module=models)  # classifiers; detectors have modules of their own
    if model not in known or model in ("googlenet", "inception_v3"):  # these return tuples
        raise CredalError(
            f"torchvision has no classifier {model!r} that serves as backbone. To fix: take one of "
            "torchvision.models.list_models(module=torchvision.models)."
        )
    if channels != 3:
        raise CredalError(
            f"backbone 'torchvision:{model}' takes images of 3 channels; X has {channels}. To fix: "
            "repeat the channel, or take a backbone of this package or of timm."
        )
    network: nn.Module = models.get_model(model, weights=None)
    # The classifier goes by many names; it is the last linear layer, over ImageNet's 1000 classes.
    names = [
        name
        for name, layer in network.named_modules()
        if isinstance(layer, nn.Linear) and layer.out_features == 1000
    ]
    if not names:  # squeezenet classifies by a convolution
        raise CredalError(
            f"torchvision's {model!r} has no linear classifier to take off. To fix: take another."
        )
    parent, _, last = names[-1].rpartition(".")
    setattr(network.get_submodule(parent), last, nn.Identity())
    address = models.get_model_weights(model).DEFAULT.url
    return network, (names[-1],), f" from {address}"


def _from_timm(package: Any, model: str, channels: int) -> _Built:
    if not package.is_model(model):
        raise CredalError(f"timm has no model {model!r}. To fix: take one of timm.list_models().")
    network: nn.Module = package.create_model(
        model, pretrained=False, num_classes=0, in_chans=channels
    )
    config: dict[str, Any] = getattr(network, "pretrained_cfg", {})
    classifiers = config.get("classifier") or ()
    names = (classifiers,) if isinstance(classifiers, str) else tuple(classifiers)
    hub = config.get("hf_hub_id")
    return network, names, f" (the model {hub} of the Hugging Face hub)" if hub else ""


def _own(weights: dict[str, Tensor], classifiers: tuple[str, ...]) -> dict[str, Tensor]:
    """The weights that are left when the classifiers' are taken away, under today's names."""
    heads = tuple(f"{name}." for name in classifiers)
    return {
        _OLD_DENSENET.sub(r"\1\2", name): tensor
        for name, tensor in weights.items()
        if not (heads and name.startswith(heads))
    }
