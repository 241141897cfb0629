"""Random numbers that depend on given numbers alone, such as a seed and an epoch."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


class RandomStream:
    """Random numbers of one model, the same whether it trains alone or takes turns with others."""

    def __init__(self, device: torch.device) -> None:
        self._cpu = torch.Generator()
        self._active = False
        self._gpu: torch.Generator | None = None
        if device.type == "cuda":
            torch.cuda.init()  # type: ignore[no-untyped-call]
            index = torch.cuda.current_device() if device.index is None else device.index
            self._default_gpu = torch.cuda.default_generators[index]
            self._gpu = torch.Generator(torch.device("cuda", index))

    def reseed(self, *numbers: int) -> None:
        """Start again from these numbers; similar ones give unrelated seeds."""
        seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
        self._cpu.manual_seed(seed)
        if self._gpu is not None:
            self._gpu.manual_seed(seed)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let torch's default generators continue this stream; a nested call changes nothing."""
        if self._active:
            yield
            return
        default = torch.default_generator
        before = default.get_state()
        default.set_state(self._cpu.get_state())
        if self._gpu is not None:  # shared, not copied: a recorded graph draws from it too
            gpu_before = self._default_gpu.graphsafe_get_state()
            self._default_gpu.graphsafe_set_state(self._gpu.graphsafe_get_state())
        self._active = True
        try:
            yield
        finally:
            self._active = False
            self._cpu.set_state(default.get_state())
            default.set_state(before)
            if self._gpu is not None:
                self._default_gpu.graphsafe_set_state(gpu_before)


@contextmanager
def seeded(device: torch.device, *numbers: int) -> Iterator[None]:
    """Random numbers inside come from ``numbers`` alone; outside, nothing changes."""
    stream = RandomStream(device)
    stream.reseed(*numbers)
    with stream.active():
        yield
