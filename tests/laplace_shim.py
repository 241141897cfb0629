"""The package laplace-torch, made importable: ``from laplace_shim import Laplace``."""

import warnings

import torchvision_shim  # noqa: F401  # it brings torchvision

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its backends compile with torch.jit
    from laplace import Laplace

__all__ = ["Laplace"]
