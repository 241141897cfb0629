"""Training speed on one GPU: ResNet-18 at 32 px, batches of 128, and the cost of POCC's loss.

``make bench-gpu`` prints it. All figures come from one run on one machine; images are random, on
the device, augmented as in the paper's settings.
"""

import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

import credalearn as cl
from credalearn.methods import METHODS, Model
from credalearn.nets import Network, build_backbone
from credalearn.train import Mix, Recipe, Training, crop_and_flip, seeded, train
from credalearn.train.augment import cutmix
from credalearn.train.training import Execution

ITEMS, CLASSES = 10_000, 10
IMAGES_PER_SECOND = 65_000  # at least, with four models side by side
TIMES_EAGER = 4.0  # at least
POCC_OVER_SOFTMAX = 1.03  # at most
MIXED_OVER_PLAIN = 1.03  # at most
AGREEMENT_ERROR = 1.0  # points of accuracy, at most: more would hide a difference
DATA_VARIABLE = "CREDALEARN_DATA"


class Clock:
    """Listener that notes when each epoch was done."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def epoch(self, number: int, *, of: int, loss: float, items: int) -> None:
        """Note the time."""
        del number, of, loss, items
        self.times.append(time.perf_counter())

    def resumed(self, done: int, *, of: int, source: str) -> None:
        """Nothing was done before."""

    def images_per_second(self, models: int) -> float:
        """Over all epochs but the first."""
        return models * ITEMS * (len(self.times) - 1) / (self.times[-1] - self.times[0])


def problem() -> tuple[Tensor, cl.CredalSet]:
    """Random images and relaxed labels on the GPU."""
    generator = torch.Generator("cuda").manual_seed(0)
    size = (ITEMS, 3, 32, 32)
    images = torch.randint(256, size, generator=generator, device="cuda", dtype=torch.uint8)
    logits = 3 * torch.randn(ITEMS, CLASSES, generator=generator, device="cuda")
    return images, cl.relax(logits.softmax(1))


def network(method: str, images: Tensor, random_state: int) -> Network:
    """An untrained ResNet-18 for a method."""
    with seeded(torch.device("cpu"), random_state, 0):
        backbone = build_backbone("resnet18", (3, 32, 32), dropout=METHODS[method].dropout)
        built = Network.on(
            backbone,
            images[:2].cpu(),
            num_heads=METHODS[method].num_heads,
            num_classes=CLASSES,
            dropout=METHODS[method].dropout,
        )
    return built.cuda()


def training(
    method: str,
    data: tuple[Tensor, cl.CredalSet],
    *,
    epochs: int,
    random_state: int,
    execution: Execution,
    learning_rate: float = 0.1,
) -> Training:
    """A training by the paper's recipe, except for the epochs."""
    images, labels = data
    return Training(
        network=network(method, images, random_state),
        inputs=images,
        labels=labels,
        loss=METHODS[method].loss,
        recipe=Recipe(
            epochs=epochs,
            optimizer="sgd",
            learning_rate=learning_rate,
            weight_decay=5e-4,
            random_state=random_state,
        ),
        augment=crop_and_flip,
        execution=execution,
    )


def speed(
    method: str, count: int, execution: Execution, *, epochs: int = 6, mix: Mix | None = None
) -> float:
    """Images per second of several models side by side, from the end of the first epoch."""
    data, clock = problem(), Clock()
    plain = [
        training(method, data, epochs=epochs, random_state=random_state, execution=execution)
        for random_state in range(count)
    ]
    trainings = [replace(each, mix=mix) for each in plain]
    train([*trainings[:-1], replace(trainings[-1], listener=clock)])
    return clock.images_per_second(count)


