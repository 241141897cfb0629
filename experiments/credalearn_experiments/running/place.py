"""Where runs are done, in words that travel to other processes."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from credalearn._files import writing
from credalearn.train.device import find_device
from credalearn.train.distributed import own_gpu, world_size
from credalearn_experiments.data import DataFolders
from credalearn_experiments.plugins import load_plugin
from credalearn_experiments.running.runner import Bench
from credalearn_experiments.running.store import Store

REFUSED = 2  # exit code of a process that stopped with a message
SIDE_BY_SIDE = 8  # models on one GPU: beyond eight an H200 does no more images a second


@dataclass(frozen=True, slots=True)
class Place:
    """Where runs are done, in words that travel to other processes.

    Args:
        store: Folder of the store.
        data: Folders of data sets.
        device: ``"auto"`` (a GPU where there is one), or a device of torch.
        weights: File of pretrained weights, or None.
        side_by_side: Models trained at once on a GPU.
        verbose: Show progress.
        plugins: Python files that make methods, tasks and settings known, in this order.

    Example:
        >>> Place(Path("store"), (Path("data"),)).side_by_side
        8
    """

    store: Path
    data: tuple[Path, ...]
    device: str = "auto"
    weights: Path | None = None
    side_by_side: int = SIDE_BY_SIDE
    verbose: bool = True
    plugins: tuple[Path, ...] = ()

    def absolute(self) -> "Place":
        """The same place, from whatever folder it is looked for."""
        return replace(
            self,
            store=self.store.absolute(),
            data=tuple(folder.absolute() for folder in self.data),
            weights=self.weights
            if self.weights in (None, Path("none"))
            else self.weights.absolute(),
            plugins=tuple(plugin.absolute() for plugin in self.plugins),
        )

    def keeping(self) -> AbstractContextManager[None]:
        """Where the store cannot be written inside, as on a full disk, one message says so."""
        return writing(
            self.store,
            other="name another --store; what was kept before is whole, and the same command goes "
            "on from there",
        )

    def bench(self) -> Bench:
        """A bench there, in this process.

        Raises:
            CredalError: If the device is not to be had, or there is no such plugin.
        """
        for plugin in self.plugins:
            load_plugin(plugin)
        name = self.device
        on_gpu = name.startswith("cuda") or (name == "auto" and torch.cuda.is_available())
        if world_size() > 1 and on_gpu:
            name = str(own_gpu(name))
        return Bench(
            store=Store(self.store),
            data=DataFolders(self.data),
            device=find_device(name),
            weights=self.weights,
            verbose=self.verbose,
        )
