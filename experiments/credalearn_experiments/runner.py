"""Doing runs: data and labels, networks, training, predictions, metrics, into the store."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from credalearn._folds import Rows
from credalearn._method_training import teacher_probs, teaching_folds, widened
from credalearn.errors import CredalError, TrainingError
from credalearn.labels.soft import taught_labels
from credalearn.methods import METHODS, Model
from credalearn.methods.distillation import stretch
from credalearn.nets import Network, build_network
from credalearn.predictions import CredalPredictions
from credalearn.sets import CredalSet
from credalearn.train import (
    AUGMENTS,
    CheckpointError,
    Progress,
    Training,
    check_checkpoint,
    crop_and_flip,
    seeded,
    train,
)
from credalearn.train._processes import find_device, own_gpu, tell, world_size
from credalearn.train.training import Execution
from credalearn_experiments.data import FOREIGN, DataFolders, MissingDataError, Task, load_task
from credalearn_experiments.evaluation import Measurements, measure
from credalearn_experiments.labels import training_labels
from credalearn_experiments.plugins import check_method, check_predictions, load_plugin
from credalearn_experiments.records import Record
from credalearn_experiments.runs import Run
from credalearn_experiments.store import MODEL, PREDICTIONS, EpochLog, Store, seconds_spent

# Training items of models side by side from which on torch.compile pays: it makes an H200 a sixth
# faster than about 58,000 items per second, after 40 seconds the first time on a machine.
_WORTH_COMPILING = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Serializable context of runs: where things are, and on what device to train."""

    store: Path
    data: tuple[Path, ...] = ()
    device: str = "auto"  # a GPU where there is one
    weights: Path | None = None  # of pretrained networks; "none" for random ones
    side_by_side: int = 8  # models at once on a GPU; beyond eight an H200 gets no faster
    plugins: tuple[Path, ...] = ()