def agreement(seeds: Sequence[int] = range(6), epochs: int = 12) -> tuple[str, bool]:
    """Test accuracy on CIFAR-10H after a few epochs, eager and compiled side by side.

    The second value is whether the difference lies within two of its standard errors, and these are
    small enough to tell.

    At a fifth of the paper's learning rate: at the full rate such a short training ends anywhere
    between 40 and 57 %, which distinguishes nothing.
    """
    from credalearn_experiments.data import DataFolders, load_task

    task = load_task("cifar10h", DataFolders.named())
    assert task.train_soft is not None
    data = (
        task.train_inputs.cuda(),
        cl.relax(task.train_soft).to(dtype=torch.float32).to("cuda"),
    )

    def accuracies(execution: Execution) -> Tensor:
        trainings = [
            training(
                "softmax",
                data,
                epochs=epochs,
                random_state=seed,
                execution=execution,
                learning_rate=0.02,
            )
            for seed in seeds
        ]
        train(trainings)
        models = [Model(METHODS["softmax"], (each.network,), {}, 0) for each in trainings]
        predicted = [model.predict(task.test_inputs).probs for model in models]
        return 100 * torch.tensor([cl.metrics.accuracy(each, task.test_y) for each in predicted])

    slow, quick = accuracies("eager"), accuracies("compiled")
    difference, error = (quick - slow).mean(), (quick - slow).std() / len(seeds) ** 0.5
    text = (
        f"accuracy on CIFAR-10H after {epochs} epochs, {len(seeds)} seeds: eager "
        f"{slow.mean():.2f} ± {slow.std():.2f} %, compiled and side by side {quick.mean():.2f} ± "
        f"{quick.std():.2f} %, difference {difference:.2f} ± {error:.2f} (its standard error)"
    )
    return text, bool(difference.abs() <= 2 * error and error <= AGREEMENT_ERROR)


def main() -> int:
    """Measure and print; the exit code says whether the limits hold."""
    if not torch.cuda.is_available():
        print("make bench-gpu needs a CUDA GPU; torch sees none here.", file=sys.stderr)
        return 2
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; ResNet-18, 32 px, batch 128")
    eager = speed("softmax", 1, "eager", epochs=4)
    print(f"eager, 1 model                 {eager:9,.0f} images/s", flush=True)
    found: dict[tuple[Execution, int], float] = {}
    choices: tuple[Execution, ...] = ("recorded", "compiled")
    for execution in choices:
        for count in (1, 4, 8):
            found[execution, count] = speed("softmax", count, execution)
            models = f"{count} model{'s' * (count > 1)}"
            print(f"{execution}, {models:10}{found[execution, count]:19,.0f} images/s", flush=True)
    four, best = found["compiled", 4], max(found.values())
    ratio = statistics.median(
        speed("softmax", 4, "compiled") / speed("pocc", 4, "compiled") for _ in range(3)
    )
    mixed = statistics.median(
        speed("pocc", 4, "compiled") / speed("pocc", 4, "compiled", mix=cutmix) for _ in range(3)
    )
    limits = [
        (
            f"four models: {four:,.0f} images/s",
            four >= IMAGES_PER_SECOND,
            f"≥ {IMAGES_PER_SECOND:,}",
        ),
        (f"best over eager: {best / eager:.2f}", best / eager >= TIMES_EAGER, f"≥ {TIMES_EAGER:g}"),
        (
            f"POCC's step over softmax's: {ratio:.3f}",
            ratio <= POCC_OVER_SOFTMAX,
            f"≤ {POCC_OVER_SOFTMAX}",
        ),
        (
            f"a step with CutMix over one without: {mixed:.3f}",
            mixed <= MIXED_OVER_PLAIN,
            f"≤ {MIXED_OVER_PLAIN}",
        ),
    ]
    if os.environ.get(DATA_VARIABLE):
        text, same = agreement()
        limits.append((text, same, f"within two standard errors of {AGREEMENT_ERROR:g} or less"))
    else:
        print(f"accuracies are not compared: {DATA_VARIABLE} names no data folder")
    for text, ok, limit in limits:
        print(f"{'ok  ' if ok else 'MISS'} {text} (limit {limit})")
    return 0 if all(ok for _, ok, _ in limits) else 1


if __name__ == "__main__":
    sys.exit(main())
