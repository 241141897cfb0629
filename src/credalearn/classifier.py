"""CredalClassifier, the scikit-learn estimator."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
from torch import Tensor

from credalearn import __version__
from credalearn._checks import check_choice
from credalearn._classifier_options import ClassifierOptions
from credalearn._folds import Items, make_folds
from credalearn._inputs import Encoder, as_numpy, encode, fit_encoder
from credalearn._model_files import ModelConfig, write_model
from credalearn._selection import CENTER, Choice, Search, is_large, select
from credalearn._table_encoder import TableEncoder
from credalearn._targets import (
    as_credal,
    as_groups,
    as_weights,
    ordered_columns,
    top_class_names,
    truth_of,
)
from credalearn._temperature import fit_temperature
from credalearn._text_encoder import TextEncoder, as_texts
from credalearn.errors import CredalError
from credalearn.labels.soft import collapse
from credalearn.methods import Model
from credalearn.nets import Network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import Progress
from credalearn.train._linear import Inputs
from credalearn.train._processes import find_device
from credalearn.train._threads import on_one_thread

Meaning = Literal["truth", "votes"]
MEANINGS: tuple[Meaning, ...] = ("truth", "votes")


class CredalClassifier(ClassifierMixin, ClassifierOptions):  # type: ignore[misc]
    """A classifier that learns from credal labels and predicts sets of distributions.

    ``CredalClassifier()`` selects its model on folds of the training items: linear credal models
    with several L2 penalties and, from 500 items of a table on, a small network, compared by the
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
    """

    classes_: np.ndarray
    model_: Model
    choice_: Choice | None
    temperatures_: dict[Meaning, float]
    out_of_fold_: CredalPredictions | None
    folds_: np.ndarray | None
    loss_curve_: list[float]
    _input_shape: tuple[int, ...]
    _encoder: Encoder

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
        if not isinstance(y, CredalSet):
            y, classes = ordered_columns(as_numpy(y, name="y"), classes)
            y = validate_data(fitted, y=y, multi_output=True)
        fitted._encoder, inputs = fit_encoder(fitted, X, used)
        if len(y) != inputs.shape[0]:
            raise CredalError(
                f"X and y must have the same number of items; got {inputs.shape[0]} and {len(y)}."
            )
        labels, fitted.classes_ = as_credal(y, names=classes, label_rule=self.label_rule)
        labels = (collapse(labels) if self.collapse else labels).to(dtype=torch.float32)
        right = truth_of(labels, truth, fitted.classes_)
        weigh = fitted._encoder.weigh if isinstance(fitted._encoder, TextEncoder) else None
        items = Items(inputs, labels.to(dtype=torch.float64), right, weight, weigh)
        together = None if groups is None else as_groups(groups, len(items))
        fitted._input_shape = tuple(inputs.shape[1:])
        fitted.choice_ = fitted.folds_ = fitted.out_of_fold_ = None
        fitted.loss_curve_, fitted.temperatures_ = [], dict.fromkeys(MEANINGS, 1.0)
        if self._selects:
            fitted._select(items, together, used)
        else:
            training = fitted._method_training()
            fitted.model_, fitted.loss_curve_ = training.fit(
                inputs, labels, groups=together, members=members
            )
            if self.calibrate:
                folds = make_folds(items.truth, together, random_state=self.random_state, count=5)
                rows, held_out = np.flatnonzero(folds != 0), np.flatnonzero(folds == 0)
                aside = replace(
                    training,
                    checkpoint=training.checkpoint_of("calibration"),
                    progress=training.progress and f"{training.progress}, to calibrate",
                )
                others = None if together is None else together[rows]
                model, _ = aside.fit(inputs[rows], labels[rows], groups=others)
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
        return encode(self, X)

    def fold_items(self, X: Any, labels: CredalSet, truth: Tensor) -> Items:
        """Training items as the folds take them: they encode texts themselves."""
        check_is_fitted(self, "model_")
        if isinstance(self._encoder, TextEncoder):
            counts = self._encoder.count(as_texts(X))
            return Items(counts, labels, truth, encode=self._encoder.weigh)
        return Items(self.encode(X), labels, truth)

    def predict_proba(self, X: Any) -> np.ndarray:
        """How likely each class is right, shape (N, K)."""
        probs: np.ndarray = self.predict_credal(X).probs.double().numpy()
        probs /= probs.sum(axis=1, keepdims=True)
        return probs

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each item, shape (N,)."""
        index = self.predict_credal(X).classes.numpy()  # refuses what is not fitted
        return np.asarray(self.classes_[index])

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy on X against y, which is anything that :meth:`fit` takes.

        The true class of a soft or credal label is the top class of its reference.

        Raises:
            CredalError: If soft labels are not distributions, or labels are over other classes.
        """
        check_is_fitted(self, "model_")
        y = y if isinstance(y, CredalSet) else as_numpy(y, name="y")
        named = top_class_names(y, self.classes_)
        return float(accuracy_score(named, self.predict(X), sample_weight=sample_weight))

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
        code = [each for each in ("backbone", "method") if not isinstance(params[each], str)]
        params |= dict.fromkeys(code)  # it is not saved: `load` asks for it
        names, encoder = getattr(self, "feature_names_in_", None), self._encoder
        config = ModelConfig(
            params=params,
            classes=self.classes_.tolist(),
            classes_dtype=self.classes_.dtype.str,
            input_shape=self._input_shape,
            encoder=encoder.columns if isinstance(encoder, TableEncoder) else encoder,
            choice=self.choice_,
            temperatures=self.temperatures_,  # type: ignore[arg-type]
            num_features=self.n_features_in_,
            feature_names=None if names is None else names.tolist(),
            loss_curve=self.loss_curve_,
            versions={"credalearn": __version__, "torch": torch.__version__},
        )
        write_model(Path(folder), config, self.model_)

    def _select(self, items: Items, groups: np.ndarray | None, used: np.ndarray | None) -> None:
        """Keep the model that the default learner selects, and what is known of it."""
        used = np.arange(len(items)) if used is None else used
        groups = None if groups is None else groups[used]
        chosen = items if len(used) == len(items) else items[used]
        folds = make_folds(chosen.truth, groups, random_state=self.random_state)
        method, device = self._method(), find_device(self.device)
        with Progress(str(self.method)) if self.verbose else nullcontext() as progress:
            report = (lambda *_: None) if progress is None else progress.note
            search = Search(chosen, folds, method, self.random_state, device, report)
            selected = on_one_thread(partial(select, search), unless=is_large(chosen))
        self.choice_, self.model_, predicted = selected
        self.folds_ = np.full(len(items), -1)
        self.folds_[used] = folds
        self._set_temperatures(predicted, chosen)
        self.out_of_fold_ = predicted.temper(self.temperatures_["truth"])

    def _set_temperatures(self, predicted: CredalPredictions, items: Items) -> None:
        """Learn them from predictions of items that were not trained on."""
        targets: dict[Meaning, Tensor] = {"truth": items.truth, "votes": items.labels.reference}
        for meaning, target in targets.items():
            probs = self._centered(predicted, meaning).probs
            self.temperatures_[meaning] = fit_temperature(probs, target, weight=items.weight)
