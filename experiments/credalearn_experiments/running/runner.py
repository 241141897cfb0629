"""Doing runs: data and labels, networks, training, predictions, metrics, into the store."""

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from credalearn.errors import CredalError, TrainingError
from credalearn.methods import BASES, METHODS, Model
from credalearn.nets import Network, Standardize, build_backbone
from credalearn.sets import CredalSet
from credalearn.train import (
    CheckpointError,
    Progress,
    Training,
    check_checkpoint,
    crop_and_flip,
    seeded,
    train,
)
from credalearn.train.distributed import tell, world_size
from credalearn.train.training import Execution
from credalearn_experiments.data import DataFolders, MissingDataError, Task, load_foreign, load_task
from credalearn_experiments.records import Record
from credalearn_experiments.running.answers import Answers
from credalearn_experiments.running.labels import training_labels
from credalearn_experiments.running.log import EpochLog
from credalearn_experiments.running.measuring import measured, with_earlier
from credalearn_experiments.running.runs import Run
from credalearn_experiments.running.store import Store
from credalearn_experiments.running.trying import check_method
from credalearn_experiments.settings import Setting

# Training items of models side by side that torch.compile is worth waiting for: it makes an H200
# a sixth faster than about 58,000 a second, after 40 seconds the first time on a machine.
_WORTH_COMPILING = 5_000_000


