"""Backbones: by name, a module, or a function that makes one; and files of weights for them.

``torchvision:NAME`` and ``timm:NAME`` are networks of these packages, without their classifier.
Nothing is downloaded.
"""

import copy
import re
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.nets.network import MLP, Network
from credalearn.nets.residual import ResNet18, WideResNet28x4, image_channels
from credalearn.nets.standardize import Standardize

_ALONE = "save the state dict alone: torch.save(network.state_dict(), file)"
# Files of DenseNet are older than its names: denselayer1.norm.1.weight is the weight of norm1.
_OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|conv))\.(\d\.)")

Backbone = str | nn.Module | Callable[[], nn.Module]

# Each builds a backbone for inputs of a shape (without the items). A class that places dropout
# itself has ``places_dropout = True``, takes ``dropout`` and keeps it as an attribute; ``Network``
# puts that of others before the heads.
BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "linear": partial(MLP, hidden=()),
    "mlp": MLP,
    "resnet18": ResNet18,
    "wrn-28-4": WideResNet28x4,
}

_PACKAGES = ("torchvision", "timm")


def build_backbone(
    backbone: Backbone,
    input_shape: tuple[int, ...],
    *,
    dropout: float = 0.0,
    weights: str | Path | None = None,
) -> nn.Module:
    """A new backbone for items of this shape; a named one starts from the file, if there is one."""
    path = None if weights is None else Path(weights)
    if callable(backbone):
        if path is not None:
            fix = f"load {path} into the {type(backbone).__name__} yourself"
            raise CredalError(f"weights are for a backbone given by name. To fix: {fix}.")
        made = copy.deepcopy(backbone) if isinstance(backbone, nn.Module) else backbone()
        if not isinstance(made, nn.Module):
            got = type(made).__name__
            raise CredalError(f"a function as backbone must make a torch.nn.Module; got {got}.")
        return made.cpu()
    name = backbone if isinstance(backbone, str) else ""
    package, _, model = name.partition(":")
    if package in _PACKAGES and model:
        return _outside_backbone(name, image_channels(input_shape, backbone=name), path)
    if name not in BACKBONES:
        names = ", ".join(map(repr, ("auto", *BACKBONES, *(f"{each}:NAME" for each in _PACKAGES))))
        raise CredalError(
            f"backbone must be one of {names} or a torch.nn.Module that returns features, or a "
            f"function that makes one; got {backbone!r}."
        )
    build = BACKBONES[name]
    places_dropout = getattr(build, "places_dropout", False)
    built = build(input_shape, dropout=dropout) if places_dropout else build(input_shape)
    if path is not None:
        load_weights(built, read_weights(path, part="backbone."), source=path)
    return built


def build_network(
    backbone: Backbone,
    inputs: Tensor,
    *,
    num_heads: int,
    num_classes: int,
    dropout: float = 0.0,
    weights: str | Path | None = None,
) -> Network:
    """An untrained network that standardizes inputs like these, on the CPU."""
    built = build_backbone(backbone, tuple(inputs.shape[1:]), dropout=dropout, weights=weights)
    for layer in built.modules():
        if isinstance(layer, Standardize):
            layer.fit(inputs)
    shape = {"num_heads": num_heads, "num_classes": num_classes, "dropout": dropout}
    return Network.on(built, inputs[:2].cpu(), **shape)


def read_weights(
    path: Path, *, part: str = "", fix: str = "give the path of the state dict"
) -> dict[str, Tensor]:
    """The tensors of a state dict; from a saved classifier, this part of its first network."""
    if not path.is_file():
        raise CredalError(f"there is no file {path}. To fix: {fix}.")
    try:
        safe = path.suffix == ".safetensors"
        content: Any = load_file(path) if safe else torch.load(path, "cpu", weights_only=True)
    except Exception as error:  # a damaged file fails in a dozen ways, a hostile one in others
        raise CredalError(
            f"{path} is damaged or contains more than tensors, which is not read "
            f"({type(error).__name__}). To fix: get the file again, or {_ALONE}."
        ) from error
    tensors = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(each, Tensor) for each in tensors):
        kind = f"{type(content).__name__}, not the tensors of a state dict"
        raise CredalError(f"{path} contains {kind}. To fix: {_ALONE}.")
    weights, start = {str(name): tensor for name, tensor in content.items()}, f"member0.{part}"
    own = {name.removeprefix(start): x for name, x in weights.items() if name.startswith(start)}
    return own or weights


def load_weights(network: nn.Module, weights: dict[str, Tensor], *, source: Path) -> None:
    """Load these weights, which were read from ``source``; all of them must fit."""
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        why = shorten(str(error), 300)  # torch lists every tensor, a line each
        raise CredalError(
            f"the weights in {source} do not fit {type(network).__name__}: {why} To fix: give the "
            "state dict of this very network."
        ) from error


def _outside_backbone(name: str, channels: int, weights: Path | None) -> nn.Module:
    """Standardized images through another package's network without its classifier."""
    package, _, model = name.partition(":")
    build = _from_timm if package == "timm" else _from_torchvision
    network, classifiers, address = build(imported(package, name), model, channels)
    if weights is not None:
        fix = f"download the weights of {name!r} from {address}"
        own = {
            _OLD_DENSENET.sub(r"\1\2", key): tensor
            for key, tensor in read_weights(weights, part="backbone.network.", fix=fix).items()
            if not key.startswith(tuple(f"{each}." for each in classifiers))
        }
        load_weights(network, own, source=weights)
    parts = {"standardize": Standardize(channels), "network": network}
    return nn.Sequential(OrderedDict(parts))


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
