"""The device that users name."""

import torch

from credalearn.errors import CredalError


def find_device(name: str) -> torch.device:
    """The device of this name; of ``"auto"`` a GPU where there is one, else the CPU.

    Raises:
        CredalError: If there is none, or it holds no values.

    Example:
        >>> find_device("cpu")
        device(type='cpu')
    """
    wanted = name
    if name == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=wanted).item()  # "meta" is a device, but holds no values
        return torch.device(wanted)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CredalError(
            f"device {name!r} is not to be had here: {error}. To fix: take 'auto'."
        ) from error
