"""A saved classifier, read back."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from credalearn.errors import CredalError
from credalearn.estimator.classifier import CredalClassifier
from credalearn.estimator.folder import read_model
from credalearn.methods import Model


def load(folder: str | Path, *, backbone: nn.Module | None = None) -> CredalClassifier:
    """Load a classifier that :meth:`CredalClassifier.save` wrote; runs no code from the folder.

    Args:
        folder: Where the model was saved.
        backbone: The module that was given as backbone, if one was: its code is not saved.

    Raises:
        CredalError: If the folder is damaged or incomplete, or the backbone does not fit or is not
            wanted.

    Example:
        >>> import tempfile
        >>> import credalearn as cl
        >>> clf = cl.CredalClassifier(epochs=1).fit([[0.0], [1.0]], ["no", "yes"])
        >>> folder = tempfile.mkdtemp()
        >>> clf.save(folder)
        >>> cl.load(folder).classes_
        array(['no', 'yes'], dtype='<U3')
    """
    config, tensors = read_model(Path(folder))
    try:
        params = dict(config["params"])
        own = params["backbone"] is None
        clf = CredalClassifier(**params | {"backbone": backbone if own else params["backbone"]})
        clf.classes_ = np.array(config["classes"], dtype=config["classes_dtype"])
        clf.loss_curve_ = config["loss_curve"]
        clf._input_shape = tuple(config["input_shape"])
        names = config["feature_names"]
    except (KeyError, TypeError, ValueError) as error:
        raise CredalError(f"{folder} was written by another version: {error!r}.") from error
    if own and backbone is None:
        raise CredalError(
            f"{folder} was trained on a backbone of your own. To fix: give it, untrained, as "
            "load(folder, backbone=...)."
        )
    if not own and backbone is not None:
        raise CredalError(
            f"{folder} was trained on the backbone {clf.backbone!r}; a module of type "
            f"{type(backbone).__name__} has no place in it. To fix: load(folder) alone."
        )
    clf.n_features_in_ = clf._input_shape[0]
    if names is not None:
        clf.feature_names_in_ = np.array(names, dtype=object)
    method = clf._method()
    members = [
        clf._build(torch.zeros(2, *clf._input_shape), len(clf.classes_)).to(clf._device())
        for _ in range(method.num_members)
    ]
    try:
        for number, member in enumerate(members):
            member.load_state_dict(_part(tensors, f"member{number}."))
    except RuntimeError as error:
        raise CredalError(f"the weights in {folder} do not fit the network: {error}") from error
    clf.model_ = Model(method, tuple(members), _part(tensors, "state."), clf.seed)
    return clf


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose name starts so, without the start."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
