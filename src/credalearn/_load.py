"""A saved classifier, read back."""

from pathlib import Path
from textwrap import shorten

import numpy as np
import torch
from torch import Tensor

from credalearn._formats import shown
from credalearn._model_files import read_model
from credalearn._selection import Choice
from credalearn._table_encoder import TableEncoder
from credalearn._text_encoder import TextEncoder
from credalearn.classifier import MEANINGS, CredalClassifier
from credalearn.errors import CredalError
from credalearn.methods import METHODS, Method, Model
from credalearn.nets import Backbone
from credalearn.train.device import find_device


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
    config, tensors = read_model(Path(folder))
    given = {"backbone": backbone, "method": method}
    try:
        params = dict(config["params"])
        saved = {name: params[name] for name in given}
        own = {
            "backbone": saved["backbone"] is None,
            "method": saved["method"] not in ("auto", *METHODS),
        }
        clf = CredalClassifier(**params | {name: given[name] for name in given if own[name]})
        clf.classes_ = np.array(config["classes"], dtype=config["classes_dtype"])
        clf.loss_curve_ = config["loss_curve"]
        clf._input_shape = tuple(config["input_shape"])
        encoder, choice = config["encoder"], config["choice"]
        kind = TextEncoder if clf.encoder == "tfidf" else TableEncoder
        clf._encoder = None if encoder is None else kind.from_json(encoder)
        clf.choice_ = None if choice is None else Choice(**choice)
        if encoder is None and not clf._selects and clf._backbone() in ("linear", "mlp"):
            raise KeyError("encoder")
        clf.temperatures_ = {
            meaning: float(config["temperatures"][meaning]) for meaning in MEANINGS
        }
        if not all(0 < each < np.inf for each in clf.temperatures_.values()):
            raise ValueError("a temperature must be above 0")
        clf.out_of_fold_ = clf.folds_ = None
        clf.n_features_in_ = int(config["num_features"])
        clf.weights_sha256_ = config["weights_sha256"]  # which ``read_model`` has checked
        if config["feature_names"] is not None:
            clf.feature_names_in_ = np.array(config["feature_names"], dtype=object)
    except (KeyError, TypeError, ValueError) as error:
        raise CredalError(
            f"{folder} was written by another version: {shown(error)}. To fix: load it with that "
            "version, or train and save it with this one."
        ) from error
    for name in given:
        _check_given(folder, name, saved[name], given[name], own=own[name])
    clf.model_ = _loaded_model(clf, tensors, folder)
    return clf


def _loaded_model(clf: CredalClassifier, tensors: dict[str, Tensor], folder: str | Path) -> Model:
    method, sample = clf._method(), torch.zeros(2, *clf._input_shape)
    count = len({name.partition(".")[0] for name in tensors if name.startswith("member")})
    if count != method.num_members:
        raise CredalError(
            f"{folder} has {count} trained networks; the method has {method.num_members}. To fix: "
            "give the method that was trained."
        )
    members = [clf._build(sample, len(clf.classes_)) for _ in range(count)]
    try:
        for number, member in enumerate(members):
            member.load_state_dict(_part(tensors, f"member{number}."))
    except RuntimeError as error:
        why = shorten(str(error), 300)  # torch lists every tensor, a line each
        raise CredalError(
            f"the weights in {folder} do not fit the network: {why} To fix: give the backbone and "
            "the method that were trained; named ones need the version of their package that they "
            "were trained with."
        ) from error
    device = find_device(clf.device)
    on_device = tuple(member.to(device) for member in members)
    return Model(method, on_device, _part(tensors, "state."), clf.random_state)


def _check_given(
    folder: str | Path, name: str, saved: str | None, given: object, *, own: bool
) -> None:
    """Code of the user must be given, and nothing else: it is not in the folder."""
    if own == (given is not None):
        return
    what = f"the {name} {saved!r}" if saved is not None else f"a {name} of your own"
    fix = f"load(folder, {name}=...)" if own else f"load(folder) without {name}"
    raise CredalError(f"{folder} was trained with {what}. To fix: {fix}.")


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose name starts with ``prefix``, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