class Runner:
    """Does runs in one process; data sets and labels stay in memory."""

    def __init__(self, context: RunContext) -> None:
        for plugin in context.plugins:
            load_plugin(plugin)
        self.context = context
        self.store = Store(context.store)
        self.data = DataFolders(context.data)
        name = context.device
        on_gpu = name.startswith("cuda") or (name == "auto" and torch.cuda.is_available())
        # With torchrun each process has its own GPU.
        self.device = find_device(str(own_gpu(name)) if world_size() > 1 and on_gpu else name)
        self._known_task, self._known_labels = cache(self._read_task), cache(self._make_labels)
        self._known_foreign = cache(self._read_foreign)

    def train(self, runs: Sequence[Run], *, deadline: float | None = None) -> None:
        """Train side by side, measure and keep runs of one ``group_key``; mark those that fail."""
        # Everything that can be refused comes first: a run with missing data is not started.
        trainings = {run: self._training(run, together=len(runs)) for run in runs}
        self._foreign_sets(runs[0])
        for run in runs:
            self.store.start(run)
            try:
                check_method(run.method, trainings[run])
            except CredalError as error:
                self._fail(run, error)
                del trainings[run]
        if not trainings:
            return
        first, *others = trainings
        tell([first, *others])
        with Progress(f"{first.name} and {len(others)} more" if others else first.name) as shown:
            logs = [EpochLog(self.store.log(run), len(trainings)) for run in trainings]
            logs[0].shown = shown
            pairs = zip(trainings.values(), logs, strict=True)
            ends = train([replace(each, listener=log) for each, log in pairs], deadline=deadline)
        for run, end in zip(trainings, ends, strict=True):
            if isinstance(end, TrainingError):
                self._fail(run, end)
            elif len(end) == run.setting.recipe.epochs:
                seconds = seconds_spent(self.store.log(run))
                self._keep(run, (trainings[run].network,), seconds)

    def participate(self, runs: Sequence[Run]) -> None:
        """Help to train runs of the first process of torchrun, which measures and keeps them."""
        for run in runs:
            with suppress(TrainingError, CredalError):  # the first process reports it
                train([self._training(run, together=1)])

    def build(self, run: Run) -> None:
        """Measure and keep a run that uses the trained networks of finished ones."""
        members = tuple(self._trained(base) for base in run.bases)
        self.labels(run)
        self._foreign_sets(run)
        self.store.start(run)
        self._keep(run, members, 0.0)

    def measure_again(self, runs: Sequence[Run]) -> int:
        """Measure finished runs; their number. Results on foreign images that are gone stay."""
        count = 0
        for run in runs:
            if self.store.state(run) == "done" and (lock := self.store.claim(run)):
                try:
                    members = tuple(self._trained(base) for base in run.bases or (run,))
                    before = self.store.record(run)
                    self._measure(run, members, before.seconds, before)
                    count += 1
                finally:
                    lock.release()
        return count

    def labels(self, run: Run) -> CredalSet:
        """The training labels of a run, on the device."""
        seed = run.seed if run.setting.depends_on_seed else 0
        return self._known_labels(Run(run.setting, "", seed, run.limit))

    def _make_labels(self, run: Run) -> CredalSet:
        task = self._task(run)
        labels = training_labels(run.setting, task, self.data, self.device, random_state=run.seed)
        return labels.to(dtype=torch.float32).to(self.device)

    def _training(self, run: Run, *, together: int) -> Training:
        """What one run trains, one of ``together`` at a time."""
        inputs, labels, teachers = self._lesson(run)
        method, recipe = METHODS[run.method], replace(run.setting.recipe, random_state=run.seed)
        execution: Execution = "eager"
        if self.device.type == "cuda" and world_size() == 1:
            items = len(inputs) * recipe.epochs * together
            # Dropout is not compiled, so that its random numbers come from the seed and the epoch.
            worth = items >= _WORTH_COMPILING and not method.dropout
            execution = "compiled" if worth else "recorded"
        training = Training(
            network=self._network(run),
            inputs=inputs,
            labels=labels,
            loss=method.loss,
            recipe=recipe,
            augment=crop_and_flip if run.setting.augment and inputs.ndim == 4 else None,
            mix=AUGMENTS[run.setting.mix][1],
            teachers=teachers,
            checkpoint=self.store.checkpoint(run),
            execution=execution,
        )
        try:
            check_checkpoint(training)
        except CheckpointError as error:  # a killed machine must not leave a run that never ends
            print(f"{error} {run.name} starts again", file=sys.stderr)
            self.store.restart(run)
        return training

    def _lesson(self, run: Run) -> tuple[Tensor, CredalSet, tuple[Network, ...]]:
        """Inputs, their labels, and the teachers of augmented and mixed inputs."""
        inputs, labels = self._task(run).train_inputs, self.labels(run)
        if run.left_out is not None:
            folds = self._folds(run, run.seed - run.left_out)
            rows = torch.from_numpy(folds != run.left_out).nonzero()[:, 0].to(self.device)
            return inputs[rows], labels[rows], ()
        if not run.teachers:
            return inputs, labels, ()
        teachers, setting = self._teachers(run), run.setting
        taught = taught_labels(teacher_probs(teachers, inputs)).to(self.device)
        changed = setting.mix != "none" or (setting.augment and inputs.ndim == 4)
        return inputs, taught, tuple(each.members[0] for each in teachers) if changed else ()

    def _folds(self, run: Run, random_state: int) -> Rows:
        return teaching_folds(self.labels(run).to("cpu"), None, random_state=random_state)

    def _teachers(self, run: Run) -> list[Model]:
        softmax = METHODS["softmax"]
        return [Model(softmax, (self._trained(each),), {}, each.seed) for each in run.teachers]

    def _model(self, run: Run, members: tuple[Network, ...]) -> Model:
        """Trained networks with what the method learns from them afterwards."""
        inputs, labels = self._task(run).train_inputs, self.labels(run).to("cpu")
        method = METHODS[run.method]
        model = Model.from_members(method, members, inputs, labels, random_state=run.seed)
        if not run.teachers:
            return model
        probs = teacher_probs(self._teachers(run), inputs)
        return widened(model, inputs, labels, probs, self._folds(run, run.seed))

    def _keep(self, run: Run, members: tuple[Network, ...], seconds: float) -> None:
        try:
            self._measure(run, members, seconds)
        except CredalError as error:  # the last step may have made the weights infinite
            self._fail(run, error)

    def _fail(self, run: Run, reason: Exception) -> None:
        self.store.fail(run, str(reason))
        print(f"{run.name} failed: {reason}", file=sys.stderr)

    def _network(self, run: Run) -> Network:
        """The untrained network of a run; its first weights depend on the seed alone."""
        method, task = METHODS[run.method], self._task(run)
        weights = self.context.weights
        if run.setting.pretrained and weights is None:
            raise CredalError(
                f"{run.setting.name} starts from ImageNet weights of {run.setting.backbone}. To "
                "fix: pass their file as --weights, or pass --weights none for random ones."
            )
        use = run.setting.pretrained and weights != Path("none")
        with seeded(torch.device("cpu"), run.seed, 0):
            network = build_network(
                run.setting.backbone,
                task.train_inputs,
                num_heads=method.num_heads,
                num_classes=task.num_classes,
                dropout=method.dropout,
                weights=weights if use else None,
            )
        if self.device.type == "cpu" and task.train_inputs.ndim == 4:
            # Half again as many images per second; training on a GPU does this by itself.
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network.to(self.device)

    def _trained(self, run: Run) -> Network:
        """The trained network of a finished run."""
        network = self._network(run)
        network.load_state_dict(self.store.tensors(run, MODEL))
        return network

    def _measure(
        self, run: Run, members: tuple[Network, ...], seconds: float, before: Record | None = None
    ) -> None:
        """Predict, evaluate and keep; ``before`` is the record of the last time."""
        began = time.monotonic()
        task = self._task(run)
        model = self._model(run, members)

        def predict(inputs: Tensor) -> CredalPredictions:
            return check_predictions(run.method, model.predict(inputs)).to(self.device)

        chosen = METHODS[run.method].teachers == "cross-fitted"  # a factor, by the training votes
        plain = replace(model, state=stretch(1.0)).predict if chosen else None
        found = measure(run, predict, task, self._foreign_sets(run), plain)
        if before is not None:
            earlier = {name: x for name, x in before.metrics.items() if name.startswith("auroc_")}
            tensors = self.store.tensors(run, PREDICTIONS) | found.predictions
            found = Measurements(earlier | found.metrics, found.curves, tensors)
        trained = before is None and not run.bases
        on_gpu = self.device.type == "cuda"
        device = torch.cuda.get_device_name(self.device) if on_gpu else self.device.type
        processes = 1 if run.bases else world_size()
        self.store.finish(
            run,
            found,
            weights=members[0].state_dict() if trained else None,
            seconds=seconds + time.monotonic() - began,
            device=device if processes == 1 else f"{processes} × {device}",
        )
        shown = (f"{name} {100 * found.metrics[name]:.2f} %" for name in ("accuracy", "auarc"))
        print(f"{run.name}: {', '.join(shown)}", file=sys.stderr)

    def _task(self, run: Run) -> Task:
        setting, task = run.setting, self._known_task(run.setting.task, run.limit)
        height_width = tuple(task.train_inputs.shape[2:])  # empty for features
        if height_width not in ((), (setting.image_size, setting.image_size)):
            raise CredalError(
                f"the images of task {setting.task!r} must be {setting.image_size} px square, as "
                f"image_size of setting {setting.name!r} says; they are {height_width}. To fix: "
                "resize them in the task, or change image_size."
            )
        return task

    def _read_task(self, name: str, limit: int | None) -> Task:
        task = load_task(name, self.data, limit=limit)
        return replace(task, train_inputs=task.train_inputs.to(self.device))

    def _foreign_sets(self, run: Run) -> dict[str, Tensor]:
        """Foreign images by set; a set that is missing is reported once and left out."""
        size, limit = run.setting.image_size, run.foreign_limit
        found = {name: self._known_foreign(name, size, limit) for name in run.setting.foreign}
        return {name: images for name, images in found.items() if images is not None}

    def _read_foreign(self, name: str, size: int, limit: int | None) -> Tensor | None:
        try:
            return FOREIGN[name](self.data, size, limit)
        except MissingDataError as error:
            print(f"no AUROC on {name}: {error}", file=sys.stderr)
            return None
