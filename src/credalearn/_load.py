"""A saved classifier, read back."""

from pathlib import Path
from textwrap import shorten

import numpy as np
import torch
from torch import Tensor

from credalearn._model_files import other_version, read_model
from credalearn._table_encoder import TableEncoder
from credalearn._tensors import by_part
from credalearn.classifier import CredalClassifier
from credalearn.errors import CredalError
from credalearn.methods import METHODS, Method, Model
from credalearn.nets import Backbone, build_network
from credalearn.train._processes import find_device


def load(
    folder: str | Path, *, backbone: Backbone | None = None, method: Method | None = None
) -> CredalClassifier:
    """Load a classifier that :meth:`CredalClassifier.save` wrote; runs no code from the folder.

    Args:
        folder: Where the model was saved.
        backbone: The module that was given as backbone, if one was, trained or not, or a function
            that makes it: its code is not saved.
        method: The ``Method`` that was given as method, if one was.

    Raises:
        CredalError: If the folder is damaged or incomplete, or the backbone or the method does not
            match it.

    Example:
        >>> import tempfile
        >>> import credalearn as cl
        >>> clf = cl.CredalClassifier().fit([[0.0], [1.0]], ["no", "yes"])
        >>> folder = tempfile.mkdtemp()
        >>> clf.save(folder)
        >>> cl.load(folder).classes_
        array(['no', 'yes'], dtype='<U3')
    """
    config, tensors, digest = read_model(Path(folder))
    params, given = config.params, {"backbone": backbone, "method": method}
    for name, known in (("backbone", None), ("method", ("auto", *METHODS))):
        saved = params.get(name)
        own = saved is None if known is None else saved not in known
        if own != (given[name] is not None):  # code of the user is not in the folder
            what = f"the {name} {saved!r}" if saved is not None else f"a {name} of your own"
            fix = f"load(folder, {name}=...)" if own else f"load(folder) without {name}"
            raise CredalError(f"{folder} was trained with {what}. To fix: {fix}.")
        if own:
            params[name] = given[name]
    try:
        clf = CredalClassifier(**params)
        clf.classes_ = np.array(config.classes, dtype=config.classes_dtype)
    except (TypeError, ValueError) as error:
        raise other_version(folder, error) from error
    encoder = config.encoder
    clf._encoder = TableEncoder(encoder) if isinstance(encoder, tuple) else encoder
    clf._input_shape, clf.choice_ = config.input_shape, config.choice
    clf.temperatures_ = config.temperatures  # type: ignore[assignment]
    clf.out_of_fold_ = clf.folds_ = None
    clf.loss_curve_, clf.n_features_in_ = config.loss_curve, config.num_features
    clf.weights_sha256_ = digest
    if config.feature_names is not None:
        clf.feature_names_in_ = np.array(config.feature_names, dtype=object)
    clf.model_ = _model(clf, tensors, folder)
    return clf


def _model(clf: CredalClassifier, tensors: dict[str, Tensor], folder: str | Path) -> Model:
    """The trained networks; their backbone, which may be the user's, is built again."""
    method, device = clf._method(), find_device(clf.device)
    parts = by_part(tensors)
    state = parts.pop("state", {})
    if (count := len(parts)) != method.num_members:
        raise CredalError(
            f"{folder} has {count} trained networks; the method has {method.num_members}. To fix: "
            "give the method that was trained."
        )
    members = []
    for number in range(count):
        try:
            member = build_network(
                clf._backbone(),
                torch.zeros(2, *clf._input_shape),
                num_heads=method.num_heads,
                num_classes=len(clf.classes_),
                dropout=method.dropout,
            )
            member.load_state_dict(parts.get(f"member{number}", {}))
        except (CredalError, RuntimeError) as error:
            why = shorten(str(error), 300)  # torch lists every tensor, a line each
            raise CredalError(
                f"the weights in {folder} do not fit the network: {why} To fix: give the backbone "
                "and the method that were trained, with the same versions of their packages."
            ) from error
        members.append(member.to(device))
    return Model(method, tuple(members), state, clf.random_state)
