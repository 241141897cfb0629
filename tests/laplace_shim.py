"""The package laplace-torch, made importable: ``from laplace_shim import Laplace``.

It brings torchvision, and a torchvision built for a GPU does not import beside a torch without one:
``operator torchvision::nms does not exist``. Nothing here calls its operators, so that declaring
them is enough. torchmetrics imports torchvision too, where it is installed.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec

import torch

_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")  # what it declares lives as long


def mend_torchvision() -> None:
    """Import torchvision, where it is installed, declaring the operators it fails to bring."""
    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for name in ("nms", "qnms"):
            _OPERATORS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_module("torchvision")


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its backends compile with torch.jit
    mend_torchvision()
    from laplace import Laplace

__all__ = ["Laplace", "mend_torchvision"]
