"""torchvision, where it is installed, made importable: ``import torchvision_shim``.

A torchvision built for a GPU does not import next to a torch without one: ``operator
torchvision::nms does not exist``. Nothing here calls its operators, so that declaring them is
enough. torchmetrics and timm import it too.
"""

from importlib import import_module
from importlib.util import find_spec

import torch

# What it declares lives as long as it does.
_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]


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
            schema = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            _OPERATORS.define(schema)  # type: ignore[no-untyped-call]
        import_module("torchvision")


mend_torchvision()
