"""Devices by the names that users give."""

import torch

from credalearn.errors import CredalError


def find_device(name: str) -> torch.device:
    """The device of this name; for ``"auto"`` a GPU where there is one, else the CPU."""
    wanted = name
    if name == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted).item()  # "meta" is a device, but has no values
        return torch.device(wanted)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CredalError(
            f"device {name!r} is not available here: {error}. To fix: use 'auto'."
        ) from error
