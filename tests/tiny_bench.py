"""A benchmark small enough for tests: a setting of the paper on a few tiny images, one thread."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from credalearn.predictions import CredalPredictions
from credalearn_experiments.running.place import Place
from credalearn_experiments.running.runs import Run, plan
from credalearn_experiments.settings import Setting
from credalearn_experiments.settings.catalog import ALL_SETTINGS

# WRN-28-4 has half the weights of ResNet-18: a step on four images and its checkpoint take 0.3 s.
NAME = "cifar100-smooth-0.05"
LIMIT = 4


def tiny_setting(
    *methods: str, epochs: int = 2, seeds: tuple[int, ...] = (1,), name: str = NAME
) -> Setting:
    return ALL_SETTINGS[name].narrowed(epochs=epochs, seeds=seeds, methods=methods or ("softmax",))


def tiny_plan(
    *methods: str, epochs: int = 2, seeds: tuple[int, ...] = (1,), independent: bool = False
) -> list[Run]:
    setting = tiny_setting(*methods, epochs=epochs, seeds=seeds)
    return plan([setting], independent=independent, limit=LIMIT)


def tiny_place(store: Path, data: Path) -> Place:
    return Place(store, (data,), device="cpu", verbose=False)


def unpack(
    tensors: Mapping[str, Tensor],
) -> tuple[CredalPredictions, Tensor, dict[str, CredalPredictions]]:
    """What a run stored: predictions of the test items, their classes, predictions of others."""
    held: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        place, _, field = name.rpartition(".")
        held.setdefault(place, {})[field] = tensor
    classes = held.pop("")["y"]
    found = {place: CredalPredictions(**fields) for place, fields in held.items()}
    return found.pop("test"), classes, found


def command(place: Place, runs: Sequence[Run], *options: str) -> list[str]:
    """What a user would type to have these runs done in this place."""
    methods = dict.fromkeys(run.method for run in runs)
    seeds = ",".join(str(seed) for seed in dict.fromkeys(run.seed for run in runs))
    return [
        *(
            sys.executable,
            "-c",
            "from credalearn.app.cli import main; main()",
            "bench",
            "run",
            NAME,
        ),
        *(f"--method={method}" for method in methods),
        *("--seeds", f"{seeds},", "--epochs", str(runs[0].setting.recipe.epochs)),
        *("--limit", str(LIMIT), "--device", "cpu", "--store", str(place.store)),
        *("--data", os.pathsep.join(map(str, place.data)), *options),
    ]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "CREDALEARN_UNVERIFIED": "1", **more}


def start(words: list[str], **more: str) -> subprocess.Popen[str]:
    """A process of its own, whose messages can be read when it has ended."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        words, env=environment(**more), text=True, stdout=pipe, stderr=pipe, start_new_session=True
    )


def wait_until(condition: Callable[[], object], *, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def holders(path: Path) -> list[int]:
    """Processes that have this file open, from the kernel's own list."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink() == path.resolve():
                found.append(int(link.parts[2]))
        except OSError:  # ended, or not ours
            continue
    return found
