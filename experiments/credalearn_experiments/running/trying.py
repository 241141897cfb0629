"""A method on a few items before its training: what a user's own gives may be of another kind."""

from dataclasses import replace

from torch import Tensor

from credalearn.errors import CredalError
from credalearn.methods import METHODS, Model
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet

_ITEMS = 2


def check_method(name: str, network: Network, inputs: Tensor, labels: CredalSet) -> None:
    """Ask a method once for its loss and, unless it first learns from outputs, its predictions.

    Args:
        name: Key of ``METHODS``.
        network: Untrained; it stays as it is.
        inputs: Training inputs, of which the first few are taken.
        labels: Their labels, on the network's device.

    Raises:
        CredalError: If the loss is no scalar, or the predictions are something else.

    Example:
        >>> import credalearn as cl
        >>> import torch
        >>> network = Network(torch.nn.Identity(), num_features=1, num_heads=1, num_classes=2)
        >>> check_method("softmax", network, torch.zeros(1, 1), cl.precise([[0.7, 0.3]]))
    """
    method = replace(METHODS[name], num_passes=1)
    outputs = Model(method, (network,), {}, random_state=0).outputs(inputs[:_ITEMS])
    some = labels[:_ITEMS]
    loss: object = method.loss(outputs.logits[:, 0].to(some.reference.device), some, 0)
    if not isinstance(loss, Tensor) or loss.ndim:
        shown = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise CredalError(
            f"the loss of method {name!r} must be a scalar tensor, a mean over items; of "
            f"{len(some)} items it gave {shown}. To fix: end it with .mean()."
        )
    if method.post_hoc is None:
        check_predictions(name, method.predictions(outputs, {}))


def check_predictions(name: str, found: object) -> None:
    """Refuse what a method predicts where it is something else than predictions.

    Example:
        >>> check_predictions("mine", [0.5, 0.5])
        Traceback (most recent call last):
        credalearn.errors.CredalError: the predictions of method 'mine' must be CredalPredictions;
        it gave list. To fix: make them by CredalPredictions.from_vertices, or by hull_of_outputs.
    """
    if not isinstance(found, CredalPredictions):
        raise CredalError(
            f"the predictions of method {name!r} must be CredalPredictions; it gave "
            f"{type(found).__name__}. To fix: make them by CredalPredictions.from_vertices, or by "
            "hull_of_outputs."
        )
