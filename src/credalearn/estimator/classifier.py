"""CredalClassifier, the scikit-learn face.

Shapes: N items, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

import credalearn
from credalearn._checks import check_choice
from credalearn.errors import CredalError
from credalearn.estimator.backbone import (
    Backbone,
    check_backbone,
    check_weights,
    make_backbone,
)
from credalearn.estimator.folder import write_model
from credalearn.estimator.targets import as_credal, column_names, top_classes
from credalearn.labels.soft import SoftRule, collapse
from credalearn.methods import METHODS, Method, Model
from credalearn.nets import Network, Standardize
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.sets.checks import refuse_masked, refuse_no_array
from credalearn.train import AUGMENTS, Recipe
from credalearn.train.device import find_device

_NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)  # bfloat16 and shorter are torch's


class CredalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns from credal labels and predicts sets of distributions.

    It keeps scikit-learn's contract. Pipelines, clones, splits, ``cross_val_score`` and searches
    take every kind of y with the classifier's own :meth:`score`. One class label an item is needed
    by ``scoring=`` (on other y its scores are nan, and a search takes its first candidate),
    stratified splits, steps that read y, and ``cross_val_predict(..., method="predict_proba")``,
    which codes the columns of y anew. A pipeline ``p`` gives its predicted sets by
    ``p[-1].predict_credal(p[:-1].transform(X))``. The same random_state on the same machine gives the same
    weights, bit for bit on a CPU.

    Args:
        method: A key of ``credalearn.methods.METHODS``: ``"pocc"`` (two heads, a segment), with
            their losses averaged, not summed (``"pocc-mean"``, more accurate with SGD), with a
            ``"pocc-center"`` head or as a ``"pocc-ensemble"``; ``"softmax"`` (a single point);
            ``"edl"``, ``"edl-soft"``, ``"dappr"``, ``"laplace-bridge"`` (a Dirichlet);
            ``"mc-dropout"``, ``"deep-ensemble"`` (a hull); ``"decalibration"`` (a box). Or a
            ``credalearn.methods.Method`` of your own, which ``load`` asks for again. What
            ``"mc-dropout"`` predicts of an item, its class too, depends on its place among the
            items of the call.
        backbone: ``"mlp"`` for tables; ``"resnet18"`` or ``"wrn-28-4"`` for small images;
            ``"torchvision:NAME"`` or ``"timm:NAME"`` for a network of these packages, where
            installed. All of them standardize their inputs and start from random weights, or from
            ``weights``. Or any ``torch.nn.Module`` that returns features, trained from the weights
            it has (a copy is trained). Or a function without arguments that makes a new one,
            ``lambda: Net()``, called under each network's own random_state: a method of several networks
            asks for it, as one module would start them all from the same weights.
        weights: File with the weights that a backbone given by name starts from: the published
            state dict of a ``torchvision:`` or ``timm:`` network (safetensors, or what
            ``torch.save`` wrote), or ``model.safetensors`` of a saved classifier with the same
            backbone. The heads start at random. All networks of an ensemble start from it and
            differ less then. ``load`` does not need the file.
        label_rule: What soft labels become: ``"relax"`` (the paper), ``"relax-ties"`` or
            ``"precise"``.
        collapse: Learn only the top class of each label's reference, whatever y is.
        epochs: Passes over the data.
        batch_size: Items a step, at most.
        optimizer: ``"adam"`` or ``"sgd"``.
        learning_rate: The largest learning rate.
        momentum: Of SGD.
        weight_decay: L2 penalty in the gradient.
        schedule: ``"cosine"`` to ``final_learning_rate``, or ``"constant"``.
        warmup_epochs: Epochs over which the learning rate first rises.
        warmup_start: Where that rise starts.
        final_learning_rate: Where the cosine ends.
        augment: Of images, what each epoch changes at random: ``"crop"`` shifts them by up to an
            eighth of their size, with 0 around, ``"crop-flip"`` also mirrors half of them left to
            right; ``"none"``.
        precision: ``"auto"`` (bfloat16 on a GPU), ``"float32"`` or ``"bfloat16"``.
        random_state: Of everything random: what other estimators call ``random_state``.
        device: ``"auto"`` (a GPU where there is one), or a device of torch.
        checkpoint: File that keeps the state after each epoch. If training is killed, fitting
            again on the same data goes on from there to the same weights.
        verbose: Show progress on standard error.

    Attributes:
        classes_: The K class names, in the order of the columns of probabilities.
        model_: The trained networks with what was learned from them.
        loss_curve_: Mean loss of each epoch, over the members where there are several.
        n_features_in_: Number of features seen in ``fit``.

    Example:
        Four annotators looked at each item; near the middle they disagree.

        >>> import numpy as np
        >>> import credalearn as cl
        >>> X = np.linspace(-1, 1, 60)[:, None]
        >>> right = np.clip(np.round(2 + 4 * X), 0, 4).astype(int)
        >>> votes = np.hstack([4 - right, right])
        >>> clf = cl.CredalClassifier(epochs=40, random_state=0)
        >>> clf = clf.fit(X, cl.from_votes(votes), classes=["left", "right"])
        >>> clf.predict([[-0.9], [0.9]])
        array(['left', 'right'], dtype='<U5')
        >>> pred = clf.predict_credal([[-0.9], [0.0]])
        >>> bool(pred.score("mmi")[0] < pred.score("mmi")[1])
        True

        A method of your own: an ensemble of three.

        >>> from dataclasses import replace
        >>> three = replace(cl.methods.METHODS["deep-ensemble"], num_members=3)
        >>> clf = cl.CredalClassifier(three, epochs=2).fit(X, cl.from_votes(votes))
        >>> clf.predict_credal(X)
        CredalPredictions(60 items, 2 classes, 3 vertices)
    """

    def __init__(
        self,
        method: str | Method = "pocc",
        *,
        backbone: Backbone = "mlp",
        weights: str | Path | None = None,
        label_rule: SoftRule = "relax-ties",
        collapse: bool = False,
        epochs: int = 50,
        batch_size: int = 128,
        optimizer: Literal["adam", "sgd"] = "adam",
        learning_rate: float = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        schedule: Literal["cosine", "constant"] = "cosine",
        warmup_epochs: float = 0,
        warmup_start: float = 0.0,
        final_learning_rate: float = 0.0,
        augment: Literal["none", "crop", "crop-flip"] = "none",
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        random_state: int = 0,
        device: str = "auto",
        checkpoint: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.backbone = backbone
        self.weights = weights
        self.label_rule = label_rule
        self.collapse = collapse
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup_epochs = warmup_epochs
        self.warmup_start = warmup_start
        self.final_learning_rate = final_learning_rate
        self.augment = augment
        self.precision = precision
        self.random_state = random_state
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        classes: ArrayLike | None = None,
        members: Sequence[Network] | None = None,
    ) -> Self:
        """Train on items X and what annotators said of them, y.

        Args:
            X: Features (N, D), an array or a data frame; images (N, channels, height, width) for
                the backbones that take them; any shape (N, ...) for a backbone of your own.
            y: Class labels (N,); soft labels (N, K), an array or a data frame whose columns are
                the class names; or a credal set such as ``from_votes`` returns.
            classes: The K class names in order, where y does not hold them.
            members: Trained networks to build on instead of training: ``clf.model_.members`` of a
                softmax classifier for the Laplace bridge and decalibration, of five for an
                ensemble.

        Raises:
            CredalError: If an option, X or y is not what it must be.
            TrainingError: If the loss is not finite, or the checkpoint is another run's.
        """
        before = dict(vars(self))
        try:
            return self._fit(X, y, classes, members)
        except BaseException:  # what an earlier fit learned is kept whole
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(
        self, X: Any, y: Any, classes: ArrayLike | None, members: Sequence[Network] | None
    ) -> Self:
        method, recipe = self._method(), self._recipe()
        check_backbone(self.backbone, num_trained=method.num_members if members is None else 1)
        check_weights(self.weights, self.backbone)
        check_choice(self.augment, AUGMENTS, name="augment")
        inputs, labels, names = self._check_data(X, y, classes)
        self._check_augment(inputs)
        labels = labels.to(dtype=torch.float32)
        if members is not None:
            self._check_members(members, inputs, len(names))
            model = Model.from_members(
                method, members, inputs, labels, random_state=recipe.random_state
            )
        else:
            model = Model.fit(
                method,
                lambda: self._build(inputs, len(names), weights=self.weights),
                inputs,
                labels,
                recipe,
                device=find_device(self.device),
                augment=AUGMENTS[self.augment],
                name=self.method if isinstance(self.method, str) else "your method",
                checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
                verbose=self.verbose,
            )
        self.model_ = model
        self.classes_ = names
        self.loss_curve_ = np.array(model.losses).mean(0).tolist() if members is None else []
        self._input_shape = tuple(inputs.shape[1:])
        return self

    def predict_credal(self, X: Any) -> CredalPredictions:
        """The predicted sets of distributions, with their scores, on the CPU.

        Monte-Carlo dropout drops features by an item's place in X: the same X gives the same sets,
        other rows or another order give others.
        """
        check_is_fitted(self, "model_")
        inputs = self._inputs(X, reset=False)
        if tuple(inputs.shape[1:]) != self._input_shape:
            raise CredalError(
                f"X must hold items of shape {self._input_shape}, as in fit; got "
                f"{tuple(inputs.shape[1:])}. To fix: bring the items to that shape."
            )
        return self.model_.predict(inputs)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (N, K): the middle of the predicted set."""
        probs: np.ndarray = self.predict_credal(X).probs.double().numpy()
        probs /= probs.sum(axis=1, keepdims=True)
        return probs

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each item, shape (N,)."""
        index = self.predict_credal(X).classes.numpy()
        predicted: np.ndarray = self.classes_[index]
        return predicted

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on X against y, which is anything that :meth:`fit` takes.

        Of soft and credal labels the top class of their reference counts as the true one.

        Raises:
            CredalError: If soft labels are no distributions, or labels are over other classes.
        """
        check_is_fitted(self, "model_")
        y = _as_given(y, name="y")
        if column_names(y) is not None:
            y = _in_order(y, self.classes_)
        if isinstance(y, CredalSet) or (np.ndim(y) == 2 and np.shape(y)[1] > 1):
            y = self.classes_[top_classes(y, num_classes=len(self.classes_))]
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def save(self, folder: str | Path) -> None:
        """Write the trained model to ``folder``: weights in safetensors, the rest in JSON.

        ``credalearn.load`` reads it back, in a new process too, and runs no code from it.
        """
        check_is_fitted(self, "model_")
        if self._method() != self.model_.method:
            raise CredalError(
                f"method is now {self.method!r}, but another was fitted. To fix: fit again."
            )
        params = self.get_params(deep=False)
        params |= {"checkpoint": None, "device": "auto", "random_state": self.model_.random_state}
        if not isinstance(self.backbone, str):
            params["backbone"] = None  # code does not travel: `load` asks for the module
        if isinstance(self.method, Method):
            params["method"] = None  # likewise
        names = getattr(self, "feature_names_in_", None)
        config = {
            "params": params,
            "classes": self.classes_.tolist(),
            "classes_dtype": self.classes_.dtype.str,
            "input_shape": list(self._input_shape),
            "feature_names": None if names is None else names.tolist(),
            "loss_curve": self.loss_curve_,
            "versions": {"credalearn": credalearn.__version__, "torch": torch.__version__},
        }
        tensors = {f"state.{name}": tensor for name, tensor in self.model_.state.items()}
        for number, member in enumerate(self.model_.members):
            weights = member.state_dict().items()
            tensors |= {f"member{number}.{name}": tensor for name, tensor in weights}
        write_model(Path(folder), config=config, weights=tensors)

    def _method(self) -> Method:
        if isinstance(self.method, Method):
            return self.method
        check_choice(self.method, METHODS, name="method")
        return METHODS[self.method]

    def _recipe(self) -> Recipe:
        names = Recipe.__dataclass_fields__
        return Recipe(**{name: getattr(self, name) for name in names})

    def _build(
        self, inputs: Tensor, num_classes: int, *, weights: str | Path | None = None
    ) -> Network:
        """The untrained network for inputs like these; its backbone may have weights of a file."""
        method, shape = self._method(), tuple(inputs.shape[1:])
        backbone = make_backbone(self.backbone, shape, dropout=method.dropout, weights=weights)
        for layer in backbone.modules():
            if isinstance(layer, Standardize):
                layer.fit(inputs)
        return Network.on(
            backbone,
            inputs[:2],
            num_heads=method.num_heads,
            num_classes=num_classes,
            dropout=method.dropout,
        )

    def _check_augment(self, inputs: Tensor) -> None:
        if self.augment != "none" and inputs.ndim != 4:
            raise CredalError(
                f"augment={self.augment!r} is for images (items, channels, height, width); X has "
                f"the shape {tuple(inputs.shape)}. To fix: augment='none'."
            )

    def _check_members(self, members: Sequence[Network], inputs: Tensor, num_classes: int) -> None:
        """Members must be networks like the one that this classifier would train."""
        wanted = _shapes(self._build(inputs, num_classes))
        for member in members:
            if not isinstance(member, Network) or _shapes(member) != wanted:
                raise CredalError(
                    "members must be trained networks with this classifier's backbone, heads and "
                    f"inputs, as in clf.model_.members; one is {type(member).__name__} with other "
                    "weights. To fix: give the backbone and the X that the members have."
                )

    def _check_data(
        self, X: Any, y: Any, classes: ArrayLike | None
    ) -> tuple[Tensor, CredalSet, np.ndarray]:
        """Inputs, labels and class names, checked."""
        if isinstance(y, CredalSet):
            inputs = self._inputs(X, reset=True)
        else:
            columns = column_names(y)
            if columns is not None and classes is not None:
                y = _in_order(y, classes)
            classes = columns if classes is None else classes
            inputs, y = self._inputs_and_targets(X, y)
        if len(y) != len(inputs):
            raise CredalError(
                f"X holds {len(inputs)} items and y {len(y)}; they must be as many. To fix: give "
                "every item of X its label."
            )
        labels, names = as_credal(y, names=classes, label_rule=self.label_rule)
        return inputs, collapse(labels) if self.collapse else labels, names

    def _inputs(self, X: Any, *, reset: bool) -> Tensor:
        X = validate_data(self, _as_given(X, name="X"), reset=reset, **self._input_rules())
        return torch.from_numpy(X)

    def _inputs_and_targets(self, X: Any, y: Any) -> tuple[Tensor, np.ndarray]:
        rules = self._input_rules()
        X, y = _as_given(X, name="X"), _as_given(y, name="y")
        X, y = validate_data(self, X, y, multi_output=True, **rules)
        return torch.from_numpy(X), y

    def _input_rules(self) -> dict[str, Any]:
        if self.backbone == "mlp":  # standardizes in float64, then goes on in float32
            return {"dtype": np.float64, "order": "C"}
        return {"dtype": np.float32, "order": "C", "allow_nd": True}


def _as_given(values: Any, *, name: str) -> Any:
    """Tensors as arrays, everything else as it is; scikit-learn would show masked values."""
    refuse_masked(values, name=name)
    if not isinstance(values, Tensor):
        return values
    refuse_no_array(values, name=name)
    if values.is_floating_point() and values.dtype not in _NUMPY_FLOATS:
        values = values.float()
    return values.numpy(force=True)


def _shapes(network: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


def _in_order(frame: Any, classes: ArrayLike) -> Any:
    """A data frame of soft labels with its columns in the order of the classes."""
    wanted = list(classes)  # type: ignore[arg-type]
    if sorted(map(str, frame.columns)) != sorted(map(str, wanted)):
        raise CredalError(
            f"y has the columns {list(frame.columns)}; classes names {wanted}. To fix: name the "
            "columns of y, in any order."
        )
    return frame[wanted]
