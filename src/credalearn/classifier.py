"""CredalClassifier, the scikit-learn estimator.

Shapes: N items, K classes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
from torch import Tensor, nn

import credalearn
from credalearn._checks import check_choice
from credalearn._model_files import write_model
from credalearn._selection import (
    CENTER,
    SELECTED_METHOD,
    Choice,
    Encode,
    Items,
    make_folds,
    select,
    unheard,
)
from credalearn._table_columns import open_table
from credalearn._table_encoder import TableEncoder
from credalearn._targets import (
    as_credal,
    as_groups,
    as_weights,
    column_names,
    ordered_columns,
    top_classes,
    truth_of,
)
from credalearn._temperature import fit_temperature
from credalearn._text_encoder import TextEncoder, as_texts
from credalearn.errors import CredalError, TrainingError
from credalearn.labels.soft import SoftRule, collapse
from credalearn.methods import METHODS, Method, Model
from credalearn.methods.softmax import ENSEMBLE_SIZE
from credalearn.methods.taught import as_wide_as, narrowest, stretch, stretched, taught_labels
from credalearn.nets import Backbone, Network, build_network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.sets.checks import refuse_masked, refuse_no_array
from credalearn.train import AUGMENTS, Progress, Recipe, Training, seeded, train
from credalearn.train.device import find_device
from credalearn.train.linear import Inputs
from credalearn.train.recipe import Optimizer, Precision, Schedule

Meaning = Literal["truth", "votes"]
MEANINGS: tuple[Meaning, ...] = ("truth", "votes")
_NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)  # torch has shorter ones too
_RECIPE = Recipe()  # the defaults of training


class CredalClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that learns from credal labels and predicts sets of distributions.

    ``CredalClassifier()`` selects its model on folds of the training items: linear credal models
    with several L2 penalties and, from 1,000 items of a table on, a small network, compared by the
    tempered log-likelihood of the right class. Every method of the paper is available by name, with
    its own recipe.

    It is a scikit-learn estimator: pipelines, clones, splits, ``cross_val_score`` and searches work
    with every kind of y and the classifier's own :meth:`score`. ``scoring=``, stratified splits and
    steps that read y need one class label per item. A pipeline ``p`` gives its predicted sets with
    ``p[-1].predict_credal(p[:-1].transform(X))``. The same random_state on the same machine gives
    the same weights, bit for bit on a CPU.

    Args:
        method: ``"auto"``, the default learner; with a backbone given, ``"pocc"``. Or a key of
            ``credalearn.methods.METHODS``: ``"pocc"`` (two heads, a segment); ``"pocc-mean"``,
            whose losses are averaged, not summed, which is more accurate with SGD;
            ``"pocc-center"`` with a third head; ``"pocc-ensemble"``; ``"softmax"`` (a single
            point); ``"edl"``, ``"edl-soft"``, ``"dappr"``, ``"laplace-bridge"`` (a Dirichlet);
            ``"mc-dropout"``, ``"deep-ensemble"`` (a hull); ``"decalibration"`` (a box);
            ``"credal-bounds"``, ``"pocc-distilled"`` (a box that five networks, or with
            ``backbone="linear"`` the fold models of the selection, taught to one). Or a
            ``credalearn.methods.Method`` of your own, which ``load`` then needs too.
        backbone: ``"auto"``: what the default learner selects, ``"mlp"`` for other methods.
            ``"linear"`` and ``"mlp"`` for tables; ``"resnet18"`` or ``"wrn-28-4"`` for small
            images; ``"torchvision:NAME"`` or ``"timm:NAME"`` for a network of these packages. All
            of them standardize their inputs. Or a ``torch.nn.Module`` that returns features (a
            copy is trained); or a function without arguments that makes one, which methods with
            several networks need.
        encoder: ``"auto"``, or ``"tfidf"`` where items are texts: the TF-IDF of one and two words
            and of two to five characters, in any language, for the default learner. It is fitted
            again in each of its folds, and saved with the model.
        weights: File with the weights that a backbone given by name starts from: the published
            state dict of a ``torchvision:`` or ``timm:`` network, or ``model.safetensors`` of a
            saved classifier with the same backbone. ``load`` does not need the file.
        label_rule: How soft labels become sets: ``"relax"`` (the paper), ``"relax-ties"`` or
            ``"precise"``.
        collapse: Learn only the top class of each label's reference, whatever y is.
        calibrate: Temper the probabilities of a method given by name: one temperature from a fifth
            of the training items, by a model of the others. The default learner always does, out
            of fold.
        augment: Random changes in each epoch: ``"crop"`` shifts images by up to an eighth of their
            size, ``"crop-flip"`` also mirrors half of them left to right. ``"mixup"`` then averages
            half of the items with another one, and ``"cutmix"`` puts a part of another one into
            them; a mixed item learns from both labels in proportion, which is exact for every kind
            of set. These two also work for tables.
        device: ``"auto"`` (a GPU where there is one), or a device of torch.
        checkpoint: File that keeps the state after each epoch of a method given by name. If
            training is killed, fitting again on the same data continues from there to the same
            weights.
        verbose: Show progress on standard error.
        epochs, batch_size, optimizer, learning_rate, momentum, weight_decay, schedule,
        warmup_epochs, warmup_start, final_learning_rate, precision: Training options of methods
            given by name; see :class:`credalearn.train.Recipe`.
        random_state: Random seed.

    Attributes:
        classes_: The K class names, in the order of the columns of probabilities.
        model_: The trained networks and what was learned from them.
        choice_: What the default learner chose; None for a method given by name.
        temperatures_: Temperature for each meaning of a probability; see :meth:`predict_credal`.
        out_of_fold_: Tempered predictions of the training items with a weight above 0, each by a
            model that was not trained on its fold; None for a method given by name.
        folds_: Fold of each training item, shape (N,), -1 without weight; or None.
        loss_curve_: Mean loss of each epoch, averaged over the members; empty for linear models.
        n_features_in_: Number of features seen in ``fit``.

    Example:
        Four annotators looked at each item; near the middle they disagree.

        >>> import numpy as np
        >>> import credalearn as cl
        >>> X = np.linspace(-1, 1, 60)[:, None]
        >>> right = np.clip(np.round(2 + 4 * X), 0, 4).astype(int)
        >>> votes = np.hstack([4 - right, right])
        >>> clf = cl.CredalClassifier().fit(X, cl.from_votes(votes), classes=["left", "right"])
        >>> clf.choice_.backbone
        'linear'
        >>> clf.predict([[-0.9], [0.9]])
        array(['left', 'right'], dtype='<U5')
        >>> pred = clf.predict_credal([[-0.9], [0.0]])
        >>> bool(pred.score("top-probability")[0] < pred.score("top-probability")[1])
        True

        A method of your own: an ensemble of three.

        >>> from dataclasses import replace
        >>> three = replace(cl.methods.METHODS["deep-ensemble"], num_members=3)
        >>> clf = cl.CredalClassifier(three, epochs=2).fit(X, cl.from_votes(votes))
        >>> clf.predict_credal(X)
        CredalPredictions(60 items, 2 classes, 3 vertices)
    """

    classes_: np.ndarray
    model_: Model
    choice_: Choice | None
    temperatures_: dict[Meaning, float]
    out_of_fold_: CredalPredictions | None
    folds_: np.ndarray | None
    loss_curve_: list[float]
    _input_shape: tuple[int, ...]
    _encoder: TableEncoder | TextEncoder | None

    def __init__(
        self,
        method: str | Method = "auto",
        *,
        backbone: Backbone = "auto",
        encoder: Literal["auto", "tfidf"] = "auto",
        weights: str | Path | None = None,
        label_rule: SoftRule = "relax-ties",
        collapse: bool = False,
        calibrate: bool = False,
        epochs: int = _RECIPE.epochs,
        batch_size: int = _RECIPE.batch_size,
        optimizer: Optimizer = _RECIPE.optimizer,
        learning_rate: float = _RECIPE.learning_rate,
        momentum: float = _RECIPE.momentum,
        weight_decay: float = _RECIPE.weight_decay,
        schedule: Schedule = _RECIPE.schedule,
        warmup_epochs: float = _RECIPE.warmup_epochs,
        warmup_start: float = _RECIPE.warmup_start,
        final_learning_rate: float = _RECIPE.final_learning_rate,
        augment: Literal["none", "crop", "crop-flip", "mixup", "cutmix"] = "none",
        precision: Precision = _RECIPE.precision,
        random_state: int = _RECIPE.random_state,
        device: str = "auto",
        checkpoint: str | Path | None = None,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.backbone = backbone
        self.encoder = encoder
        self.weights = weights
        self.label_rule = label_rule
        self.collapse = collapse
        self.calibrate = calibrate
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
        groups: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        members: Sequence[Network] | None = None,
    ) -> Self:
        """Train on items X and their labels y.

        Args:
            X: Features (N, D): an array, a data frame or, for linear models, a SciPy sparse
                matrix. Missing values are filled with the mean, and an indicator is added; columns
                of texts become one 0/1 feature per text. With ``encoder="tfidf"`` N texts: a list,
                an array or a column of a table. Images (N, channels, height, width) for
                the backbones that take them; any shape (N, ...) for a backbone of your own.
            y: Class labels (N,); soft labels (N, K), an array or a data frame whose columns are
                the class names; or a credal set such as ``from_votes`` returns.
            classes: The K class names in order, where y does not contain them.
            groups: Group of each item, such as its patient, shape (N,). Items of a group are never
                in different folds.
            truth: The right class of each item: its name, shape (N,), or shares (N, K). Default:
                the top classes of y. Probabilities are tempered against it.
            sample_weight: Weight of each item, shape (N,), 0 or more; for the default learner,
                which then chooses among linear models.
            members: Trained networks to build on instead of training: ``clf.model_.members`` of a
                softmax classifier for the Laplace bridge and decalibration, of five for an
                ensemble.

        Raises:
            CredalError: If an option, X or y is invalid.
            TrainingError: If the loss is not finite, or the checkpoint belongs to another run.
        """
        fitted = copy.copy(self)  # a fit that fails leaves this classifier as it was
        self._check_options(weighted=sample_weight is not None, on_members=members is not None)
        weight = None if sample_weight is None else as_weights(sample_weight, _num_samples(X))
        used = None if weight is None else np.flatnonzero(weight.numpy())
        inputs, labels, fitted.classes_ = fitted._check_data(X, y, classes, used)
        together = None if groups is None else as_groups(groups, len(labels))
        right = truth_of(labels, truth, fitted.classes_)
        items = Items(inputs, labels.to(dtype=torch.float64), right, weight, fitted._encode_fold)
        fitted._input_shape = tuple(inputs.shape[1:])
        fitted.choice_ = fitted.folds_ = fitted.out_of_fold_ = None
        fitted.loss_curve_, fitted.temperatures_ = [], dict.fromkeys(MEANINGS, 1.0)
        if self._selects:
            fitted._select(items, together)
        else:
            fitted.model_, fitted.loss_curve_ = self._trained(inputs, labels, members)
            if self.calibrate:
                folds = make_folds(right, together, random_state=self.random_state, count=5)
                rows, held_out = np.flatnonzero(folds != 0), np.flatnonzero(folds == 0)
                aside = copy.copy(self)
                aside.checkpoint = _beside(self.checkpoint, "calibration")
                model, _ = aside._trained(inputs[rows], labels[rows], None)
                fitted._set_temperatures(model.predict(inputs[held_out]), items[held_out])
        self.__dict__ = fitted.__dict__
        return self

    def predict_credal(self, X: Any, *, meaning: Meaning = "truth") -> CredalPredictions:
        """The predicted sets of distributions, with their scores, on the CPU.

        Args:
            X: Items as in :meth:`fit`.
            meaning: What a probability is about: ``"truth"``, how likely a class is right (the
                most voted class, or the gold label), or ``"votes"``, how likely the next annotator
                chooses it. Where people disagree, they differ: in the temperature and, by the
                default learner, in the center, which is then the head that learned vote shares.
        """
        inputs = self.encode(X)
        check_choice(meaning, MEANINGS, name="meaning")
        if tuple(inputs.shape[1:]) != self._input_shape:
            raise CredalError(
                f"X must have items of shape {self._input_shape}, as in fit; got "
                f"{tuple(inputs.shape[1:])}. To fix: bring the items to that shape."
            )
        temperature = self.temperatures_[meaning]
        predicted = self._centered(self.model_.predict(inputs), meaning)
        return predicted if temperature == 1 else predicted.temper(temperature)

    def _centered(self, predicted: CredalPredictions, meaning: Meaning) -> CredalPredictions:
        """For votes, the head of the default learner that learned their shares, in the middle."""
        if meaning == "truth" or self.choice_ is None or predicted.vertices is None:
            return predicted
        center = predicted.vertices[:, CENTER]
        return CredalPredictions(center, predicted.lower, predicted.upper, predicted.vertices)

    def encode(self, X: Any) -> Inputs:
        """Items as the networks take them: a table as numbers, a sparse matrix in rows (CSR)."""
        check_is_fitted(self, "model_")
        return self._inputs(X, reset=False)

    def fold_items(self, X: Any, labels: CredalSet, truth: Tensor) -> Items:
        """Training items as the folds take them: they encode texts themselves."""
        check_is_fitted(self, "model_")
        if isinstance(self._encoder, TextEncoder):
            return Items(self._encoder.count(as_texts(X)), labels, truth, encode=self._encode_fold)
        return Items(self._inputs(X, reset=False), labels, truth)

    @property
    def _encode_fold(self) -> Encode | None:
        return self._encoder.weigh if isinstance(self._encoder, TextEncoder) else None

    def predict_proba(self, X: Any) -> np.ndarray:
        """How likely each class is right, shape (N, K)."""
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

        The true class of a soft or credal label is the top class of its reference.

        Raises:
            CredalError: If soft labels are not distributions, or labels are over other classes.
        """
        check_is_fitted(self, "model_")
        y = _as_given(y, name="y")
        if column_names(y) is not None:
            y = ordered_columns(y, self.classes_)
        if isinstance(y, CredalSet) or (np.ndim(y) == 2 and np.shape(y)[1] > 1):
            y = self.classes_[top_classes(y, num_classes=len(self.classes_))]
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def save(self, folder: str | Path) -> None:
        """Write the trained model to ``folder``: weights in safetensors, the rest in JSON.

        ``credalearn.load`` reads it back and runs no code from it. Out-of-fold predictions are not
        saved.
        """
        check_is_fitted(self, "model_")
        if self._method() != self.model_.method:
            raise CredalError(
                f"method is now {self.method!r}, but another was fitted. To fix: fit again."
            )
        params = self.get_params(deep=False)
        params |= {"checkpoint": None, "device": "auto", "random_state": self.model_.random_state}
        if not isinstance(self.backbone, str):
            params["backbone"] = None  # code is not saved: `load` asks for the module
        if isinstance(self.method, Method):
            params["method"] = None  # likewise
        names = getattr(self, "feature_names_in_", None)
        config = {
            "params": params,
            "classes": self.classes_.tolist(),
            "classes_dtype": self.classes_.dtype.str,
            "input_shape": list(self._input_shape),
            "encoder": None if self._encoder is None else self._encoder.to_json(),
            "choice": None if self.choice_ is None else asdict(self.choice_),
            "temperatures": self.temperatures_,
            "num_features": self.n_features_in_,
            "feature_names": None if names is None else names.tolist(),
            "loss_curve": self.loss_curve_,
            "versions": {"credalearn": credalearn.__version__, "torch": torch.__version__},
        }
        tensors = {f"state.{name}": tensor for name, tensor in self.model_.state.items()}
        for number, member in enumerate(self.model_.members):
            weights = member.state_dict().items()
            tensors |= {f"member{number}.{name}": tensor for name, tensor in weights}
        write_model(Path(folder), config=config, weights=tensors)

    @property
    def _selects(self) -> bool:
        """Whether this is the default learner."""
        if not isinstance(self.method, str) or not isinstance(self.backbone, str):
            return False
        taught = self.method in METHODS and METHODS[self.method].teachers is not None
        both = (self.method, self.backbone)
        return both == ("auto", "auto") or (taught and self.backbone == "linear")

    def _method(self) -> Method:
        if isinstance(self.method, Method):
            return self.method
        check_choice(self.method, ("auto", *METHODS), name="method")
        if self.method == "auto":
            return METHODS[SELECTED_METHOD if self._selects else "pocc"]
        return METHODS[self.method]

    def _backbone(self) -> Backbone:
        if isinstance(self.backbone, str) and self.backbone == "auto":
            choice = getattr(self, "choice_", None)
            return "mlp" if choice is None else choice.backbone
        return self.backbone

    def _recipe(self) -> Recipe:
        return Recipe(**{each.name: getattr(self, each.name) for each in fields(Recipe)})

    def _check_options(self, *, weighted: bool, on_members: bool) -> None:
        """Reject options that are invalid, or without effect."""
        self._recipe()  # checks its options
        check_choice(self.augment, AUGMENTS, name="augment")
        check_choice(self.encoder, ("auto", "tfidf"), name="encoder")
        method = self._method()
        if not self._selects:
            if self.encoder != "auto":
                raise CredalError(
                    f"encoder={self.encoder!r} is for the default learner. To fix: leave out "
                    "method and backbone, or encode the texts yourself."
                )
            networks = method.num_members + (0 if method.teachers is None else ENSEMBLE_SIZE)
            if isinstance(self.backbone, nn.Module) and networks > 1:
                name = type(self.backbone).__name__
                raise CredalError(
                    f"one {name} as backbone would start all {networks} networks of this method "
                    "from the same weights, but an ensemble needs different ones. To fix: give a "
                    f"function that makes a new one at each call: backbone=lambda: {name}(...)."
                )
            if weighted:
                raise CredalError(
                    "sample_weight is for the default learner. To fix: leave out method and "
                    "backbone, or leave out sample_weight."
                )
            return
        defaults = type(self)().get_params(deep=False)
        names = [*(each.name for each in fields(Recipe)), "weights", "augment"]
        changed = [
            name
            for name in names
            if name != "random_state" and getattr(self, name) != defaults[name]
        ]
        changed += ["members"] * on_members
        if changed:
            raise CredalError(
                f"{', '.join(changed)}: such options are for networks; the default learner selects "
                "its own. To fix: leave them out, or name a method, such as method='pocc'."
            )

    def _select(self, items: Items, groups: np.ndarray | None) -> None:
        """Keep the model that the default learner selects, and what is known of it."""
        weight = items.weight
        used = np.arange(len(items)) if weight is None else np.flatnonzero(weight.numpy() > 0)
        chosen = items if len(used) == len(items) else items[used]
        with self._progress(0) as progress:
            found = select(
                chosen,
                method=self._method(),
                groups=None if groups is None else groups[used],
                random_state=self.random_state,
                device=find_device(self.device),
                report=unheard if progress is None else progress.note,
            )
        self.model_, self.choice_ = found.model, found.choice
        self.folds_ = np.full(len(items), -1)
        self.folds_[used] = found.folds
        self._set_temperatures(found.out_of_fold, chosen)
        temperature, out_of_fold = self.temperatures_["truth"], found.out_of_fold
        self.out_of_fold_ = out_of_fold if temperature == 1 else out_of_fold.temper(temperature)

    def _set_temperatures(self, predicted: CredalPredictions, items: Items) -> None:
        """Learn them from predictions of items that were not trained on."""
        targets: dict[Meaning, Tensor] = {"truth": items.truth, "votes": items.labels.reference}
        for meaning, target in targets.items():
            probs = self._centered(predicted, meaning).probs
            self.temperatures_[meaning] = fit_temperature(probs, target, weight=items.weight)

    def _trained(
        self, inputs: Inputs, labels: CredalSet, members: Sequence[Network] | None
    ) -> tuple[Model, list[float]]:
        """A model of the method given by name, and its losses; on ``members`` if there are any."""
        method, losses, networks = self._method(), [], list(members or ())
        if method.teachers is not None and members is None:
            return self._taught(inputs, labels)
        for number in range(method.num_members if members is None else 0):
            training = self._training(number, inputs, labels, labels.num_classes)
            with self._progress(number) as progress:
                (end,) = train([replace(training, listener=progress)])
            if isinstance(end, TrainingError):
                raise end
            networks.append(training.network)
            losses.append(end)
        state = self.random_state
        model = Model.from_members(method, networks, inputs, labels, random_state=state)
        return model, np.array(losses).mean(0).tolist() if losses else []

    def _taught(self, inputs: Inputs, labels: CredalSet) -> tuple[Model, list[float]]:
        """A student of softmax networks that the same backbone, recipe and data make."""
        method, teachers = self._method(), []
        right = truth_of(labels, None, np.arange(labels.num_classes))
        folds = make_folds(right, None, random_state=self.random_state, count=ENSEMBLE_SIZE)
        for number in range(ENSEMBLE_SIZE):
            one = copy.copy(self)
            one.method, one.random_state = "softmax", self.random_state + 1 + number
            one.checkpoint = _beside(self.checkpoint, f"teacher-{number}")
            left_out = number if method.teachers == "cross-fitted" else -1
            rows = np.flatnonzero(folds != left_out)
            teachers.append(one._trained(inputs[rows], labels[rows], None)[0])

        def say(items: Tensor) -> Tensor:
            return torch.stack([each.predict(items).probs for each in teachers], 1)

        probs = say(inputs)
        taught = taught_labels(probs)
        training = self._training(0, inputs, taught, labels.num_classes)
        if self.augment != "none":
            device = next(training.network.parameters()).device
            training = replace(training, teach=lambda new: taught_labels(say(new)).to(device))
        with self._progress(0) as progress:
            (end,) = train([replace(training, listener=progress)])
        if isinstance(end, TrainingError):
            raise end
        model = Model(method, (training.network,), stretch(1.0), self.random_state)
        predict = partial(method.predictions, model.outputs(inputs))
        if method.teachers == "ensemble":
            return replace(model, state=as_wide_as(predict, taught)), end
        # Around what the one teacher says that did not see the item: it errs as for new items.
        box, unseen = (
            predict(stretch(1.0)),
            probs[torch.arange(len(folds)), torch.from_numpy(folds)],
        )
        ends = unseen[:, None] + torch.stack([box.lower, box.upper], 1) - box.probs[:, None]
        state = narrowest(lambda state: stretched(unseen, ends, state), labels.reference)
        return replace(model, state=state), end

    def _training(
        self, number: int, inputs: Inputs, labels: CredalSet, num_classes: int
    ) -> Training:
        """The training of member ``number``, whose random_state is the classifier's plus that."""
        method, recipe, device = self._method(), self._recipe(), find_device(self.device)
        recipe = replace(recipe, random_state=recipe.random_state + number)
        with seeded(device, recipe.random_state, 0):
            network = self._build(inputs, num_classes, weights=self.weights).to(device)
        augment, mix = AUGMENTS[self.augment]
        checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
        if method.num_members > 1:
            checkpoint = _beside(checkpoint, str(number))
        return Training(
            network=network,
            inputs=inputs,
            labels=labels,
            loss=method.loss,
            recipe=recipe,
            augment=augment if inputs.ndim == 4 else None,
            mix=mix,
            checkpoint=checkpoint,
        )

    def _progress(self, number: int) -> Progress | nullcontext[None]:
        if not self.verbose:
            return nullcontext()
        name = self.method if isinstance(self.method, str) else "your method"
        members = self._method().num_members
        return Progress(name if members == 1 else f"{name} {number + 1}/{members}")

    def _build(
        self, inputs: Tensor, num_classes: int, *, weights: str | Path | None = None
    ) -> Network:
        """An untrained network for such inputs; its backbone may start from a file of weights."""
        method = self._method()
        return build_network(
            self._backbone(),
            inputs,
            num_heads=method.num_heads,
            num_classes=num_classes,
            dropout=method.dropout,
            weights=weights,
        )

    def _check_data(
        self, X: Any, y: Any, classes: ArrayLike | None, used: np.ndarray | None
    ) -> tuple[Inputs, CredalSet, np.ndarray]:
        """Inputs, labels and class names, checked; rows that are not ``used`` have no weight."""
        if not isinstance(y, CredalSet):
            columns = column_names(y)
            if columns is not None and classes is not None:
                y = ordered_columns(y, classes)
            classes = columns if classes is None else classes
            y = validate_data(self, y=_as_given(y, name="y"), multi_output=True)
        inputs = self._inputs(X, reset=True, used=used)
        if len(y) != inputs.shape[0]:
            raise CredalError(
                f"X has {inputs.shape[0]} items and y has {len(y)}. To fix: give every item of X "
                "its label."
            )
        if self.augment.startswith("crop") and inputs.ndim != 4:
            raise CredalError(
                f"augment={self.augment!r} is for images (items, channels, height, width); X has "
                f"the shape {tuple(inputs.shape)}. To fix: augment='none' or 'mixup'."
            )
        labels, names = as_credal(y, names=classes, label_rule=self.label_rule)
        labels = collapse(labels) if self.collapse else labels
        return inputs, labels.to(dtype=torch.float32), names

    def _inputs(self, X: Any, *, reset: bool, used: np.ndarray | None = None) -> Inputs:
        """Items as the networks take them; ``reset`` learns how texts and columns are encoded."""
        X = _as_given(X, name="X")
        if reset:
            self._encoder = None
        if self.encoder == "tfidf" if reset else isinstance(self._encoder, TextEncoder):
            texts = as_texts(X)
            validate_data(self, texts[:, None], reset=reset, skip_check_array=True)
            if reset:
                self._encoder = TextEncoder.fit(texts if used is None else texts[used])
            assert isinstance(self._encoder, TextEncoder)
            # Each fold of a selection weighs the counts itself.
            return self._encoder.count(texts) if reset else self._encoder.transform(texts)
        if hasattr(X, "__array__") and not (hasattr(X, "columns") or issparse(X)):
            X = np.asarray(X)
        if issparse(X):
            self._check_sparse(X)
        if issparse(X) or (not reset and self._encoder is None and self._selects):
            rules = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
            X = validate_data(self, X, reset=reset, **rules)
            return X if issparse(X) else _as_tensor(X)
        if self._backbone() in ("auto", "linear", "mlp") if reset else self._encoder is not None:
            open_table(X)  # refuses what is no table
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset:
                self._encoder = TableEncoder.fit(X if used is None else _safe_indexing(X, used))
            assert isinstance(self._encoder, TableEncoder)
            return _as_tensor(self._encoder.transform(X))
        X = validate_data(self, X, reset=reset, dtype=np.float32, order="C", allow_nd=True)
        return _as_tensor(X)

    def _check_sparse(self, X: Any) -> None:
        """Reject a sparse matrix where the model takes none, or has missing values."""
        fix = "To fix: pass X.toarray()"
        if self._encoder is not None:
            raise CredalError(f"X is sparse, but the model was fitted on a dense table. {fix}.")
        if not self._selects:
            raise CredalError(
                f"a sparse X is for the default learner. {fix}, or leave out method and backbone."
            )
        if not np.isfinite(X.tocsr().data).all():
            raise CredalError(
                f"a sparse X must contain no NaN and no infinity. {fix}, where NaN means missing."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._selects
        tags.input_tags.allow_nan = self._backbone() in ("auto", "linear", "mlp")
        tags.input_tags.string = self.encoder == "tfidf"
        return tags


def _beside(checkpoint: str | Path | None, suffix: str) -> Path | None:
    """The checkpoint of another training, such as that of one member of an ensemble."""
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    return path.with_stem(f"{path.stem}-{suffix}")


def _as_tensor(array: np.ndarray) -> Tensor:
    """The same numbers; torch warns about arrays that it may not write to, so they are copied."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _as_given(values: Any, *, name: str) -> Any:
    """Tensors as arrays, everything else unchanged; scikit-learn would ignore a mask."""
    refuse_masked(values, name=name)
    if not isinstance(values, Tensor):
        return values
    refuse_no_array(values, name=name)
    if values.is_floating_point() and values.dtype not in _NUMPY_FLOATS:
        values = values.float()
    return values.numpy(force=True)