@dataclass(slots=True)
class Bench:
    """Where runs are done: the data, the device and the store, with what was read kept.

    Args:
        store: Where runs are kept.
        data: Where data sets lie.
        device: Where networks are trained.
        weights: File of pretrained weights, for settings that start from some.
        verbose: Show progress on standard error.
    """

    store: Store
    data: DataFolders
    device: torch.device
    weights: Path | None = None
    verbose: bool = True
    _tasks: dict[tuple[str, int | None], Task] = field(default_factory=dict)
    _labels: dict[tuple[object, ...], CredalSet] = field(default_factory=dict)
    _foreign: dict[tuple[str, int, int | None], Tensor] = field(default_factory=dict)
    _networks: dict[Run, Network] = field(default_factory=dict)
    _answers: Answers = field(default_factory=Answers)

    def train(self, runs: Sequence[Run], *, deadline: float | None = None) -> list[Run]:
        """Train, measure and keep runs that train their own networks in the same surroundings.

        Side by side on a GPU, one after the other elsewhere; with the other processes of torchrun,
        where there are some. A run that was begun goes on where it stopped; one whose loss or
        predictions are not finite, or of another kind than a method's, is marked as failed.

        Args:
            runs: Alike but for labels, method and seed (``Run.surroundings``), claimed by the
                caller.
            deadline: Time of ``time.monotonic()`` after whose epoch training stops and waits for
                another day.

        Returns:
            The runs that are done now.
        """
        started = time.monotonic()
        self._keep_networks({run.setting for run in runs})
        # First what may be refused, data, weights or teachers: a run that was is not begun.
        trainings = {run: self._training(run, beside=len(runs)) for run in runs}
        self._foreign_sets(runs[0])  # what is missing is said before hours of training
        for run in runs:
            self.store.start(run)
        runs = [run for run in runs if self._works(run, trainings[run])]
        if not runs:
            return []
        before = [self.store.seconds_spent(run) for run in runs]
        tell(runs)  # only now: what is wrong with data or settings is said once, by this process
        pairs = [(run, trainings[run]) for run in runs]
        # On a GPU all at once; elsewhere one after the other, as nothing is gained by sharing.
        groups = [pairs] if trainings[runs[0]].execution != "eager" else [[pair] for pair in pairs]
        ends: list[list[float] | TrainingError] = []
        for group in groups:
            logged = [replace(each, listener=self._log(run, len(group))) for run, each in group]
            with Progress(_together([run for run, _ in group])) as progress:
                shown = progress if self.verbose else None
                ends += train(logged, listener=shown, deadline=deadline)
        seconds = (time.monotonic() - started) / len(runs)
        done = []
        for (run, training), end, spent in zip(pairs, ends, before, strict=True):
            if isinstance(end, TrainingError):
                self._fail(run, end)
            elif len(end) == run.setting.recipe.epochs:
                try:
                    self._measure(run, (training.network,), spent + seconds)
                except CredalError as error:  # the last step of all may have been one too far
                    self._fail(run, error)
                    continue
                if run.method in BASES.values():  # others are built on it, mostly by this process
                    self._networks[run] = training.network
                done.append(run)
        return done

    def take_part(self, runs: Sequence[Run]) -> None:
        """Train runs that the first process of torchrun told of; it measures and keeps them."""
        for run in runs:
            training = self._training(run, beside=1)
            with suppress(TrainingError, CredalError):  # the first process has one too, and says it
                train([training])

    def build(self, run: Run) -> None:
        """Build a run on finished ones, measure it and keep it: nothing is trained."""
        started = time.monotonic()
        members = tuple(self._trained(base) for base in run.bases)
        # Data that are missing or damaged stop the work, and are no fault of a run.
        self.labels(run)
        self._foreign_sets(run)
        self.store.start(run)
        try:
            self._measure(run, members, 0.0, started=started)
        except CredalError as error:
            self._fail(run, error)

    def measure(self, run: Run) -> None:
        """Measure a finished run once more, from its kept networks, and keep what is found now.

        For foreign images that came later, or a metric that is new; nothing is trained. What was
        found on foreign images that are not at hand now is kept, and named.
        """
        started = time.monotonic()
        self._keep_networks({run.setting})
        members = tuple(self._trained(base) for base in run.bases or (run,))
        before = self.store.record(run)
        self._measure(run, members, before.seconds, started=started, before=before)

    def labels(self, run: Run) -> CredalSet:
        """The training labels of a run, on the device; the seed counts where votes are drawn."""
        setting = run.setting
        seed = run.seed if setting.depends_on_seed else None
        key = (setting.task, setting.labels, setting.collapsed, run.limit, seed)
        if key not in self._labels:
            task = self._task(setting, run.limit)
            labels = training_labels(setting, task, self.data, self.device, seed=run.seed)
            self._labels[key] = labels.to(dtype=torch.float32).to(self.device)
        return self._labels[key]

    def _fail(self, run: Run, why: Exception) -> None:
        self.store.fail(run, str(why))
        print(f"{run.name} failed: {why}", file=sys.stderr)

    def _training(self, run: Run, *, beside: int) -> Training:
        """What one run trains, one of ``beside`` at a time."""
        task = self._task(run.setting, run.limit)
        method, recipe = METHODS[run.method], replace(run.setting.recipe, random_state=run.seed)
        items = len(task.train_inputs) * recipe.epochs * beside
        execution: Execution = "eager"
        if self.device.type == "cuda" and world_size() == 1:
            # Dropout is not compiled, so that its numbers come from the seed and the epoch.
            worth = items >= _WORTH_COMPILING and not method.dropout
            execution = "compiled" if worth else "recorded"
        training = Training(
            network=self._network(run),
            inputs=task.train_inputs,
            labels=self.labels(run),
            loss=method.loss,
            recipe=recipe,
            augment=crop_and_flip if run.setting.augment and task.train_inputs.ndim == 4 else None,
            checkpoint=self.store.checkpoint(run),
            execution=execution,
        )
        try:
            check_checkpoint(training)
        except CheckpointError as error:  # a killed machine must not leave a run that never ends
            print(f"{error} {run.name} starts anew", file=sys.stderr)
            self.store.restart(run)
        return training

    def _works(self, run: Run, training: Training) -> bool:
        """Whether the run's method gives what a method must; one that does not has failed."""
        try:
            check_method(run.method, training.network, training.inputs, training.labels)
        except CredalError as error:
            self._fail(run, error)
            return False
        return True

    def _log(self, run: Run, beside: int) -> EpochLog:
        return EpochLog(self.store.path(run) / "log.jsonl", share=1 / beside)

    def _network(self, run: Run) -> Network:
        """The untrained network of a run; its first weights come from the seed alone."""
        method, task = METHODS[run.method], self._task(run.setting, run.limit)
        if run.setting.pretrained and self.weights is None:
            raise CredalError(
                f"{run.setting.name} starts from weights that {run.setting.backbone} learned on "
                "ImageNet. To fix: name their file with --weights, or give --weights none to "
                "start from random ones."
            )
        weights = self.weights if run.setting.pretrained else None
        with seeded(torch.device("cpu"), run.seed, 0):
            backbone = build_backbone(
                run.setting.backbone,
                tuple(task.train_inputs.shape[1:]),
                dropout=method.dropout,
                weights=weights if weights != Path("none") else None,
            )
            network = Network.on(
                backbone,
                task.train_inputs[:2].cpu(),
                num_heads=method.num_heads,
                num_classes=task.num_classes,
                dropout=method.dropout,
            )
        for layer in network.modules():
            if isinstance(layer, Standardize):
                layer.fit(task.train_inputs)
        if self.device.type == "cpu" and task.train_inputs.ndim == 4:
            # Half again as many images a second. A GPU's trainings side by side do it themselves.
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return network.to(self.device)

    def _keep_networks(self, settings: set[Setting]) -> None:
        """Drop the networks of other settings, which are done with: they take 45 MB each."""
        self._networks = {r: net for r, net in self._networks.items() if r.setting in settings}
        self._answers.forget_all_but(self._networks.values())

    def _trained(self, run: Run) -> Network:
        """The trained network of a finished run."""
        if run not in self._networks:
            network = self._network(run)
            network.load_state_dict(self.store.tensors(run, "model.safetensors"))
            self._networks[run] = network
        return self._networks[run]

    def _measure(
        self,
        run: Run,
        members: tuple[Network, ...],
        seconds: float,
        *,
        started: float | None = None,
        before: Record | None = None,
    ) -> None:
        """Predict, measure and keep; ``before`` is what was found the last time."""
        began = time.monotonic() if started is None else started
        task = self._task(run.setting, run.limit)
        labels = self.labels(run)
        model = Model.from_members(
            METHODS[run.method], members, task.train_inputs, labels.to("cpu"), random_state=run.seed
        )
        foreign = self._foreign_sets(run)
        found = measured(run, model, task, foreign, answers=self._answers, device=self.device)
        if before is not None:
            found = with_earlier(found, run, before, foreign, self.store)
        trained = members[0].state_dict() if not run.bases else {}
        self.store.finish(
            run,
            metrics=found.metrics,
            curves=found.curves,
            predictions=found.predictions,
            weights=trained if before is None else None,
            seconds=seconds + time.monotonic() - began,
            device=_device_name(self.device, processes=1 if run.bases else world_size()),
        )
        if self.verbose:
            told = ", ".join(
                f"{name} {100 * found.metrics[name]:.2f} %" for name in ("accuracy", "auarc")
            )
            print(f"{run.name}: {told}", file=sys.stderr)

    def _task(self, setting: Setting, limit: int | None) -> Task:
        key = (setting.task, limit)
        if key not in self._tasks:
            task = load_task(setting.task, self.data, limit=limit)
            self._tasks[key] = replace(task, train_inputs=task.train_inputs.to(self.device))
        _check_size(setting, self._tasks[key])  # settings of one task may differ in it
        return self._tasks[key]

    def _foreign_sets(self, run: Run) -> dict[str, Tensor]:
        """Foreign images by set; a set that is not at hand is left out, and named once.

        Raises:
            CredalError: If one is there and damaged.
        """
        found = {}
        for name in run.setting.foreign:
            key = (name, run.setting.image_size, run.limit)
            if key not in self._foreign:
                try:
                    images = load_foreign(name, self.data, size=key[1], limit=run.foreign_limit)
                except MissingDataError as error:
                    print(f"no AUROC on {name}: {error}", file=sys.stderr)
                    images = torch.empty(0)
                self._foreign[key] = images
            if len(self._foreign[key]):
                found[name] = self._foreign[key]
        return found


def _check_size(setting: Setting, task: Task) -> None:
    """Refuse images of another size than the setting's, which their record would tell."""
    sides = tuple(task.train_inputs.shape[2:])  # none of rows of features
    if not sides or sides == (setting.image_size, setting.image_size):
        return
    height, width = sides
    square = height == width
    shown = f"{height}" if square else f"{height} × {width}"
    fix = f"give image_size={height}, or resize" if square else "make them square"
    raise CredalError(
        f"task {setting.task!r} has images of {shown} px, setting {setting.name!r} says "
        f"image_size={setting.image_size}. To fix: {fix} in the task."
    )


def _together(runs: Sequence[Run]) -> str:
    """What progress calls models that are trained side by side."""
    if len(runs) == 1:
        return runs[0].name
    others = len({run.setting.name for run in runs}) - 1
    more = f" and {others} setting{'' if others == 1 else 's'} more" if others else ""
    return f"{runs[0].setting.name}{more}, {len(runs)} models"


def _device_name(device: torch.device, *, processes: int) -> str:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return name if processes == 1 else f"{processes} × {name}"
